package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/yamlerror"
)

// A yamlReader turns YAML nodes into a JSON tree.
type yamlReader struct {
	name string
	// values and text count what the tree holds, aliases written out.
	values, text int
	// open are the aliased nodes being written out, to find one inside itself.
	open map[*yaml.Node]bool
	// booleans are the texts that YAML 1.1 takes for booleans, by position.
	booleans []legacyBoolean
}

func parseYAML(name string, data []byte) (*Document, error) {
	if separators(data) > MaxValues {
		return nil, &Error{Name: name, Reason: fmt.Sprintf("there are over %d values", MaxValues)}
	}
	root, err := parseNodes(name, data)
	if err != nil {
		return nil, err
	}
	r := &yamlReader{name: name, open: map[*yaml.Node]bool{}}
	value, where, err := r.value(root, 0)
	if err != nil {
		return nil, err
	}
	return &Document{Name: name, Value: value, Warnings: r.warnings(), place: where}, nil
}

// separators counts the bytes that can part one YAML node from the next. The
// library makes all nodes at once, so they are bounded by these before it runs.
func separators(data []byte) int {
	count := 0
	for _, b := range data {
		switch b {
		case '\n', ',', ':', '[', '{', '-', '?':
			count++
		}
	}
	return count
}

// parseNodes reads the only document that says anything. Templates and tools
// leave separators with nothing between or behind them.
func parseNodes(name string, data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root *yaml.Node
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF) && root == nil:
			return nil, &Error{Name: name, Reason: "the file is empty"}
		case errors.Is(err, io.EOF):
			return root, nil
		case err != nil:
			return nil, yamlError(name, err)
		}
		value := document.Content[0]
		switch {
		case isNothing(value):
		case root != nil:
			return nil, &Error{Name: name, Position: Position{value.Line, value.Column}, Reason: "the file holds more than one document"}
		default:
			root = value
		}
	}
}

// isNothing tells an empty document from one that says null.
func isNothing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 && n.Anchor == ""
}

func yamlError(name string, err error) error {
	line, reason := yamlerror.Read(err)
	return &Error{Name: name, Position: Position{Line: line}, Reason: reason}
}

func (r *yamlReader) fail(n *yaml.Node, format string, args ...any) error {
	return &Error{Name: r.name, Position: Position{n.Line, n.Column}, Reason: fmt.Sprintf(format, args...)}
}

func (r *yamlReader) value(n *yaml.Node, depth int) (any, place, error) {
	where := place{Position: Position{n.Line, n.Column}}
	if err := r.count(n); err != nil {
		return nil, where, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.alias(n, depth)
	case yaml.ScalarNode:
		value, err := r.scalar(n)
		return value, where, err
	default:
		value, err := r.collection(n, &where, depth)
		return value, where, err
	}
}

func (r *yamlReader) collection(n *yaml.Node, where *place, depth int) (any, error) {
	if depth == MaxDepth {
		return nil, r.fail(n, "lists and objects nest deeper than %d", MaxDepth)
	}
	if n.Kind == yaml.SequenceNode {
		return r.list(n, where, depth+1)
	}
	return r.object(n, where, depth+1)
}

// count is what keeps aliases from multiplying without end.
func (r *yamlReader) count(n *yaml.Node) error {
	r.values++
	r.text += len(n.Value)
	switch {
	case r.values > MaxValues:
		return r.fail(n, "there are over %d values, aliases written out", MaxValues)
	case r.text > MaxBytes:
		return r.fail(n, "the text is over %d MiB, aliases written out", MaxBytes>>20)
	}
	return nil
}

func (r *yamlReader) alias(n *yaml.Node, depth int) (any, place, error) {
	if r.open[n.Alias] {
		return nil, place{}, r.fail(n, "the anchor %s contains itself", quote(n.Value))
	}
	r.open[n.Alias] = true
	defer delete(r.open, n.Alias)
	return r.value(n.Alias, depth)
}

func (r *yamlReader) list(n *yaml.Node, where *place, depth int) (any, error) {
	if tag := n.ShortTag(); tag != "!!seq" {
		return nil, r.fail(n, "the tag %s is not supported", quote(tag))
	}
	list := make([]any, 0, len(n.Content))
	where.items = make([]place, 0, len(n.Content))
	for _, entry := range n.Content {
		value, at, err := r.value(entry, depth)
		if err != nil {
			return nil, err
		}
		list, where.items = append(list, value), append(where.items, at)
	}
	return list, nil
}

func (r *yamlReader) object(n *yaml.Node, where *place, depth int) (any, error) {
	if tag := n.ShortTag(); tag != "!!map" {
		return nil, r.fail(n, "the tag %s is not supported", quote(tag))
	}
	object := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, entry := n.Content[i], n.Content[i+1]
		if isMergeKey(key) {
			merges = append(merges, entry)
			continue
		}
		name, err := r.key(key)
		if err != nil {
			return nil, err
		}
		if _, taken := object[name]; taken {
			return nil, r.fail(key, "the key %s stands twice in this object", quote(name))
		}
		value, at, err := r.value(entry, depth)
		if err != nil {
			return nil, err
		}
		object[name], where.members = value, append(where.members, member{name, at})
	}
	return object, r.merge(merges, object, where, depth)
}

// merge adds what merge keys bring in and the object does not say itself; what
// comes first counts.
func (r *yamlReader) merge(merges []*yaml.Node, object map[string]any, where *place, depth int) error {
	for _, n := range merges {
		value, at, err := r.value(n, depth)
		if err != nil {
			return err
		}
		parts, places := []any{value}, []place{at}
		if list, ok := value.([]any); ok {
			parts, places = list, at.items
		}
		for i, part := range parts {
			members, ok := part.(map[string]any)
			if !ok {
				return r.fail(n, "a merge key takes objects, this is %s", Describe(part))
			}
			adopt(object, where, members, &places[i])
		}
	}
	return nil
}

func adopt(object map[string]any, where *place, members map[string]any, places *place) {
	for _, m := range places.members {
		if _, taken := object[m.name]; taken {
			continue
		}
		object[m.name], where.members = members[m.name], append(where.members, m)
	}
}

func isMergeKey(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge"
}
