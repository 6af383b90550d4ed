package changeset_test

import (
	_ "embed"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// The vectors are lines of fields parted by one blank; the last field is JSON
// and takes the rest of the line.
var (
	//go:embed testdata/base.json
	baseJSON string
	//go:embed testdata/revisions.txt
	revisionVectors string
	//go:embed testdata/applied.txt
	appliedVectors string
	//go:embed testdata/rejected.txt
	rejectedVectors string
	//go:embed testdata/inverses.txt
	inverseVectors string
)

const baseRevision = "sha256:dfec259fded9c318b73ff1b5a779fdd0b4e5e185c21277cfa452b8b523a7f4f0"

func vectors(text string, fields int) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.SplitN(strings.TrimSuffix(line, "\n"), " ", fields))
	}
	return rows
}

// appliedOps returns the operations of an applied vector by its name.
func appliedOps(t *testing.T, name string) []any {
	t.Helper()
	for _, row := range vectors(appliedVectors, 3) {
		if row[0] == name {
			return decode(t, row[2]).([]any)
		}
	}
	t.Fatalf("no vector %s", name)
	return nil
}

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("decode %.200s: %v", text, err)
	}
	return v
}

func base(t testing.TB) changeset.Document {
	t.Helper()
	return decode(t, baseJSON).(changeset.Document)
}

func canonical(t testing.TB, v any) string {
	t.Helper()
	text, err := jsonvalue.Canonical(v)
	if err != nil {
		t.Fatalf("canonical text of %v: %v", v, err)
	}
	return string(text)
}

func revision(t testing.TB, doc changeset.Document) string {
	t.Helper()
	got, err := changeset.Revision(doc)
	if err != nil {
		t.Fatalf("Revision(): %v", err)
	}
	return got
}

func apply(t testing.TB, doc changeset.Document, ops any) changeset.Document {
	t.Helper()
	result, rejection := changeset.Apply(doc, ops)
	if rejection != nil {
		t.Fatalf("Apply(%s): %s", canonical(t, ops), rejection)
	}
	return result
}

func changeSetOf(t testing.TB, doc changeset.Document, ops []any) changeset.ChangeSet {
	t.Helper()
	return changeset.ChangeSet{ID: "cs-1", BaseRevision: revision(t, doc), Author: "host", Summary: "Try", Ops: ops}
}

