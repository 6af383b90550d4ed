package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

func (a *app) export() *cobra.Command {
	cmd := command.Leaf("export TURN [--undo] [-o yaml|json]", "Print a composition with the result of a turn", `
Prints the manifest of the composition as it would be with what the turn changes,
for those who keep compositions in Git. Once it is committed and synced, the turn is
Applied by itself, and the history names the agent as the author.

With --undo the manifest has what was there before the turn, for what you applied
yourself and "turn undo" leaves to you.

Nothing is printed, and the exit code is 1, if the composition was edited since in
the same place: the manifest would take that back.`, `
  axiom turn export triage-x7k2p > compositions/triage.yaml
  axiom turn export triage-x7k2p --undo > compositions/triage.yaml`)
	cmd.Args = exactArgs("the name of a turn")
	var undo bool
	cmd.Flags().BoolVar(&undo, "undo", false, "print what was there before the turn")
	a.AddOutput(cmd, command.YAML, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		turn, err := c.getTurn(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if turn.Spec.CompositionRef == nil {
			return fmt.Errorf("turn %s is about a session, and no composition", turn.Name)
		}
		return a.showExport(cmd.Context(), c, turn, undo)
	}
	return cmd
}

// An objection is why there is nothing to export.
type objection struct {
	Turn     string `json:"turn"`
	Exported bool   `json:"exported"`
	Reason   string `json:"reason"`
}

// Tell implements [command.Answer].
func (x objection) Tell(p *command.Page) {
	p.Line("%s: %s", p.Paint(terminal.Red, "not exported"), command.Clean(x.Reason))
}

func (a *app) showExport(ctx context.Context, c *cluster, turn *api.Turn, undo bool) error {
	draft, err := c.getDraft(ctx, turn.Spec.CompositionRef.Name)
	if err != nil {
		return err
	}
	plan := planExport
	if undo {
		plan = planUndo
	}
	edits, reason, err := plan(ctx, c.contents(), draft.composition, turn)
	if err != nil {
		return explainContent(err)
	}
	if reason != "" {
		return a.object(objection{Turn: turn.Name, Reason: reason})
	}
	manifest := manifestOf(draft.object)
	if err := edit(manifest, edits); err != nil {
		return err
	}
	if !undo {
		annotate(manifest, api.AnnotationTurn, turn.Name)
	}
	return a.showManifest(manifest)
}

// object tells why there is no manifest, out of the way of whoever wants one.
func (a *app) object(x objection) error {
	if a.Format() == command.JSON {
		if err := a.ShowJSON(x); err != nil {
			return err
		}
		return command.ErrVerdict
	}
	p := &command.Page{}
	x.Tell(p)
	a.Complain(p.String())
	return command.ErrVerdict
}

// A draft is a composition as it is stored, and as the operator reads it.
type draft struct {
	object      *unstructured.Unstructured
	composition *api.Composition
}

func (c *cluster) getDraft(ctx context.Context, name string) (draft, error) {
	d := draft{object: &unstructured.Unstructured{}, composition: &api.Composition{}}
	d.object.SetGroupVersionKind(api.GroupVersion.WithKind("Composition"))
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, d.object)
	if isMissing(err) {
		return d, fmt.Errorf("there is no composition %s in namespace %s", name, c.namespace)
	}
	if err != nil {
		return d, fmt.Errorf("read composition: %w", explain(err))
	}
	data, err := d.object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, d.composition)
	}
	if err != nil {
		return d, fmt.Errorf("decode composition %s: %w", name, err)
	}
	return d, nil
}

// planExport gives the draft what the turn wants it to have. The reason is why
// that cannot be.
func planExport(ctx context.Context, store content.Store, draft *api.Composition, turn *api.Turn) (edits []turns.Edit, reason string, err error) {
	state := turn.Status.State
	if state != api.TurnAwaitingResolution && state != api.TurnApplied {
		return nil, fmt.Sprintf("the turn is %s, so it has no result", state), nil
	}
	plan, err := turns.PlanAccept(draft, turn)
	if err != nil || plan.Mismatch != "" {
		return nil, plan.Mismatch, err
	}
	if plan.Workflow {
		working, err := turns.Working(ctx, store, turn)
		if err != nil {
			return nil, "", err
		}
		edits = append(edits, turns.Edit{Item: turns.Item{Type: api.ItemWorkflow}, Value: working})
	}
	for _, write := range plan.Items {
		value, err := readItem(ctx, store, turn.Namespace, write.After)
		if err != nil {
			return nil, "", err
		}
		edits = append(edits, turns.Edit{Item: turns.ItemOf(write), Value: value})
	}
	return edits, "", nil
}

