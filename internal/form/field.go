package form

import (
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Types of fields that have a meaning. A field of any other type takes any value.
const (
	typeString  = "string"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeObject  = "object"
)

// widgetSelect is the widget that offers options.
const widgetSelect = "select"

// A Field asks for one member of an answer.
type Field struct {
	Name string `json:"name"`
	// Type is string, number, boolean or object; anything else takes any value.
	Type string `json:"type,omitempty"`
	// Widget is how the value is asked for; select offers the options.
	Widget      string `json:"widget,omitempty"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	// DefaultValue is what the form begins with. It never stands in for a missing value.
	DefaultValue any      `json:"defaultValue,omitempty"`
	Options      []Option `json:"options,omitempty"`
}

// An Option is one choice of a select widget.
type Option struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// FieldsOf makes fields of the outputs of a human task, or of fields in JSON. What has no name, or is no object, is
// passed over. A blank type is string, a blank label is the name, and a blank widget goes by the type.
func FieldsOf(outputs []any) []Field {
	var fields []Field
	for _, output := range outputs {
		raw, _ := output.(map[string]any)
		name := text(raw["name"])
		if isBlank(name) {
			continue
		}
		kind := orElse(text(raw["type"]), typeString)
		required, _ := raw["required"].(bool)
		fields = append(fields, Field{
			Name:         name,
			Type:         kind,
			Widget:       orElse(text(raw["widget"]), widgetOf(kind)),
			Label:        orElse(text(raw["label"]), name),
			Description:  text(raw["description"]),
			Required:     required,
			DefaultValue: raw["defaultValue"],
			Options:      optionsOf(raw["options"]),
		})
	}
	return fields
}

func widgetOf(kind string) string {
	switch kind {
	case typeNumber:
		return "number"
	case typeBoolean:
		return "checkbox"
	case typeObject:
		return "textarea"
	}
	return "text"
}

func optionsOf(v any) []Option {
	list, _ := v.([]any)
	var options []Option
	for _, entry := range list {
		if raw, ok := entry.(map[string]any); ok {
			options = append(options, Option{Label: text(raw["label"]), Value: text(raw["value"])})
		}
	}
	return options
}

// accept returns the value that enters the run, or the first rule that the given one breaks. An absent value is nil.
func (f Field) accept(given any) (value any, rule string) {
	if isNothing(given) {
		if f.Required {
			return nil, RuleRequired
		}
		return given, ""
	}
	value, ok := coerce(f.Type, given)
	switch {
	case !ok:
		return nil, RuleType
	case !f.offers(value):
		return nil, RuleOption
	}
	return value, ""
}

// offers compares as text, for that is what options are. No answer is a blank one: that would have been nothing.
func (f Field) offers(value any) bool {
	if f.Widget != widgetSelect || len(f.Options) == 0 {
		return true
	}
	form, err := jsonvalue.StringForm(value)
	return err == nil && slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == form })
}

func isNothing(v any) bool {
	s, isText := v.(string)
	return v == nil || isText && isBlank(s)
}

func isBlank(s string) bool {
	return strings.TrimSpace(s) == ""
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func orElse(s, otherwise string) string {
	if isBlank(s) {
		return otherwise
	}
	return s
}