func assertSame(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(canonical(t, want), canonical(t, got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func TestRevisionVectors(t *testing.T) {
	for _, row := range vectors(revisionVectors, 3) {
		t.Run(row[0], func(t *testing.T) {
			if got := revision(t, decode(t, row[2]).(changeset.Document)); got != row[1] {
				t.Errorf("Revision() = %s, want %s", got, row[1])
			}
		})
	}
	if got := revision(t, base(t)); got != baseRevision {
		t.Errorf("Revision(base) = %s, want %s", got, baseRevision)
	}
}

func TestRevisionRefuses(t *testing.T) {
	if got, err := changeset.Revision(nil); !errors.Is(err, changeset.ErrNoDocument) {
		t.Errorf("Revision(nil) = %q, %v", got, err)
	}
	for name, number := range map[string]float64{"infinity": math.Inf(1), "not a number": math.NaN()} {
		doc := changeset.Document{"nodes": []any{map[string]any{"config": []any{number}}}}
		if got, err := changeset.Revision(doc); !errors.Is(err, jsonvalue.ErrNumber) || got != "" {
			t.Errorf("%s: Revision() = %q, %v", name, got, err)
		}
	}
	for _, text := range []string{`{"id":1e400}`, `{"id":`} {
		if v, err := jsonvalue.Decode([]byte(text)); err == nil {
			t.Errorf("Decode(%s) = %v", text, v)
		}
	}
}

func TestRevisionIgnoresLayoutOnlyOfNodes(t *testing.T) {
	doc := decode(t, `{"nodes":[7,{"position":[1]},null],"edges":[{"position":1}]}`).(changeset.Document)
	bare := decode(t, `{"nodes":[7,{},null],"edges":[{"position":1}]}`).(changeset.Document)
	other := decode(t, `{"nodes":[7,{},null],"edges":[{}]}`).(changeset.Document)
	if revision(t, doc) != revision(t, bare) {
		t.Error("the position of a node without id is content")
	}
	if revision(t, bare) == revision(t, other) {
		t.Error("the position of an edge is no content")
	}
	notAList := decode(t, `{"nodes":{"position":1}}`).(changeset.Document)
	if revision(t, notAList) == revision(t, decode(t, `{"nodes":{}}`).(changeset.Document)) {
		t.Error("a position outside of a list of nodes is no content")
	}
}

func TestContentRevision(t *testing.T) {
	tool := decode(t, `{"name":"find","nodes":[{"id":"a","position":1}]}`)
	moved := decode(t, `{"nodes":[{"position":2,"id":"a"}],"name":"find"}`)
	spelt := decode(t, `{"nodes":[{"position":1.0,"id":"a"}],"name":"find"}`)
	first, err := changeset.ContentRevision(tool)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := changeset.ContentRevision(moved); second == first {
		t.Error("nothing may be left out of the content of other things than workflows")
	}
	if third, _ := changeset.ContentRevision(spelt); third != first {
		t.Errorf("another spelling: %s, want %s", third, first)
	}
	if got, err := changeset.ContentRevision(math.NaN()); err == nil {
		t.Errorf("ContentRevision(NaN) = %s", got)
	}
}

func TestAppliedVectors(t *testing.T) {
	for _, row := range vectors(appliedVectors, 3) {
		t.Run(row[0], func(t *testing.T) {
			doc, ops := base(t), decode(t, row[2])
			result := apply(t, doc, ops)
			if got := revision(t, result); got != row[1] {
				t.Errorf("revision = %s, want %s\n%s", got, row[1], canonical(t, result))
			}
			set := map[string]any{"baseRevision": baseRevision, "ops": ops}
			checked, got, rejection := changeset.ApplyChecked(doc, set)
			if rejection != nil || got != row[1] {
				t.Fatalf("ApplyChecked() = %s, %v", got, rejection)
			}
			assertSame(t, "ApplyChecked and Apply", result, checked)
			assertSame(t, "the document", base(t), doc)
		})
	}
}

func TestRejectedVectors(t *testing.T) {
	for _, row := range vectors(rejectedVectors, 4) {
		t.Run(row[0], func(t *testing.T) {
			doc, ops := base(t), decode(t, row[3])
			want, err := strconv.Atoi(row[2])
			if err != nil {
				t.Fatal(err)
			}
			result, rejection := changeset.Apply(doc, ops)
			assertRejected(t, rejection, row[1], &want)
			if result != nil {
				t.Errorf("a rejected set gave %s", canonical(t, result))
			}
			_, _, rejection = changeset.ApplyChecked(doc, map[string]any{"baseRevision": baseRevision, "ops": ops})
			assertRejected(t, rejection, row[1], &want)
			_, rejection = changeset.Inverse(doc, changeSetOf(t, doc, ops.([]any)))
			assertRejected(t, rejection, row[1], &want)
			assertSame(t, "the document", base(t), doc)
		})
	}
}

func assertRejected(t *testing.T, got *changeset.Rejection, code string, opIndex *int) {
	t.Helper()
	if got == nil {
		t.Fatalf("not rejected, want %s", code)
	}
	if got.Reason == "" {
		t.Error("no reason")
	}
	want := &changeset.Rejection{Code: code, OpIndex: opIndex, Reason: got.Reason}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rejection (-want +got)\n%s", diff)
	}
}

func TestApplyChecked(t *testing.T) {
	restore := `{"op":"restore","member":"version"}`
	first := new(0)
	second := new(1)
	tests := map[string]struct {
		set     string
		code    string
		opIndex *int
	}{
		"no operations":                       {set: `{"baseRevision":B,"ops":[]}`},
		"members nobody knows":                {set: `{"baseRevision":B,"ops":[{"op":"removeEdge","id":"e1","why":1}],"x":{}}`},
		"the host restores":                   {set: `{"baseRevision":B,"author":"host","ops":[` + restore + `]}`},
		"an author that is no text":           {set: `{"baseRevision":B,"author":["agent:a"],"ops":[` + restore + `]}`},
		"an author that only sounds like one": {set: `{"baseRevision":B,"author":"agent","ops":[` + restore + `]}`},

		"stale, before operations are looked at": {set: `{"baseRevision":"sha256:00","ops":[{"op":"nope"}]}`, code: "stale"},
		"stale, before there are operations":     {set: `{"baseRevision":"sha256:00"}`, code: "stale"},
		"no base revision":                       {set: `{"ops":[]}`, code: "stale"},
		"a base revision that is no text":        {set: `{"baseRevision":[B],"ops":[]}`, code: "stale"},
		"an empty base revision":                 {set: `{"baseRevision":"","ops":[]}`, code: "stale"},
		"no list of operations":                  {set: `{"baseRevision":B}`, code: "malformed"},
		"operations that are an object":          {set: `{"baseRevision":B,"ops":{}}`, code: "malformed"},
		"operations that are null":               {set: `{"baseRevision":B,"ops":null}`, code: "malformed"},
		"a list":                                 {set: `[]`, code: "malformed"},
		"null":                                   {set: `null`, code: "malformed"},
		"text":                                   {set: `"x"`, code: "malformed"},
		"an agent restores": {
			set:  `{"baseRevision":B,"author":"agent:a","ops":[{"op":"metadata","patch":{}},` + restore + `,` + restore + `]}`,
			code: "malformed", opIndex: second,
		},
		"an agent's restore is named before what fails earlier": {
			set:  `{"baseRevision":B,"author":"agent:","ops":[{"op":"removeEdge","id":"e9"},` + restore + `]}`,
			code: "malformed", opIndex: second,
		},
		"an agent's restore of any shape": {
			set:  `{"baseRevision":B,"author":"agent:a","ops":[{"op":"restore"}]}`,
			code: "malformed", opIndex: first,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := decode(t, strings.ReplaceAll(tc.set, "B", strconv.Quote(baseRevision)))
			result, revised, rejection := changeset.ApplyChecked(base(t), set)
			if tc.code != "" {
				assertRejected(t, rejection, tc.code, tc.opIndex)
				if result != nil || revised != "" {
					t.Errorf("ApplyChecked() = %v, %q beside a rejection", result, revised)
				}
				return
			}
			if rejection != nil {
				t.Fatalf("rejected: %s", rejection)
			}
			if want := revision(t, result); revised != want {
				t.Errorf("revision %s, want %s", revised, want)
			}
		})
	}
}

func TestStaleNamesBothRevisions(t *testing.T) {
	_, _, rejection := changeset.ApplyChecked(base(t), map[string]any{"baseRevision": "sha256:00", "ops": []any{}})
	if rejection == nil || !strings.Contains(rejection.Reason, "sha256:00") || !strings.Contains(rejection.Reason, baseRevision) {
		t.Errorf("rejection %v", rejection)
	}
}

func TestRejectionInWords(t *testing.T) {
	if got, want := (changeset.Rejection{Code: "stale", Reason: "why"}).String(), "stale: why"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := (changeset.Rejection{Code: "malformed", OpIndex: new(3), Reason: "why"}).String(), "malformed at op 3: why"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestApplyRefusesDocuments(t *testing.T) {
	tests := map[string]changeset.Document{
		"nil":                       nil,
		"without a revision":        {"x": math.NaN()},
		"nodes that are no list":    {"nodes": map[string]any{}},
		"edges that are no list":    {"edges": "none"},
		"a Go type that is no JSON": {"x": struct{}{}},
	}
	for name, doc := range tests {
		t.Run(name, func(t *testing.T) {
			_, rejection := changeset.Apply(doc, []any{})
			assertRejected(t, rejection, "malformed", nil)
			_, _, rejection = changeset.ApplyChecked(doc, map[string]any{"baseRevision": "", "ops": []any{}})
			assertRejected(t, rejection, "malformed", nil)
			_, rejection = changeset.Inverse(doc, changeset.ChangeSet{})
			assertRejected(t, rejection, "malformed", nil)
		})
	}
}

func TestApplyTakesOnlyListsOfOperations(t *testing.T) {
	for _, ops := range []any{nil, map[string]any{}, "ops", int64(1)} {
		_, rejection := changeset.Apply(base(t), ops)
		assertRejected(t, rejection, "malformed", nil)
	}
}

func TestApplyCheckedTakesTypedSets(t *testing.T) {
	doc := base(t)
	set := changeSetOf(t, doc, appliedOps(t, "A9"))
	for name, given := range map[string]any{"a value": set, "a pointer": &set} {
		if _, got, rejection := changeset.ApplyChecked(doc, given); rejection != nil || got != vectors(appliedVectors, 3)[8][1] {
			t.Errorf("%s: %s, %v", name, got, rejection)
		}
	}
	set.Ops = nil
	if _, got, rejection := changeset.ApplyChecked(doc, set); rejection != nil || got != baseRevision {
		t.Errorf("without operations: %s, %v", got, rejection)
	}
	_, _, rejection := changeset.ApplyChecked(doc, (*changeset.ChangeSet)(nil))
	assertRejected(t, rejection, "malformed", nil)
}

func TestCombine(t *testing.T) {
	const wantRevision = "sha256:8ccb5564d361536f18cf7c983abde5e572014fb981e46603fa6b93ffab5513e1"
	doc := base(t)
	first := changeSetOf(t, doc, appliedOps(t, "A1"))
	working, revised, rejection := changeset.ApplyChecked(doc, first)
	if rejection != nil {
		t.Fatal(rejection)
	}
	pause := decode(t, `[{"op":"metadata","patch":{"description":"With a pause"}}]`).([]any)
	second := changeset.ChangeSet{ID: "cs-2", BaseRevision: revised, Author: "agent:a", Ops: pause}
	_, revised, rejection = changeset.ApplyChecked(working, second)
	if rejection != nil || revised != wantRevision {
		t.Fatalf("working revision %s, %v, want %s", revised, rejection, wantRevision)
	}

	got, ok := changeset.Combine("turn-1", baseRevision, "agent:axiom-workbench", []changeset.ChangeSet{first, second})
	want := changeset.ChangeSet{
		ID: "turn-1", BaseRevision: baseRevision, Author: "agent:axiom-workbench",
		Summary: "AI turn: 4 workflow change(s)",
		Ops:     append(appliedOps(t, "A1"), pause...),
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("Combine() ok = %v (-want +got)\n%s", ok, diff)
	}
	if _, revised, rejection = changeset.ApplyChecked(doc, got); rejection != nil || revised != wantRevision {
		t.Errorf("combined: %s, %v, want %s", revised, rejection, wantRevision)
	}
	scramble(got.Ops)
	assertSame(t, "the sets", append(appliedOps(t, "A1"), pause...), append(first.Ops, second.Ops...))

	second.BaseRevision = baseRevision
	_, _, rejection = changeset.ApplyChecked(working, second)
	assertRejected(t, rejection, "stale", nil)
}

func TestCombineNothing(t *testing.T) {
	for _, sets := range [][]changeset.ChangeSet{nil, {{ID: "empty"}, {Ops: []any{}}}} {
		if got, ok := changeset.Combine("turn-1", baseRevision, "agent:a", sets); ok {
			t.Errorf("Combine() = %v", got)
		}
	}
}

func TestDiff(t *testing.T) {
	tests := map[string]struct {
		vector string // of the applied ones, or
		ops    string
		want   changeset.Summary
		lines  string
	}{
		"A1": {
			vector: "A1",
			want:   changeset.Summary{AddedNodes: []string{"hold"}, EdgesChanged: true, AddedEdges: []string{"e5"}, ChangedEdges: []string{"e2"}},
			lines:  "added nodes: hold\nedges changed",
		},
		"A2": {vector: "A2", want: changeset.Summary{ChangedNodes: []string{"read"}}, lines: "changed nodes: read"},
		"A4": {vector: "A4"},
		"A5": {
			vector: "A5",
			want: changeset.Summary{
				AddedNodes: []string{"extract"}, RemovedNodes: []string{"read"},
				EdgesChanged: true, ChangedEdges: []string{"e1", "e2"},
			},
			lines: "added nodes: extract\nremoved nodes: read\nedges changed",
		},
		"A6": {vector: "A6"},
		"A7": {
			vector: "A7",
			want:   changeset.Summary{RemovedNodes: []string{"sign"}, EdgesChanged: true, RemovedEdges: []string{"e2", "e3", "e4"}},
			lines:  "removed nodes: sign\nedges changed",
		},
		"A9": {vector: "A9", want: changeset.Summary{FieldsChanged: []string{"description", "name", "version"}}},
		"A10": {
			vector: "A10",
			want:   changeset.Summary{ChangedNodes: []string{"refused"}, EdgesChanged: true, AddedEdges: []string{"e6"}},
			lines:  "changed nodes: refused\nedges changed",
		},
		"A11": {vector: "A11"},
		"A12": {vector: "A12"},
		"two nodes swapped": {
			ops:  `[{"op":"restore","list":"nodes","index":3,"remove":2,"insert":[{"id":"refused","type":"end","name":"Refused","config":{"outcome":"refused"}},{"id":"paid","type":"end","name":"Paid","config":{"outcome":"paid"}}]}]`,
			want: changeset.Summary{OrderChanged: true},
		},
		"two edges swapped": {
			ops:  `[{"op":"restore","list":"edges","index":0,"remove":2,"insert":[{"id":"e2","source":"read","target":"sign","priority":0,"isDefault":false},{"id":"e1","source":"begin","target":"read","priority":0,"isDefault":false}]}]`,
			want: changeset.Summary{OrderChanged: true},
		},
		"several ids in a line": {
			ops: `[{"op":"removeNode","id":"refused"},{"op":"removeNode","id":"begin"},
				{"op":"addNode","node":{"id":"z","type":"end","name":"Z","config":{}}},
				{"op":"addNode","node":{"id":"a","type":"end","name":"A","config":{}}}]`,
			want: changeset.Summary{
				AddedNodes: []string{"z", "a"}, RemovedNodes: []string{"begin", "refused"},
				EdgesChanged: true, RemovedEdges: []string{"e1", "e4"},
			},
			lines: "added nodes: z, a\nremoved nodes: begin, refused\nedges changed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var ops any
			if tc.vector != "" {
				ops = appliedOps(t, tc.vector)
			} else {
				ops = decode(t, tc.ops)
			}
			got := changeset.Diff(base(t), apply(t, base(t), ops))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Diff() (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.lines, got.String()); diff != "" {
				t.Errorf("String() (-want +got)\n%s", diff)
			}
		})
	}
}

func TestDiffOfDrafts(t *testing.T) {
	tests := map[string]struct {
		before, after string
		want          changeset.Summary
	}{
		"no list and an empty one": {`{}`, `{"nodes":[],"edges":null}`, changeset.Summary{}},
		"positions":                {`{"nodes":[{"id":"a","position":1},{"position":2}]}`, `{"nodes":[{"id":"a"},{}]}`, changeset.Summary{}},
		"another spelling":         {`{"version":1,"nodes":[{"id":"a","x":1.0}]}`, `{"version":1e0,"nodes":[{"x":1,"id":"a"}]}`, changeset.Summary{}},
		"a node without id":        {`{"nodes":[{"name":"x"}]}`, `{"nodes":[{"name":"y"}]}`, changeset.Summary{OrderChanged: true}},
		"an id that is no text":    {`{"nodes":[]}`, `{"nodes":[{"id":7}]}`, changeset.Summary{OrderChanged: true}},
		"an edge without id":       {`{"edges":[{"source":"a"}]}`, `{"edges":[5]}`, changeset.Summary{EdgesChanged: true}},
		"an edge twice":            {`{"edges":[{"source":"a"}]}`, `{"edges":[{"source":"a"},{"source":"a"}]}`, changeset.Summary{EdgesChanged: true}},
		"a node twice":             {`{"nodes":[{"id":"a"}]}`, `{"nodes":[{"id":"a"},{"id":"a"}]}`, changeset.Summary{ChangedNodes: []string{"a"}}},
		"namesakes swapped":        {`{"nodes":[{"id":"a","x":1},{"id":"a","x":2}]}`, `{"nodes":[{"id":"a","x":2},{"id":"a","x":1}]}`, changeset.Summary{OrderChanged: true}},
		"a stranger moved":         {`{"nodes":[{"id":"a"},5]}`, `{"nodes":[5,{"id":"a"}]}`, changeset.Summary{OrderChanged: true}},
		"an empty id":              {`{"nodes":[]}`, `{"nodes":[{"id":""}]}`, changeset.Summary{AddedNodes: []string{""}}},
		"nodes that are no list":   {`{"nodes":5}`, `{"nodes":6}`, changeset.Summary{OrderChanged: true}},
		"a member null and absent": {`{"x":null}`, `{}`, changeset.Summary{FieldsChanged: []string{"x"}}},
		"a moved and changed edge": {
			`{"edges":[{"id":"a","x":1},{"id":"b"}]}`, `{"edges":[{"id":"b"},{"id":"a","x":2}]}`,
			changeset.Summary{EdgesChanged: true, ChangedEdges: []string{"a"}, OrderChanged: true},
		},
		"an order that only lost members": {
			`{"nodes":[{"id":"a"},{"id":"b"},{"id":"c"}]}`, `{"nodes":[{"id":"a"},{"id":"c"},{"id":"d"}]}`,
			changeset.Summary{AddedNodes: []string{"d"}, RemovedNodes: []string{"b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := changeset.Diff(decode(t, tc.before).(changeset.Document), decode(t, tc.after).(changeset.Document))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Diff() (-want +got)\n%s", diff)
			}
		})
	}
	if got := changeset.Diff(nil, nil); !cmp.Equal(changeset.Summary{}, got) {
		t.Errorf("Diff(nil, nil) = %v", got)
	}
}

