package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/changeset"
)

type revisionAnswer struct {
	ContentRevision string `json:"contentRevision"`
}

func (r revisionAnswer) Tell(p *command.Page) { p.Line("%s", r.ContentRevision) }

func (a *app) revision() *cobra.Command {
	cmd := command.Leaf("revision -f FILE [-o json]", "Name the content of a workflow", `
Prints the content revision of a workflow: the digest of its canonical JSON
without the positions of its nodes. Layout, the order of members and the spelling
of numbers do not change it; anything else does. A change set names the revision
it was written for as its baseRevision.`, `
  axiom workflow revision -f release.yaml
  kubectl get composition release -o yaml | axiom workflow revision -f -`)
	var path string
	filenameFlag(cmd, &path, "the workflow")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		doc, err := a.loadObject(path)
		if err != nil {
			return err
		}
		revision, err := changeset.Revision(doc)
		if err != nil {
			return fmt.Errorf("compute revision: %w", err)
		}
		return a.Show(revisionAnswer{revision})
	}
	return cmd
}
