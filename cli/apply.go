package cli

import (
	"maps"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

type appliedAnswer struct {
	Applied         bool               `json:"applied"`
	ContentRevision string             `json:"contentRevision"`
	Workflow        changeset.Document `json:"workflow"`
	Problems        []workflow.Problem `json:"problems"`

	before changeset.Document
}

func (x appliedAnswer) Tell(p *command.Page) {
	p.Line("%s, the content is now %s\n", p.Paint(terminal.Green, "applied"), x.ContentRevision)
	review.Compare(x.before, x.Workflow).Tell(p)
	p.Line("")
	tellProblems(p, &source.Document{Name: "result", Value: x.Workflow}, x.Problems)
}

// A rejectedAnswer tells of a change set that does not apply.
type rejectedAnswer struct {
	Applied bool                 `json:"applied"`
	Error   *changeset.Rejection `json:"error"`
}

func (x rejectedAnswer) Tell(p *command.Page) {
	p.Line("%s: %s", p.Paint(terminal.Red, "rejected"), command.Clean(x.Error.String()))
}

// reject shows a rejection and ends the command.
func (a *app) reject(rejection *changeset.Rejection) error {
	if err := a.Show(rejectedAnswer{Error: rejection}); err != nil {
		return err
	}
	return command.ErrVerdict
}

const applyHelp = `
A change set is an object {id, baseRevision, author, summary, ops}. It applies as
a whole or not at all: baseRevision must be the revision of the workflow, and
every op must fit what those before it made.`

func (a *app) apply() *cobra.Command {
	cmd := command.Leaf("apply -f FILE --changeset FILE [--unchecked] [-o json]", "Apply a change set to a workflow", `
Applies a change set and tells the result: with -o json the new workflow, its
revision and its problems, for people what changed. The file stays as it is.
`+applyHelp, `
  axiom workflow apply -f release.yaml --changeset fix.yaml
  axiom workflow apply -f release.yaml --changeset fix.yaml -o json | jq .workflow > new.json`)
	var path, changes string
	var unchecked bool
	filenameFlag(cmd, &path, "the workflow")
	fileFlag(cmd, &changes, "changeset", "the change set")
	command.Require(cmd, "changeset")
	uncheckedFlag(cmd, &unchecked)
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		before, set, err := a.loadChange(path, changes)
		if err != nil {
			return err
		}
		result, revision, rejection := applyTo(before, set, unchecked)
		if rejection != nil {
			return a.reject(rejection)
		}
		problems := workflow.Validate(result, expression.NewCache())
		return a.Show(appliedAnswer{
			Applied: true, ContentRevision: revision, Workflow: result, Problems: command.OrEmpty(problems), before: before,
		})
	}
	return cmd
}

func uncheckedFlag(cmd *cobra.Command, unchecked *bool) {
	cmd.Flags().BoolVar(unchecked, "unchecked", false, "apply whatever revision the change set was written for")
}

// loadChange reads a workflow and a change set.
func (a *app) loadChange(path, changes string) (changeset.Document, any, error) {
	doc, err := a.loadWorkflow(path)
	if err != nil {
		return nil, nil, err
	}
	set, err := a.loader.Load(changes)
	if err != nil {
		return nil, nil, err
	}
	return documentOf(doc), set.Value, nil
}

// applyTo applies a change set with all its tests, or with all but the one of
// the base revision.
func applyTo(doc changeset.Document, set any, unchecked bool) (changeset.Document, string, *changeset.Rejection) {
	if unchecked {
		set = rebased(doc, set)
	}
	return changeset.ApplyChecked(doc, set)
}

// rebased is the change set as if it was written for doc, if both can be read as
// what they should be.
func rebased(doc changeset.Document, set any) any {
	object, ok := set.(map[string]any)
	revision, err := changeset.Revision(doc)
	if !ok || err != nil {
		return set
	}
	object = maps.Clone(object)
	object["baseRevision"] = revision
	return object
}
