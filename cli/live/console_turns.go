package live

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/console"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// turnPage is a turn with its changes drawn.
type turnPage struct {
	turnAnswer
	drawing
	Message string `json:"message"`
	// Changes are what it changes, in words.
	Changes string `json:"changes"`
	// Undoable tells whether there is something to take back, and nobody asked yet.
	Undoable bool `json:"undoable"`
	// Hidden is why not all is shown; empty if all is.
	Hidden string `json:"hidden"`
}

func (d *consoleDesk) showTurn(ctx context.Context, r console.Request) (any, error) {
	turn := &api.Turn{}
	if err := d.read(ctx, "turn", r.Name, turn); err != nil {
		return nil, err
	}
	return d.turnPageOf(ctx, turn), nil
}

func (d *consoleDesk) turnPageOf(ctx context.Context, turn *api.Turn) turnPage {
	page := turnPage{
		turnAnswer: answerOf(turn), Message: turn.Spec.Message,
		Undoable: turns.IsOver(turn.Status.State) && turns.ChangedSomething(turn) && !turn.Spec.Undo && turn.Status.State != api.TurnUndone,
	}
	var failures []error
	if ref := turn.Status.ReplyRef; ref != nil {
		reply, err := d.contents().Get(ctx, turn.Namespace, ref.Digest)
		if err != nil {
			failures = append(failures, explainContent(err))
		}
		page.Reply = string(reply)
	}
	failures = append(failures, d.drawTurn(ctx, turn, &page))
	if err := errors.Join(failures...); err != nil {
		page.Hidden = err.Error()
	}
	return page
}

// drawTurn adds the changes, as far as there are any.
func (d *consoleDesk) drawTurn(ctx context.Context, turn *api.Turn, page *turnPage) error {
	if turn.Status.Base == nil && !turns.HasEffect(&turn.Status) {
		return nil
	}
	found, err := d.changesOf(ctx, turn)
	if err != nil {
		return err
	}
	difference := found.difference()
	page.Diff = &difference
	if turns.HasEffect(&turn.Status) {
		page.Changes = linesOf(found)
	}
	page.drawing, err = drawingOf(graph.Compare(found.before, found.after), found.before, found.after)
	return err
}

// wishesTurn puts a wish about a turn down, as the commands do, and answers with the
// turn as it is then: what comes of it is watched.
func (d *consoleDesk) wishesTurn(patch string) func(context.Context, console.Request) (any, error) {
	return func(ctx context.Context, r console.Request) (any, error) {
		turn := &api.Turn{}
		turn.Namespace, turn.Name = d.namespace, r.Name
		err := d.Patch(ctx, turn, client.RawPatch(types.MergePatchType, []byte(patch)))
		switch {
		case isMissing(err):
			return nil, d.missing("turn", r.Name)
		case err != nil:
			return nil, refused(err)
		}
		return d.turnPageOf(ctx, turn), nil
	}
}
