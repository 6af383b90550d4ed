package turns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// memory is a Reader.
type memory map[string]string

var errAbsent = errors.New("absent")

func (m memory) Get(_ context.Context, _, digest string) ([]byte, error) {
	if data, found := m[digest]; found {
		return []byte(data), nil
	}
	return nil, errAbsent
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func raw(data string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(data)} }

// set is a change set that names the end node.
func set(name string) map[string]any {
	return map[string]any{
		"id": "cs-" + name, "baseRevision": "b", "author": "a", "summary": "s",
		"ops": []any{map[string]any{"op": "updateNode", "id": "end-1", "patch": map[string]any{"name": name}}},
	}
}

// turnOf is a turn on the blank workflow.
func turnOf(sets ...api.AcceptedChangeSet) *api.Turn {
	turn := &api.Turn{}
	turn.Name, turn.Namespace = "t", "ns"
	turn.Status.Base = &api.ContentRef{Digest: "base"}
	turn.Status.ChangeSets = sets
	return turn
}

func store(more ...string) memory {
	m := memory{"base": text(workflow.Blank("w"))}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func inline(value any) api.AcceptedChangeSet {
	return api.AcceptedChangeSet{Content: raw(text(value))}
}

func endName(doc changeset.Document) any {
	return doc["nodes"].([]any)[1].(map[string]any)["name"]
}

func TestWorking(t *testing.T) {
	byRef := api.AcceptedChangeSet{Ref: &api.ContentRef{Digest: "kept"}}
	for name, tc := range map[string]struct {
		turn   *api.Turn
		reader memory
		want   any
	}{
		"without change sets it is the base":    {turnOf(), store(), "End"},
		"each set is applied to the one before": {turnOf(inline(set("A")), inline(set("B"))), store(), "B"},
		"a set that is kept elsewhere":          {turnOf(inline(set("A")), byRef), store("kept", text(set("C"))), "C"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := turns.Working(t.Context(), tc.reader, tc.turn)
			if err != nil {
				t.Fatal(err)
			}
			if endName(got) != tc.want {
				t.Errorf("end node is named %v, want %v", endName(got), tc.want)
			}
		})
	}
}

