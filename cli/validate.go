package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

type validateAnswer struct {
	Valid    bool               `json:"valid"`
	Problems []workflow.Problem `json:"problems"`

	doc *source.Document
}

func (v validateAnswer) Tell(p *command.Page) {
	tellProblems(p, v.doc, v.Problems)
}

func (a *app) validate() *cobra.Command {
	cmd := command.Leaf("validate -f FILE [-o json]", "Tell everything that is wrong with a workflow", `
Checks the shape, the graph, the expressions, the configuration of every node and
the parallel regions of a workflow, as the operator does before a run.

Errors keep a workflow from running and make the exit code 1; warnings tell of
what is probably not meant.`, `
  axiom workflow validate -f release.yaml
  axiom workflow validate -f composition.yaml -o json`)
	var path string
	filenameFlag(cmd, &path, "the workflow")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		doc, err := a.loadWorkflow(path)
		if err != nil {
			return err
		}
		problems := workflow.Validate(doc.Value, expression.NewCache())
		isValid := !workflow.HasErrors(problems)
		if err := a.Show(validateAnswer{Valid: isValid, Problems: command.OrEmpty(problems), doc: doc}); err != nil {
			return err
		}
		return command.Verdict(isValid)
	}
	return cmd
}
