package action

import (
	"encoding/json"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A Violation is a value that does not keep its contract.
type Violation struct {
	// Field is the declared name.
	Field string
	// Rule is `required`, or `type` with the declared type.
	Rule string
}

// String is the field and the rule, never the value.
func (v Violation) String() string {
	return v.Field + ": " + v.Rule
}

// CheckContract compares values with the declared fields, in declared order. A
// null is absent; undeclared values pass.
func CheckContract(fields []Field, values map[string]any) []Violation {
	var found []Violation
	for _, f := range fields {
		v := values[f.Name]
		switch {
		case v == nil && f.Required:
			found = append(found, Violation{Field: f.Name, Rule: "required"})
		case v != nil && !converts(f.Type, v):
			found = append(found, Violation{Field: f.Name, Rule: "type " + typeName(f.Type)})
		}
	}
	return found
}

func typeName(declared string) string {
	if declared == "" {
		return TypeString
	}
	return declared
}

// converts tells whether v is of the type or can be read as one without loss
// of meaning. An unknown type takes everything: it is a problem of the item.
func converts(declared string, v any) bool {
	text, isText := v.(string)
	switch typeName(declared) {
	case TypeString:
		return isText || isNumber(v) || isBool(v)
	case TypeNumber:
		return isNumber(v) || isNumber(json.Number(text))
	case TypeBoolean:
		return isBool(v) || isBoolText(text)
	case TypeObject:
		return isObject(v) || isObjectText(text)
	}
	return true
}

func isNumber(v any) bool {
	_, ok := jsonvalue.Number(v)
	return ok
}

func isBool(v any) bool {
	_, ok := v.(bool)
	return ok
}

func isBoolText(text string) bool {
	return strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func isObjectText(text string) bool {
	v, err := jsonvalue.Decode([]byte(text))
	return err == nil && isObject(v)
}
