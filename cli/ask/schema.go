package ask

import (
	"cmp"
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/form"
)

// questionsOf are what to ask for an answer. whole: there is one, and what it is
// answered with is the answer.
func questionsOf(spec form.Spec) (questions []question, whole bool) {
	if spec.ResponseSchema == nil && len(spec.Fields) > 0 {
		return fieldQuestions(spec.Fields), false
	}
	root, _ := spec.ResponseSchema.(map[string]any)
	if questions := propertyQuestions(root); len(questions) > 0 {
		return questions, false
	}
	q := question{name: wholeName, label: wholeName, kind: kindOfSchema(root), isRequired: true}
	q.help = command.TextOf(root["description"])
	if spec.ResponseSchema == nil {
		q.kind = kindObject
	}
	q.check = func(value any) []form.FieldError {
		_, wrong := form.Accept(spec, value)
		return wrong
	}
	return []question{q}, true
}

// fieldQuestions ask for the fields of a form; of equal names the first counts.
func fieldQuestions(fields []form.Field) []question {
	var questions []question
	for _, f := range fields {
		if slices.ContainsFunc(questions, func(q question) bool { return q.name == f.Name }) {
			continue
		}
		q := question{
			name: f.Name, label: f.Label, help: f.Description, isRequired: f.Required, initial: f.DefaultValue,
			kind: kindOfField(f.Type), isLong: f.Widget == "textarea" && f.Type == "string", isSecret: f.Widget == "password",
		}
		if f.Widget == "select" {
			for _, o := range f.Options {
				q.choices = append(q.choices, choice{label: cmp.Or(o.Label, o.Value), value: o.Value})
			}
		}
		q.check = func(value any) []form.FieldError {
			_, wrong := form.Accept(form.Spec{Fields: []form.Field{f}}, map[string]any{f.Name: value})
			return wrong
		}
		questions = append(questions, q)
	}
	return questions
}

func kindOfField(fieldType string) kind {
	switch fieldType {
	case "boolean":
		return kindBoolean
	case "number":
		return kindNumber
	case "object":
		return kindTree
	}
	return kindText
}

// propertyQuestions ask for the properties of a schema, the required ones first;
// none if it describes no object by them.
func propertyQuestions(root map[string]any) []question {
	properties, _ := root["properties"].(map[string]any)
	if is := command.TextOf(root["type"]); is != "object" {
		return nil
	}
	required, _ := root["required"].([]any)
	var names []string
	for _, name := range required {
		if text := command.TextOf(name); properties[text] != nil && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	isRequired := len(names)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	questions := make([]question, 0, len(names))
	for n, name := range names {
		q := propertyQuestion(root, name)
		q.isRequired = n < isRequired
		questions = append(questions, q)
	}
	return questions
}

func propertyQuestion(root map[string]any, name string) question {
	properties, _ := root["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	hidden, _ := property["writeOnly"].(bool)
	q := question{
		name: name, label: cmp.Or(command.TextOf(property["title"]), name), help: command.TextOf(property["description"]),
		initial: property["default"], kind: kindOfSchema(property), isSecret: hidden || command.TextOf(property["format"]) == "password",
		choices: choicesOf(property),
	}
	if q.isSecret {
		q.choices = nil
	}
	if value, isFixed := property["const"]; isFixed && q.initial == nil {
		q.initial = value
	}
	alone := form.Spec{ResponseSchema: aloneSchema(root, name)}
	q.check = func(value any) []form.FieldError {
		_, wrong := form.Accept(alone, map[string]any{name: value})
		return wrong
	}
	return q
}

// aloneSchema is what a schema says about one property, with all that its
// references may lead to.
func aloneSchema(root map[string]any, name string) map[string]any {
	properties, _ := root["properties"].(map[string]any)
	alone := map[string]any{"properties": map[string]any{name: properties[name]}}
	for _, keyword := range []string{"$schema", "$id", "$defs", "definitions"} {
		if value, isGiven := root[keyword]; isGiven {
			alone[keyword] = value
		}
	}
	return alone
}

func choicesOf(property map[string]any) []choice {
	values, _ := property["enum"].([]any)
	if value, isFixed := property["const"]; isFixed {
		values = []any{value}
	}
	var choices []choice
	for _, value := range values {
		choices = append(choices, choice{label: textOf(value), value: value})
	}
	return choices
}

func kindOfSchema(property map[string]any) kind {
	switch command.TextOf(property["type"]) {
	case "string":
		return kindText
	case "boolean":
		return kindBoolean
	case "number":
		return kindNumber
	case "integer":
		return kindInteger
	case "object":
		return kindObject
	case "array":
		return kindList
	}
	return kindAny
}
