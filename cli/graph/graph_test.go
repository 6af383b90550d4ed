package graph_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

var update = flag.Bool("update", false, "write the golden files")

func parse(t testing.TB, text string) any {
	t.Helper()
	doc, err := source.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Value
}

func release(t testing.TB) workflow.Document {
	t.Helper()
	doc, err := (&source.Loader{}).Load("../../config/samples/release/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc.Value.(map[string]any)
}

// revised is the release after a change set with something of everything.
func revised(t testing.TB, before workflow.Document) workflow.Document {
	t.Helper()
	after, rejection := changeset.Apply(before, parse(t, `
- {op: addNode, node: {id: check, type: human-task, name: "Check <again> & \"well\"", config: {}}}
- {op: addEdge, edge: {id: e12, source: merged, target: assess, label: try again, priority: 4, isDefault: false}}
- {op: addEdge, edge: {id: e13, source: check, target: check, label: still unclear, priority: 4, isDefault: false}}
- {op: updateEdge, id: e11, patch: {target: check}}
- {op: addEdge, edge: {id: e14, source: check, target: done, priority: 4, isDefault: false}}
- {op: removeNode, id: refused}
- {op: updateNode, id: cool-down, patch: {name: Rest}}
`))
	if rejection != nil {
		t.Fatal(rejection)
	}
	return after
}

// hostile has every mark-up character that one of the languages knows, edges to
// nowhere, ids that repeat and kinds that do not exist.
const hostile = `
id: "a\"b\\c"
name: "a: \"b\" # [x] --- \\ 'q' </title>"
nodes:
- {id: s, type: start, name: "1. 'x' <b>&amp; \"q\" | ]) }} end %% ;"}
- {id: end, type: end, name: "- end"}
- {id: x, type: wait, name: "subgraph\nend \a \u202e\u001b[31m", config: {duration: "<&>"}}
- {id: x, type: robot, name: ""}
- {id: "", type: ""}
edges:
- {id: a, source: s, target: end, condition: "context.a == '\"' && x | y %%{init}%%"}
- {id: b, source: s, target: gone}
- {id: c, source: x, target: x, label: "-->|x|"}
- {id: d, source: gone, target: s, label: "@{ shape: x }", isDefault: true}
- {}
`

var formats = map[string]func(*graph.Graph) string{
	"mmd": graph.Mermaid,
	"dot": graph.DOT,
	"svg": graph.SVG,
	"json": func(g *graph.Graph) string {
		data, err := json.MarshalIndent(graph.Place(g), "", " ")
		if err != nil {
			return err.Error()
		}
		return string(data) + "\n"
	},
	"txt": func(g *graph.Graph) string { return graph.Terminal(g, terminal.Palette{}) },
}

func TestGolden(t *testing.T) {
	before := release(t)
	for name, g := range map[string]*graph.Graph{
		"release": graph.Of(before),
		"revised": graph.Compare(before, revised(t, before)),
		"hostile": graph.Of(parse(t, hostile).(map[string]any)),
		"empty":   graph.Of(workflow.Document{}),
	} {
		for format, draw := range formats {
			t.Run(name+"."+format, func(t *testing.T) {
				assertGolden(t, name+"."+format, draw(g))
			})
		}
	}
}

func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestColoursInATerminal(t *testing.T) {
	before := release(t)
	text := graph.Terminal(graph.Compare(before, revised(t, before)), terminal.Colours())
	for _, want := range []string{"\x1b[32m+\x1b[0m", "\x1b[33mRest\x1b[0m", "\x1b[31mRefused\x1b[0m", "\x1b[1mAssess risk\x1b[0m"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestMarks(t *testing.T) {
	before := release(t)
	g := graph.Compare(before, revised(t, before))
	got := map[string]graph.Change{}
	for _, n := range g.Nodes {
		if n.Change != graph.Unchanged {
			got[n.ID] = n.Change
		}
	}
	for _, e := range g.Edges {
		if e.Change != graph.Unchanged {
			got[fmt.Sprintf("%s to %s", e.ID, g.Nodes[e.Target].ID)] = e.Change
		}
	}
	want := map[string]graph.Change{
		"check": graph.Added, "cool-down": graph.Changed, "refused": graph.Removed,
		"e6 to refused": graph.Removed, "e11 to check": graph.Changed, "e11 to done": graph.Removed,
		"e12 to assess": graph.Added, "e13 to check": graph.Added, "e14 to done": graph.Added,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, n := range graph.Compare(before, before).Nodes {
		if n.Change != graph.Unchanged {
			t.Errorf("node %s is %s, and nothing changed", n.ID, n.Change)
		}
	}
}

// randomDocument is a graph of any shape; about one edge in ten leads nowhere.
func randomDocument(r *rand.Rand) workflow.Document {
	n := 1 + r.IntN(20)
	nodes := make([]any, n)
	for i := range nodes {
		kind := workflow.Kinds()[r.IntN(len(workflow.Kinds()))]
		nodes[i] = map[string]any{"id": strconv.Itoa(r.IntN(n + n/4)), "type": string(kind), "name": strings.Repeat("name ", r.IntN(4))}
	}
	edges := make([]any, r.IntN(3*n))
	for i := range edges {
		edges[i] = map[string]any{
			"id": fmt.Sprint("e", i), "source": strconv.Itoa(r.IntN(n + n/10)), "target": strconv.Itoa(r.IntN(n + n/10)),
			"label": strings.Repeat("label ", r.IntN(3)), "priority": int64(r.IntN(3)), "isTimeout": r.IntN(9) == 0,
		}
	}
	return workflow.Document{"id": "r", "name": "r", "nodes": nodes, "edges": edges}
}

// Any two documents can be drawn in every format, always in the same way; what
// is SVG is XML, and Mermaid and DOT have a line for each node and edge.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, after := randomDocument(r), randomDocument(r)
		g := graph.Of(before)
		if seed%2 == 0 {
			g = graph.Compare(before, after)
		}
		for format, draw := range formats {
			if first, second := draw(g), draw(g); first != second {
				t.Errorf("seed %d: %s is not the same twice", seed, format)
			}
		}
		assertXML(t, graph.SVG(g))
		if n := strings.Count(graph.DOT(g), "->"); n != len(g.Edges) {
			t.Errorf("seed %d: %d edges in DOT, want %d", seed, n, len(g.Edges))
		}
		if n := strings.Count(graph.Mermaid(g), "-> ") + strings.Count(graph.Mermaid(g), "->|"); n != len(g.Edges) {
			t.Errorf("seed %d: %d edges in Mermaid, want %d", seed, n, len(g.Edges))
		}
	}
}

// assertXML reads the whole picture. It must be self-contained.
func assertXML(t *testing.T, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		element, _ := token.(xml.StartElement)
		for _, attribute := range element.Attr {
			if attribute.Name.Local == "href" || strings.Contains(attribute.Value, "url(") {
				t.Fatalf("%s refers to %s", element.Name.Local, attribute.Value)
			}
		}
	}
}

func TestStateOfARunInEachFormat(t *testing.T) {
	w := workflow.Read(workflow.Document{
		"id": "w", "nodes": []any{map[string]any{"id": "a", "type": "start"}, map[string]any{"id": "b", "type": "wait"}, map[string]any{"id": "c", "type": "end"}},
		"edges": []any{map[string]any{"id": "e", "source": "a", "target": "b"}, map[string]any{"id": "f", "source": "b", "target": "c"}},
	})
	drawn := graph.InRun(w, map[string]graph.Change{"a": graph.Done, "b": graph.Open}, map[string]graph.Change{"e": graph.Done})
	for format, tc := range map[string]struct{ got, want string }{
		"svg": {graph.SVG(drawn), `<g class="node wait open">`}, "dot": {graph.DOT(drawn), `class="open", penwidth=2`},
		"mermaid": {graph.Mermaid(drawn), "  class n1 open\n"}, "text": {graph.Terminal(drawn, terminal.Palette{}), "▸ ◇  b  wait\n"},
	} {
		if !strings.Contains(tc.got, tc.want) || strings.Contains(tc.got, "added") {
			t.Errorf("%s: %q is not in\n%s", format, tc.want, tc.got)
		}
	}
}