func TestInverseVectors(t *testing.T) {
	for _, row := range vectors(inverseVectors, 2) {
		t.Run(row[0], func(t *testing.T) {
			set := changeSetOf(t, base(t), appliedOps(t, row[0]))
			got, rejection := changeset.Inverse(base(t), set)
			if rejection != nil {
				t.Fatal(rejection)
			}
			assertSame(t, "operations", decode(t, row[1]), got.Ops)
		})
	}
}

func TestInverseOfEveryAppliedVector(t *testing.T) {
	for _, row := range vectors(appliedVectors, 3) {
		t.Run(row[0], func(t *testing.T) {
			set := changeSetOf(t, base(t), appliedOps(t, row[0]))
			got, rejection := changeset.Inverse(base(t), set)
			if rejection != nil {
				t.Fatal(rejection)
			}
			want := changeset.ChangeSet{ID: "cs-1-inverse", BaseRevision: row[1], Author: "host", Summary: "Undo: Try", Ops: got.Ops}
			if diff := cmp.Diff(want, got); diff != "" || got.Ops == nil {
				t.Errorf("Inverse() (-want +got)\n%s", diff)
			}
			result := apply(t, base(t), set.Ops)
			if _, back, rejection := changeset.ApplyChecked(result, got); rejection != nil || back != baseRevision {
				t.Errorf("inverse applied: %s, %v, want %s\n%s", back, rejection, baseRevision, canonical(t, got.Ops))
			}
		})
	}
}

