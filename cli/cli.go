package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/source"
)

// An Extension adds commands that need more than files.
type Extension func(*command.App) []*cobra.Command

// Run runs one command and returns the exit code.
func Run(ctx context.Context, env command.Environment, args []string, extensions ...Extension) int {
	a := &app{App: command.New(env), loader: source.Loader{Stdin: env.Stdin}}
	root := a.root()
	for _, extend := range extensions {
		root.AddCommand(extend(a.App)...)
	}
	return a.Run(ctx, root, args)
}

// An app is one call of the program.
type app struct {
	*command.App
	loader source.Loader
}

// root makes the tree of commands.
func (a *app) root() *cobra.Command {
	cmd := command.Group("axiom", "Write workflows, from files and with agents", `
Works on workflow documents in files, without a cluster: validates them, names
their content, applies, inverts and undoes change sets, tells documents apart,
draws them, and plays runs through. On a cluster it asks agents to change
compositions, follows their work, carries out what people decide on it, and looks
after runs.

A file is YAML or JSON and holds one document, or a Composition manifest, whose
spec.workflow is then meant. The path - is standard input. With -o json every
command prints one JSON value.

Exit codes: 0 success, 1 the answer is no (an invalid workflow, a refused change
set, a form not satisfied, a turn that failed), 2 there is no answer (unknown
flag, unreadable file, no cluster).`)
	cmd.AddCommand(a.workflow(), a.expression(), a.form(), a.version())
	return cmd
}

func (a *app) workflow() *cobra.Command {
	cmd := command.Group("workflow", "Work on workflow documents", "")
	cmd.AddCommand(
		a.validate(), a.revision(), a.apply(), a.diff(), a.inverse(), a.undo(), a.graph(), a.simulate(),
	)
	return cmd
}

func (a *app) expression() *cobra.Command {
	cmd := command.Group("expression", "Work on CEL expressions of workflows", "")
	cmd.AddCommand(a.eval())
	return cmd
}

func (a *app) form() *cobra.Command {
	cmd := command.Group("form", "Work on the forms of human tasks", "")
	cmd.AddCommand(a.check())
	return cmd
}
