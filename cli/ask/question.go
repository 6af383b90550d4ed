package ask

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// wholeName is the name of the one question about an answer that has no fields.
const wholeName = "answer"

// What is typed for a text of several lines to end, and for an optional field that
// has a default to be left out.
const (
	endOfText = "."
	leftOut   = "-"
)

// A kind is what a question wants.
type kind string

const (
	kindText    kind = "text"
	kindBoolean kind = "yes or no"
	kindNumber  kind = "a number"
	kindInteger kind = "a whole number"
	kindObject  kind = "a JSON object"
	kindList    kind = "a JSON list"
	kindTree    kind = "a JSON object or list"
	kindAny     kind = "JSON or text"
)

// A question asks for one member of the answer.
type question struct {
	name, label, help string
	kind              kind
	isRequired        bool
	isSecret          bool
	// isLong: the text may have several lines.
	isLong  bool
	choices []choice
	// initial is what an empty line means; nil: nothing.
	initial any
	// check holds a value against what is asked.
	check func(value any) []form.FieldError
}

// A choice is one of the values that are offered.
type choice struct {
	label string
	value any
}

// manner says how to answer.
func (q question) manner() string {
	parts := []string{string(q.kind)}
	switch {
	case len(q.choices) > 0:
		parts = []string{"a number or value of the list"}
	case q.isLong:
		parts = []string{"text, a line that is only " + endOfText + " ends it"}
	}
	switch {
	case q.isRequired:
		parts = append(parts, "required")
	case q.initial != nil:
		parts = append(parts, "optional, "+leftOut+" leaves it out")
	default:
		parts = append(parts, "optional")
	}
	return strings.Join(parts, ", ")
}

// prompt shows what an empty line means, unless that is a secret.
func (q question) prompt() string {
	switch {
	case q.initial == nil:
		return "> "
	case q.isSecret:
		return "[••••] > "
	}
	return "[" + command.Clean(textOf(q.initial)) + "] > "
}

// textOf is how a value is typed.
func textOf(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	return command.ValueText(value)
}

// take reads what was typed; complaint says what is wrong with it and never
// repeats it.
func (q question) take(text string) (value any, isGiven bool, complaint string) {
	bare := strings.TrimSpace(text)
	switch {
	case bare == "" && q.initial != nil:
		value = q.initial
	case bare == "" && q.isRequired:
		return nil, false, "an answer is needed"
	case bare == "", bare == leftOut && !q.isRequired && q.initial != nil:
		return nil, false, ""
	default:
		if value, complaint = q.parse(text); complaint != "" {
			return nil, false, complaint
		}
	}
	for _, e := range q.check(value) {
		return nil, false, q.explain(e.Rule)
	}
	return value, true, ""
}

func (q question) parse(text string) (value any, complaint string) {
	bare := strings.TrimSpace(text)
	if len(q.choices) > 0 {
		return q.choose(bare)
	}
	switch q.kind {
	case kindText:
		return text, ""
	case kindBoolean:
		if isYes, isKnown := yesOrNo(bare); isKnown {
			return isYes, ""
		}
		return nil, q.explain(form.RuleType)
	case kindNumber, kindInteger, kindObject, kindList, kindTree, kindAny:
	}
	value, err := jsonvalue.Decode([]byte(bare))
	switch {
	case err != nil && q.kind == kindAny:
		return text, ""
	case err != nil || !q.kind.has(value):
		return nil, q.explain(form.RuleType)
	}
	return value, ""
}

// has tells of a JSON value whether it is of the kind.
func (k kind) has(value any) bool {
	isObject, isList, isInteger, isFraction := false, false, false, false
	switch value.(type) {
	case map[string]any:
		isObject = true
	case []any:
		isList = true
	case int64:
		isInteger = true
	case float64:
		isFraction = true
	}
	switch k {
	case kindObject:
		return isObject
	case kindList:
		return isList
	case kindTree:
		return isObject || isList
	case kindInteger:
		return isInteger
	case kindNumber:
		return isInteger || isFraction
	default:
		return true
	}
}

// choose takes a value as it is written before it takes a place in the list.
func (q question) choose(text string) (value any, complaint string) {
	if n := slices.IndexFunc(q.choices, func(c choice) bool { return textOf(c.value) == text }); n >= 0 {
		return q.choices[n].value, ""
	}
	if n, err := strconv.Atoi(text); err == nil && 1 <= n && n <= len(q.choices) {
		return q.choices[n-1].value, ""
	}
	return nil, q.explain(form.RuleOption)
}

// explain says what a rule wants.
func (q question) explain(rule string) string {
	switch rule {
	case form.RuleRequired:
		return "an answer is needed"
	case form.RuleOption:
		return "that is not in the list"
	case form.RuleType:
		return "that is not " + string(q.kind)
	}
	return "that breaks the rule " + command.Clean(rule)
}

func yesOrNo(text string) (isYes, isKnown bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes", "true":
		return true, true
	case "n", "no", "false":
		return false, true
	}
	return false, false
}
