// Package supervised has the commands that work on definitions of supervised runs in
// files. It decides what a directory stands for as the tree of a commit, and knows
// nothing of Git's objects, of remotes and of clusters.
package supervised

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// Commands are those of definitions, for one call of the program.
func Commands(a *command.App) []*cobra.Command {
	cmd := command.Group("definition", "Work on definitions of supervised runs", "")
	cmd.AddCommand(check(a))
	return []*cobra.Command{cmd}
}

func check(a *command.App) *cobra.Command {
	cmd := command.Leaf("check PATH [--repository DIR] [-o json]", "Tell whether a definition in a directory may run", `
Admits a root document and the components that it names, as the operator does once
they are committed, and shows what a run would pin. PATH is that of the root,
relative to the repository, whose working tree DIR is. No commit is read and no
server asked: files count as they are now, ignored ones too.

A definition that may not run makes the exit code 1, and is told of by the first
rule that it breaks, in the order in which the operator checks.`, `
  axiom definition check adversarial-implementation/start.md
  axiom definition check flows/start.md --repository ../workflows -o json`)
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = nil
	repository := cmd.Flags().StringP("repository", "C", ".", "the directory that paths are relative to")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		answer, err := admit(cmd.Context(), *repository, args[0])
		if err != nil {
			return err
		}
		if err := a.Show(answer); err != nil {
			return err
		}
		return command.Verdict(answer.Valid)
	}
	return cmd
}

type checked struct {
	Valid bool `json:"valid"`
	// Path, Name and Components tell of a definition that may run.
	Path       string      `json:"path"`
	Name       string      `json:"name,omitempty"`
	Components []component `json:"components"`
	Refusals   []refusal   `json:"refusals"`
}

type component struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	SourceHash string `json:"sourceHash"`
}

type refusal struct {
	Code    string `json:"code"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Subject string `json:"subject"`
	Rule    string `json:"rule,omitempty"`
}

// admit checks the definition at a path of a directory. The error is that of a
// question which could not be put.
func admit(ctx context.Context, directory, path string) (checked, error) {
	answer := checked{Path: path, Components: []component{}, Refusals: []refusal{}}
	scanner, err := secretscan.New()
	if err != nil {
		return answer, fmt.Errorf("prepare the search for secrets: %w", err)
	}
	tree, err := openTree(directory)
	if err != nil {
		return answer, err
	}
	defer func() { _ = tree.Close() }() // it was only read
	bundle, err := definition.Admit(ctx, tree, path, gate{scanner}, nil)
	if refused := (*definition.Refusal)(nil); errors.As(err, &refused) {
		answer.Refusals = append(answer.Refusals, refusal{
			Code: refused.Code, Path: refused.Path, Line: refused.Line, Column: refused.Column, Subject: refused.Subject, Rule: refused.Rule,
		})
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	answer.Valid, answer.Name = true, bundle.Root().Title()
	for _, c := range bundle.Descriptor("").Components {
		answer.Components = append(answer.Components, component{c.Name, c.Path, c.SourceHash})
	}
	return answer, nil
}

// gate shows the scanner to the admission.
type gate struct{ scanner *secretscan.Scanner }

// Text implements [definition.Gate].
func (g gate) Text(text string) *definition.Hit {
	hit := g.scanner.Text(text)
	if hit == nil {
		return nil
	}
	return &definition.Hit{Rule: hit.Rule, Line: hit.Line, Column: hit.Column}
}

// Tell implements [command.Answer].
func (c checked) Tell(p *command.Page) {
	for _, r := range c.Refusals {
		p.Line("%s: %s %s", command.Clean(r.place()), p.Paint(terminal.Red, r.Code), command.Clean(r.what()))
	}
	if !c.Valid {
		return
	}
	p.Line("%s: %s, %s with %s", command.Clean(c.Path), p.Paint(terminal.Green, "may run"), command.Clean(c.Name), command.Plural(len(c.Components), "component"))
	for _, m := range c.Components {
		p.Line("  %s  %s  %s", m.SourceHash, m.Name, command.Clean(m.Path))
	}
}

// place is path, line and column, as far as they are known.
func (r refusal) place() string {
	switch {
	case r.Line == 0:
		return r.Path
	case r.Column == 0:
		return fmt.Sprintf("%s:%d", r.Path, r.Line)
	}
	return fmt.Sprintf("%s:%d:%d", r.Path, r.Line, r.Column)
}

// what is the rule, and the component where it is not the document's own path.
func (r refusal) what() string {
	switch {
	case r.Rule == "":
		return r.Subject
	case r.Subject == r.Path:
		return r.Rule
	}
	return r.Subject + ": " + r.Rule
}
