package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/changeset"
)

type undoneAnswer struct {
	Applied         bool               `json:"applied"`
	ContentRevision string             `json:"contentRevision"`
	Workflow        changeset.Document `json:"workflow"`

	live changeset.Document
}

func (x undoneAnswer) Tell(p *command.Page) {
	p.Line("%s, the content is now %s\n", p.Paint(terminal.Green, "undone"), x.ContentRevision)
	review.Compare(x.live, x.Workflow).Tell(p)
}

type conflictAnswer struct {
	Applied bool     `json:"applied"`
	Error   conflict `json:"error"`
}

type conflict struct {
	Code   string           `json:"code"`
	Reason string           `json:"reason"`
	Items  []changeset.Item `json:"items"`
}

func (x conflictAnswer) Tell(p *command.Page) {
	p.Line("%s: %s", p.Paint(terminal.Red, "conflict"), x.Error.Reason)
	for _, item := range x.Error.Items {
		p.Line("  %s %s", item.Kind, command.Clean(item.ID))
	}
}

func conflictOf(c *changeset.Conflict) conflict {
	reason := "the documents cannot be compared: one is no object, or an id is missing or repeated"
	if len(c.Items) > 0 {
		reason = command.Plural(len(c.Items), "item") + " changed since, or would be left without a node"
	}
	return conflict{Code: "conflict", Reason: reason, Items: command.OrEmpty(c.Items)}
}

func (a *app) undo() *cobra.Command {
	cmd := command.Leaf("undo --before FILE --after FILE -f LIVE [-o json]", "Take a change back beneath later edits", `
Takes back, in the live workflow, what led from one workflow to another. If nothing
but layout was edited since, the result has the content of before. Otherwise edits
to other nodes, edges and fields survive; an edit to one of the same is a conflict.

With --before and --after exchanged it does again what was undone.`, `
  axiom workflow undo --before old.yaml --after new.yaml -f live.yaml -o json`)
	var before, after, live string
	fileFlag(cmd, &before, "before", "the workflow before the change")
	fileFlag(cmd, &after, "after", "the workflow behind it")
	command.Require(cmd, "before", "after")
	filenameFlag(cmd, &live, "the workflow as it is now")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		var docs [3]changeset.Document
		for i, path := range []string{before, after, live} {
			doc, err := a.loadWorkflow(path)
			if err != nil {
				return err
			}
			docs[i] = documentOf(doc)
		}
		return a.showUndo(docs[0], docs[1], docs[2])
	}
	return cmd
}

func (a *app) showUndo(before, after, live changeset.Document) error {
	result, refused := changeset.Undo(before, after, live)
	if refused != nil {
		if err := a.Show(conflictAnswer{Error: conflictOf(refused)}); err != nil {
			return err
		}
		return command.ErrVerdict
	}
	revision, err := changeset.Revision(result)
	if err != nil {
		return fmt.Errorf("compute revision: %w", err)
	}
	return a.Show(undoneAnswer{Applied: true, ContentRevision: revision, Workflow: result, live: live})
}
