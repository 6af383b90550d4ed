package cli

import (
	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/internal/changeset"
)

type diffAnswer struct {
	Summary       string   `json:"summary"`
	AddedNodes    []string `json:"addedNodes"`
	RemovedNodes  []string `json:"removedNodes"`
	ChangedNodes  []string `json:"changedNodes"`
	AddedEdges    []string `json:"addedEdges"`
	RemovedEdges  []string `json:"removedEdges"`
	ChangedEdges  []string `json:"changedEdges"`
	EdgesChanged  bool     `json:"edgesChanged"`
	FieldsChanged []string `json:"fieldsChanged"`
	OrderChanged  bool     `json:"orderChanged"`

	difference
}

func diffAnswerOf(before, after changeset.Document) diffAnswer {
	d := differenceOf(before, after)
	return diffAnswer{
		Summary:       d.summary.String(),
		AddedNodes:    orEmpty(d.summary.AddedNodes),
		RemovedNodes:  orEmpty(d.summary.RemovedNodes),
		ChangedNodes:  orEmpty(d.summary.ChangedNodes),
		AddedEdges:    orEmpty(d.summary.AddedEdges),
		RemovedEdges:  orEmpty(d.summary.RemovedEdges),
		ChangedEdges:  orEmpty(d.summary.ChangedEdges),
		EdgesChanged:  d.summary.EdgesChanged,
		FieldsChanged: orEmpty(d.summary.FieldsChanged),
		OrderChanged:  d.summary.OrderChanged,
		difference:    d,
	}
}

func (a *app) diff() *cobra.Command {
	cmd := leaf("diff BEFORE AFTER [-o json]", "Tell two workflows apart", `
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
	a.addOutput(cmd, formatText, formatJSON)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		before, err := a.loadObject(args[0])
		if err != nil {
			return err
		}
		after, err := a.loadObject(args[1])
		if err != nil {
			return err
		}
		answer := diffAnswerOf(before, after)
		if err := a.show(answer); err != nil {
			return err
		}
		return verdict(!signals || answer.isZero())
	}
	return cmd
}
