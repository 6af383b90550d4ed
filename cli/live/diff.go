package live

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/review"
)

// A diffAnswer tells what a turn changes.
type diffAnswer struct {
	review.Difference
	Items []itemAnswer `json:"items"`

	changes *changes
}

// Tell implements [command.Answer].
func (x diffAnswer) Tell(p *command.Page) { x.changes.Tell(p) }

func (a *app) diff() *cobra.Command {
	cmd := command.Leaf("diff TURN [--graph] [-o text|json|mermaid|dot|svg]", "Show what a turn changes", `
Compares the workflow that a turn started from with what the agent made of it, and
shows the action types and tools that it wrote. While the agent works, that is what
it did so far.

With --graph the result is drawn, with what the turn adds, changes and removes
marked: as text in a terminal, as Mermaid everywhere else, or as -o says.`, `
  axiom turn diff triage-x7k2p
  axiom turn diff triage-x7k2p -o json | jq .addedNodes
  axiom turn diff triage-x7k2p -o svg > review.svg`)
	cmd.Args = exactArgs("the name of a turn")
	var draws bool
	cmd.Flags().BoolVar(&draws, "graph", false, "draw the workflow with the changes marked")
	a.AddOutput(cmd, command.Text, command.JSON, review.Mermaid, review.DOT, review.SVG)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		turn, err := c.getTurn(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		found, err := c.changesOf(cmd.Context(), turn)
		if err != nil {
			return err
		}
		if draws || slices.Contains([]string{review.Mermaid, review.DOT, review.SVG}, a.Format()) {
			return review.Draw(a.App, graph.Compare(found.before, found.after))
		}
		return a.Show(diffAnswer{Difference: found.difference(), Items: itemAnswers(turn), changes: found})
	}
	return cmd
}
