package live

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/journal"
)

func (a *app) watch() *cobra.Command {
	cmd := command.Leaf("watch TURN [--timeout DURATION] [-o json]", "Follow a turn until the agent is done", `
Shows what the agent does until its part of the turn is over, and then its answer
and what it wants to change. If the agent is done already, that is shown at once.

Whoever stops watching does not stop the agent.`, `
  axiom turn watch triage-x7k2p
  axiom turn watch triage-x7k2p --timeout 10m -o json | jq .state`)
	cmd.Args = exactArgs("the name of a turn")
	var p patience
	p.addTimeout(cmd)
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		turn, err := c.getTurn(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		turn, err = a.await(cmd.Context(), wait{cluster: c, turn: turn, isOver: isAgentDone, showsWork: true, timeout: p.timeout})
		if err != nil {
			return err
		}
		return a.conclude(cmd.Context(), c, turn)
	}
	return cmd
}

// A sighting is what a watch saw: a state of the turn, an event of its session, or
// why there are no events to be seen.
type sighting struct {
	turn  *api.Turn
	line  *journal.Line
	blind error
}

// attend watches until the turn has come to the point, and tells what it sees.
func (a *app) attend(ctx context.Context, w wait) (*api.Turn, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, ended := make(chan sighting), make(chan error, 1)
	go func() { ended <- w.watchTurn(watching, seen) }()
	if w.showsWork {
		go w.watchWork(watching, seen)
	}
	progress := a.newProgress(w.turn.Name)
	defer progress.close()
	if !w.isOver(w.turn) {
		progress.see(sighting{turn: w.turn})
	}
	ticker := a.clock.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case s := <-seen:
			if s.turn == nil || !w.isOver(s.turn) {
				progress.see(s)
				continue
			}
			stop()
			w.catchUp(ctx, progress)
			progress.see(s)
			return s.turn, nil
		case err := <-ended:
			return nil, err
		case <-ticker.C():
			progress.tick()
		}
	}
}

func (w wait) watchTurn(ctx context.Context, seen chan<- sighting) error {
	return follow(ctx, w.cluster, &api.TurnList{}, w.turn.Name, func(turn *api.Turn, isGone bool) error {
		if isGone {
			return fmt.Errorf("turn %s was deleted", w.turn.Name)
		}
		return send(ctx, seen, sighting{turn: turn})
	})
}

// watchWork follows the journal of the turn's session, once there is one. Whoever
// may not do that gets to know of the turn's states all the same.
func (w wait) watchWork(ctx context.Context, seen chan<- sighting) {
	err := w.followWork(ctx, func(line journal.Line) error { return send(ctx, seen, sighting{line: &line}) })
	if err != nil {
		_ = send(ctx, seen, sighting{blind: err})
	}
}

func (w wait) followWork(ctx context.Context, see func(journal.Line) error) error {
	var session *api.AgentSession
	err := follow(ctx, w.cluster, &api.AgentSessionList{}, sessionName(w.turn), func(found *api.AgentSession, isGone bool) error {
		if isGone {
			return nil
		}
		session = found
		return errEnough
	})
	if err != nil {
		return err
	}
	return w.cluster.followJournal(ctx, session, 0, see)
}

// catchUp reads the events that came with the end of the agent's work.
func (w wait) catchUp(ctx context.Context, progress *progress) {
	if !w.showsWork {
		return
	}
	session := &api.AgentSession{}
	if err := w.cluster.Get(ctx, client.ObjectKey{Namespace: w.turn.Namespace, Name: sessionName(w.turn)}, session); err != nil {
		return // there is no session, or no right to see it: told already
	}
	_, _ = w.cluster.readJournal(ctx, session, progress.last, func(line journal.Line) error {
		progress.see(sighting{line: &line})
		return nil
	})
}

func send(ctx context.Context, seen chan<- sighting, s sighting) error {
	select {
	case seen <- s:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
