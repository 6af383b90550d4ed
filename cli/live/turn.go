package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/turns"
)

func (a *app) turn() *cobra.Command {
	cmd := command.Group("turn", "Ask agents to change compositions, and decide on what they did", `
A turn is one message to the agent of a composition, and what came of it. While
the agent works the draft stays as it is; what it wants to change waits for a
decision.

The commands use your kubeconfig, and can do what you can do with kubectl. Changes
are shown in full to whoever may read ConfigMaps, in which they are kept.

Exit codes: 0 success, 1 the turn did not come to a good end (Failed, Rejected,
Stale, Refused, Cancelled) or the wish was refused, 2 there is no answer.`)
	cmd.AddCommand(
		a.send(), a.watch(), a.diff(), a.accept(), a.reject(), a.undo(), a.interrupt(), a.export(),
	)
	return cmd
}

// getTurn reads a turn.
func (c *cluster) getTurn(ctx context.Context, name string) (*api.Turn, error) {
	turn := &api.Turn{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, turn)
	if isMissing(err) {
		return nil, fmt.Errorf("there is no turn %s in namespace %s", name, c.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read turn: %w", explain(err))
	}
	return turn, nil
}

// A wait is for a turn to come to a point.
type wait struct {
	cluster *cluster
	// turn as it was at first.
	turn *api.Turn
	// isOver tells whether it has.
	isOver func(*api.Turn) bool
	// showsWork follows what the agent does, too.
	showsWork bool
	timeout   time.Duration
}

// await follows a turn and tells of its progress.
func (a *app) await(ctx context.Context, w wait) (*api.Turn, error) {
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	turn, err := a.attend(ctx, w)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("gave up waiting after %s; turn %s goes on: %s", w.timeout, w.turn.Name, a.invocation("turn", "watch", w.turn.Name))
	case errors.Is(err, context.Canceled):
		return nil, fmt.Errorf("turn %s goes on without you: %s", w.turn.Name, a.invocation("turn", "watch", w.turn.Name))
	}
	return turn, err
}

// conclude tells what came of a turn.
func (a *app) conclude(ctx context.Context, c *cluster, turn *api.Turn) error {
	answer := a.complete(ctx, c, turn)
	if err := a.Show(answer); err != nil {
		return err
	}
	return command.Verdict(answer.isGood())
}

func isAgentDone(turn *api.Turn) bool {
	return turns.IsOver(turn.Status.State)
}
