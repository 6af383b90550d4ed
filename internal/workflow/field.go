package workflow

// A Field describes one value that a node takes or gives.
type Field struct {
	raw map[string]any
}

// An Option is one choice of a select widget.
type Option struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Name is the name of the value in what a node takes or gives.
func (f Field) Name() string { return text(f.raw["name"]) }

// Type is string unless the document says otherwise.
func (f Field) Type() string {
	if blank(f.raw["type"]) {
		return typeString
	}
	return text(f.raw["type"])
}

// Types of fields that have a meaning.
const (
	typeString  = "string"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeObject  = "object"
)

// Description explains the value to people.
func (f Field) Description() string { return text(f.raw["description"]) }

// Label is how a form calls the value.
func (f Field) Label() string { return text(f.raw["label"]) }

// Widget is how a form asks for the value.
func (f Field) Widget() string { return text(f.raw["widget"]) }

// IsRequired tells whether the value must be there and not null.
func (f Field) IsRequired() bool { return flag(f.raw["required"]) }

// DefaultValue is what a form begins with; nil if there is none.
func (f Field) DefaultValue() any { return f.raw["defaultValue"] }

// Options are the choices of a select widget.
func (f Field) Options() []Option {
	var options []Option
	for _, entry := range list(f.raw["options"]) {
		option := object(entry)
		options = append(options, Option{Label: text(option["label"]), Value: text(option["value"])})
	}
	return options
}

// EffectiveContextKey is the key of a run's context the value goes to: contextKey, or the name where that is blank.
func (f Field) EffectiveContextKey() string {
	if blank(f.raw["contextKey"]) {
		return f.Name()
	}
	return text(f.raw["contextKey"])
}

// fields views the objects of a list, passing over everything else.
func fields(v any) []Field {
	var found []Field
	for _, entry := range list(v) {
		if raw, ok := entry.(map[string]any); ok {
			found = append(found, Field{raw})
		}
	}
	return found
}
