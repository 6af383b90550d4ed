package workflow

import "fmt"

func (c *checker) checkHumanTask(i int, n Node) {
	config := n.Config()
	c.checkInputs(i, n)
	c.checkTimeout(i, n, "INVALID_TASK_TIMEOUT")
	c.checkCompletion(i, n, "MISSING_COMPLETION_EDGE")
	if _, err := c.check(scopeTitle, n.Title()); err != nil {
		c.nodeProblem(i, "INVALID_TASK_TITLE_EXPRESSION", fmt.Sprintf("title: %v", err))
	}
	if blank(config["description"]) {
		c.nodeProblem(i, "MISSING_TASK_DESCRIPTION", "nothing tells people what to do")
	}
	c.checkInputValues(i, n, "EMPTY_TASK_INPUT_EXPRESSION")
	c.checkResponseSchema(i, n)
	for at, f := range n.OutputFields() {
		c.checkFormField(i, at, f)
	}
}

func (c *checker) checkResponseSchema(i int, n Node) {
	schema := n.Config()["responseSchema"]
	switch {
	case schema == nil && n.Config()["outputs"] == nil:
		c.nodeProblem(i, "MISSING_TASK_OUTPUTS", "outputs are missing; [] says that any object will do")
	case schema == nil:
	case len(list(n.Config()["outputs"])) > 0:
		c.nodeProblem(i, "INVALID_RESPONSE_SCHEMA", "responseSchema and outputs exclude each other")
	default:
		if err := checkSchema(schema); err != nil {
			c.nodeProblem(i, "INVALID_RESPONSE_SCHEMA", fmt.Sprintf("responseSchema: %v", err))
		}
	}
}

// widgetSelect is the widget that offers options.
const widgetSelect = "select"

func (c *checker) checkFormField(i, at int, f Field) {
	if !blank(f.Widget()) && f.Type() != typeString {
		c.nodeProblem(i, "WIDGET_TYPE_MISMATCH",
			fmt.Sprintf("output %d of type %s has the widget %s, which is for strings", at, show(f.Type()), show(f.Widget())))
	}
	if f.Widget() == widgetSelect && len(f.Options()) == 0 {
		c.nodeProblem(i, "SELECT_MISSING_OPTIONS", fmt.Sprintf("output %d has nothing to select from", at))
	}
	for o, option := range f.Options() {
		if blank(option.Value) {
			c.nodeProblem(i, "MALFORMED_OUTPUT_OPTION", fmt.Sprintf("option %d of output %d has no value", o, at))
		}
	}
	if mistyped(f.DefaultValue(), typeOfField(f)) {
		c.nodeProblem(i, "DEFAULT_VALUE_TYPE_MISMATCH",
			fmt.Sprintf("the default of output %d is not of type %s", at, show(f.Type())))
	}
}

func typeOfField(f Field) jsonType {
	switch f.Type() {
	case typeNumber:
		return isNumber
	case typeBoolean:
		return isBool
	case typeObject:
		return func(v any) bool { return isObject(v) || isList(v) }
	}
	return isString
}
