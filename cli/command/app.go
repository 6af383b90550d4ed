package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

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

// ErrVerdict ends a command whose answer, told already, is no.
var ErrVerdict = errors.New("negative verdict")

// Verdict is the end of a command that has told its answer.
func Verdict(isGood bool) error {
	if isGood {
		return nil
	}
	return ErrVerdict
}

// An exitError ends a command, whose answer was told already, with a code of its own.
type exitError int

// Error implements error.
func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Exit is the end of a command whose answer was told and has more than two sides.
func Exit(code int) error {
	switch code {
	case ExitOK:
		return nil
	case ExitVerdict:
		return ErrVerdict
	}
	return exitError(code)
}

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

// A Version describes a build.
type Version struct {
	// Version is that of the module.
	Version string `json:"version"`
	// Revision is that of the source, empty if it is not known.
	Revision string `json:"revision"`
	// Go is the version of the toolchain.
	Go string `json:"go"`
}

// Tell implements [Answer].
func (v Version) Tell(p *Page) {
	p.Line("axiom %s", v.Version)
	if v.Revision != "" {
		p.Line("revision %s", v.Revision)
	}
	p.Line("built with %s", v.Go)
}

// An App is one call of the program.
type App struct {
	Environment
	// Palette for standard output.
	Palette terminal.Palette

	format format
}

// New makes the call that the environment is about.
func New(env Environment) *App {
	return &App{Environment: env, Palette: terminal.PaletteFor(env.Stdout, env.Getenv)}
}

// Name is what users call the program by. As a plugin of kubectl it speaks of
// itself as kubectl does.
func (a *App) Name() string {
	if strings.TrimSuffix(filepath.Base(a.Program), ".exe") == "kubectl-axiom" {
		return "kubectl axiom"
	}
	return "axiom"
}

// Run runs the command that the arguments name and returns the exit code.
func (a *App) Run(ctx context.Context, root *cobra.Command, args []string) int {
	if name := a.Name(); name != root.Name() {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrVerdict):
		return ExitVerdict
	}
	if exit, isExit := errors.AsType[exitError](err); isExit {
		return int(exit)
	}
	a.Complain(err.Error())
	return ExitUsage
}

// Complain tells on standard error what is no answer.
func (a *App) Complain(text string) {
	_, _ = fmt.Fprintf(a.Stderr, "axiom: %s\n", strings.TrimRight(text, "\n"))
}

// Group is a command that only has others. Without an argument it shows its
// help; anything else would be a command that is not there.
func Group(use, short, long string) *cobra.Command {
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

// Leaf is a command that does something, without arguments unless it is given
// some.
func Leaf(use, short, long, example string) *cobra.Command {
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

// Require makes flags mandatory.
func Require(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.MarkFlagRequired(flag); err != nil {
			panic(err) // the flag is not declared
		}
	}
}
