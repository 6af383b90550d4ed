package definition

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/placeholder"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Rules of graphs, beside the codes of workflow documents.
const (
	ruleMembers          = "INVALID_MEMBERS"
	ruleNodeID           = "INVALID_NODE_ID"
	ruleEdgeID           = "INVALID_EDGE_ID"
	ruleStartInputs      = "START_DECLARES_INPUTS"
	ruleResponseSchema   = "INVALID_RESPONSE_SCHEMA"
	ruleNoResponseSchema = "MISSING_RESPONSE_SCHEMA"
	ruleTaskTimeout      = "TASK_HAS_TIMEOUT"
	ruleReference        = "INVALID_SECTION_REFERENCE"
	rulePlaceholder      = "INVALID_PLACEHOLDER"
	ruleCallMember       = "INVALID_CALL_MEMBER"
	ruleRepeat           = "INVALID_REPEAT"
	ruleForEach          = "INVALID_FOR_EACH"
	ruleInputExpression  = "INVALID_INPUT_EXPRESSION"
	ruleOutputExpression = "INVALID_OUTPUT_EXPRESSION"
)

// Members of graphs and of their nodes.
const (
	memberNodes          = "nodes"
	memberEdges          = "edges"
	memberID             = "id"
	memberConfig         = "config"
	memberTimeout        = "timeout"
	memberResponseSchema = "responseSchema"
)

// maxEdgeID bounds the id of an edge, which history entries repeat, in bytes.
const maxEdgeID = 1000

// literal is an expression that stands for a section while a graph is checked.
const literal = "''"

// A graph is the block of a document that is one.
type graph struct {
	raw  any
	text yamlText
	// nodeLines and edgeLines are where the first node or edge of an id stands.
	nodeLines, edgeLines map[string]int
}

func newGraph(root *yaml.Node, text yamlText) graph {
	return graph{
		raw: treeOf(root), text: text,
		nodeLines: linesOf(memberOf(root, memberNodes)), edgeLines: linesOf(memberOf(root, memberEdges)),
	}
}

func linesOf(list *yaml.Node) map[string]int {
	lines := map[string]int{}
	if list == nil {
		return lines
	}
	for _, entry := range list.Content {
		id := memberOf(entry, memberID)
		if id == nil {
			continue
		}
		if _, taken := lines[id.Value]; !taken {
			lines[id.Value] = entry.Line
		}
	}
	return lines
}

// fault is one of a node.
func (g graph) fault(code, rule, node string) *fault {
	return g.text.with(code).fault(rule, g.nodeLines[node])
}

