package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/changeset"
)

// An inverseAnswer is a change set.
type inverseAnswer changeset.ChangeSet

func (x inverseAnswer) Tell(p *command.Page) {
	p.Line("%s", p.Paint(terminal.Bold, command.Clean(x.Summary)))
	p.Line("id            %s", command.Clean(x.ID))
	p.Line("baseRevision  %s", x.BaseRevision)
	p.Line("author        %s", x.Author)
	p.Line("%s", command.Plural(len(x.Ops), "operation"))
	for _, op := range x.Ops {
		p.Line("  %s", opText(op))
	}
}

// opText is an operation in a line: its name, then its members.
func opText(op any) string {
	object, _ := op.(map[string]any)
	members := map[string]any{}
	for name, value := range object {
		if name != "op" {
			members[name] = value
		}
	}
	return command.Clean(command.TextOf(object["op"])) + " " + command.ValueText(members)
}

func (a *app) inverse() *cobra.Command {
	cmd := command.Leaf("inverse -f BEFORE --changeset FILE [-o json]", "Make the change set that takes another one back", `
Prints the change set that leads from the result of a change set back to the
workflow it was applied to. Its baseRevision is the revision of that result.
`+applyHelp, `
  axiom workflow inverse -f release.yaml --changeset fix.yaml -o json > back.json`)
	var path, changes string
	filenameFlag(cmd, &path, "the workflow before the change set")
	fileFlag(cmd, &changes, "changeset", "the change set")
	command.Require(cmd, "changeset")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		before, set, err := a.loadChange(path, changes)
		if err != nil {
			return err
		}
		inverse, rejection := invert(before, set)
		if rejection != nil {
			return a.reject(rejection)
		}
		inverse.Ops = command.OrEmpty(inverse.Ops)
		return a.Show(inverseAnswer(inverse))
	}
	return cmd
}

// invert applies the change set as it stands in the file first, which refuses
// what its typed form could not show. One without a base revision is taken as
// written for the workflow.
func invert(before changeset.Document, set any) (changeset.ChangeSet, *changeset.Rejection) {
	object, _ := set.(map[string]any)
	if _, isBased := object["baseRevision"]; !isBased {
		set = rebased(before, set)
	}
	if _, _, rejection := changeset.ApplyChecked(before, set); rejection != nil {
		return changeset.ChangeSet{}, rejection
	}
	ops, _ := object["ops"].([]any)
	return changeset.Inverse(before, changeset.ChangeSet{
		ID:           command.TextOf(object["id"]),
		BaseRevision: command.TextOf(object["baseRevision"]),
		Author:       command.TextOf(object["author"]),
		Summary:      command.TextOf(object["summary"]),
		Ops:          ops,
	})
}
