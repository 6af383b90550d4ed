package turns_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func tool(name string) turns.Item { return turns.Item{Type: api.ItemTool, Name: name} }

// content is one that tests can read.
func content(revision string) *api.ItemContent {
	if revision == "" {
		return nil
	}
	return &api.ItemContent{Revision: revision, Digest: "digest of " + revision}
}

// writes is what a status says of its item writes, one line each.
func writes(status *api.TurnStatus) []string {
	var lines []string
	for i := range status.ItemWrites {
		w := &status.ItemWrites[i]
		line := fmt.Sprintf("%s %s: %s>%s %s", w.Action, turns.ItemOf(w), turns.RevisionOf(w.Before), turns.RevisionOf(w.After), w.State)
		if w.State == api.ItemIntended && !w.Staged {
			line += " on " + w.Replaces
		}
		if w.Confirmed != nil {
			line += fmt.Sprintf(" after %s >%s", w.Confirmed.Action, turns.RevisionOf(w.Confirmed.After))
		}
		lines = append(lines, line)
	}
	return lines
}

func TestRecordOfItemWrites(t *testing.T) {
	type play = func(*api.TurnStatus)
	intend := func(item turns.Item, live, after string) play {
		return func(s *api.TurnStatus) {
			if err := turns.Intend(s, turns.Write{Item: item, Live: content(live), After: content(after)}); err != nil {
				t.Error(err)
			}
		}
	}
	stage := func(item turns.Item, live, after string) play {
		return func(s *api.TurnStatus) {
			if err := turns.Intend(s, turns.Write{Item: item, Live: content(live), After: content(after), Staged: true}); err != nil {
				t.Error(err)
			}
		}
	}
	confirm := func(item turns.Item) play { return func(s *api.TurnStatus) { turns.Confirm(s, item) } }
	revoke := func(item turns.Item) play { return func(s *api.TurnStatus) { turns.Revoke(s, item) } }
	a, b := tool("a"), turns.Item{Type: api.ItemActionType, Name: "a"}

	for name, tc := range map[string]struct {
		plays []play
		want  []string
	}{
		"an intent":                             {[]play{intend(a, "", "1")}, []string{"Created tool/a: >1 Intended on "}},
		"a confirmed one":                       {[]play{intend(a, "0", "1"), confirm(a)}, []string{"Updated tool/a: 0>1 Written"}},
		"a revoked one":                         {[]play{intend(a, "0", "1"), revoke(a)}, nil},
		"one that is confirmed is not revoked":  {[]play{intend(a, "0", "1"), confirm(a), revoke(a)}, []string{"Updated tool/a: 0>1 Written"}},
		"a second intent":                       {[]play{intend(a, "0", "1"), confirm(a), intend(a, "1", "2")}, []string{"Updated tool/a: 0>2 Intended on 1 after Updated >1"}},
		"a second one":                          {[]play{intend(a, "0", "1"), confirm(a), intend(a, "1", "2"), confirm(a)}, []string{"Updated tool/a: 0>2 Written"}},
		"a second one, revoked":                 {[]play{intend(a, "", "1"), confirm(a), intend(a, "1", ""), revoke(a)}, []string{"Created tool/a: >1 Written"}},
		"a second intent, then a third":         {[]play{intend(a, "0", "1"), confirm(a), intend(a, "1", "2"), intend(a, "9", "3")}, []string{"Updated tool/a: 0>3 Intended on 9 after Updated >1"}},
		"an intent in place of one on old sand": {[]play{intend(a, "0", "1"), intend(a, "9", "2")}, []string{"Updated tool/a: 9>2 Intended on 9"}},
		"a removal":                             {[]play{intend(a, "0", ""), confirm(a)}, []string{"Removed tool/a: 0> Written"}},
		"a creation that was taken back":        {[]play{intend(a, "", "1"), confirm(a), intend(a, "1", ""), confirm(a)}, []string{"Removed tool/a: > Written"}},
		"what was removed comes back":           {[]play{intend(a, "0", ""), confirm(a), intend(a, "", "2"), confirm(a)}, []string{"Updated tool/a: 0>2 Written"}},
		"two of a name": {
			[]play{intend(a, "0", "1"), intend(b, "", "2"), confirm(b)},
			[]string{"Updated tool/a: 0>1 Intended on 0", "Created action-type/a: >2 Written"},
		},
		"nothing to confirm or revoke":    {[]play{confirm(a), revoke(b)}, nil},
		"a staged one":                    {[]play{stage(a, "0", "1")}, []string{"Updated tool/a: 0>1 Intended"}},
		"a staged one, again":             {[]play{stage(a, "0", "1"), stage(a, "9", "2")}, []string{"Updated tool/a: 0>2 Intended"}},
		"a staged one, back to the start": {[]play{stage(a, "0", "1"), stage(a, "0", "0")}, nil},
		"a staged one, never there":       {[]play{stage(a, "", "1"), stage(a, "", "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			status := &api.TurnStatus{}
			for _, play := range tc.plays {
				play(status)
			}
			if diff := cmp.Diff(tc.want, writes(status)); diff != "" {
				t.Errorf("writes differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATurnWritesSoManyItems(t *testing.T) {
	status := &api.TurnStatus{}
	for i := range turns.MaxItems {
		if err := turns.Intend(status, turns.Write{Item: tool(strconv.Itoa(i)), After: content("1")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := turns.Intend(status, turns.Write{Item: tool("more"), After: content("1")}); !errors.Is(err, turns.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if err := turns.Intend(status, turns.Write{Item: tool("0"), Live: content("1"), After: content("2")}); err != nil {
		t.Errorf("a known one: %v", err)
	}
}

func TestACreatedWorkflowIsBaseAndWorkingDocument(t *testing.T) {
	item := turns.Item{Type: api.ItemWorkflow, Name: "w"}
	begun := func(s *api.TurnStatus) bool {
		return s.BaseRevision == "r" && s.WorkingRevision == "r" && s.Base != nil && s.Base.Digest == "digest of r"
	}
	for _, isStaged := range []bool{true, false} {
		status := &api.TurnStatus{}
		if err := turns.Intend(status, turns.Write{Item: item, After: content("r"), Staged: isStaged}); err != nil {
			t.Fatal(err)
		}
		if begun(status) != isStaged {
			t.Errorf("staged %t: after the intent the base is %q", isStaged, status.BaseRevision)
		}
		turns.Confirm(status, turns.Item{Type: api.ItemWorkflow, Name: "by whatever name"})
		if !begun(status) || status.ItemWrites[0].State != api.ItemWritten {
			t.Errorf("staged %t: after the write status is %+v", isStaged, status)
		}
	}
	known := &api.TurnStatus{BaseRevision: "b", WorkingRevision: "w", ItemWrites: []api.ItemWrite{{Type: api.ItemWorkflow, Name: "w", After: content("r")}}}
	turns.Confirm(known, item)
	if known.BaseRevision != "b" || known.WorkingRevision != "w" {
		t.Errorf("a base was replaced by %q", known.BaseRevision)
	}
}

func TestJudgementOfAnIntent(t *testing.T) {
	for name, tc := range map[string]struct {
		replaces, after, live string
		want                  turns.Verdict
	}{
		"it is there":                      {"0", "1", "1", turns.VerdictWritten},
		"nobody was there":                 {"0", "1", "0", turns.VerdictOpen},
		"somebody else was":                {"0", "1", "2", turns.VerdictLost},
		"it was to be new":                 {"", "1", "", turns.VerdictOpen},
		"it was to be new, and is another": {"", "1", "2", turns.VerdictLost},
		"it was to go":                     {"0", "", "", turns.VerdictWritten},
		"it is to go":                      {"0", "", "0", turns.VerdictOpen},
		"it was as it should be":           {"1", "1", "1", turns.VerdictWritten},
	} {
		t.Run(name, func(t *testing.T) {
			if got := turns.Judge(&api.ItemWrite{Replaces: tc.replaces, After: content(tc.after)}, tc.live); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhatTheDraftHas(t *testing.T) {
	comp := &api.Composition{}
	comp.Spec.Tools = []api.NamedTool{{Name: "b"}, {Name: "a", ToolSpec: api.ToolSpec{ScriptTemplate: "echo <1>"}}}
	comp.Spec.ActionTypes = []api.NamedActionType{{Name: "a"}}
	comp.Spec.Workflow = raw(text(workflow.Blank("w")))

	for _, item := range []turns.Item{tool("a"), tool("b"), {Type: api.ItemActionType, Name: "a"}, {Type: api.ItemWorkflow}} {
		live, err := turns.Live(comp, item)
		if err != nil || live == nil || live.Revision == "" || len(live.Data) == 0 {
			t.Errorf("%s: %+v (%v)", item, live, err)
		}
	}
	for _, item := range []turns.Item{tool("c"), {Type: api.ItemActionType, Name: "b"}} {
		if live, err := turns.Live(comp, item); err != nil || live != nil {
			t.Errorf("%s: %+v (%v)", item, live, err)
		}
	}
	a, _ := turns.Live(comp, tool("a"))
	again, err := turns.ContentOf(api.ItemTool, decoded(t, string(a.Data)))
	if err != nil || again.Revision != a.Revision {
		t.Errorf("stored content has revision %s (%v), not %s", again.Revision, err, a.Revision)
	}
	exact := decoded(t, `{"name":"<&>","x":9007199254740993,"y":0.5,"z":null}`)
	kept, err := turns.ContentOf(api.ItemWorkflow, exact)
	if err != nil || string(kept.Data) != `{"name":"<&>","x":9007199254740993,"y":0.5,"z":null}` {
		t.Errorf("stored as %s (%v)", kept.Data, err)
	}
	moved := workflow.Blank("w")
	moved["nodes"].([]any)[0].(map[string]any)["position"] = map[string]any{"x": int64(1), "y": int64(2)}
	here, _ := turns.LiveRevision(comp, turns.Item{Type: api.ItemWorkflow})
	comp.Spec.Workflow = raw(text(moved))
	if there, _ := turns.LiveRevision(comp, turns.Item{Type: api.ItemWorkflow}); there != here {
		t.Error("layout is content of a workflow")
	}
}
