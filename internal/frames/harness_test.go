package frames_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// newExpressions shares one cache among all tests: building its environments takes most of their time.
var newExpressions = sync.OnceValue(expression.NewCache)

// noon is when every story begins.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// parse reads YAML as a JSON tree.
func parse(t testing.TB, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	v, err := jsonvalue.Decode(data)
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return v
}

func values(t testing.TB, text string) map[string]any {
	t.Helper()
	object, ok := parse(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return object
}

// A component is one that a test declares. Its inputs are optional unless they are among the required ones.
type component struct {
	name     string
	flow     *engine.Definition
	required []string
	known    []string
	defaults map[string]any
	outputs  map[string]string
	calls    map[string]frames.Call
}

func (c *component) Name() string               { return c.name }
func (c *component) SourcePath() string         { return c.name + ".md" }
func (c *component) SourceHash() string         { return "hash of " + c.name }
func (c *component) Engine() *engine.Definition { return c.flow }

func (c *component) Call(node string) (frames.Call, bool) {
	call, ok := c.calls[node]
	return call, ok
}

func (c *component) Start(inputs map[string]any) (map[string]any, error) {
	given := maps.Clone(c.defaults)
	if given == nil {
		given = map[string]any{}
	}
	for name, value := range inputs {
		if !slices.Contains(c.known, name) {
			return nil, fmt.Errorf("input %q is not declared", name)
		}
		if value != nil {
			given[name] = value
		}
	}
	for _, name := range c.required {
		if given[name] == nil {
			return nil, fmt.Errorf("input %q is required", name)
		}
	}
	return given, nil
}

var errOutput = errors.New("an output is of another type")

func (c *component) EvaluateOutputs(ctx context.Context, values map[string]any) (map[string]any, error) {
	result := map[string]any{}
	for name, text := range c.outputs {
		program, err := newExpressions().Compile(expression.ScopeActionInput, text)
		if err != nil {
			return nil, err
		}
		if result[name], err = program.Eval(ctx, expression.Variables{Context: values}); err != nil {
			return nil, fmt.Errorf("evaluate output %s: %w", name, err)
		}
		switch result[name] {
		case "wrong":
			return nil, errOutput
		case "double":
			result[name] = 2.0
		}
	}
	return result, nil
}

// Render gives the name of a section and what the context has by it.
func (c *component) Render(ctx context.Context, section string, values map[string]any) (string, error) {
	value, ok := values[section]
	if !ok {
		return "", errors.New("line 1: no such key")
	}
	return fmt.Sprintf("%s is %v", section, value), ctx.Err()
}

// declare reads a component: nodes and edges as flow has them, inputs "a b! c=1" (required, with a default), and outputs
// as YAML.
//
//nolint:revive // a component in one line each for what it is made of
func declare(t testing.TB, name, nodes, edges, inputs, outputs string) *component {
	t.Helper()
	c := &component{name: name, defaults: map[string]any{}, calls: map[string]frames.Call{}, outputs: map[string]string{}}
	var fields []string
	for word := range strings.FieldsSeq(inputs) {
		input, value, hasDefault := strings.Cut(strings.TrimSuffix(word, "!"), "=")
		if hasDefault {
			c.defaults[input] = parse(t, value)
		}
		if strings.HasSuffix(word, "!") {
			c.required = append(c.required, input)
		}
		c.known = append(c.known, input)
		fields = append(fields, "{name: '"+input+"'}")
	}
	for output, text := range values(t, "{"+outputs+"}") {
		c.outputs[output], _ = text.(string)
	}
	nodes = "start start {inputs: [" + strings.Join(fields, ", ") + "]}\n" + nodes
	doc, _ := parse(t, flow(nodes, edges)).(map[string]any)
	c.take(t, doc)
	return c
}

// take reads what nodes call, which the engine is not to know all of.
func (c *component) take(t testing.TB, doc workflow.Document) {
	t.Helper()
	for _, node := range workflow.Read(doc).Nodes() {
		if node.Kind() == workflow.KindComponent {
			c.calls[node.ID()] = callOf(t, node.Config())
			delete(node.Config(), "inputs")
		}
	}
	def, problems := engine.New(doc, newExpressions())
	if workflow.HasErrors(problems) {
		t.Fatalf("document of %s is not valid: %v\n%v", c.name, problems, doc)
	}
	c.flow = def
}

// callOf reads the configuration of a call. An input "#x" is the section x.
func callOf(t testing.TB, config map[string]any) frames.Call {
	t.Helper()
	call := frames.Call{Inputs: map[string]string{}, Literals: map[string]any{}, Sections: map[string]string{}}
	call.Component, _ = config["component"].(string)
	inputs, _ := config["inputs"].(map[string]any)
	for name, value := range inputs {
		text, isText := value.(string)
		section, isSection := strings.CutPrefix(text, "#")
		switch {
		case isSection:
			call.Sections[name] = section
		case isText:
			call.Inputs[name] = text
		default:
			call.Literals[name] = value
		}
	}
	read := func(member string, into any) {
		data, err := json.Marshal(config[member])
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("read %s: %v", member, err)
		}
	}
	read("outputs", &call.Outputs)
	read("repeat", &call.Repeat)
	read("forEach", &call.ForEach)
	return call
}