func TestInverseOfDrafts(t *testing.T) {
	tests := map[string]struct{ draft, ops, want string }{
		"the first node of all": {
			`{"edges":[]}`, `[{"op":"addNode","node":{"id":"a","type":"end","name":"A","config":{}}}]`,
			`[{"op":"restore","member":"nodes"}]`,
		},
		"the first node of null": {
			`{"nodes":null}`, `[{"op":"addNode","node":{"id":"a","type":"end","name":"A","config":{}}}]`,
			`[{"op":"restore","member":"nodes","value":null}]`,
		},
		"a node without a config": {
			`{"nodes":[{"id":"a"}]}`, `[{"op":"updateNode","id":"a","patch":{"name":"A"}}]`,
			`[{"op":"restore","list":"nodes","index":0,"remove":1,"insert":[{"id":"a"}]}]`,
		},
		"a name that was no text": {
			`{"nodes":[{"id":"a","name":5,"config":{}}]}`, `[{"op":"updateNode","id":"a","patch":{"name":"A"}}]`,
			`[{"op":"restore","list":"nodes","index":0,"remove":1,"insert":[{"id":"a","name":5,"config":{}}]}]`,
		},
		"members that were not there": {
			`{"nodes":[{"id":"a","config":{"k":1}}]}`, `[{"op":"updateNode","id":"a","patch":{"config":{"z":1,"b":2}},"unset":["y","k","y"]}]`,
			`[{"op":"updateNode","id":"a","patch":{"config":{"k":1}},"unset":["b","z","y"]}]`,
		},
		"an edge somebody else's rename would catch": {
			`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"b","target":"a"}]}`, `[{"op":"renameNode","id":"a","newId":"b"}]`,
			`[{"op":"restore","list":"edges","index":0,"remove":1,"insert":[{"id":"e","source":"b","target":"a"}]},
			  {"op":"restore","list":"nodes","index":0,"remove":1,"insert":[{"id":"a"}]}]`,
		},
		"an entry that is no object": {
			`{"nodes":[5,{"id":"a"}]}`, `[{"op":"restore","list":"nodes","index":0,"remove":1,"insert":[]}]`,
			`[{"op":"restore","member":"nodes","value":[5,{"id":"a"}]}]`,
		},
		"the last node and edge": {
			`{"nodes":[{"id":"a","type":"end","name":"A","config":{}}],"edges":[{"id":"e","source":"a","target":"a","priority":0,"isDefault":true}]}`,
			`[{"op":"removeNode","id":"a"}]`,
			`[{"op":"addNode","node":{"id":"a","type":"end","name":"A","config":{}}},
			  {"op":"addEdge","edge":{"id":"e","source":"a","target":"a","priority":0,"isDefault":true}}]`,
		},
		"only an edge": {
			`{"nodes":[{"id":"a"}],"edges":[{"id":"e","source":"a","target":"a","priority":0,"isDefault":true}]}`,
			`[{"op":"removeEdge","id":"e"}]`,
			`[{"op":"addEdge","edge":{"id":"e","source":"a","target":"a","priority":0,"isDefault":true}}]`,
		},
		"metadata that was there": {
			`{"name":"N","version":1}`, `[{"op":"metadata","patch":{"name":"M","version":2}}]`,
			`[{"op":"metadata","patch":{"name":"N","version":1}}]`,
		},
		"nothing that counts": {
			`{"version":1,"nodes":[{"id":"a","config":{}}]}`,
			`[{"op":"metadata","patch":{"version":1.0}},{"op":"updateNode","id":"a"},{"op":"restore","list":"edges","index":0,"remove":0,"insert":[]}]`,
			`[]`,
		},
		"a node that another took the id of": {
			`{"nodes":[{"id":"a","type":"end","name":"A","config":{}}]}`,
			`[{"op":"removeNode","id":"a"},{"op":"addNode","node":{"id":"a","type":"wait","name":"B","config":{}}}]`,
			`[{"op":"restore","list":"nodes","index":0,"remove":1,"insert":[{"id":"a","type":"end","name":"A","config":{}}]}]`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			draft, ops := decode(t, tc.draft).(changeset.Document), decode(t, tc.ops).([]any)
			got, rejection := changeset.Inverse(draft, changeset.ChangeSet{Ops: ops})
			if rejection != nil {
				t.Fatal(rejection)
			}
			assertSame(t, "operations", decode(t, tc.want), got.Ops)
			assertSame(t, "document", draft, apply(t, apply(t, draft, ops), got.Ops))
		})
	}
}

