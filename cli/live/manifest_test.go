package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

type tree = map[string]any

func TestManifestsHaveNothingOfTheServer(t *testing.T) {
	stored := tree{
		"apiVersion": "axiom.apitomy.io/v1alpha1", "kind": "Composition",
		"metadata": tree{
			"name": "triage", "namespace": "team-a", "uid": "u", "resourceVersion": "7", "generation": int64(3), "creationTimestamp": "2026-05-04T10:11:12Z",
			"managedFields": []any{tree{}}, "finalizers": []any{"f"}, "ownerReferences": []any{tree{"name": "o"}},
			"labels": tree{"team": "a"},
			"annotations": tree{
				"note": "mine", "axiom.apitomy.io/edited-by": "alice", "axiom.apitomy.io/turn": "old", "kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
		},
		"spec": tree{"goal": "g"}, "status": tree{"turnState": "idle"},
	}
	manifest := manifestOf(&unstructured.Unstructured{Object: stored})
	annotate(manifest, api.AnnotationTurn, "new")
	want := tree{
		"apiVersion": "axiom.apitomy.io/v1alpha1", "kind": "Composition",
		"metadata": tree{
			"name": "triage", "namespace": "team-a", "labels": map[string]string{"team": "a"},
			"annotations": tree{"note": "mine", "axiom.apitomy.io/turn": "new"},
		},
		"spec": tree{"goal": "g"},
	}
	if diff := cmp.Diff(want, manifest); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	bare := manifestOf(&unstructured.Unstructured{Object: tree{"metadata": tree{"name": "n"}, "spec": tree{}}})
	if diff := cmp.Diff(tree{"name": "n"}, bare["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	annotate(bare, "a", "b")
	if diff := cmp.Diff(tree{"name": "n", "annotations": tree{"a": "b"}}, bare["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestEditsOfASpec(t *testing.T) {
	item := func(name string) tree { return tree{"name": name, "old": true} }
	fresh := func(name string) tree { return tree{"name": name} }
	edits := func(kind api.ItemType, name string, value any) turns.Edit {
		return turns.Edit{Item: turns.Item{Type: kind, Name: name}, Value: value}
	}
	for name, tc := range map[string]struct {
		spec  tree
		edits []turns.Edit
		want  tree
	}{
		"nothing":            {tree{"goal": "g"}, nil, tree{"goal": "g"}},
		"a workflow":         {tree{"workflow": tree{"id": "a"}}, []turns.Edit{edits(api.ItemWorkflow, "", tree{"id": "b"})}, tree{"workflow": tree{"id": "b"}}},
		"a first workflow":   {tree{}, []turns.Edit{edits(api.ItemWorkflow, "", tree{"id": "b"})}, tree{"workflow": tree{"id": "b"}}},
		"no workflow":        {tree{"workflow": tree{"id": "a"}}, []turns.Edit{edits(api.ItemWorkflow, "", nil)}, tree{}},
		"one in its place":   {tree{"tools": []any{item("a"), item("b"), item("c")}}, []turns.Edit{edits(api.ItemTool, "b", fresh("b"))}, tree{"tools": []any{item("a"), fresh("b"), item("c")}}},
		"one at the end":     {tree{"tools": []any{item("a")}}, []turns.Edit{edits(api.ItemTool, "b", fresh("b"))}, tree{"tools": []any{item("a"), fresh("b")}}},
		"the first one":      {tree{}, []turns.Edit{edits(api.ItemActionType, "b", fresh("b"))}, tree{"actionTypes": []any{fresh("b")}}},
		"one less":           {tree{"tools": []any{item("a"), item("b")}}, []turns.Edit{edits(api.ItemTool, "a", nil)}, tree{"tools": []any{item("b")}}},
		"none any more":      {tree{"tools": []any{item("a")}}, []turns.Edit{edits(api.ItemTool, "a", nil)}, tree{}},
		"one that is not in": {tree{"tools": []any{item("a")}}, []turns.Edit{edits(api.ItemTool, "b", nil)}, tree{"tools": []any{item("a")}}},
		"two of a name": {
			tree{"tools": []any{item("a")}, "actionTypes": []any{item("a")}},
			[]turns.Edit{edits(api.ItemTool, "a", nil), edits(api.ItemActionType, "a", fresh("a"))},
			tree{"actionTypes": []any{fresh("a")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := tree{"spec": tc.spec}
			if err := edit(manifest, tc.edits); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, manifest["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
	if err := edit(tree{}, nil); err == nil {
		t.Error("a manifest without a spec can be edited")
	}
}