// flow is a document with these nodes and edges, one to a line. A node is written "id kind {config}", an edge
// "source target {members}"; its id is "source-target".
func flow(nodes, edges string) string {
	var b strings.Builder
	b.WriteString("id: w\nname: W\nnodes:\n")
	for line := range strings.Lines(nodes) {
		if id, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			kind, config, _ := strings.Cut(rest, " ")
			b.WriteString("- {id: '" + id + "', type: " + kind + ", name: The " + id + ", config: " + config + "}\n")
		}
	}
	b.WriteString("edges:\n")
	for line := range strings.Lines(edges) {
		if source, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			target, members, _ := strings.Cut(rest, " ")
			if members = strings.TrimSuffix(strings.TrimPrefix(members, "{"), "}"); members != "" {
				members = ", " + members
			}
			b.WriteString("- {id: '" + source + "-" + target + "', source: '" + source + "', target: '" + target + "'" + members + "}\n")
		}
	}
	return b.String()
}

// bundle is a definition whose root is the first component.
func bundle(components ...*component) frames.Definition {
	def := frames.Definition{Root: components[0], Components: map[string]frames.Component{}, Expressions: newExpressions()}
	for _, c := range components[1:] {
		def.Components[c.name] = c
	}
	return def
}

// A story is a run that a test tells step by step.
type story struct {
	t       testing.TB
	def     frames.Definition
	state   frames.State
	now     time.Time
	history []frames.Entry
	last    frames.Step
	paths   map[string]bool
}

func tell(t testing.TB, inputs string, components ...*component) *story {
	t.Helper()
	s := &story{t: t, def: bundle(components...), now: noon, paths: map[string]bool{}}
	step, err := frames.Start(t.Context(), s.def, values(t, inputs), s.now, s.now)
	if err != nil {
		t.Fatalf("Start() error: %v", err)
	}
	s.take(step)
	return s
}

// do makes one step and holds it to what is true of every step.
func (s *story) do(call func(state frames.State) frames.Step) frames.Step {
	s.t.Helper()
	before := encode(s.t, s.state)
	step := call(s.state)
	if after := encode(s.t, s.state); after != before {
		s.t.Fatalf("the step changed its state (-before +after):\n%s", cmp.Diff(before, after))
	}
	if again := call(decode(s.t, before)); !reflect.DeepEqual(step, again) {
		s.t.Fatalf("another step after the state went through JSON (-first +second):\n%s", cmp.Diff(step, again))
	}
	if !step.Applied {
		s.checkIgnored(step)
		s.last, s.state = step, step.State
		return step
	}
	if step.Reason != "" {
		s.t.Fatalf("applied step has reason %q", step.Reason)
	}
	s.take(step)
	return step
}

