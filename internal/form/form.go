// Package form decides whether an answer to a human task is acceptable, and what enters the run when it is.
//
// A task asks in one of three ways. In form mode it has fields, and text is turned into what the type of a field asks
// for. In strict mode it has a JSON Schema, and nothing is turned into anything. With neither, any JSON object will do.
// Admission and run use the same function, so an answer that was admitted can be used.
//
// Errors name paths and rules and never repeat a value: an answer may be confidential. The package knows nothing of
// tasks, of runs or of Kubernetes.
package form

import (
	"fmt"
	"maps"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A Spec is what a task asks for. A schema excludes fields.
type Spec struct {
	Fields []Field `json:"fields,omitempty"`
	// ResponseSchema is a JSON Schema 2020-12; nil if there is none.
	ResponseSchema any `json:"responseSchema,omitempty"`
}

// SpecOf reads what an answer must be like from the spec of a task as JSON.
func SpecOf(task map[string]any) Spec {
	outline, _ := task["form"].(map[string]any)
	fields, _ := outline["fields"].([]any)
	return Spec{Fields: FieldsOf(fields), ResponseSchema: task["responseSchema"]}
}

// Rules that an answer can break. In strict mode the rule is the keyword of the schema instead.
const (
	// RuleRequired: the value must be present, not null and no blank text.
	RuleRequired = "required"
	// RuleType: the value must be of the type, or text that denotes a value of it.
	RuleType = "type"
	// RuleOption: the value must be one of the options.
	RuleOption = "option"
	// RuleSize: the answer must not have more than MaxAnswerBytes.
	RuleSize = "size"
	// RuleSchema: the schema cannot be used.
	RuleSchema = "schema"
	// RuleEffort: checking the value against the schema takes too long.
	RuleEffort = "effort"
)

// MaxAnswerBytes bounds the compact JSON of an answer that is let in.
const MaxAnswerBytes = 64 << 10

// answerPath is the path of the answer as a whole, and its key where it is no object.
const answerPath = "answer"

// A FieldError says which value of an answer breaks which rule.
type FieldError struct {
	// Path is the name of a field in form mode, or a path such as items[2].name, or answer for the answer as a whole.
	Path string
	// Rule is one of the rules of this package, or a keyword of JSON Schema.
	Rule string
}

// Error implements error.
func (e FieldError) Error() string {
	return fmt.Sprintf("%s: %s", e.Path, e.Rule)
}

// Admit is Accept for an answer that nobody has measured yet.
func Admit(spec Spec, answer any) (map[string]any, []FieldError) {
	if jsonvalue.Size(answer) > MaxAnswerBytes {
		return nil, []FieldError{{Path: answerPath, Rule: RuleSize}}
	}
	return Accept(spec, answer)
}

// Accept returns the members that an answer adds to the context of a run, or what is wrong with it, whatever its size. The answer is a
// JSON tree; it is not changed.
func Accept(spec Spec, answer any) (map[string]any, []FieldError) {
	if spec.ResponseSchema != nil {
		return acceptStrict(spec.ResponseSchema, answer)
	}
	object, ok := answer.(map[string]any)
	if !ok {
		return nil, []FieldError{{Path: answerPath, Rule: RuleType}}
	}
	return acceptFields(spec.Fields, object)
}

// acceptFields lets members pass that no field declares. Of fields with the same name the first counts.
func acceptFields(fields []Field, answer map[string]any) (map[string]any, []FieldError) {
	accepted := make(map[string]any, len(answer))
	maps.Copy(accepted, answer)
	seen := map[string]bool{}
	var wrong []FieldError
	for _, field := range fields {
		if seen[field.Name] {
			continue
		}
		seen[field.Name] = true
		given, present := answer[field.Name]
		value, rule := field.accept(given)
		switch {
		case rule != "":
			wrong = append(wrong, FieldError{Path: field.Name, Rule: rule})
		case present:
			accepted[field.Name] = value
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	return accepted, nil
}
