package live

import (
	"context"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// Merge patches of a turn that put a wish down.
const (
	patchAccept    = `{"spec":{"resolution":"Accepted"}}`
	patchReject    = `{"spec":{"resolution":"Rejected"}}`
	patchUndo      = `{"spec":{"undo":true}}`
	patchInterrupt = `{"spec":{"interrupt":true}}`
)

// A decision is a wish about a turn that is put down in its spec.
type decision struct {
	patch string
	// isOver tells whether something came of it.
	isOver func(*api.Turn) bool
	// isGranted tells whether that is what was wanted.
	isGranted func(*api.Turn) bool
	showsWork bool
}

func hasState(state api.TurnPhase) func(*api.Turn) bool {
	return func(turn *api.Turn) bool { return turn.Status.State == state }
}

func isResolved(turn *api.Turn) bool {
	return turns.IsOver(turn.Status.State) && turn.Status.State != api.TurnAwaitingResolution
}

func (a *app) accept() *cobra.Command {
	cmd := command.Leaf("accept TURN [--no-wait] [-o json]", "Apply what a turn wants to change", `
Has the operator apply the changes of a turn to its composition, all of them in one
update, if the composition still has what they were made for. Otherwise the turn is
Stale, nothing is written, and the agent is asked once more.`, `
  axiom turn accept triage-x7k2p
  axiom turn accept triage-x7k2p -o json | jq -r .resultRevision`)
	a.decides(cmd, decision{
		patch: patchAccept, isOver: isResolved, isGranted: hasState(api.TurnApplied),
	})
	return cmd
}

func (a *app) reject() *cobra.Command {
	cmd := command.Leaf("reject TURN [--no-wait] [-o json]", "Leave what a turn wants to change", `
Ends a turn without applying its changes. Action types and tools that the agent has
written into the composition already stay; "turn undo" takes them back.`, `
  axiom turn reject triage-x7k2p`)
	a.decides(cmd, decision{
		patch: patchReject, isOver: isResolved, isGranted: hasState(api.TurnRejected),
	})
	return cmd
}

func (a *app) undo() *cobra.Command {
	cmd := command.Leaf("undo TURN [--no-wait] [-o json]", "Take back what a turn changed", `
Gives the composition back what it had before the turn, in one update, as soon as no
agent works on it. What somebody changed since is skipped. What you applied yourself
is yours to take back: "turn export --undo" prints how.

The exit code is 1 if nothing was taken back.`, `
  axiom turn undo triage-x7k2p
  axiom turn undo triage-x7k2p -o json | jq .undo.skipped`)
	a.decides(cmd, decision{patch: patchUndo, isOver: isUndoDone, isGranted: hasState(api.TurnUndone)})
	return cmd
}

// isUndoDone tells whether something came of the wish to take the turn back, be
// it that nothing could be.
func isUndoDone(turn *api.Turn) bool {
	if turn.Status.State == api.TurnUndone {
		return true
	}
	found := apimeta.FindStatusCondition(turn.Status.Conditions, api.ConditionUndone)
	return turn.Status.Undo != nil && turns.IsVain(turn.Status.Undo) && found != nil && found.Status == metav1.ConditionFalse &&
		found.ObservedGeneration >= turn.Generation
}

func (a *app) interrupt() *cobra.Command {
	cmd := command.Leaf("interrupt TURN [--no-wait] [-o json]", "Stop an agent", `
Asks the agent of a turn to stop. What it did so far is kept, and waits for a
decision like at the end of any turn.`, `
  axiom turn interrupt triage-x7k2p`)
	a.decides(cmd, decision{
		patch: patchInterrupt, isOver: isAgentDone, isGranted: func(turn *api.Turn) bool { return answerOf(turn).isGood() }, showsWork: true,
	})
	return cmd
}

// decides makes the command one that puts a wish down, and waits for what comes
// of it.
func (a *app) decides(cmd *cobra.Command, d decision) {
	cmd.Args = exactArgs("the name of a turn")
	var p patience
	p.addFlags(cmd, "what comes of it")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.decide(cmd.Context(), c, args[0], d, p)
	}
}

func (a *app) decide(ctx context.Context, c *cluster, name string, d decision, p patience) error {
	turn, err := c.getTurn(ctx, name)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, turn, client.RawPatch(types.MergePatchType, []byte(d.patch))); err != nil {
		return a.refuse(name, err)
	}
	if p.no {
		return a.Show(a.outcomeOf(turn))
	}
	ended, err := a.await(ctx, wait{cluster: c, turn: turn, isOver: d.isOver, showsWork: d.showsWork, timeout: p.timeout})
	if err != nil {
		return err
	}
	if err := a.Show(a.outcomeOf(ended)); err != nil {
		return err
	}
	return command.Verdict(d.isGranted(ended))
}

// An outcome is a turn whose answer and changes were shown before.
type outcome struct{ turnAnswer }

// Tell implements [command.Answer].
func (x outcome) Tell(p *command.Page) { x.tellState(p) }

func (a *app) outcomeOf(turn *api.Turn) outcome {
	answer := answerOf(turn)
	answer.next = a.nextSteps(&answer)
	return outcome{answer}
}
