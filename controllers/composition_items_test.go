package controllers

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func TestItemsOfADraft(t *testing.T) {
	comp := draft("triage", func(comp *api.Composition) {
		comp.Spec.ActionTypes = []api.NamedActionType{{Name: "zeta"}, {Name: "alpha"}}
		comp.Spec.Tools = []api.NamedTool{
			{Name: "find-logs", ToolSpec: api.ToolSpec{Description: "Finds logs", ScriptTemplate: "echo hi"}},
			{Name: "ask", ToolSpec: api.ToolSpec{Description: "Asks", ScriptTemplate: "echo hi"}},
		}
	})
	views, err := itemsOf(comp, expression.NewCache())
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		kind  api.ItemType
		name  string
		valid bool
	}
	var got []item
	for _, status := range statuses(views) {
		got = append(got, item{status.Type, status.Name, status.Valid})
	}
	want := []item{
		{api.ItemWorkflow, "triage", true},
		{api.ItemActionType, "alpha", false},
		{api.ItemActionType, "zeta", false},
		{api.ItemTool, "ask", true},
		{api.ItemTool, "find-logs", true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(item{})); diff != "" {
		t.Errorf("items differ (-want +got):\n%s", diff)
	}
	if want := revisionOf(t, workflow.Blank("triage")); workflowRevisionOf(views) != want {
		t.Errorf("workflow revision %s, want %s", workflowRevisionOf(views), want)
	}
}

func TestTheWorkflowAsAnItem(t *testing.T) {
	named := func(name any) map[string]any {
		doc := workflow.Blank("w")
		doc["name"] = name
		return doc
	}
	for name, tc := range map[string]struct {
		workflow *runtime.RawExtension
		wantName string
	}{
		"it is named as it says":           {rawOf(named("Triage of issues")), "Triage of issues"},
		"without a name it is the draft's": {rawOf(named("")), "triage"},
		"a name that is no text is none":   {rawOf(named(7)), "triage"},
		"a name that is too long is cut":   {rawOf(named(strings.Repeat("ä", 200))), strings.Repeat("ä", 125) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			views, err := itemsOf(draft("triage", func(comp *api.Composition) { comp.Spec.Workflow = tc.workflow }), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(views) != 1 || views[0].name != tc.wantName {
				t.Errorf("items are %+v, want one named %q", views, tc.wantName)
			}
		})
	}
}

func TestRevisionsOfLibraryItemsFollowTheirContent(t *testing.T) {
	revision := func(tool api.NamedTool) string {
		t.Helper()
		views, err := itemsOf(draft("d", func(comp *api.Composition) { comp.Spec.Workflow, comp.Spec.Tools = nil, []api.NamedTool{tool} }), nil)
		if err != nil {
			t.Fatal(err)
		}
		return views[0].revision
	}
	first := api.NamedTool{Name: "a", ToolSpec: api.ToolSpec{Description: "one", ScriptTemplate: "echo 1"}}
	second := first
	second.ScriptTemplate = "echo 2"
	again := revision(first)
	if revision(first) != again || again == revision(second) {
		t.Errorf("revisions %s, %s and %s: want the same, then another", revision(first), again, revision(second))
	}
	// What is hashed has no position taken out, whatever it is called.
	got := revision(first)
	want, err := changeset.ContentRevision(map[string]any{"name": "a", "description": "one", "scriptTemplate": "echo 1"})
	if err != nil || got != want {
		t.Errorf("revision %s, want that of the item's JSON, %s (%v)", got, want, err)
	}
}

func TestUnreadableDraftsAreErrors(t *testing.T) {
	for name, raw := range map[string]string{"a list": "[]", "a cut text": "{", "an endless number": `{"n":1e400}`} {
		t.Run(name, func(t *testing.T) {
			_, err := itemsOf(draft("d", func(comp *api.Composition) { comp.Spec.Workflow = &runtime.RawExtension{Raw: []byte(raw)} }), nil)
			if err == nil {
				t.Error("it was read")
			}
		})
	}
}

func problemsNamed(severity api.Severity, codes ...string) []api.Problem {
	var problems []api.Problem
	for _, code := range codes {
		problems = append(problems, api.Problem{Severity: severity, Code: code})
	}
	return problems
}

func many(severity api.Severity, count int) []api.Problem {
	var problems []api.Problem
	for i := range count {
		problems = append(problems, api.Problem{Severity: severity, Code: strconv.Itoa(i)})
	}
	return problems
}

func TestCapProblems(t *testing.T) {
	warnings, errors := api.SeverityWarning, api.SeverityError
	for name, tc := range map[string]struct {
		items [][]api.Problem
		want  [][]api.Problem
		cut   bool
	}{
		"nothing to cut": {items: [][]api.Problem{nil, many(errors, 2)}, want: [][]api.Problem{nil, many(errors, 2)}},
		"as many as may be": {
			items: [][]api.Problem{many(errors, 40), many(warnings, 24)}, want: [][]api.Problem{many(errors, 40), many(warnings, 24)},
		},
		"one too many": {
			items: [][]api.Problem{many(errors, 40), many(warnings, 25)}, want: [][]api.Problem{many(errors, 40), many(warnings, 24)}, cut: true,
		},
		"errors of a later item come before warnings of an earlier": {
			items: [][]api.Problem{many(warnings, 64), many(errors, 60)}, want: [][]api.Problem{many(warnings, 4), many(errors, 60)}, cut: true,
		},
		"more errors than fit": {
			items: [][]api.Problem{append(many(errors, 63), problemsNamed(warnings, "w")...), many(errors, 63)},
			want:  [][]api.Problem{many(errors, 63), many(errors, 1)}, cut: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			items := make([]api.ItemStatus, len(tc.items))
			for i := range items {
				items[i].Problems = tc.items[i]
			}
			if cut := capProblems(items); cut != tc.cut {
				t.Errorf("cut %t, want %t", cut, tc.cut)
			}
			var got [][]api.Problem
			for _, item := range items {
				got = append(got, item.Problems)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short enough":              {"abc", 3, "abc"},
		"cut with a mark":           {"abcdef", 5, "ab…"},
		"between characters":        {"äöü", 5, "ä…"},
		"inside a character":        {"aäöü", 5, "a…"},
		"a character of four bytes": {"😀😀", 7, "😀…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := truncate(tc.text, tc.limit)
			if got != tc.want || len(got) > tc.limit {
				t.Errorf("got %q of %d bytes, want %q", got, len(got), tc.want)
			}
		})
	}
}
