package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// conditionsOf a status in words: type, status, reason and message.
func conditionsOf(status *api.WorkflowRunStatus) map[string]string {
	words := map[string]string{}
	for _, c := range status.Conditions {
		words[c.Type] = strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
	}
	return words
}

// waitingFlow asks a person and rests at the same time.
var waitingFlow = strings.NewReplacer("type: action", "type: wait", "actionType: work", "duration: PT3H").Replace(runTestFlowUnhurried)

func TestRunConditions(t *testing.T) {
	t.Parallel()
	const pinned = "True Pinned snapshot flow-7c9f"
	explicit := func(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit }
	for name, tc := range map[string]struct {
		status *api.WorkflowRunStatus
		phase  api.RunPhase
		want   map[string]string
	}{
		"an action is open": {
			statusAfter(t, startedState(t, runTestFlow), runPlan{}), api.RunRunning, map[string]string{
				"Accepted": pinned, "Waiting": "False Running", "Reconciling": "True Progressing", "Stalled": "False NotStalled", "Ready": "False Running",
			},
		},
		"a pod does not start": {
			statusAfter(t, stuckState(t), runPlan{}), api.RunRunning, map[string]string{
				"Accepted": pinned, "Waiting": "False Running", "Reconciling": "True Progressing work#1: Unschedulable",
				"Stalled": "False NotStalled", "Ready": "False Running work#1: Unschedulable",
			},
		},
		"several things are waited for": {
			statusAfter(t, startedState(t, waitingFlow), runPlan{}), api.RunWaiting, map[string]string{
				"Accepted": pinned, "Waiting": "True Multiple ask#1, work#1, rest#1", "Reconciling": "True Progressing",
				"Stalled": "False NotStalled", "Ready": "False Waiting",
			},
		},
		"a resume is waited for": {
			statusAfter(t, startedState(t, waitingFlow, explicit), runPlan{held: []string{"rest#1"}}), api.RunSuspended, map[string]string{
				"Accepted": pinned, "Waiting": "True Resume ask#1, work#1, rest#1; answered: rest#1", "Reconciling": "True Progressing",
				"Stalled": "False NotStalled", "Ready": "False Suspended",
			},
		},
		"it was cancelled": {
			statusAfter(t, endedState(t, "cancel"), runPlan{}), api.RunCancelled, map[string]string{
				"Accepted": pinned, "Waiting": "False Cancelled", "Reconciling": "False Cancelled", "Stalled": "False NotStalled", "Ready": "False Cancelled",
			},
		},
		"it failed": {
			statusAfter(t, endedState(t, "fail"), runPlan{}), api.RunFailed, map[string]string{
				"Accepted": pinned, "Waiting": "False Failed", "Reconciling": "False Failed",
				"Stalled": "True Failed EXIT_CODE in EXECUTION at work#1", "Ready": "False Failed EXIT_CODE in EXECUTION at work#1",
			},
		},
		"it waits for its definition": {
			statusAfter(t, &runState{run: testRun(), now: runTestNow}, runPlan{verdict: awaitDefinition("m")}), api.RunPending, map[string]string{
				"Accepted": "False DefinitionNotFound m", "Waiting": "False Pending", "Reconciling": "True Progressing m",
				"Stalled": "False NotStalled", "Ready": "False Pending m",
			},
		},
		"it was refused": {
			statusAfter(t, &runState{run: testRun(), now: runTestNow}, runPlan{verdict: refuseRun(api.ReasonInvalidInputs, "m")}), api.RunFailed, map[string]string{
				"Accepted": "False InvalidInputs m", "Waiting": "False Failed", "Reconciling": "False Failed",
				"Stalled": "True Failed m", "Ready": "False Failed m",
			},
		},
		"its status was lost": {
			statusAfter(t, &runState{run: testRun(), now: runTestNow}, runPlan{isLost: true}), api.RunPending, map[string]string{
				"Accepted": "Unknown StatusLost", "Waiting": "False Pending", "Reconciling": "False StatusLost",
				"Stalled": "True StatusLost the run has children but its status is gone; it does not start over",
				"Ready":   "False StatusLost the run has children but its status is gone; it does not start over",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, conditionsOf(tc.status)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if tc.status.Phase != tc.phase {
				t.Errorf("got phase %s, want %s", tc.status.Phase, tc.phase)
			}
			for _, c := range tc.status.Conditions {
				if c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(runTestNow) {
					t.Errorf("%s: generation %d at %v", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
		})
	}
}

func statusAfter(t *testing.T, state *runState, plan runPlan) *api.WorkflowRunStatus {
	t.Helper()
	status, _, err := nextRunStatus(state, plan)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func stuckState(t *testing.T) *runState {
	t.Helper()
	state := startedState(t, runTestFlow)
	pod := testPod(condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "no nodes"))
	pod.Name = childOf(t, state.run, "work#1")
	return state.withChildren(pod)
}

// endedState is a run that was cancelled or whose script failed.
func endedState(t *testing.T, how string) *runState {
	t.Helper()
	state := startedState(t, runTestFlow)
	step := engine.Cancel(state.instance, "r", runTestNow)
	if how == "fail" {
		at := engine.Address{Activation: "work#1", Attempt: 1}
		step = engine.Fail(t.Context(), state.definition.engine, state.instance, at, engine.Failure{Code: codeExitCode, Message: "secret"}, runTestNow)
	}
	var plan runPlan
	plan.add(state.definition, step)
	commitTo(t, state, plan)
	return state
}

func TestANextStatusThatSaysTheSame(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]*runState{
		"open": startedState(t, runTestFlow), "ended": endedState(t, "fail"),
	} {
		state.now = runTestNow.Add(time.Minute)
		again := statusAfter(t, state, runPlan{})
		if !apiequality.Semantic.DeepEqual(&state.run.Status, again) {
			t.Errorf("%s (-before +after):\n%s", name, cmp.Diff(&state.run.Status, again))
		}
	}
}

func TestAFinishedRunOnlyObservesGenerations(t *testing.T) {
	t.Parallel()
	state := endedState(t, "fail")
	before := state.run.Status.DeepCopy()
	state.run.Generation = 4
	after := statusAfter(t, state, runPlan{})
	if after.ObservedGeneration != 4 || after.Conditions[0].ObservedGeneration != 4 {
		t.Errorf("generation 4 was not observed: %+v", after)
	}
	after.ObservedGeneration = 3
	for i := range after.Conditions {
		after.Conditions[i].ObservedGeneration = 3
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
}

func TestStartWritesIntentsAndNoReceipts(t *testing.T) {
	t.Parallel()
	status := startedState(t, runTestFlow).run.Status
	got := map[string]*api.ChildRef{}
	for _, branch := range status.Instance.ActiveBranches {
		got[branch.Activation] = branch.Child
	}
	run := testRun()
	want := map[string]*api.ChildRef{
		"ask#1":  {Kind: childHumanTask, Name: runChildName(run, "ask#1")},
		"work#1": {Kind: childPod, Name: runAttemptName(run, "work#1", 1)},
		"rest#1": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
	if status.CurrentNode != "ask, work, rest" || status.StartedAt == nil || status.Definition.Revision != "sha256:1" {
		t.Errorf("got %+v", status)
	}
}

func TestReceiptsRideOnAWrite(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{Name: childOf(t, state.run, "ask#1"), UID: "task-uid"}}
	state.withChildren(task)
	same := statusAfter(t, state, runPlan{})
	if !apiequality.Semantic.DeepEqual(&state.run.Status, same) {
		t.Error("a receipt alone makes a write")
	}
	setReceipts(same, state.children)
	if got := same.Instance.ActiveBranches[0].Child.UID; got != "task-uid" {
		t.Errorf("got receipt %q", got)
	}
}

func TestStatusStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	instance := state.instance
	instance.Context = engine.Values{}
	for i := range 400 {
		instance.Context[fmt.Sprintf("k%d", i)] = strings.Repeat("x", 3000)
	}
	status, pending, err := nextRunStatus(state, runPlan{instance: &instance})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(status)
	if err != nil || len(data) > maxRunStatus {
		t.Errorf("status has %d bytes (error %v), the limit is %d", len(data), err, maxRunStatus)
	}
	if len(status.Instance.ContextRefs) != 400 || len(pending) != 1 {
		t.Errorf("%d references to %d values, want 400 to 1: equal values are stored once", len(status.Instance.ContextRefs), len(pending))
	}
}

func TestHistoryPagesHaveNoGap(t *testing.T) {
	t.Parallel()
	var history api.RunHistory
	shelf := &runShelf{limit: content.MaxInline}
	seq := 0
	for _, count := range []int{1, 63, 1, 40, 0, 120, 7} {
		var closed []engine.Entry
		for range count {
			seq++
			closed = append(closed, engine.Entry{Seq: seq, Activation: fmt.Sprintf("n#%d", seq), Outcome: engine.OutcomeCompleted})
		}
		if err := extendHistory(&history, closed, shelf); err != nil {
			t.Fatal(err)
		}
		if len(history.Entries) > maxRunHistory || history.Total != int64(seq) {
			t.Fatalf("%d entries of %d are left in the status", len(history.Entries), history.Total)
		}
	}
	byName := map[string][]byte{}
	for digest, data := range shelf.pending {
		byName[content.Name(digest)] = data
	}
	next := history.Total
	entries := history.Entries
	for name := history.Page; ; {
		for _, entry := range slices.Backward(entries) {
			if entry.Seq != next {
				t.Fatalf("got entry %d, want %d", entry.Seq, next)
			}
			next--
		}
		if name == "" {
			break
		}
		var page api.HistoryPage
		if err := json.Unmarshal(byName[name], &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) != runHistoryPage || page.From != page.Entries[0].Seq || page.To != page.Entries[runHistoryPage-1].Seq {
			t.Fatalf("page %d to %d has %d entries", page.From, page.To, len(page.Entries))
		}
		entries, name = page.Entries, page.Previous
	}
	if next != 0 {
		t.Errorf("entries up to %d are lost", next)
	}
}

func TestInstanceGoesThroughAStatusWithoutLoss(t *testing.T) {
	t.Parallel()
	state := startedState(t, runTestFlow)
	in := state.instance
	in.Context = engine.Values{"int": int64(9007199254740993), "double": 1.5, "null": nil, "list": []any{int64(1), "x"}}
	in.Consumed = map[string]engine.Consumed{"e": {IDs: []string{"a/1"}, Arrivals: []time.Time{runTestNow}, Floor: runTestNow}}
	in.JoinArrivals = map[string][]string{"join": {"e4"}}
	in.ActiveBranches[0].LastError = &engine.Failure{Phase: engine.PhaseExecution, Code: codeExitCode, Node: "ask"}
	in.ActiveBranches[0].NotBefore = runTestNow.Add(time.Nanosecond)
	in.ActiveBranches[0].Input = engine.Values{"a": map[string]any{"b": false}}
	stored, err := statusInstance(in, &runShelf{limit: content.MaxInline})
	if err != nil {
		t.Fatal(err)
	}
	got, err := runInstance(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, got); diff != "" {
		t.Errorf("instance (-before +after):\n%s", diff)
	}
}

func TestLargeValuesLeaveTheStatusByKey(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", content.MaxInline)
	shelf := &runShelf{limit: content.MaxInline}
	kept := map[string]engine.ContextRef{"kept": {Digest: "sha256:0", ConfigMap: "c", Bytes: 5000}}
	inline, refs, err := shelf.placeContext(engine.Values{"small": int64(1), "large": large}, kept)
	if err != nil {
		t.Fatal(err)
	}
	data, err := encodeRunValue(large)
	if err != nil {
		t.Fatal(err)
	}
	digest := content.Digest(data)
	want := map[string]api.ValueRef{
		"large": {Digest: digest, ConfigMap: content.Name(digest), Bytes: int64(len(large) + 2)},
		"kept":  {Digest: "sha256:0", ConfigMap: "c", Bytes: 5000},
	}
	if diff := cmp.Diff(want, refs); diff != "" || string(inline.Raw) != `{"small":1}` {
		t.Errorf("inline %s, references (-want +got):\n%s", inline.Raw, diff)
	}
	if string(shelf.pending[digest]) != string(data) {
		t.Error("the value is not to be stored")
	}
	again := &runShelf{limit: content.MaxInline, stored: map[string]api.ValueRef{digest: refs["large"]}}
	if _, _, err := again.placeContext(engine.Values{"large": large}, nil); err != nil || len(again.pending) > 0 {
		t.Errorf("a value that is stored is stored again (error %v)", err)
	}
}
