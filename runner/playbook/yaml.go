package playbook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the values of a file with its aliases followed, so that a
// few lines cannot become gigabytes.
const maxNodes = 100_000

// decode reads the one document of a YAML text as a JSON tree. What JSON has
// no word for is refused; dates stay the text they are.
func decode(data []byte) (any, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("the file has %d bytes, more than %d", len(data), MaxSize)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, another yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty")
		}
		return nil, err
	}
	if err := decoder.Decode(&another); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file must hold one document")
	}
	t := &tree{}
	return t.value(&document)
}

type tree struct{ nodes int }

func (t *tree) value(node *yaml.Node) (any, error) {
	if t.nodes++; t.nodes > maxNodes {
		return nil, fmt.Errorf("the file has more than %d values", maxNodes)
	}
	switch node.Kind {
	case yaml.DocumentNode:
		return t.value(node.Content[0])
	case yaml.AliasNode:
		return t.value(node.Alias)
	case yaml.MappingNode:
		return t.object(node)
	case yaml.SequenceNode:
		return t.list(node)
	case yaml.ScalarNode:
		return scalar(node)
	default:
		return nil, fmt.Errorf("line %d: this is no value", node.Line)
	}
}

func (t *tree) object(node *yaml.Node) (any, error) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return nil, fmt.Errorf("line %d: the name of a member must be a plain text", key.Line)
		}
		if _, ok := object[key.Value]; ok {
			return nil, fmt.Errorf("line %d: %q is there twice", key.Line, key.Value)
		}
		member, err := t.value(node.Content[i+1])
		if err != nil {
			return nil, err
		}
		object[key.Value] = member
	}
	return object, nil
}

func (t *tree) list(node *yaml.Node) (any, error) {
	list := make([]any, 0, len(node.Content))
	for _, element := range node.Content {
		v, err := t.value(element)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func scalar(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return decodeAs[bool](node)
	case "!!int":
		return decodeAs[int64](node)
	case "!!float":
		return float(node)
	case "!!str", "!!timestamp":
		return node.Value, nil
	default:
		return nil, fmt.Errorf("line %d: %s is no type of JSON", node.Line, node.ShortTag())
	}
}

func decodeAs[T any](node *yaml.Node) (any, error) {
	var v T
	if err := node.Decode(&v); err != nil {
		return nil, fmt.Errorf("line %d: %q is no number that can be kept", node.Line, node.Value)
	}
	return v, nil
}

func float(node *yaml.Node) (any, error) {
	var f float64
	if err := node.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("line %d: %q is no number of JSON", node.Line, node.Value)
	}
	return f, nil
}
