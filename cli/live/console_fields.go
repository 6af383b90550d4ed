package live

import (
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A fieldKind says how a field is asked for, and what its text means.
type fieldKind string

const (
	fieldText      fieldKind = "text"
	fieldMultiline fieldKind = "multiline"
	fieldSelect    fieldKind = "select"
	// The value of these is JSON, which the first three show in their own way.
	fieldNumber  fieldKind = "number"
	fieldBoolean fieldKind = "boolean"
	fieldChoice  fieldKind = "choice"
	fieldJSON    fieldKind = "json"
	// fieldAny is JSON, or else the text itself.
	fieldAny fieldKind = "any"
)

// ruleJSON is broken by a text that should be JSON.
const ruleJSON = "json"

// read is the value that a text stands for.
func (k fieldKind) read(text string) (any, error) {
	if k == fieldText || k == fieldMultiline || k == fieldSelect {
		return text, nil
	}
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil && k != fieldJSON {
		return text, nil // the question says what is wrong with it
	}
	return value, err
}

// askedField is a field of a form, ready to be shown.
type askedField struct {
	Name        string        `json:"name"`
	Label       string        `json:"label"`
	Description string        `json:"description"`
	Kind        fieldKind     `json:"kind"`
	Required    bool          `json:"required"`
	Options     []form.Option `json:"options"`
	// Default is the text that the form begins with.
	Default string `json:"default"`
}

// fieldsOf are the fields that a question can be asked by; none if it takes the
// answer as a whole.
func fieldsOf(spec form.Spec) []askedField {
	fields := []askedField{}
	if spec.ResponseSchema != nil {
		return append(fields, schemaFields(spec.ResponseSchema)...)
	}
	for _, f := range spec.Fields {
		asked := askedField{
			Name: f.Name, Label: f.Label, Description: f.Description, Kind: formKind(f), Required: f.Required, Options: command.OrEmpty(f.Options),
		}
		fields = append(fields, asked.beginningWith(f.DefaultValue))
	}
	return fields
}

func formKind(f form.Field) fieldKind {
	switch {
	case f.Widget == "select" && len(f.Options) > 0:
		return fieldSelect
	case f.Type == "number":
		return fieldNumber
	case f.Type == "boolean":
		return fieldBoolean
	case f.Type == "object":
		return fieldJSON
	case f.Type != "string":
		return fieldAny
	case f.Widget == "textarea":
		return fieldMultiline
	}
	return fieldText
}

// beginningWith sets the text that stands for a value.
func (f askedField) beginningWith(v any) askedField {
	text, isText := v.(string)
	switch {
	case v == nil:
	case isText && f.Kind != fieldJSON && f.Kind != fieldChoice:
		f.Default = text
	default:
		f.Default = jsonText(v)
	}
	return f
}

// jsonText is a value in the one spelling that there is of it.
func jsonText(v any) string {
	text, err := jsonvalue.Canonical(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// schemaFields are the members of the object that a schema describes: the required
// ones as it lists them, then the others by name. A schema that says no more than
// that there is an object, or that is about something else, has none.
func schemaFields(schema any) []askedField {
	root, _ := schema.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	if command.TextOf(root["type"]) != "object" {
		return nil
	}
	var names []string
	required, _ := root["required"].([]any)
	for _, name := range required {
		if _, isMember := properties[command.TextOf(name)]; isMember && !slices.Contains(names, command.TextOf(name)) {
			names = append(names, command.TextOf(name))
		}
	}
	mandatory := len(names)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	fields := make([]askedField, 0, len(names))
	for i, name := range names {
		fields = append(fields, schemaField(name, properties[name], i < mandatory))
	}
	return fields
}

func schemaField(name string, schema any, required bool) askedField {
	property, _ := schema.(map[string]any)
	f := askedField{
		Name: name, Label: command.TextOf(property["title"]), Description: command.TextOf(property["description"]),
		Kind: schemaKind(property), Required: required, Options: []form.Option{},
	}
	if f.Label == "" {
		f.Label = name
	}
	choices, _ := property["enum"].([]any)
	for _, choice := range choices {
		label, isText := choice.(string)
		if !isText {
			label = jsonText(choice)
		}
		f.Options = append(f.Options, form.Option{Label: label, Value: jsonText(choice)})
	}
	return f.beginningWith(property["default"])
}

// longText is from how many characters on a text gets more than a line.
const longText = 200

func schemaKind(property map[string]any) fieldKind {
	if choices, _ := property["enum"].([]any); len(choices) > 0 {
		return fieldChoice
	}
	switch command.TextOf(property["type"]) {
	case "string":
		if longest, isBound := property["maxLength"].(int64); isBound && longest <= longText {
			return fieldText
		}
		return fieldMultiline
	case "number", "integer":
		return fieldNumber
	case "boolean":
		return fieldBoolean
	}
	return fieldJSON
}
