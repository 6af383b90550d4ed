package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// runTestNow is the time it is in tests of runs.
var runTestNow = time.Date(2026, 3, 2, 9, 14, 7, 0, time.UTC)

var runTestExpressions = expression.NewCache()

// runTestFlow opens one activation of each sort that runs have.
const runTestFlow = `
id: flow
name: Flow
nodes:
- {id: start, type: start, name: Start}
- {id: ask, type: human-task, name: Ask, config: {outputs: [{name: "n", type: number, required: true}], timeout: P1D}}
- {id: work, type: action, name: Work, config: {actionType: work, timeout: PT1H}}
- {id: rest, type: wait, name: Rest, config: {duration: PT2H}}
- {id: join, type: wait, name: Join, config: {duration: PT0S}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: start, target: work}
- {id: e3, source: start, target: rest}
- {id: e4, source: ask, target: join}
- {id: e5, source: work, target: join}
- {id: e6, source: rest, target: join}
- {id: e7, source: join, target: done}
`

func testRun(change ...func(*api.WorkflowRun)) *api.WorkflowRun {
	run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "flow-1", UID: "5b1e2c34-0000-4000-8000-000000000001", Generation: 3,
		CreationTimestamp: metav1.NewTime(runTestNow),
	}}
	for _, f := range change {
		f(run)
	}
	return run
}

func testDefinition(t *testing.T, text string) *runDefinition {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonvalue.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	d := &runDefinition{Snapshot: &Snapshot{Name: "flow-7c9f", Revision: "sha256:1", Workflow: doc.(map[string]any)}}
	d.engine, d.problems = engine.New(d.Workflow, runTestExpressions)
	return d
}

// startedState is a run of the flow that has committed its start.
func startedState(t *testing.T, text string, change ...func(*api.WorkflowRun)) *runState {
	t.Helper()
	state := &runState{run: testRun(change...), now: runTestNow, definition: testDefinition(t, text)}
	plan, err := decideStart(t.Context(), state)
	if err != nil || plan.verdict != nil {
		t.Fatalf("start: verdict %+v, error %v", plan.verdict, err)
	}
	commitTo(t, state, plan)
	return state
}

// commitTo makes the plan's status the run's own.
func commitTo(t *testing.T, state *runState, plan runPlan) {
	t.Helper()
	status, _, err := nextRunStatus(state, plan)
	if err != nil {
		t.Fatal(err)
	}
	state.run = state.run.DeepCopy()
	state.run.Status = *status
	if status.Instance == nil {
		return
	}
	if state.instance, err = runInstance(status.Instance); err != nil {
		t.Fatal(err)
	}
}

func (s *runState) withChildren(objects ...any) *runState {
	s.children = runChildren{tasks: map[string]*api.HumanTask{}, pods: map[string]*corev1.Pod{}, configs: map[string]*corev1.ConfigMap{}}
	for _, object := range objects {
		switch o := object.(type) {
		case *api.HumanTask:
			s.children.tasks[o.Name] = o
		case *corev1.Pod:
			s.children.pods[o.Name] = o
		case *corev1.ConfigMap:
			s.children.configs[o.Name] = o
		}
	}
	return s
}

// childOf is the name that the status promises for an activation.
func childOf(t *testing.T, run *api.WorkflowRun, activation string) string {
	t.Helper()
	branch := runOpenBranch(run, activation)
	if branch == nil {
		t.Fatalf("%s is not open in %+v", activation, run.Status.Instance)
	}
	return branch.Child.Name
}

// runTestFlowUnhurried is the flow whose action has all the time in the world.
var runTestFlowUnhurried = strings.Replace(runTestFlow, ", timeout: PT1H", "", 1)
