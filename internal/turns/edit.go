package turns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// Marks name the operator's own writes of content. A mark is new with each
// write, so that whoever looks later can tell that the write was made, whatever
// became of its receipt.

// MarkUndoPrefix is how the marks of undone turns begin.
const MarkUndoPrefix = "undo/"

// MarkItem is the mark of an item's direct write at a generation of the draft.
func MarkItem(turn *api.Turn, generation int64) string {
	return fmt.Sprintf("item/%s/%d", turn.UID, generation)
}

// MarkAccept is the mark of an accepted turn.
func MarkAccept(turn *api.Turn) string { return "accept/" + string(turn.UID) }

// MarkUndo is the mark of an undone turn.
func MarkUndo(turn *api.Turn) string { return MarkUndoPrefix + string(turn.UID) }

// MarkedBy tells whether a mark is that of a write for the turn.
func MarkedBy(mark string, turn *api.Turn) bool {
	parts := strings.Split(mark, "/")
	return len(parts) > 1 && parts[1] == string(turn.UID)
}

// Edit gives an item another content.
type Edit struct {
	Item Item
	// Value is the JSON tree of the content, nil when the item shall go.
	Value any
}

// Edits are all that one write changes in a draft.
type Edits struct {
	// Mark of the write.
	Mark string
	// By is the user on whose behalf it is made.
	By string
	// Turn whose result the draft becomes; empty when it does not.
	Turn string
	// Items that change.
	Items []Edit
}

// patchOp is one operation of a JSON patch (RFC 6902).
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch is the JSON patch that makes the edits on exactly this version of the
// draft, and rewords nothing else of it.
func Patch(comp *api.Composition, edits Edits) ([]byte, error) {
	annotations := maps.Clone(comp.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	// The version guards the write; a base from an earlier edit would only
	// contradict it.
	delete(annotations, api.AnnotationBaseRevision)
	annotations[api.AnnotationWrite], annotations[api.AnnotationEditedBy] = edits.Mark, edits.By
	if edits.Turn != "" {
		annotations[api.AnnotationTurn] = edits.Turn
	}
	ops := []patchOp{
		{Op: "replace", Path: "/metadata/resourceVersion", Value: comp.ResourceVersion},
		{Op: "add", Path: "/metadata/annotations", Value: annotations},
	}
	ops = append(ops, workflowOps(comp, edits.Items)...)
	ops = append(ops, listOps(comp, api.ItemActionType, "/spec/actionTypes", edits.Items)...)
	ops = append(ops, listOps(comp, api.ItemTool, "/spec/tools", edits.Items)...)
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encode edits of composition %s: %w", comp.Name, err)
	}
	return patch, nil
}

func workflowOps(comp *api.Composition, edits []Edit) []patchOp {
	const path = "/spec/workflow"
	for _, edit := range edits {
		switch {
		case edit.Item.Type != api.ItemWorkflow:
		case edit.Value != nil:
			return []patchOp{{Op: "add", Path: path, Value: edit.Value}}
		case comp.Spec.Workflow != nil:
			return []patchOp{{Op: "remove", Path: path}}
		}
	}
	return nil
}

// listOps change one list: what stays in place first, then what goes, from the
// end, so that no index moves before its turn, then what comes.
func listOps(comp *api.Composition, kind api.ItemType, path string, edits []Edit) []patchOp {
	var kept, gone, fresh []patchOp
	var removed []int
	for _, edit := range edits {
		if edit.Item.Type != kind {
			continue
		}
		i := indexOf(comp, edit.Item)
		at := fmt.Sprintf("%s/%d", path, i)
		switch {
		case i >= 0 && edit.Value != nil:
			kept = append(kept, patchOp{Op: "replace", Path: at, Value: edit.Value})
		case i >= 0:
			removed = append(removed, i)
		case edit.Value != nil:
			fresh = append(fresh, patchOp{Op: "add", Path: path + "/-", Value: edit.Value})
		}
	}
	slices.SortFunc(removed, func(a, b int) int { return cmp.Compare(b, a) })
	for _, i := range removed {
		gone = append(gone, patchOp{Op: "remove", Path: fmt.Sprintf("%s/%d", path, i)})
	}
	if len(fresh) > 0 && lengthOf(comp, kind) == 0 {
		fresh = append([]patchOp{{Op: "add", Path: path, Value: []any{}}}, fresh...)
	}
	return slices.Concat(kept, gone, fresh)
}

func lengthOf(comp *api.Composition, kind api.ItemType) int {
	if kind == api.ItemActionType {
		return len(comp.Spec.ActionTypes)
	}
	return len(comp.Spec.Tools)
}