// nodeID is the grammar of the ids of nodes, which addresses are made of.
var nodeID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,62}$`)

// An editor changes the configuration of a node of a kind.
type editor func(kind workflow.Kind, config map[string]any)

// workflow is the graph as a workflow document: with its name, with inputs at its start, and with the outputs that
// actions have where it names none.
func (d *document) workflow(edit editor) workflow.Document {
	graph, _ := d.graph.raw.(map[string]any)
	doc := map[string]any{
		memberID: d.name, memberName: d.name,
		memberNodes: jsonvalue.Clone(graph[memberNodes]), memberEdges: jsonvalue.Clone(graph[memberEdges]),
	}
	if d.description != "" {
		doc[memberDescription] = d.description
	}
	nodes, _ := doc[memberNodes].([]any)
	for _, entry := range nodes {
		node, _ := entry.(map[string]any)
		if config, ok := configOf(node); ok {
			kind, _ := node["type"].(string)
			d.complete(workflow.Kind(kind), config)
			edit(workflow.Kind(kind), config)
		}
	}
	return doc
}

// configOf is the configuration of a node, which is empty if there is none; false: it is something else.
func configOf(node map[string]any) (map[string]any, bool) {
	if node != nil && node[memberConfig] == nil {
		node[memberConfig] = map[string]any{}
	}
	config, ok := node[memberConfig].(map[string]any)
	return config, ok
}

func (d *document) complete(kind workflow.Kind, config map[string]any) {
	switch kind {
	case workflow.KindStart:
		fields := []any{}
		for _, f := range d.inputs {
			fields = append(fields, jsonvalue.Clone(f.raw))
		}
		config[memberInputs] = fields
	case workflow.KindAction:
		action, _ := config[memberActionType].(string)
		contract, _ := ContractOf(action)
		if config[memberOutputs] == nil {
			config[memberOutputs] = outputsOf(contract)
		}
	default:
	}
}

func outputsOf(contract Contract) []any {
	outputs := []any{}
	for _, output := range contract.Outputs {
		outputs = append(outputs, map[string]any{"name": output.Name, "type": TypeObject})
	}
	return outputs
}

// withoutReferences puts literals in the place of references to sections, which are no expressions.
func withoutReferences(_ workflow.Kind, config map[string]any) {
	inputs, _ := config[memberInputs].(map[string]any)
	for name, value := range inputs {
		if _, isReference := asReference(value); isReference {
			inputs[name] = literal
		}
	}
}

// withoutInputs leaves to the engine what it is to evaluate and to time: no inputs, and no timeouts of actions.
func withoutInputs(kind workflow.Kind, config map[string]any) {
	switch kind {
	case workflow.KindAction:
		config[memberInputs] = map[string]any{}
		delete(config, memberTimeout)
	case workflow.KindHumanTask, workflow.KindComponent:
		delete(config, memberInputs)
	default:
	}
}

// checkGraph holds the graph against the rules of workflow documents and those of definitions.
func (d *document) checkGraph() *fault {
	if !d.hasOnlyGraph() {
		return d.graph.text.with(CodeGraphInvalid).fault(ruleMembers, 1)
	}
	doc := d.workflow(withoutReferences)
	if f := d.checkWorkflow(doc); f != nil {
		return f
	}
	d.calls = map[string]Call{}
	declared, _ := d.graph.raw.(map[string]any)
	for _, node := range workflow.Read(declared).Nodes() {
		if f := d.checkNode(node); f != nil {
			return f
		}
	}
	for _, output := range d.outputs {
		if !IsReference(output.Expression) {
			continue
		}
		if rule, line := d.checkReference(output.Expression); rule != "" {
			return &fault{code: CodeGraphInvalid, rule: rule, line: max(line, d.headText.line+d.lineOf(memberOutputs)-1)}
		}
	}
	return nil
}

// hasOnlyGraph tells whether the block has exactly the members of a graph.
func (d *document) hasOnlyGraph() bool {
	graph, isObject := d.graph.raw.(map[string]any)
	_, hasNodes := graph[memberNodes]
	_, hasEdges := graph[memberEdges]
	return isObject && hasNodes && hasEdges && len(graph) == 2
}

// checkWorkflow names every code of the errors that a document has, and where the first of them is.
func (d *document) checkWorkflow(doc workflow.Document) *fault {
	var codes []string
	line := 0
	for _, p := range workflow.Validate(doc, d.compiler.programs) {
		if !p.IsError() {
			continue
		}
		if len(codes) == 0 {
			line = max(d.graph.nodeLines[p.NodeID], d.graph.edgeLines[p.EdgeID])
		}
		if !slices.Contains(codes, p.Code) {
			codes = append(codes, p.Code)
		}
	}
	if len(codes) > 0 {
		return d.graph.text.with(CodeGraphInvalid).fault(strings.Join(codes, " "), line)
	}
	for _, edge := range workflow.Read(doc).Edges() {
		if len(edge.ID()) > maxEdgeID {
			return d.graph.text.with(CodeGraphInvalid).fault(ruleEdgeID, d.graph.edgeLines[edge.ID()])
		}
	}
	return nil
}

// checkNode takes a node of a document in which everything has its type.
func (d *document) checkNode(node workflow.Node) *fault {
	rule, line := ruleOfNode(node), 0
	if rule == "" {
		rule, line = d.checkReferences(node)
	}
	if rule == "" && node.Kind() == workflow.KindComponent {
		d.calls[node.ID()], rule = readCall(node.Config(), &d.compiler)
	}
	switch {
	case rule == "":
		return nil
	case line > 0:
		return &fault{code: CodeGraphInvalid, rule: rule, line: line}
	}
	return d.graph.fault(CodeGraphInvalid, rule, node.ID())
}

func ruleOfNode(node workflow.Node) string {
	config := node.Config()
	switch {
	case !nodeID.MatchString(node.ID()):
		return ruleNodeID
	case node.Kind() == workflow.KindStart && len(node.InputFields()) > 0:
		return ruleStartInputs
	case node.Kind() != workflow.KindHumanTask:
		return ""
	case config[memberResponseSchema] == nil:
		return ruleNoResponseSchema
	case config[memberTimeout] != nil:
		return ruleTaskTimeout
	case form.CheckSchema(config[memberResponseSchema]) != nil:
		return ruleResponseSchema
	}
	return ""
}

// checkReferences checks each section that a node refers to. A prompt has to be one.
func (d *document) checkReferences(node workflow.Node) (rule string, line int) {
	config := node.Config()
	if prompt, isString := config[memberPrompt].(string); isString && node.Kind() == workflow.KindAction && !IsReference(prompt) {
		return ruleReference, 0
	}
	var texts []any
	switch node.Kind() {
	case workflow.KindAction:
		texts = append(texts, config[memberPrompt], config[memberBody])
	case workflow.KindHumanTask:
		texts = append(texts, config[memberDescription])
	case workflow.KindComponent:
	default:
		return "", 0
	}
	inputs := node.Inputs()
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		texts = append(texts, inputs[name])
	}
	for _, text := range texts {
		ref, isMeant := meansReference(text)
		if !isMeant {
			continue
		}
		if rule, line := d.checkReference(ref); rule != "" {
			return rule, line
		}
	}
	return "", 0
}

// checkReference checks a section and its placeholders. The line is that of a placeholder, else 0.
func (d *document) checkReference(ref string) (rule string, line int) {
	found, ok := d.sections.find(ref)
	if !ok {
		return ruleReference, 0
	}
	for _, p := range placeholder.Find(found.text) {
		if p.Check() != nil || d.compiler.check(expression.ScopeActionInput, p.Expression) != nil {
			return rulePlaceholder, found.line + p.Line - 1
		}
	}
	return "", 0
}
