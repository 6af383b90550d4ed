package definition

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/markdown"
)

// MaxSource bounds a document, in bytes.
const MaxSource = 256 << 10

// Rules of documents.
const (
	ruleSize        = "size"
	ruleEncoding    = "encoding"
	ruleByteOrder   = "byte-order-mark"
	ruleNoHead      = "frontmatter-missing"
	ruleHeadMapping = "frontmatter-mapping"
	ruleHeadMember  = "frontmatter-member"
	ruleName        = "frontmatter-name"
	ruleDescription = "frontmatter-description"
	ruleBundle      = "bundle"
	ruleGraphBlock  = "graph-block"
)

// unreadable is the rule that keeps a content from being text; empty if it can be read.
func unreadable(e Entry) string {
	switch {
	case e.Size > MaxSource || len(e.Content) > MaxSource:
		return ruleSize
	case !utf8.Valid(e.Content):
		return ruleEncoding
	case bytes.HasPrefix(e.Content, []byte("\ufeff")):
		return ruleByteOrder
	}
	return ""
}

// A document is what stands in one source. It is read step by step, as far as the steps of admission go.
type document struct {
	head *yaml.Node
	// headText is where the head is, for faults.
	headText yamlText
	body     markdown.Blocks
	// bodyLine is the line of the source that the first line of the body is.
	bodyLine int

	name, description string
	inputs            []Field
	outputs           []Output
	sections          sections
	graph             graph
	calls             map[string]Call
	compiler          compiler
}

// readHead takes a source apart and checks the head but for what it declares.
func readHead(source []byte, code string) (*document, *fault) {
	head, body, ok := cutHead(string(source), code)
	if !ok {
		return nil, &fault{code: code, rule: ruleNoHead, line: 1}
	}
	d := &document{headText: head, bodyLine: head.line + strings.Count(head.text, "\n") + 1}
	d.body = markdown.Scan(body)
	d.sections = sectionsOf(body, d.body.Headings, d.bodyLine)
	var f *fault
	if d.head, f = head.parse(componentsOf); f != nil {
		return nil, f
	}
	return d, d.checkHead()
}

// headMark stands in the lines before and behind the head.
const headMark = "---"

// cutHead finds the head, which begins in the first line, and what follows it.
func cutHead(source, code string) (head yamlText, body string, ok bool) {
	first, rest, _ := strings.Cut(source, "\n")
	if strings.TrimRight(first, " \t\r") != headMark {
		return yamlText{}, "", false
	}
	for at := 0; at < len(rest); {
		line, _, isMore := strings.Cut(rest[at:], "\n")
		end := at + len(line)
		if isMore {
			end++
		}
		if strings.TrimRight(line, " \t\r") == headMark {
			return yamlText{text: rest[:at], line: 2, code: code}, rest[end:], true
		}
		at = end
	}
	return yamlText{}, "", false
}

// componentsOf is the mapping of the bundle, whose repeated names have a code of their own.
func componentsOf(head *yaml.Node) *yaml.Node {
	return memberOf(memberOf(head, memberWorkflow), memberComponents)
}

// Members of a head.
const (
	memberName        = "name"
	memberDescription = "description"
	memberInputs      = "inputs"
	memberOutputs     = "outputs"
	memberWorkflow    = "workflow"
	memberComponents  = "components"
)

// isExtension tells whether a member belongs to somebody else.
func isExtension(name string) bool { return strings.HasPrefix(name, "x-") }

func (d *document) checkHead() *fault {
	if d.head.Kind != yaml.MappingNode {
		return d.headText.fault(ruleHeadMapping, d.head.Line)
	}
	for i := 0; i < len(d.head.Content); i += 2 {
		switch key := d.head.Content[i]; key.Value {
		case memberName, memberDescription, memberInputs, memberOutputs, memberWorkflow:
		default:
			if !isExtension(key.Value) {
				return d.headText.fault(ruleHeadMember, key.Line)
			}
		}
	}
	var ok bool
	if d.name, ok = d.text(memberName); !ok || strings.TrimSpace(d.name) == "" {
		return d.headText.fault(ruleName, d.lineOf(memberName))
	}
	if d.description, ok = d.text(memberDescription); !ok {
		return d.headText.fault(ruleDescription, d.lineOf(memberDescription))
	}
	return nil
}

// text is a member of the head that is a string; empty if it is absent or null.
func (d *document) text(name string) (text string, ok bool) {
	member := memberOf(d.head, name)
	if member == nil {
		return "", true
	}
	value := treeOf(member)
	text, ok = value.(string)
	return text, ok || value == nil
}

// lineOf is where the value of a member of the head begins in it, or its first line.
func (d *document) lineOf(name string) int {
	if member := memberOf(d.head, name); member != nil {
		return member.Line
	}
	return 1
}

// graphInfo is the info string of the block with the graph.
const graphInfo = "yaml workflow"

// readGraph finds the only block with a graph and reads its YAML.
func (d *document) readGraph(code string) *fault {
	var blocks []markdown.Fence
	for _, fence := range d.body.Fences {
		if fence.Info == graphInfo {
			blocks = append(blocks, fence)
		}
	}
	switch len(blocks) {
	case 0:
		return &fault{code: code, rule: ruleGraphBlock, line: d.bodyLine}
	case 1:
	default:
		return &fault{code: code, rule: ruleGraphBlock, line: d.bodyLine + blocks[1].Line - 2}
	}
	text := yamlText{text: blocks[0].Content, line: d.bodyLine + blocks[0].Line - 1, code: code}
	root, f := text.parse(nil)
	if f != nil {
		return f
	}
	d.graph = newGraph(root, text)
	return nil
}
