package definition

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Types of inputs and outputs. An object may be a list as well.
const (
	TypeString  = "string"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeObject  = "object"
)

// A Field is an input that a document declares.
type Field struct {
	Name string
	// Type is one of those above.
	Type     string
	Required bool
	// Default is what an absent input is; nil: it stays absent.
	Default any

	raw map[string]any
}

// An Output is what a call of a document returns.
type Output struct {
	Name string
	Type string
	// Expression over the context, or a reference to a section.
	Expression string
}

// Rules of declarations.
const (
	ruleInputs  = "inputs"
	ruleOutputs = "outputs"
)

// reservedOutput is what a repeated call adds to its result.
const reservedOutput = "repeat"

// readDeclarations reads what the document takes and returns.
func (d *document) readDeclarations(code string) *fault {
	text := d.headText.with(code)
	seen := map[string]bool{}
	line, ok := eachEntry(memberOf(d.head, memberInputs), func(raw map[string]any) bool {
		field, ok := readField(raw)
		if !ok || seen[field.Name] {
			return false
		}
		seen[field.Name] = true
		d.inputs = append(d.inputs, field)
		return true
	})
	if !ok {
		return text.fault(ruleInputs, line)
	}
	clear(seen)
	line, ok = eachEntry(memberOf(d.head, memberOutputs), func(raw map[string]any) bool {
		output, ok := readOutput(raw, &d.compiler)
		if !ok || seen[output.Name] {
			return false
		}
		seen[output.Name] = true
		d.outputs = append(d.outputs, output)
		return true
	})
	if !ok {
		return text.fault(ruleOutputs, line)
	}
	return nil
}

// eachEntry hands the objects of a list on, until one is refused, and tells where that is. An absent list is empty.
func eachEntry(list *yaml.Node, take func(raw map[string]any) bool) (line int, ok bool) {
	if list == nil {
		return 0, true
	}
	if list.Kind != yaml.SequenceNode {
		return list.Line, treeOf(list) == nil
	}
	for _, entry := range list.Content {
		raw, isObject := treeOf(entry).(map[string]any)
		if !isObject || !take(raw) {
			return entry.Line, false
		}
	}
	return 0, true
}

// fieldTexts are the members of a field that are strings; name and type are among them.
var fieldTexts = []string{"name", "type", "description", "label", "widget", "contextKey"}

func readField(raw map[string]any) (Field, bool) {
	f := Field{Type: TypeString, raw: raw, Default: raw["defaultValue"]}
	for name, value := range raw {
		if !isFieldMember(name, value) {
			return f, false
		}
	}
	f.Name, _ = raw["name"].(string)
	f.Required, _ = raw["required"].(bool)
	if declared, _ := raw["type"].(string); declared != "" {
		f.Type = declared
	}
	isKnown := slices.Contains([]string{TypeString, TypeNumber, TypeBoolean, TypeObject}, f.Type)
	return f, strings.TrimSpace(f.Name) != "" && isKnown && (f.Default == nil || hasType(f.Default, f.Type))
}

func isFieldMember(name string, value any) bool {
	switch {
	case isExtension(name), name == "defaultValue", value == nil && slices.Contains(fieldTexts, name):
		return true
	case name == "required":
		_, isBool := value.(bool)
		return isBool || value == nil
	case name == "options":
		_, isList := value.([]any)
		return isList || value == nil
	}
	_, isString := value.(string)
	return isString && slices.Contains(fieldTexts, name)
}

func readOutput(raw map[string]any, x *compiler) (Output, bool) {
	for name := range raw {
		if !slices.Contains([]string{"name", "type", "expression"}, name) && !isExtension(name) {
			return Output{}, false
		}
	}
	o := Output{}
	o.Name, _ = raw["name"].(string)
	o.Type, _ = raw["type"].(string)
	o.Expression, _ = raw["expression"].(string)
	isKnown := slices.Contains([]string{TypeString, TypeNumber, TypeBoolean, TypeObject}, o.Type)
	if strings.TrimSpace(o.Name) == "" || o.Name == reservedOutput || !isKnown {
		return o, false
	}
	return o, IsReference(o.Expression) || x.check(expression.ScopeActionInput, o.Expression) == nil
}

// hasType tells whether a value that is not null has a type. Nothing is converted.
func hasType(v any, declared string) bool {
	switch v.(type) {
	case string:
		return declared == TypeString
	case bool:
		return declared == TypeBoolean
	case map[string]any, []any:
		return declared == TypeObject
	}
	_, isNumber := jsonvalue.Number(v)
	return isNumber && declared == TypeNumber
}

// Rules of inputs.
const (
	RuleUndeclared = "undeclared"
	RuleRequired   = "required"
	RuleType       = "type"
)

// checkInputs names the first input, in the order of names, that a document does not take, and the rule it breaks. A null
// one counts as absent.
func checkInputs(fields []Field, inputs map[string]any) (name, rule string) {
	declared := map[string]Field{}
	for _, f := range fields {
		declared[f.Name] = f
	}
	names := slices.Concat(slices.Collect(maps.Keys(inputs)), slices.Collect(maps.Keys(declared)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		f, isDeclared := declared[name]
		value := inputs[name]
		switch {
		case !isDeclared:
			return name, RuleUndeclared
		case value == nil && f.Required:
			return name, RuleRequired
		case value != nil && !hasType(value, f.Type):
			return name, RuleType
		}
	}
	return "", ""
}

// startValues are the inputs that are there, and the defaults of those that are not.
func startValues(fields []Field, inputs map[string]any) map[string]any {
	values := map[string]any{}
	for _, f := range fields {
		value := inputs[f.Name]
		if value == nil {
			value = f.Default
		}
		if value != nil {
			values[f.Name] = jsonvalue.Clone(value)
		}
	}
	return values
}
