package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/review"
)

func (a *app) graph() *cobra.Command {
	cmd := command.Leaf("graph -f FILE [--changeset FILE [--unchecked]] [-o mermaid|dot|svg|text|json]", "Draw a workflow", `
Draws the nodes and edges of a workflow, valid or not, as a Mermaid flowchart, in
the language of Graphviz, as an SVG picture that needs nothing besides itself, as
text, or lists them as JSON. Without -o it is text in a terminal and Mermaid
everywhere else.

With --changeset it draws the result of a change set, with what it adds, changes
and removes marked.`, `
  axiom workflow graph -f release.yaml
  axiom workflow graph -f release.yaml -o svg > release.svg
  axiom workflow graph -f release.yaml --changeset fix.yaml -o svg > review.svg
  axiom workflow graph -f release.yaml -o dot | dot -Tpdf > release.pdf`)
	var path, changes string
	var unchecked bool
	filenameFlag(cmd, &path, "the workflow")
	fileFlag(cmd, &changes, "changeset", "a change set to draw the result of")
	uncheckedFlag(cmd, &unchecked)
	a.AddOutput(cmd, review.Mermaid, review.DOT, review.SVG, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		if changes == "" {
			doc, err := a.loadObject(path)
			if err != nil {
				return err
			}
			return review.Draw(a.App, graph.Of(doc))
		}
		before, set, err := a.loadChange(path, changes)
		if err != nil {
			return err
		}
		after, _, rejection := applyTo(before, set, unchecked)
		if rejection != nil {
			return a.rejectDrawing(rejectedAnswer{Error: rejection})
		}
		return review.Draw(a.App, graph.Compare(before, after))
	}
	return cmd
}

// rejectDrawing keeps words out of what should be a picture.
func (a *app) rejectDrawing(x rejectedAnswer) error {
	if a.Format() == command.JSON {
		return a.reject(x.Error)
	}
	p := &command.Page{}
	x.Tell(p)
	a.Complain(p.String())
	return command.ErrVerdict
}
