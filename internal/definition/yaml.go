package definition

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/yamlerror"
)

// maxYAMLDepth bounds how deep lists and mappings nest.
const maxYAMLDepth = 100

// Rules of YAML.
const (
	ruleSyntax       = "yaml-syntax"
	ruleOneDocument  = "yaml-one-document"
	ruleAlias        = "yaml-alias"
	ruleAnchor       = "yaml-anchor"
	ruleTag          = "yaml-tag"
	ruleMergeKey     = "yaml-merge-key"
	ruleDuplicateKey = "yaml-duplicate-key"
	ruleKey          = "yaml-key"
	ruleValue        = "yaml-value"
	ruleDepth        = "yaml-depth"
)

// A yamlText is a part of a document that is YAML.
type yamlText struct {
	text string
	// line of the document its first line is.
	line int
	code string // of its faults
}

// with is the same text, whose faults have another code.
func (y yamlText) with(code string) yamlText {
	y.code = code
	return y
}

func (y yamlText) fault(rule string, line int) *fault {
	return &fault{code: y.code, rule: rule, line: y.line + max(line, 1) - 1}
}

// parse reads exactly one document, and refuses what is YAML but not allowed, wherever it stands. Repeated keys are
// allowed in one mapping, if repeating finds it.
func (y yamlText) parse(repeating func(root *yaml.Node) *yaml.Node) (*yaml.Node, *fault) {
	var document, more yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(y.text))
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, y.fault(ruleOneDocument, 1)
		}
		return nil, y.syntaxFault(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, y.fault(ruleOneDocument, more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, y.syntaxFault(err)
	}
	root := document.Content[0]
	s := &strictness{yamlText: y, marks: newMarks(y.text)}
	if repeating != nil {
		s.repeating = repeating(root)
	}
	if f := s.check(root, 0); f != nil {
		return nil, f
	}
	return root, nil
}

func (y yamlText) syntaxFault(err error) *fault {
	line, _ := yamlerror.Read(err)
	return y.fault(ruleSyntax, line)
}

// A strictness checks nodes in the order of the text.
type strictness struct {
	yamlText
	marks     *marks
	repeating *yaml.Node
}

func (s *strictness) check(n *yaml.Node, depth int) *fault {
	if rule := s.ruleOf(n, depth); rule != "" {
		return s.fault(rule, n.Line)
	}
	seen := map[string]bool{}
	for i, child := range n.Content {
		if f := s.check(child, depth+1); f != nil {
			return f
		}
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			continue
		}
		if f := s.checkKey(child, n == s.repeating, seen); f != nil {
			return f
		}
	}
	return nil
}

// ruleOf is the rule that a node breaks by itself. The mark tells of what the library does not.
func (s *strictness) ruleOf(n *yaml.Node, depth int) string {
	mark := s.marks.at(n.Line, n.Column)
	switch {
	case n.Kind == yaml.AliasNode:
		return ruleAlias
	case n.Anchor != "" || mark == '&':
		return ruleAnchor
	case n.Style&yaml.TaggedStyle != 0 || mark == '!':
		return ruleTag
	case depth > maxYAMLDepth:
		return ruleDepth
	case n.Kind == yaml.ScalarNode && !isValue(n):
		return ruleValue
	}
	return ""
}

// checkKey refuses keys that no mapping has, and those that an ordinary one does not: the keys of a free one are for its
// reader to judge.
func (s *strictness) checkKey(key *yaml.Node, isFree bool, seen map[string]bool) *fault {
	switch {
	case key.ShortTag() == "!!merge":
		return s.fault(ruleMergeKey, key.Line)
	case isFree:
		return nil
	case !isText(key):
		return s.fault(ruleKey, key.Line)
	case seen[key.Value]:
		return s.fault(ruleDuplicateKey, key.Line)
	}
	seen[key.Value] = true
	return nil
}

// isText tells whether a scalar is text. A time is text here, as it is in JSON.
func isText(n *yaml.Node) bool {
	tag := n.ShortTag()
	return n.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!timestamp")
}

func isValue(n *yaml.Node) bool {
	_, ok := scalar(n)
	return ok && utf8.ValidString(n.Value)
}

// treeOf is the JSON tree of a node that was checked.
func treeOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, entry := range n.Content {
			list[i] = treeOf(entry)
		}
		return list
	case yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			object[n.Content[i].Value] = treeOf(n.Content[i+1])
		}
		return object
	default:
		value, _ := scalar(n)
		return value
	}
}

// scalar is the JSON value of a scalar, if it has one.
func scalar(n *yaml.Node) (any, bool) {
	if isText(n) || n.ShortTag() == "!!merge" {
		return n.Value, true
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, false
	}
	switch v := v.(type) {
	case nil, bool:
		return v, true
	case int:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return float64(v), true
	case float64:
		return double(v)
	}
	return nil, false
}

// double is a number as the decoder of JSON would give it.
func double(f float64) (any, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	v, err := jsonvalue.Decode(strconv.AppendFloat(nil, f, 'g', -1, 64))
	return v, err == nil
}

// memberOf finds the value of a member of a mapping.
func memberOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isText(n.Content[i]) && n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// marks tell the characters at which nodes begin. They are asked for in the order of the text, so that all of them take
// no longer than reading it once.
type marks struct {
	rest         []byte
	line, column int
}

func newMarks(text string) *marks { return &marks{rest: []byte(text), line: 1, column: 1} }

// breaks are the ends of lines that YAML knows.
var breaks = [][]byte{[]byte("\r\n"), []byte("\n"), []byte("\r"), []byte("\u0085"), []byte("\u2028"), []byte("\u2029")}

// at is the first byte of the character at a place, 0 if nothing stands there.
func (m *marks) at(line, column int) byte {
	for len(m.rest) > 0 && (m.line < line || m.line == line && m.column < column) {
		m.step()
	}
	if len(m.rest) == 0 || m.line != line || m.column != column {
		return 0
	}
	return m.rest[0]
}

func (m *marks) step() {
	for _, end := range breaks {
		if bytes.HasPrefix(m.rest, end) {
			m.rest, m.line, m.column = m.rest[len(end):], m.line+1, 1
			return
		}
	}
	_, size := utf8.DecodeRune(m.rest)
	m.rest, m.column = m.rest[size:], m.column+1
}
