package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/console"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// runLine is a run in a list.
type runLine struct {
	Name     string       `json:"name"`
	Of       string       `json:"of"`
	Phase    api.RunPhase `json:"phase"`
	WaitsFor string       `json:"waitsFor"`
	At       string       `json:"at"`
	Outcome  string       `json:"outcome"`
	Created  time.Time    `json:"created"`
}

func (d *consoleDesk) listRuns(ctx context.Context, _ console.Request) (any, error) {
	list := &api.WorkflowRunList{}
	if err := d.List(ctx, list, client.InNamespace(d.namespace)); err != nil {
		return nil, refused(err)
	}
	lines := []runLine{}
	for i := range list.Items {
		run := &list.Items[i]
		line := runLine{
			Name: run.Name, Of: run.Spec.CompositionRef.Name, Phase: orPending(run.Status.Phase), WaitsFor: run.Status.WaitsFor,
			At: run.Status.CurrentNode, Outcome: run.Status.Outcome, Created: run.CreationTimestamp.UTC(),
		}
		if run.Spec.Git != nil {
			line.Of = run.Spec.Git.Path
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b runLine) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name))
	})
	return lines, nil
}

// runPage is a run over its drawing.
type runPage struct {
	runAnswer
	drawing
	WaitsFor string          `json:"waitsFor"`
	Failure  *api.RunFailure `json:"failure"`
	// Tasks are the questions that keep activations open, by activation.
	Tasks map[string]string `json:"tasks"`
	// Resumable tells whether the run goes on only when somebody says so.
	Resumable bool `json:"resumable"`
	// Hidden is why not all is shown; empty if all is.
	Hidden string `json:"hidden"`
}

func (d *consoleDesk) showRun(ctx context.Context, r console.Request) (any, error) {
	run := &api.WorkflowRun{}
	if err := d.read(ctx, "run", r.Name, run); err != nil {
		return nil, err
	}
	return d.runPageOf(ctx, run), nil
}

func (d *consoleDesk) runPageOf(ctx context.Context, run *api.WorkflowRun) runPage {
	reader := &recordReader{ctx: ctx, cluster: d.cluster, namespace: run.Namespace, wantsOutputs: true}
	page := runPage{
		runAnswer: reader.read(run), WaitsFor: run.Status.WaitsFor, Tasks: tasksOf(run),
		Resumable: run.Spec.IsExplicit() && !run.Status.Phase.IsTerminal() && !run.Spec.Cancel,
	}
	if instance := run.Status.Instance; instance != nil {
		page.Failure = instance.Failure
	}
	failure := reader.failure
	doc, err := d.workflowOf(ctx, run)
	if err == nil && doc != nil {
		page.drawing, err = drawingOf(graph.Of(doc), doc)
	}
	if failure = errors.Join(failure, err); failure != nil {
		page.Hidden = failure.Error()
	}
	return page
}

// tasksOf are the questions of open activations.
func tasksOf(run *api.WorkflowRun) map[string]string {
	tasks := map[string]string{}
	if run.Status.Instance != nil {
		for _, branch := range run.Status.Instance.ActiveBranches {
			if child := branch.Child; child != nil && child.Kind == "HumanTask" {
				tasks[branch.Activation] = child.Name
			}
		}
	}
	for _, intent := range run.Status.Intents {
		if intent.Task != "" {
			tasks[intent.Activation] = intent.Task
		}
	}
	return tasks
}

// workflowOf is the workflow that a run executes: that of its snapshot, which stays
// when the composition is edited. Nothing of a run that has not pinned one.
func (d *consoleDesk) workflowOf(ctx context.Context, run *api.WorkflowRun) (workflow.Document, error) {
	definition := run.Status.Definition
	if definition == nil || definition.Snapshot == "" {
		return nil, nil //nolint:nilnil // there is none to be shown
	}
	snapshot := &appsv1.ControllerRevision{}
	if err := d.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: definition.Snapshot}, snapshot); err != nil {
		return nil, fmt.Errorf("the workflow is kept in a ControllerRevision, which cannot be read: %w", explain(err))
	}
	var data struct {
		Workflow *runtime.RawExtension `json:"workflow"`
	}
	if err := json.Unmarshal(snapshot.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	if data.Workflow == nil {
		return nil, nil //nolint:nilnil // there is none to be shown
	}
	doc, err := turns.Document(data.Workflow)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return doc, nil
}

// activationPage is an activation with its values as text, numbers as they are.
type activationPage struct {
	Activation string `json:"activation"`
	Text       string `json:"text"`
	Hidden     string `json:"hidden"`
}

func (d *consoleDesk) showActivation(ctx context.Context, r console.Request) (any, error) {
	run := &api.WorkflowRun{}
	if err := d.read(ctx, "run", r.Name, run); err != nil {
		return nil, err
	}
	activation := r.Query.Get("of")
	reader := &recordReader{ctx: ctx, cluster: d.cluster, namespace: run.Namespace, activation: activation}
	one, isThere := reader.read(run).only(activation)
	if !isThere {
		return nil, &console.RefusalError{Status: http.StatusNotFound, Message: fmt.Sprintf("run %s has no activation %s", r.Name, activation)}
	}
	page := activationPage{Activation: activation, Text: linesOf(one)}
	if reader.failure != nil {
		page.Hidden = reader.failure.Error()
	}
	return page, nil
}

// resumeRun asks for the resume of a run.
func (d *consoleDesk) resumeRun(ctx context.Context, r console.Request) (any, error) {
	run := &api.WorkflowRun{}
	if err := d.read(ctx, "run", r.Name, run); err != nil {
		return nil, err
	}
	if !run.Spec.IsExplicit() || run.Status.Phase.IsTerminal() || run.Spec.Cancel {
		return nil, &console.RefusalError{Status: http.StatusConflict, Message: fmt.Sprintf("run %s is not one to be resumed", r.Name)}
	}
	run, err := d.requestResume(ctx, run)
	if err != nil {
		return nil, refused(err)
	}
	return d.runPageOf(ctx, run), nil
}
