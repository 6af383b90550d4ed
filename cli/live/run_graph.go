package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func (a *app) graphRun() *cobra.Command {
	cmd := command.Leaf("graph RUN [--frame PATH] [-o mermaid|dot|svg|text|json]", "Draw where a run is", `
Draws the workflow that a run executes, as it was when the run began, with what the
run did marked: nodes and edges that it passed, where it is, and where it failed. Of a
definition in Git it draws the root, or the component of one call.

The formats are those of workflow graph.`, `
  axiom run graph release-7
  axiom run graph release-7 -o svg > release-7.svg
  axiom run graph add-health --frame 'Planning[1]'`)
	cmd.Args = exactArgs("the name of a run")
	var frame string
	cmd.Flags().StringVar(&frame, "frame", "", "`PATH` of the call whose component to draw, as run show lists it")
	a.AddOutput(cmd, review.Mermaid, review.DOT, review.SVG, command.Text, command.JSON)
	cmd.RunE = a.onRun(func(ctx context.Context, c *cluster, run *api.WorkflowRun) error {
		return a.drawRun(ctx, c, run, frame)
	})
	return cmd
}

func (a *app) drawRun(ctx context.Context, c *cluster, run *api.WorkflowRun, frame string) error {
	reader := &recordReader{ctx: ctx, cluster: c, namespace: run.Namespace}
	entries := reader.history(run.Status.History)
	w, err := c.executed(ctx, run, componentOf(run, entries, frame), frame)
	if err != nil {
		return err
	}
	if reader.failure != nil {
		a.Complain("warning: not everything is drawn: " + reader.failure.Error())
	}
	nodes, edges := passed(run, entries, frame)
	return review.Draw(a.App, graph.InRun(w, nodes, edges))
}

// componentOf is what a call of a run executes; empty for one that is not known.
func componentOf(run *api.WorkflowRun, entries []api.HistoryEntry, frame string) string {
	for _, live := range run.Status.Frames {
		if live.Path == frame {
			return live.Component
		}
	}
	for _, entry := range entries {
		if entry.Call != nil && entry.Call.Path == frame {
			return entry.Call.Component
		}
	}
	return ""
}

// executed is the workflow that a run, or one of its calls, executes.
func (c *cluster) executed(ctx context.Context, run *api.WorkflowRun, component, frame string) (*workflow.Workflow, error) {
	pinned := run.Status.Definition
	switch {
	case frame != "" && component == "":
		return nil, fmt.Errorf("run %s has no call %s", run.Name, frame)
	case pinned == nil:
		return nil, fmt.Errorf("run %s has not begun: there is no definition yet", run.Name)
	case run.Spec.Git == nil:
		return c.snapshotOf(ctx, run)
	}
	var sources []definition.Source
	for _, kept := range pinned.Sources {
		data, err := c.contents().Get(ctx, run.Namespace, kept.Digest)
		if err != nil {
			return nil, fmt.Errorf("read source %s: %w", kept.Path, explainContent(err))
		}
		sources = append(sources, definition.Source{Path: kept.Path, Blob: kept.SourceHash, Content: data})
	}
	bundle, err := definition.Admit(ctx, definition.Retained(sources), run.Spec.Git.Path, lenient{}, nil)
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	drawn := bundle.Root()
	if component != "" {
		found, isKnown := bundle.Component(component)
		if !isKnown {
			return nil, fmt.Errorf("the definition of run %s has no component %s", run.Name, component)
		}
		drawn = found
	}
	return drawn.Engine().Workflow(), nil
}

// lenient lets every text pass: the operator looked for secrets before it kept what
// is drawn.
type lenient struct{}

// Text implements [definition.Gate].
func (lenient) Text(string) *definition.Hit { return nil }

// snapshotOf is the workflow of the composition as the run pinned it.
func (c *cluster) snapshotOf(ctx context.Context, run *api.WorkflowRun) (*workflow.Workflow, error) {
	record, err := c.pinnedDraft(ctx, run)
	if err != nil {
		return nil, err
	}
	doc, err := turns.Document(record.Workflow)
	if err != nil {
		return nil, fmt.Errorf("decode workflow: %w", err)
	}
	if doc == nil {
		return nil, errors.New("the snapshot has no workflow")
	}
	return workflow.Read(doc), nil
}

// passed are the nodes and edges that a run, or one of its calls, touched. What is
// open counts more than what was, and of several visits the last one counts.
func passed(run *api.WorkflowRun, entries []api.HistoryEntry, frame string) (nodes, edges map[string]graph.Change) {
	nodes, edges = map[string]graph.Change{}, map[string]graph.Change{}
	for _, entry := range entries {
		if entry.Node == "" || entry.Call != nil || frameOf(entry.Activation) != frame {
			continue
		}
		edges[entry.Edge] = graph.Done
		switch entry.Outcome {
		case "Cancelled":
			delete(nodes, entry.Node)
		case "Failed":
			nodes[entry.Node] = graph.Failed
		default:
			nodes[entry.Node] = graph.Done
		}
	}
	instance := instanceOf(run, frame)
	if instance == nil {
		return nodes, edges
	}
	for _, branch := range instance.ActiveBranches {
		nodes[branch.Node], edges[branch.Edge] = graph.Open, graph.Done
	}
	if failure := instance.Failure; failure != nil {
		nodes[cmp.Or(failure.Node, nodeOf(failure.Activation))] = graph.Failed
	}
	return nodes, edges
}

// instanceOf is the state of a run, or of one of its live calls; nil without one.
func instanceOf(run *api.WorkflowRun, frame string) *api.RunInstance {
	if frame == "" {
		return run.Status.Instance
	}
	for i := range run.Status.Frames {
		if run.Status.Frames[i].Path == frame {
			return &run.Status.Frames[i].Instance
		}
	}
	return nil
}

// frameOf is the call that an activation belongs to; empty: the root.
func frameOf(activation string) string {
	return activation[:max(strings.LastIndexByte(activation, '/'), 0)]
}

// nodeOf is the node of an activation in its call.
func nodeOf(activation string) string {
	name, _, _ := strings.Cut(activation[strings.LastIndexByte(activation, '/')+1:], "#")
	return name
}
