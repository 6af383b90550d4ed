package source

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// scalar is the JSON value of a YAML scalar.
func (r *yamlReader) scalar(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		r.noteBoolean(n)
		return r.textOf(n, n.Value)
	case "!!timestamp", "!!merge":
		return r.textOf(n, n.Value)
	case "!!null":
		if n.Value != "" && !slices.Contains([]string{"~", "null", "Null", "NULL"}, n.Value) {
			return nil, r.fail(n, "%s is not null", quote(n.Value))
		}
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, r.fail(n, "%s is not a boolean", quote(n.Value))
		}
		return b, nil
	case "!!int", "!!float":
		return r.number(n)
	case "!!binary":
		return r.binary(n)
	default:
		return nil, r.fail(n, "the tag %s is not supported", quote(tag))
	}
}

func (r *yamlReader) textOf(n *yaml.Node, text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", r.fail(n, "the text %s is not valid Unicode", quote(text))
	}
	return text, nil
}

// number goes the way of the tools in front of an API server: through the
// machine's number, not through its digits.
func (r *yamlReader) number(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, r.fail(n, "%s is not a number", quote(n.Value))
	}
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return float64(v), nil
	case float64:
		return r.double(n, v)
	}
	return nil, r.fail(n, "%s is not a number", quote(n.Value))
}

func (r *yamlReader) double(n *yaml.Node, f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, r.fail(n, "%s is no number of JSON", quote(n.Value))
	}
	return jsonvalue.Decode(strconv.AppendFloat(nil, f, 'g', -1, 64))
}

func (r *yamlReader) binary(n *yaml.Node) (any, error) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
	if err != nil {
		return nil, r.fail(n, "this is not base64")
	}
	return r.textOf(n, string(data))
}

// key is the name of a member. What is no text becomes the text of its value.
func (r *yamlReader) key(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", r.fail(n, "a key must be text, this is %s", describeKind(n.Kind))
	}
	r.text += len(n.Value)
	value, err := r.scalar(n)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case nil:
		return "", r.fail(n, "a key must be text, this is null")
	default:
		return fmt.Sprint(value), nil
	}
}

func describeKind(kind yaml.Kind) string {
	if kind == yaml.SequenceNode {
		return "a list"
	}
	return "an object"
}

// A legacyBoolean is a text without quotes that YAML 1.1 takes for a boolean.
type legacyBoolean struct {
	Position
	text string
}

var legacyBooleans = []string{"y", "yes", "n", "no", "on", "off"}

func (r *yamlReader) noteBoolean(n *yaml.Node) {
	if n.Style != 0 || len(n.Value) > len("off") {
		return
	}
	lower := strings.ToLower(n.Value)
	isWord := n.Value == lower || n.Value == strings.ToUpper(lower) || n.Value == strings.ToUpper(lower[:1])+lower[1:]
	if isWord && slices.Contains(legacyBooleans, lower) {
		r.booleans = append(r.booleans, legacyBoolean{Position{n.Line, n.Column}, n.Value})
	}
}

// warnings tell in one line of all texts that kubectl would send as booleans.
func (r *yamlReader) warnings() []string {
	if len(r.booleans) == 0 {
		return nil
	}
	first := r.booleans[0]
	others := ""
	if more := len(r.booleans) - 1; more > 0 {
		others = fmt.Sprintf(" (and %d more)", more)
	}
	return []string{fmt.Sprintf("%s:%s: %s is text here but a boolean for kubectl, which reads YAML 1.1: quote it%s",
		r.name, first.Position, first.text, others)}
}
