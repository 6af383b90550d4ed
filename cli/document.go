package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// loadManifest reads what people may hand to kubectl as well, and passes on what
// it would take for something else.
func (a *app) loadManifest(path string) (*source.Document, error) {
	doc, err := a.loader.Load(path)
	if err != nil {
		return nil, err
	}
	for _, warning := range doc.Warnings {
		a.Complain("warning: " + warning)
	}
	return doc, nil
}

// loadWorkflow reads a workflow document, be it a file of its own or part of a
// Composition.
func (a *app) loadWorkflow(path string) (*source.Document, error) {
	doc, err := a.loadManifest(path)
	if err != nil {
		return nil, err
	}
	object, _ := doc.Value.(map[string]any)
	kind := command.TextOf(object["kind"])
	switch {
	case kind == "Composition":
		part, ok := doc.Part("spec", "workflow")
		if !ok || part.Value == nil {
			return nil, doc.Errorf([]any{"spec"}, "the Composition has no workflow")
		}
		return part, nil
	case kind != "" && command.TextOf(object["apiVersion"]) != "":
		return nil, doc.Errorf([]any{"kind"}, "this is a %s; a workflow or a Composition is expected", command.Clean(kind))
	}
	return doc, nil
}

// loadObject reads a workflow document that must be an object.
func (a *app) loadObject(path string) (workflow.Document, error) {
	doc, err := a.loadWorkflow(path)
	if err != nil {
		return nil, err
	}
	return doc.Object()
}

// documentOf is a workflow as the packages that change it take it: what is no
// object is nil, which they refuse in their own words.
func documentOf(doc *source.Document) changeset.Document {
	object, _ := doc.Value.(map[string]any)
	return object
}

// filenameFlag declares the flag -f.
func filenameFlag(cmd *cobra.Command, path *string, what string) {
	cmd.Flags().StringVarP(path, "filename", "f", "", "`FILE` with "+what+"; - is standard input")
	command.Require(cmd, "filename")
}

// fileFlag declares another flag that names a file.
func fileFlag(cmd *cobra.Command, path *string, name, what string) {
	cmd.Flags().StringVar(path, name, "", "`FILE` with "+what+"; - is standard input")
}