func TestWorkingWithoutAWorkflow(t *testing.T) {
	turn := turnOf()
	turn.Status.Base = nil
	if got, err := turns.Working(t.Context(), store(), turn); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDamageIsFound(t *testing.T) {
	byRef := api.AcceptedChangeSet{Ref: &api.ContentRef{Digest: "kept"}}
	withoutOps := set("A")
	delete(withoutOps, "ops")
	for name, tc := range map[string]struct {
		turn   *api.Turn
		reader memory
		want   error
	}{
		"a base that is no workflow":    {turnOf(), memory{"base": "[]"}, turns.ErrDamaged},
		"a base that is cut":            {turnOf(), memory{"base": "{"}, turns.ErrDamaged},
		"a base that is lost":           {turnOf(), memory{}, errAbsent},
		"a set that does not apply":     {turnOf(inline(map[string]any{"ops": []any{map[string]any{"op": "removeNode", "id": "no"}}})), store(), turns.ErrDamaged},
		"a set that is no object":       {turnOf(inline([]any{})), store(), turns.ErrDamaged},
		"a set that is no JSON":         {turnOf(api.AcceptedChangeSet{Content: raw("{")}), store(), turns.ErrDamaged},
		"a set without ops":             {turnOf(inline(withoutOps)), store(), turns.ErrDamaged},
		"a set whose ops are an object": {turnOf(inline(map[string]any{"ops": map[string]any{}})), store(), turns.ErrDamaged},
		"a set that is nowhere":         {turnOf(api.AcceptedChangeSet{}), store(), turns.ErrDamaged},
		"a set that is lost":            {turnOf(byRef), store(), errAbsent},
		"a set that was exchanged":      {turnOf(byRef), store("kept", "null"), turns.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := turns.Working(t.Context(), tc.reader, tc.turn)
			if !errors.Is(err, tc.want) || got != nil {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestCombined(t *testing.T) {
	want := changeset.ChangeSet{ID: "cs-A", BaseRevision: "b", Author: "a", Summary: "s", Ops: set("A")["ops"].([]any)}
	for name, tc := range map[string]struct {
		status api.TurnStatus
		reader memory
		ok     bool
	}{
		"none":           {api.TurnStatus{}, store(), false},
		"in place":       {api.TurnStatus{ChangeSet: raw(text(set("A")))}, store(), true},
		"kept elsewhere": {api.TurnStatus{ChangeSetRef: &api.ContentRef{Digest: "kept"}}, store("kept", text(set("A"))), true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := turns.Combined(t.Context(), tc.reader, &api.Turn{Status: tc.status})
			if err != nil || ok != tc.ok {
				t.Fatalf("ok %t, %v", ok, err)
			}
			if diff := cmp.Diff(want, got); ok && diff != "" {
				t.Errorf("set differs (-want +got):\n%s", diff)
			}
		})
	}
	lost := &api.Turn{Status: api.TurnStatus{ChangeSetRef: &api.ContentRef{Digest: "kept"}}}
	if _, ok, err := turns.Combined(t.Context(), store(), lost); ok || !errors.Is(err, errAbsent) {
		t.Errorf("a lost set: ok %t, %v", ok, err)
	}
}

// What a turn recorded and what is applied at its end must be the same.
func TestWorkingIsWhatTheCombinedSetGives(t *testing.T) {
	turn := turnOf(inline(set("A")), inline(map[string]any{"ops": []any{map[string]any{"op": "renameNode", "id": "end-1", "newId": "fin"}}}),
		inline(map[string]any{"ops": []any{}}))
	sets, err := turns.ChangeSets(t.Context(), store(), turn)
	if err != nil {
		t.Fatal(err)
	}
	combined, ok := changeset.Combine("t", "b", "a", sets)
	if !ok || len(combined.Ops) != 2 {
		t.Fatalf("combined set has %d ops", len(combined.Ops))
	}
	base, err := turns.Base(t.Context(), store(), turn)
	if err != nil {
		t.Fatal(err)
	}
	once, rejection := changeset.Apply(base, combined.Ops)
	if rejection != nil {
		t.Fatal(rejection)
	}
	folded, err := turns.Working(t.Context(), store(), turn)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(folded, once); diff != "" {
		t.Errorf("results differ (-one by one +at once):\n%s", diff)
	}
}

func TestSetOfTakesWhatAnAgentSends(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  changeset.ChangeSet
	}{
		"members of other types are left out": {map[string]any{"id": 7, "ops": "x", "summary": nil}, changeset.ChangeSet{}},
		"unknown members too":                 {map[string]any{"id": "a", "x": 1}, changeset.ChangeSet{ID: "a"}},
		"ops stay as they are":                {map[string]any{"ops": []any{nil, 1, "x"}}, changeset.ChangeSet{Ops: []any{nil, 1, "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := turns.SetOf(tc.value)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, set differs (-want +got):\n%s", err, diff)
			}
		})
	}
	for _, value := range []any{nil, "x", []any{}, 1} {
		if _, err := turns.SetOf(value); err == nil {
			t.Errorf("%v is no change set", value)
		}
	}
}

func TestDocumentsSurviveTheirEncoding(t *testing.T) {
	want := workflow.Blank("w")
	want["x"] = map[string]any{"n": int64(9007199254740993), "f": 1.5, "s": "<&>", "nil": nil}
	encoded, err := turns.Raw(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := turns.Document(encoded)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, document differs (-want +got):\n%s", err, diff)
	}
	for name, absent := range map[string]*runtime.RawExtension{"nil": nil, "empty": {}} {
		if doc, err := turns.Document(absent); doc != nil || err != nil {
			t.Errorf("%s: got %v, %v", name, doc, err)
		}
	}
	if _, err := turns.Document(raw("null")); err == nil {
		t.Error("null is no workflow")
	}
	if _, err := turns.Raw(func() {}); err == nil {
		t.Error("a function is no document")
	}
}

func TestHowTurnsMove(t *testing.T) {
	all := []api.TurnPhase{
		"", api.TurnPending, api.TurnWorking, api.TurnAwaitingResolution, api.TurnCompleted, api.TurnApplied, api.TurnRejected,
		api.TurnStale, api.TurnFailed, api.TurnRefused, api.TurnCancelled, api.TurnUndone,
	}
	allowed := map[string]bool{}
	for from, list := range map[api.TurnPhase][]api.TurnPhase{
		// A turn that nobody looked at yet has no state; the first look may go further.
		"":                   {"Pending", "Working", "Refused", "Failed"},
		"Pending":            {"Working", "Refused", "Failed", "Cancelled"},
		"Working":            {"AwaitingResolution", "Completed", "Failed", "Applied", "Stale", "Cancelled"},
		"AwaitingResolution": {"Applied", "Rejected", "Stale", "Failed", "Undone"},
		"Completed":          {"Undone"}, "Applied": {"Undone"}, "Rejected": {"Undone"}, "Stale": {"Undone"}, "Failed": {"Undone"},
	} {
		for _, to := range list {
			allowed[fmt.Sprint(from, ">", to)] = true
		}
	}
	for _, from := range all {
		for _, to := range all {
			want := from == to || allowed[fmt.Sprint(from, ">", to)]
			if got := turns.CanMove(from, to); got != want {
				t.Errorf("from %q to %q: %t, want %t", from, to, got, want)
			}
		}
	}
	for _, state := range all {
		want := state != "" && state != api.TurnPending && state != api.TurnWorking
		if turns.IsOver(state) != want {
			t.Errorf("%q is over: %t", state, turns.IsOver(state))
		}
	}
}