func TestInverseIsRejectedAsTheSetIs(t *testing.T) {
	stale := changeset.ChangeSet{BaseRevision: "sha256:00"}
	_, rejection := changeset.Inverse(base(t), stale)
	assertRejected(t, rejection, "stale", nil)

	agent := changeset.ChangeSet{Author: "agent:a", Ops: decode(t, `[{"op":"restore","member":"version"}]`).([]any)}
	_, rejection = changeset.Inverse(base(t), agent)
	assertRejected(t, rejection, "malformed", new(0))
}

func TestInverseKeepsTheLayoutOfThen(t *testing.T) {
	set := changeSetOf(t, base(t), appliedOps(t, "A10"))
	inverse, rejection := changeset.Inverse(base(t), set)
	if rejection != nil {
		t.Fatal(rejection)
	}
	moved := apply(t, base(t), set.Ops)
	for i, node := range moved["nodes"].([]any) {
		node.(map[string]any)["position"] = int64(i)
	}
	back, _, rejection := changeset.ApplyChecked(moved, inverse)
	if rejection != nil {
		t.Fatal(rejection)
	}
	assertSame(t, "positions", positions(moved), positions(back))
}

// positions returns the positions of nodes by id, null for none.
func positions(doc changeset.Document) map[string]any {
	places := map[string]any{}
	nodes, _ := doc["nodes"].([]any)
	for _, raw := range nodes {
		if node, ok := raw.(map[string]any); ok {
			if id, ok := node["id"].(string); ok {
				places[id] = node["position"]
			}
		}
	}
	return places
}

