package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// Exit codes.
const (
	// ExitOK is success.
	ExitOK = 0
	// ExitVerdict says that the answer is no.
	ExitVerdict = 1
	// ExitUsage says that there is no answer.
	ExitUsage = 2
)

// Environment is what surrounds the program.
type Environment struct {
	// Program is the path the program was called by.
	Program        string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Version describes the build.
	Version Version
}

// Run runs one command and returns the exit code.
func Run(ctx context.Context, env Environment, args []string) int {
	a := &app{
		env:     env,
		loader:  source.Loader{Stdin: env.Stdin},
		palette: terminal.PaletteFor(env.Stdout, env.Getenv),
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errVerdict):
		return ExitVerdict
	}
	a.complain(err.Error())
	return ExitUsage
}

// errVerdict ends a command whose answer, told already, is no.
var errVerdict = errors.New("negative verdict")

// verdict is the end of a command that has told its answer.
func verdict(isGood bool) error {
	if isGood {
		return nil
	}
	return errVerdict
}

// An app is one call of the program.
type app struct {
	env     Environment
	loader  source.Loader
	palette terminal.Palette
	format  format
}

// complain tells on standard error what is no answer.
func (a *app) complain(text string) {
	_, _ = fmt.Fprintf(a.env.Stderr, "axiom: %s\n", strings.TrimRight(text, "\n"))
}

// root makes the tree of commands. Called as a plugin of kubectl the program
// speaks of itself as kubectl does.
func (a *app) root() *cobra.Command {
	cmd := group("axiom", "Check, change, draw and play workflows offline", `
Works on workflow documents in files, without a cluster: validates them, names
their content, applies, inverts and undoes change sets, tells documents apart,
draws them, and plays runs through.

A file is YAML or JSON and holds one document, or a Composition manifest, whose
spec.workflow is then meant. The path - is standard input. With -o json every
command prints one JSON value.

Exit codes: 0 success, 1 the answer is no (an invalid workflow, a refused change
set, a form not satisfied), 2 there is no answer (unknown flag, unreadable file).`)
	name := strings.TrimSuffix(filepath.Base(a.env.Program), ".exe")
	if name == "kubectl-axiom" {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl axiom"}
	}
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.AddCommand(a.workflow(), a.expression(), a.form(), a.version())
	return cmd
}

func (a *app) workflow() *cobra.Command {
	cmd := group("workflow", "Work on workflow documents", "")
	cmd.AddCommand(
		a.validate(), a.revision(), a.apply(), a.diff(), a.inverse(), a.undo(), a.graph(), a.simulate(),
	)
	return cmd
}

func (a *app) expression() *cobra.Command {
	cmd := group("expression", "Work on CEL expressions of workflows", "")
	cmd.AddCommand(a.eval())
	return cmd
}

func (a *app) form() *cobra.Command {
	cmd := group("form", "Work on the forms of human tasks", "")
	cmd.AddCommand(a.check())
	return cmd
}

// group is a command that only has others. Without an argument it shows its
// help; anything else would be a command that is not there.
func group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Long:  strings.TrimSpace(long),
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
}

// leaf is a command that does something, with any of the given arguments.
func leaf(use, short, long, example string) *cobra.Command {
	return &cobra.Command{
		Use:                   use,
		Short:                 short,
		Long:                  strings.TrimSpace(long),
		Example:               strings.Trim(example, "\n"),
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
}

// require makes flags mandatory.
func require(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.MarkFlagRequired(flag); err != nil {
			panic(err) // the flag is not declared
		}
	}
}