func (s *story) checkIgnored(step frames.Step) {
	s.t.Helper()
	if step.Reason == "" || len(step.Closed)+len(step.Opened) > 0 || step.Outputs != nil || step.Outcome != "" {
		s.t.Fatalf("ignored step is %+v", step)
	}
	if step.Reason == engine.ReasonMatchError {
		return
	}
	if before, after := encode(s.t, s.state), encode(s.t, step.State); before != after {
		s.t.Fatalf("ignored step changed the state (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// take accepts a step and holds the state to what is true of every state.
func (s *story) take(step frames.Step) {
	s.t.Helper()
	for _, e := range step.Closed {
		s.history = append(s.history, e)
		if e.Seq != len(s.history) || e.Name == "" || e.Type == "" {
			s.t.Fatalf("entry %d is %+v", len(s.history), e)
		}
		if e.Call == nil {
			continue
		}
		if s.paths[e.Call.Path] {
			s.t.Fatalf("the address %s occurs twice", e.Call.Path)
		}
		s.paths[e.Call.Path] = true
	}
	s.last, s.state = step, step.State
	if diff := cmp.Diff(s.state, decode(s.t, encode(s.t, s.state))); diff != "" {
		s.t.Fatalf("the state does not survive JSON:\n%s", diff)
	}
	s.checkState()
	s.checkAddresses()
}

// checkState holds frames against the activations that call them.
func (s *story) checkState() {
	s.t.Helper()
	calling := map[string]bool{}
	collect := func(path string, c frames.Component, in engine.Instance) {
		if path != "" && in.Status != engine.StatusWaiting {
			s.t.Fatalf("frame %s is %s", path, in.Status)
		}
		for _, p := range engine.Parked(c.Engine(), in) {
			if p.Kind == workflow.KindComponent {
				calling[join(path, p.Activation)] = true
			}
		}
	}
	collect("", s.def.Root, s.state.Root)
	for _, f := range s.state.Frames {
		collect(f.Path, s.def.Components[f.Component], f.Instance)
	}
	if len(calling) != len(s.state.Frames) {
		s.t.Fatalf("%d activations call, but %d frames are live", len(calling), len(s.state.Frames))
	}
	for _, f := range s.state.Frames {
		if !calling[f.Call] || !s.paths[f.Path] {
			s.t.Fatalf("frame %s is of %s, which does not call", f.Path, f.Call)
		}
	}
	for _, c := range s.state.Calls {
		if !calling[c.Call] {
			s.t.Fatalf("the items of %s are kept for nothing", c.Call)
		}
	}
	if s.state.Root.Status.IsTerminal() && len(frames.Parked(s.def, s.state))+len(s.state.Calls)+len(s.state.Frames) > 0 {
		s.t.Fatalf("something is open at the end: %+v", s.state)
	}
}

// checkAddresses requires that no activation is closed twice, or closed and open.
func (s *story) checkAddresses() {
	s.t.Helper()
	seen := map[string]bool{}
	for _, e := range s.history {
		if e.Call == nil {
			if seen[e.Activation] {
				s.t.Fatalf("%s closed twice", e.Activation)
			}
			seen[e.Activation] = true
		}
	}
	for _, p := range frames.Parked(s.def, s.state) {
		if seen[p.Activation] {
			s.t.Fatalf("%s is open and closed, or open twice", p.Activation)
		}
		seen[p.Activation] = true
	}
}

func join(path, within string) string {
	return strings.TrimPrefix(path+"/"+within, "/")
}

func encode(t testing.TB, state frames.State) string {
	t.Helper()
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatalf("encode state: %v", err)
	}
	return string(data)
}

func decode(t testing.TB, text string) frames.State {
	t.Helper()
	var state frames.State
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		t.Fatalf("decode state: %v", err)
	}
	return state
}

func at(activation string) engine.Address {
	return engine.Address{Activation: activation, Attempt: 1}
}

func (s *story) complete(activation, out string) *story {
	s.t.Helper()
	result := values(s.t, out)
	s.do(func(state frames.State) frames.Step {
		return frames.Complete(s.t.Context(), s.def, state, at(activation), result, "ada", s.now)
	})
	return s
}

func (s *story) fail(activation, code string) *story {
	s.t.Helper()
	s.do(func(state frames.State) frames.Step {
		return frames.Fail(s.t.Context(), s.def, state, at(activation), engine.Failure{Code: code, Message: "m"}, s.now)
	})
	return s
}

// wantOpen requires these activations to be open, in this order.
func (s *story) wantOpen(activations ...string) *story {
	s.t.Helper()
	var open []string
	for _, p := range frames.Parked(s.def, s.state) {
		open = append(open, p.Activation)
	}
	if diff := cmp.Diff(activations, open); diff != "" {
		s.t.Fatalf("open activations (-want +got):\n%s\nhistory: %v\nfailure: %+v", diff, s.closed(), s.state.Root.Failure)
	}
	return s
}

// wantHistory requires the history to be of these entries: "a#1 Completed", or "a#1 > a[1]" for a frame that opened.
func (s *story) wantHistory(entries ...string) *story {
	s.t.Helper()
	if diff := cmp.Diff(entries, s.closed()); diff != "" {
		s.t.Fatalf("history (-want +got):\n%s", diff)
	}
	return s
}

func (s *story) closed() []string {
	var closed []string
	for _, e := range s.history {
		if e.Call != nil {
			closed = append(closed, e.Activation+" > "+e.Call.Path)
			continue
		}
		closed = append(closed, e.Activation+" "+string(e.Outcome))
	}
	return closed
}

func (s *story) wantContext(activation, want string) *story {
	s.t.Helper()
	if diff := cmp.Diff(values(s.t, want), frames.Context(s.def, s.state, activation)); diff != "" {
		s.t.Fatalf("context of %s (-want +got):\n%s", activation, diff)
	}
	return s
}

func (s *story) wantOutputs(want string) *story {
	s.t.Helper()
	if s.state.Root.Status != engine.StatusCompleted {
		s.t.Fatalf("status %s, failure %+v", s.state.Root.Status, s.state.Root.Failure)
	}
	if diff := cmp.Diff(values(s.t, want), s.last.Outputs); diff != "" {
		s.t.Fatalf("outputs (-want +got):\n%s", diff)
	}
	return s
}

func (s *story) wantFailure(phase engine.Phase, code, activation string) *story {
	s.t.Helper()
	f := s.state.Root.Failure
	if s.state.Root.Status != engine.StatusFailed || f == nil {
		s.t.Fatalf("status %s, want a failure; history %v", s.state.Root.Status, s.closed())
	}
	if f.Phase != phase || f.Code != code || f.Activation != activation || f.Message == "" {
		s.t.Fatalf("failure %+v, want %s/%s of %s", *f, phase, code, activation)
	}
	return s
}

func (s *story) wantReason(want engine.Reason) *story {
	s.t.Helper()
	if s.last.Applied || s.last.Reason != want {
		s.t.Fatalf("applied %t, reason %q, want %q", s.last.Applied, s.last.Reason, want)
	}
	return s
}

// act is an action whose result goes by the names it has.
const act = "action {actionType: a, inputs: {}, outputs: []}"
