package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
)

func (a *app) diff() *cobra.Command {
	cmd := command.Leaf("diff BEFORE AFTER [-o json]", "Tell two workflows apart", `
Compares the content of two workflows: nodes by id and without their positions,
edges by id and as a set. For people, every member that differs is shown with its
old and its new value.

The exit code is 0 whether they differ or not; with --exit-code it is 1 if they
do.`, `
  axiom workflow diff main.yaml branch.yaml
  git show HEAD:release.yaml | axiom workflow diff - release.yaml`)
	cmd.Args = cobra.ExactArgs(2)
	cmd.ValidArgsFunction = nil
	var signals bool
	cmd.Flags().BoolVar(&signals, "exit-code", false, "exit with 1 if the contents differ")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		before, err := a.loadObject(args[0])
		if err != nil {
			return err
		}
		after, err := a.loadObject(args[1])
		if err != nil {
			return err
		}
		answer := review.Compare(before, after)
		if err := a.Show(answer); err != nil {
			return err
		}
		return command.Verdict(!signals || answer.IsZero())
	}
	return cmd
}
