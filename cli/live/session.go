package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/transcript"
	"github.com/apitomy/axiom-operator/internal/journal"
)

func (a *app) session() *cobra.Command {
	cmd := command.Group("session", "Read what was said in agent sessions", "")
	cmd.AddCommand(a.logs())
	return cmd
}

func (a *app) logs() *cobra.Command {
	cmd := command.Leaf("logs SESSION [--follow] [--after N] [-o json]", "Read the journal of a session", `
Prints what was said and done in a session, with the number of each event: messages,
answers, tools and what they said, notices. The session of a composition is called
after it, with -agent at the end.

The journal is kept in ConfigMaps, which you must be allowed to read. With -o json
every event is one line, {"sequence", "type", "data"}.`, `
  axiom session logs triage-agent
  axiom session logs triage-agent --follow --after 120
  axiom session logs triage-agent -o json | jq -r 'select(.type == "tool_use") | .data.name'`)
	cmd.Args = exactArgs("the name of a session")
	var follows bool
	var after int64
	cmd.Flags().BoolVar(&follows, "follow", false, "go on with what happens, until the session is deleted")
	cmd.Flags().Int64Var(&after, "after", 0, "leave out the events up to this `NUMBER`")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		session, err := c.getSession(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if !follows || session.Spec.Stopped {
			_, err = c.readJournal(cmd.Context(), session, after, a.showLine)
			return err
		}
		return unlessLeft(c.followJournal(cmd.Context(), session, after, a.showLine))
	}
	return cmd
}

// unlessLeft takes it for an ordinary end that somebody has seen enough.
func unlessLeft(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *cluster) getSession(ctx context.Context, name string) (*api.AgentSession, error) {
	session := &api.AgentSession{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, session)
	if isMissing(err) {
		return nil, fmt.Errorf("there is no session %s in namespace %s", name, c.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", explain(err))
	}
	return session, nil
}

// showLine prints an event.
func (a *app) showLine(line journal.Line) error {
	if a.Format() != command.JSON {
		p := &command.Page{Palette: a.Palette}
		transcript.Tell(p, line)
		return a.Print(p.String())
	}
	text, err := json.Marshal(struct {
		Sequence int64          `json:"sequence"`
		Type     string         `json:"type"`
		Data     map[string]any `json:"data"`
	}{line.Number, line.Type, line.Data})
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return a.Print(string(text) + "\n")
}