// planUndo gives the draft what it had before the turn, as far as the operator
// left that to the client.
func planUndo(ctx context.Context, store content.Store, draft *api.Composition, turn *api.Turn) (edits []turns.Edit, reason string, err error) {
	undone := undoAnswerOf(&turn.Status)
	switch {
	case undone == nil:
		return nil, "nobody asked for the turn to be undone", nil
	case !undone.leftToClient():
		return nil, "nothing of the turn is left for you to take back", nil
	}
	for i := range turn.Status.ItemWrites {
		write := &turn.Status.ItemWrites[i]
		if !slices.Contains(undone.ForClient, turns.ItemOf(write).String()) {
			continue
		}
		if reason, err = changedSince(draft, turns.ItemOf(write), write.After, write.Before); reason != "" || err != nil {
			return nil, reason, err
		}
		value, err := readItem(ctx, store, turn.Namespace, write.Before)
		if err != nil {
			return nil, "", err
		}
		edits = append(edits, turns.Edit{Item: turns.ItemOf(write), Value: value})
	}
	if !undone.WorkflowRestorable || undone.WorkflowRestored {
		return edits, "", nil
	}
	return addWorkflowBefore(ctx, store, draft, turn, edits)
}

func addWorkflowBefore(ctx context.Context, store content.Store, draft *api.Composition, turn *api.Turn, edits []turns.Edit) ([]turns.Edit, string, error) {
	status, item := &turn.Status, turns.Item{Type: api.ItemWorkflow}
	var before *api.ItemContent
	if ref := status.Undo.WorkflowBefore; ref != nil {
		before = &api.ItemContent{Revision: status.BaseRevision, Digest: ref.Digest}
	}
	if reason, err := changedSince(draft, item, &api.ItemContent{Revision: status.ResultRevision}, before); reason != "" || err != nil {
		return nil, reason, err
	}
	value, err := readItem(ctx, store, turn.Namespace, before)
	if err != nil {
		return nil, "", err
	}
	return append(edits, turns.Edit{Item: item, Value: value}), "", nil
}

// changedSince tells that an item is neither what the turn left nor what was there
// before.
func changedSince(draft *api.Composition, item turns.Item, after, before *api.ItemContent) (string, error) {
	live, err := turns.LiveRevision(draft, item)
	if err != nil || live == turns.RevisionOf(after) || live == turns.RevisionOf(before) {
		return "", err
	}
	what := item.String()
	if item.Type == api.ItemWorkflow {
		what = "the workflow"
	}
	return what + " was changed after the turn", nil
}

// edit makes edits in the spec of a manifest.
func edit(manifest map[string]any, edits []turns.Edit) error {
	spec, ok := manifest["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("edit composition: its spec is a %T", manifest["spec"])
	}
	for _, e := range edits {
		switch e.Item.Type {
		case api.ItemActionType:
			spec["actionTypes"] = withItem(spec["actionTypes"], e)
		case api.ItemTool:
			spec["tools"] = withItem(spec["tools"], e)
		case api.ItemWorkflow:
			spec["workflow"] = e.Value
		}
	}
	for _, member := range []string{"workflow", "actionTypes", "tools"} {
		if list, isList := spec[member].([]any); spec[member] == nil || isList && len(list) == 0 {
			delete(spec, member)
		}
	}
	return nil
}

// withItem is a list in which the item of a name is another one, or is gone.
func withItem(v any, e turns.Edit) []any {
	old, _ := v.([]any)
	list := make([]any, 0, len(old)+1)
	isPlaced := e.Value == nil
	for _, entry := range old {
		if object, _ := entry.(map[string]any); object["name"] != e.Item.Name {
			list = append(list, entry)
			continue
		}
		if !isPlaced {
			list, isPlaced = append(list, e.Value), true
		}
	}
	if !isPlaced {
		list = append(list, e.Value)
	}
	return list
}

// readItem reads an item's content, nil for none.
func readItem(ctx context.Context, store content.Store, namespace string, kept *api.ItemContent) (any, error) {
	if kept == nil {
		return nil, nil
	}
	data, err := store.Get(ctx, namespace, kept.Digest)
	if err != nil {
		return nil, err
	}
	return jsonvalue.Decode(data)
}
