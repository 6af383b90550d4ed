package turns_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

func decoded(t *testing.T, data string) any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPatchOfADraft(t *testing.T) {
	draft := func(workflow bool, tools ...string) *api.Composition {
		comp := &api.Composition{}
		comp.Name, comp.ResourceVersion = "c", "7"
		comp.Annotations = map[string]string{"mine": "kept", api.AnnotationBaseRevision: "old", api.AnnotationTurn: "t-0"}
		if workflow {
			comp.Spec.Workflow = raw(`{}`)
		}
		for _, name := range tools {
			comp.Spec.Tools = append(comp.Spec.Tools, api.NamedTool{Name: name})
		}
		return comp
	}
	edit := func(item turns.Item, value any) turns.Edit { return turns.Edit{Item: item, Value: value} }
	flow := turns.Item{Type: api.ItemWorkflow}
	for name, tc := range map[string]struct {
		comp  *api.Composition
		edits []turns.Edit
		want  string
	}{
		"nothing but marks":        {draft(true), nil, `[]`},
		"a workflow":               {draft(true), []turns.Edit{edit(flow, map[string]any{"id": "w"})}, `[{"op":"add","path":"/spec/workflow","value":{"id":"w"}}]`},
		"no workflow":              {draft(true), []turns.Edit{edit(flow, nil)}, `[{"op":"remove","path":"/spec/workflow"}]`},
		"no workflow, as before":   {draft(false), []turns.Edit{edit(flow, nil)}, `[]`},
		"a first tool":             {draft(false), []turns.Edit{edit(tool("a"), "A")}, `[{"op":"add","path":"/spec/tools","value":[]},{"op":"add","path":"/spec/tools/-","value":"A"}]`},
		"a tool that is gone":      {draft(false, "b"), []turns.Edit{edit(tool("a"), nil)}, `[]`},
		"an action type of a name": {draft(false, "a"), []turns.Edit{edit(turns.Item{Type: api.ItemActionType, Name: "a"}, nil)}, `[]`},
		"tools that change, come and go, in any order": {
			draft(false, "a", "b", "c", "d"),
			[]turns.Edit{edit(tool("e"), "E"), edit(tool("a"), nil), edit(tool("d"), "D"), edit(tool("c"), nil)},
			`[{"op":"replace","path":"/spec/tools/3","value":"D"},{"op":"remove","path":"/spec/tools/2"},` +
				`{"op":"remove","path":"/spec/tools/0"},{"op":"add","path":"/spec/tools/-","value":"E"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := turns.Patch(tc.comp, turns.Edits{Mark: "item/u/3", By: "ada", Items: tc.edits})
			if err != nil {
				t.Fatal(err)
			}
			var ops []json.RawMessage
			if err := json.Unmarshal(patch, &ops); err != nil {
				t.Fatal(err)
			}
			head := `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/metadata/annotations","value":` +
				`{"mine":"kept","axiom.apitomy.io/turn":"t-0","axiom.apitomy.io/write":"item/u/3","axiom.apitomy.io/edited-by":"ada"}}]`
			if diff := cmp.Diff(decoded(t, head), decoded(t, text(ops[:2]))); diff != "" {
				t.Errorf("head differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decoded(t, tc.want), decoded(t, text(ops[2:]))); diff != "" {
				t.Errorf("edits differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarksNameTheirTurn(t *testing.T) {
	mine, other := turnOf(), turnOf()
	mine.UID, other.UID = "u-1", "u-11"
	for _, mark := range []string{turns.MarkItem(mine, 3), turns.MarkAccept(mine), turns.MarkUndo(mine)} {
		if !turns.MarkedBy(mark, mine) || turns.MarkedBy(mark, other) {
			t.Errorf("%s is that of another turn", mark)
		}
	}
	if turns.MarkedBy("", mine) || turns.MarkedBy("u-1", mine) {
		t.Error("a text that is no mark is the turn's")
	}
}