func TestUndo(t *testing.T) {
	tests := map[string]struct {
		turn, since  string
		wantRevision string
		want         *changeset.Conflict
	}{
		"nothing since": {
			turn: "A1", since: `[]`, wantRevision: baseRevision,
		},
		"a node renamed in place": {
			turn: "A1", since: `[{"op":"updateNode","id":"read","patch":{"name":"Scan"}}]`,
			wantRevision: "sha256:1c6d686ea65cfb6354c897c6000a114cb7b3d844b6936db4bc528469a900acf3",
		},
		"an added node patched": {
			turn: "A1", since: `[{"op":"updateNode","id":"hold","patch":{"config":{"duration":"PT2H"}}}]`,
			want: &changeset.Conflict{Items: []changeset.Item{{Kind: changeset.KindNode, ID: "hold"}}},
		},
		"a changed edge given a label": {
			turn: "A1", since: `[{"op":"updateEdge","id":"e2","patch":{"label":"x"}}]`,
			want: &changeset.Conflict{Items: []changeset.Item{{Kind: changeset.KindEdge, ID: "e2"}}},
		},
		"an edge attached to an added node": {
			turn: "A1", since: `[{"op":"addEdge","edge":{"id":"e9","source":"hold","target":"paid","priority":0,"isDefault":false}}]`,
			want: &changeset.Conflict{Items: []changeset.Item{{Kind: changeset.KindEdge, ID: "e9"}}},
		},
		"another node patched": {
			turn: "A7", since: `[{"op":"updateNode","id":"read","patch":{"config":{"actionType":"ocr2"}}}]`,
			wantRevision: "sha256:4511e195f2735b3108db7bc1580087a92134a125f325fc960d9b2ea11c3027e5",
		},
		"a node removed that an edge needs again": {
			turn: "A7", since: `[{"op":"removeNode","id":"paid"}]`,
			want: &changeset.Conflict{Items: []changeset.Item{{Kind: changeset.KindEdge, ID: "e3"}}},
		},
		"a node added in the place of one removed": {
			turn: "A7", since: `[{"op":"addNode","node":{"id":"sign","type":"wait","name":"S","config":{}}}]`,
			want: &changeset.Conflict{Items: []changeset.Item{{Kind: changeset.KindNode, ID: "sign"}}},
		},
		"fields changed again": {
			turn: "A9", since: `[{"op":"metadata","patch":{"version":6}},{"op":"restore","member":"description"}]`,
			want: &changeset.Conflict{Items: []changeset.Item{{Kind: changeset.KindField, ID: "version"}, {Kind: changeset.KindField, ID: "description"}}},
		},
		"everything at once": {
			turn: "A1", since: `[{"op":"removeNode","id":"hold"}]`,
			want: &changeset.Conflict{Items: []changeset.Item{
				{Kind: changeset.KindNode, ID: "hold"}, {Kind: changeset.KindEdge, ID: "e2"}, {Kind: changeset.KindEdge, ID: "e5"},
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := base(t)
			after := apply(t, before, appliedOps(t, tc.turn))
			live := apply(t, after, decode(t, tc.since))
			got, conflict := changeset.Undo(before, after, live)
			if diff := cmp.Diff(tc.want, conflict); diff != "" {
				t.Fatalf("conflict (-want +got)\n%s", diff)
			}
			if tc.want != nil {
				if got != nil {
					t.Errorf("a document beside a conflict: %s", canonical(t, got))
				}
				return
			}
			if revised := revision(t, got); revised != tc.wantRevision {
				t.Errorf("revision %s, want %s\n%s", revised, tc.wantRevision, canonical(t, got))
			}
		})
	}
}

func TestUndoKeepsTheLayout(t *testing.T) {
	before := base(t)
	for turn, since := range map[string]string{"A1": `[]`, "A2": `[{"op":"updateNode","id":"sign","patch":{"name":"Z"}}]`} {
		after := apply(t, before, appliedOps(t, turn))
		live := apply(t, after, decode(t, since))
		for i, node := range live["nodes"].([]any) {
			node.(map[string]any)["position"] = int64(i)
		}
		delete(live["nodes"].([]any)[1].(map[string]any), "position")

		got, conflict := changeset.Undo(before, after, live)
		if conflict != nil {
			t.Fatalf("%s: %v", turn, conflict)
		}
		want := map[string]any{"begin": int64(0), "read": nil, "sign": int64(2), "paid": int64(3), "refused": int64(4)}
		assertSame(t, turn, want, positions(got))
		if _, placed := got["nodes"].([]any)[1].(map[string]any)["position"]; placed {
			t.Errorf("%s: a node without a position got one", turn)
		}
	}
}

func TestUndoOfDrafts(t *testing.T) {
	tests := map[string]struct {
		before, after, live string
		want                string // a document, or empty for a conflict
		items               []changeset.Item
	}{
		"a repeated id, but nothing since": {
			before: `{"nodes":[{"id":"a","position":1},{"id":"a","position":2}]}`,
			after:  `{"nodes":[{"id":"a","x":1},{"id":"a"}]}`,
			live:   `{"nodes":[{"id":"a","x":1,"position":3},{"id":"a","position":4}]}`,
			want:   `{"nodes":[{"id":"a","position":3},{"id":"a","position":4}]}`,
		},
		"a repeated id":          {before: `{"nodes":[{"id":"a"},{"id":"a"}]}`, after: `{}`, live: `{"x":1}`},
		"a missing id":           {before: `{}`, after: `{"edges":[{}]}`, live: `{"x":1}`},
		"an id that is no text":  {before: `{}`, after: `{}`, live: `{"nodes":[{"id":1}]}`},
		"an entry of no kind":    {before: `{}`, after: `{}`, live: `{"edges":[1]}`},
		"a list that is none":    {before: `{}`, after: `{}`, live: `{"edges":{}}`},
		"lists that are absent":  {before: `{"x":1}`, after: `{"x":2}`, live: `{"x":2,"y":1,"nodes":null}`, want: `{"x":1,"y":1,"nodes":null}`},
		"the only node of all":   {before: `{}`, after: `{"nodes":[{"id":"a"}]}`, live: `{"nodes":[{"id":"a"}],"y":1}`, want: `{"nodes":[],"y":1}`},
		"a field comes back":     {before: `{"x":null}`, after: `{}`, live: `{"y":1}`, want: `{"x":null,"y":1}`},
		"an added field goes":    {before: `{}`, after: `{"x":1}`, live: `{"x":1.0,"y":1}`, want: `{"y":1}`},
		"somebody undid it too":  {before: `{"x":1}`, after: `{"x":2}`, live: `{"x":1}`, items: []changeset.Item{{Kind: changeset.KindField, ID: "x"}}},
		"an edge without nodes":  {before: `{"x":1}`, after: `{"x":2}`, live: `{"x":2,"edges":[{"id":"e","source":"a"}]}`, items: []changeset.Item{{Kind: changeset.KindEdge, ID: "e"}}},
		"behind the nearest one": {before: `{"nodes":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]}`, after: `{"nodes":[{"id":"a"},{"id":"d"}]}`, live: `{"nodes":[{"id":"d"},{"id":"a"},{"id":"z"}]}`, want: `{"nodes":[{"id":"d"},{"id":"a"},{"id":"b"},{"id":"c"},{"id":"z"}]}`},
		"at the front": {
			before: `{"nodes":[{"id":"a","position":1},{"id":"b"}]}`,
			after:  `{"nodes":[{"id":"b"}]}`,
			live:   `{"nodes":[{"id":"z"},{"id":"b"}]}`,
			want:   `{"nodes":[{"id":"a","position":1},{"id":"z"},{"id":"b"}]}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, conflict := changeset.Undo(
				decode(t, tc.before).(changeset.Document), decode(t, tc.after).(changeset.Document), decode(t, tc.live).(changeset.Document))
			if tc.want == "" {
				if diff := cmp.Diff(&changeset.Conflict{Items: tc.items}, conflict); diff != "" {
					t.Errorf("conflict (-want +got)\n%s", diff)
				}
				return
			}
			if conflict != nil {
				t.Fatalf("conflict %v", conflict)
			}
			assertSame(t, "document", decode(t, tc.want), got)
		})
	}
	for _, docs := range [][3]changeset.Document{{nil, {}, {}}, {{}, nil, {}}, {{}, {}, nil}, {{}, {}, {"x": math.NaN()}}} {
		if _, conflict := changeset.Undo(docs[0], docs[1], docs[2]); conflict == nil || conflict.Items != nil {
			t.Errorf("Undo(%v) = %v", docs, conflict)
		}
	}
}

// scramble writes to everything that can be reached from v.
func scramble(v any) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			scramble(v[i])
			v[i] = "scrambled"
		}
	case map[string]any:
		for name, member := range v {
			scramble(member)
			v[name] = "scrambled"
		}
		v["scrambled"] = true
	}
}
