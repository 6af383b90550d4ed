package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
)

func (a *app) version() *cobra.Command {
	cmd := command.Leaf("version", "Print the version", "", `
  axiom version
  axiom version -o json`)
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error { return a.Show(a.Version) }
	return cmd
}
