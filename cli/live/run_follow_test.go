package live

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

// releaseDraft is the draft that newRelease executes.
const releaseDraft = `{"workflow":{"id":"release","name":"Release","nodes":[
	{"id":"start","type":"start","name":"Start","config":{"inputs":[]}},
	{"id":"build","type":"action","name":"Build","config":{"actionType":"build"}},
	{"id":"approve","type":"human-task","name":"Approve"},
	{"id":"end","type":"end","name":"End"}],
  "edges":[{"id":"e1","source":"start","target":"build"},{"id":"e2","source":"build","target":"approve"},{"id":"e3","source":"approve","target":"end"}]},
 "items":[{"type":"workflow","name":"old","contentRevision":"","author":"user","username":"eve"},
  {"type":"workflow","name":"release","contentRevision":"sha256:1","author":"ai","username":"bob","turn":"release-x7"}]}`

// newRelease is a run of a composition that asks for an approval.
func newRelease(how ...func(*api.WorkflowRun)) *api.WorkflowRun {
	run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "release-7", Annotations: map[string]string{api.AnnotationRequestedBy: "ann"}, CreationTimestamp: metav1.NewTime(noon),
	}}
	run.Spec.CompositionRef.Name = "release"
	run.Status = api.WorkflowRunStatus{
		Phase: api.RunWaiting, Definition: &api.RunDefinition{Snapshot: "release-1", Revision: "sha256:1"},
		Conditions: []metav1.Condition{{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Message: "waits for a person"}},
		History: api.RunHistory{Total: 3, Entries: []api.HistoryEntry{
			{Seq: 1, Activation: "start#1", Node: "start", Type: "start", Outcome: "Completed"},
			{Seq: 2, Activation: "build#1", Node: "build", Name: "Build", Type: "action", Edge: "e1", Outcome: "Failed", Error: &api.RunFailure{Phase: "execution", Code: "EXIT_CODE", Message: "exit code 2"}},
			{Seq: 3, Activation: "build#2", Node: "build", Name: "Build", Type: "action", Edge: "e1", Outcome: "Completed"},
		}},
		Instance: &api.RunInstance{Status: "waiting", ActiveBranches: []api.ActiveBranch{{
			Node: "approve", Activation: "approve#1", Edge: "e2", EnteredOn: "2026-05-04T12:01:00Z", Title: "Ship it?", Child: &api.ChildRef{Kind: "HumanTask", Name: "release-7-a"},
		}}},
	}
	for _, f := range how {
		f(run)
	}
	return run
}

func releaseOffice(run *api.WorkflowRun, more ...client.Object) *cluster {
	snapshot := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "release-1"}, Data: runtime.RawExtension{Raw: []byte(releaseDraft)}}
	return office(append([]client.Object{run, snapshot}, more...)...)
}

func answered(by string) func(*api.HumanTask) {
	return func(task *api.HumanTask) {
		at := metav1.NewTime(noon.Add(3 * time.Minute))
		task.Status.Answer, task.Status.AnsweredBy, task.Status.AnsweredAt = &runtime.RawExtension{Raw: []byte("{}")}, &api.Answerer{Username: by}, &at
	}
}

func TestExplanationOfAQuestion(t *testing.T) {
	run := newRelease()
	a, out, complaints := atNoon(nil)
	x := a.explain(t.Context(), releaseOffice(run, newTask("ns", "release-7-a", 1, func(task *api.HumanTask) { task.Spec.ExpiresAfter = "PT2H" })), run)
	if err := a.Show(x); err != nil {
		t.Fatal(err)
	}
	const want = `run release-7: Waiting
  of composition release at sha256:1
  waits for a person

waits for
  approve#1  HumanTask  Ship release-7-a?, until 2026-05-04T13:59:00Z  since 2026-05-04T12:01:00Z

failures
  build#1  EXIT_CODE  exit code 2

people
  asked     ann  2026-05-04T12:00:00Z
  accepted  bob    the workflow of turn release-x7

next
  axiom answer release-7-a  # answer it
`
	if diff := cmp.Diff(want, out.String()); diff != "" || complaints.Len() > 0 {
		t.Errorf("%s mismatch (-want +got):\n%s", complaints, diff)
	}
}

func TestExplanationOfWhatPeopleDid(t *testing.T) {
	run := newRelease(func(run *api.WorkflowRun) {
		run.Annotations = map[string]string{
			api.AnnotationRequestedBy: "operator", api.AnnotationTrigger: "on-merge", api.AnnotationResumedBy: "dora", api.AnnotationCancelledBy: "eve",
		}
		run.Spec.ResumePolicy, run.Spec.ResumeRequests, run.Status.Phase = api.ResumeExplicit, 2, api.RunSuspended
		run.Status.ObservedResumeRequests = 1
		run.Status.Executions = []api.RunExecution{
			{Number: 1, Reason: api.ExecutionStarted, StartedAt: metav1.NewTime(noon)},
			{Number: 2, Reason: api.ExecutionResumed, RequestedBy: "carl", StartedAt: metav1.NewTime(noon.Add(time.Minute))},
		}
		run.Status.History.Entries = append(run.Status.History.Entries, api.HistoryEntry{
			Seq: 4, Activation: "ask#1", Node: "ask", Type: "human-task", Outcome: "Completed", By: "bob", CompletedOn: "2026-05-04T12:00:30Z",
		})
	})
	a, _, _ := atNoon(nil)
	x := a.explain(t.Context(), releaseOffice(run, newTask("ns", "release-7-a", 1, answered("bob"))), run)
	want := []deed{
		{"asked", "operator", "2026-05-04T12:00:00Z", "trigger on-merge"},
		{"accepted", "bob", "", "the workflow of turn release-x7"},
		{"answered", "bob", "2026-05-04T12:00:30Z", "ask#1"},
		{"resumed", "carl", "2026-05-04T12:01:00Z", "execution 2"},
		{"answered", "bob", "2026-05-04T12:03:00Z", "approve#1"},
		{"resumed", "dora", "", "request 2"},
		{"cancelled", "eve", "", ""},
	}
	if diff := cmp.Diff(want, x.Deeds); diff != "" {
		t.Errorf("deeds mismatch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]nextStep{{"axiom resume release-7", "go on with what was answered"}}, x.Next); diff != "" {
		t.Errorf("next mismatch (-want +got):\n%s", diff)
	}
}

func TestObstacles(t *testing.T) {
	key := "pr-7"
	at := metav1.NewTime(noon)
	intents := []api.RunIntent{
		{Activation: "Plan[1]/ask#1", Action: "human-task", Task: "t"},
		{Activation: "Plan[1]/think#1", Action: "prompt", Session: "s", Deadline: &at},
		{Activation: "Plan[1]/push#1", Action: "git.push", Attempts: 2, Reason: "network"},
	}
	for name, tc := range map[string]struct {
		branch api.ActiveBranch
		want   obstacle
	}{
		"an attempt": {
			api.ActiveBranch{Activation: "build#1", Attempt: 2, NotBefore: "2026-05-04T12:00:00Z", LastError: &api.RunFailure{Code: "EXIT_CODE"}},
			obstacle{For: "Action", Detail: "attempt 2, the one before failed with EXIT_CODE, not before 2026-05-04T12:00:00Z"},
		},
		"an event":    {api.ActiveBranch{Activation: "merged#1", SubscriptionKey: &key}, obstacle{For: "Event", Detail: `an event with the key "pr-7"`}},
		"time":        {api.ActiveBranch{Activation: "rest#1", Deadline: "2026-05-04T13:00:00Z"}, obstacle{For: "Timer", Until: "2026-05-04T13:00:00Z"}},
		"a call":      {api.ActiveBranch{Activation: "Plan#1"}, obstacle{For: "Component"}},
		"a person":    {api.ActiveBranch{Activation: "ask#1", Title: "Well?"}, obstacle{For: "HumanTask", Detail: "Well?", Task: "t"}},
		"an agent":    {api.ActiveBranch{Activation: "think#1"}, obstacle{For: "Prompt", Detail: "prompt, session s", Until: "2026-05-04T12:00:00Z"}},
		"a mutation":  {api.ActiveBranch{Activation: "push#1"}, obstacle{For: "Effect", Detail: "git.push, 2 attempts, network"}},
		"a free task": {api.ActiveBranch{Activation: "t#1", Child: &api.ChildRef{Kind: "HumanTask", Name: "x"}}, obstacle{For: "HumanTask", Task: "x"}},
	} {
		tc.want.Activation = "Plan[1]/" + tc.branch.Activation
		if diff := cmp.Diff(tc.want, obstacleOf("Plan[1]/", &tc.branch, intents)); diff != "" {
			t.Errorf("%s mismatch (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatLeadsOn(t *testing.T) {
	a, _, _ := atNoon(nil)
	for name, tc := range map[string]struct {
		x    explanation
		want []nextStep
	}{
		"a failure":        {explanation{Run: "r", Phase: api.RunFailed, Failures: []api.RunFailure{{}, {Activation: "a#1"}}}, []nextStep{{"axiom run show r --activation 'a#1'", "see what it was asked, and gave"}}},
		"nothing to do":    {explanation{Run: "r", Phase: api.RunCompleted}, nil},
		"work":             {explanation{Run: "r", Phase: api.RunRunning, WaitsFor: []obstacle{{For: "Action"}}}, []nextStep{{"axiom run watch r", "follow it"}}},
		"open questions":   {explanation{Run: "r", Phase: api.RunSuspended, WaitsFor: []obstacle{{Task: "t"}}}, []nextStep{{"axiom answer t", "answer it"}, {"axiom resume r", "then go on"}}},
		"a bare resume":    {explanation{Run: "r", Phase: api.RunSuspended}, []nextStep{{"axiom resume r", "go on with what was answered"}}},
		"a nameless error": {explanation{Run: "r", Phase: api.RunFailed, Failures: []api.RunFailure{{Code: "DEADLINE"}}}, nil},
	} {
		if diff := cmp.Diff(tc.want, a.nextOf(&tc.x)); diff != "" {
			t.Errorf("%s mismatch (-want +got):\n%s", name, diff)
		}
	}
}

func TestExitCodesOfAWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		run  *api.WorkflowRun
		task *api.HumanTask
		w    runWatch
		want int
	}{
		"completed":   {run: newRelease(func(run *api.WorkflowRun) { run.Status.Phase = api.RunCompleted }), want: 0},
		"failed":      {run: newRelease(func(run *api.WorkflowRun) { run.Status.Phase = api.RunFailed }), want: 1},
		"cancelled":   {run: newRelease(func(run *api.WorkflowRun) { run.Status.Phase = api.RunCancelled }), w: runWatch{toEnd: true}, want: 3},
		"asks":        {run: newRelease(), task: newTask("ns", "release-7-a", 1), want: 4},
		"suspended":   {run: newRelease(func(run *api.WorkflowRun) { run.Status.Phase = api.RunSuspended }), want: 4},
		"to the end":  {run: newRelease(), task: newTask("ns", "release-7-a", 1), w: runWatch{toEnd: true, timeout: time.Nanosecond}, want: 5},
		"just given":  {run: newRelease(), task: newTask("ns", "release-7-a", 1, answered("bob")), w: runWatch{timeout: time.Nanosecond}, want: 5},
		"just begun":  {run: newRelease(), w: runWatch{timeout: time.Nanosecond}, want: 5},
		"resumes now": {run: newRelease(func(run *api.WorkflowRun) { run.Status.Phase, run.Spec.ResumeRequests = api.RunSuspended, 1 }), w: runWatch{timeout: time.Nanosecond}, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			var more []client.Object
			if tc.task != nil {
				more = append(more, tc.task)
			}
			a, out, _ := atNoon(nil)
			a.clock = &advancing{FakeClock: clocktesting.NewFakeClock(noon)}
			err := a.followRun(t.Context(), releaseOffice(tc.run, more...), tc.run, tc.w)
			if got := codeOf(err); got != tc.want {
				t.Errorf("%v: exit code %d, want %d", err, got, tc.want)
			}
			if !strings.HasPrefix(out.String(), "run release-7: "+string(tc.run.Status.Phase)+"\n") {
				t.Errorf("it tells\n%s", out.String())
			}
		})
	}
}

// advancing is a clock on which a second passes whenever somebody looks.
type advancing struct{ *clocktesting.FakeClock }

func (c *advancing) Since(since time.Time) time.Duration {
	c.Step(time.Second)
	return c.FakeClock.Since(since)
}

func codeOf(err error) int {
	switch {
	case err == nil:
		return command.ExitOK
	case errors.Is(err, command.ErrVerdict):
		return command.ExitVerdict
	}
	for _, code := range []int{exitCancelled, exitWaits, exitTimeout} {
		if errors.Is(err, command.Exit(code)) {
			return code
		}
	}
	return command.ExitUsage
}

func TestProgressOfARun(t *testing.T) {
	a, _, stderr := atNoon(nil)
	p := a.newRunProgress("release-7")
	run := newRelease(func(run *api.WorkflowRun) { run.Status.Phase = "" })
	run.Status.Instance, run.Status.History = nil, api.RunHistory{}
	p.see(run)
	p.see(newRelease())
	p.see(newRelease()) // nothing is told twice
	p.see(newRelease(func(run *api.WorkflowRun) {
		run.Status.Phase = api.RunRunning
		run.Status.History = api.RunHistory{Total: 6, Entries: []api.HistoryEntry{
			{Seq: 5, Activation: "approve#1", Name: "Approve\x1b", Outcome: "Completed", By: "ann"}, {Seq: 6, Activation: "rest#1", Outcome: "TimedOut"},
		}}
		run.Status.Instance.ActiveBranches = []api.ActiveBranch{{Activation: "build#3", Attempt: 2}}
		run.Status.Frames = []api.RunFrame{{Path: "Plan[1]", Instance: api.RunInstance{ActiveBranches: []api.ActiveBranch{{Activation: "ask#1", Title: "Well?"}}}}}
	}))
	p.see(newRelease(func(run *api.WorkflowRun) { run.Status.Phase, run.Status.History.Total = api.RunCompleted, 6 }))
	const want = `run release-7: Pending
  ✓ start#1  completed
  ✗ build#1  Build  failed EXIT_CODE
  ✓ build#2  Build  completed
  ▸ approve#1  Ship it?
run release-7: Waiting
  … 1 more activation
  ✓ approve#1  Approve�  completed by ann
  – rest#1  timedout
  ▸ build#3, attempt 2
  ▸ Plan[1]/ask#1  Well?
run release-7: Running
run release-7: Completed
`
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

func TestDrawingOfARun(t *testing.T) {
	run := newRelease()
	a, out, _ := atNoon(nil)
	if err := a.drawRun(t.Context(), releaseOffice(run), run, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"class n0,n1 done\n", "class n2 open\n", "linkStyle 0,1 stroke:", `legend_failed["failed"]:::failed`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "class n3 ") {
		t.Errorf("the end is marked\n%s", out.String())
	}
	run.Status.Definition = nil
	if err := a.drawRun(t.Context(), releaseOffice(run), run, ""); err == nil || !strings.Contains(err.Error(), "has not begun") {
		t.Errorf("got %v of a run that has not begun", err)
	}
	if err := a.drawRun(t.Context(), releaseOffice(run), run, "Plan[1]"); err == nil || err.Error() != "run release-7 has no call Plan[1]" {
		t.Errorf("got %v of a call that is not there", err)
	}
}

func TestWhatARunPassed(t *testing.T) {
	run := newRelease(func(run *api.WorkflowRun) {
		run.Status.Instance.Failure = &api.RunFailure{Activation: "approve#1"}
		run.Status.Frames = []api.RunFrame{{Path: "Plan[1]", Component: "Plan", Instance: api.RunInstance{ActiveBranches: []api.ActiveBranch{{Node: "ask", Edge: "f2"}}}}}
	})
	entries := slices.Concat(run.Status.History.Entries, []api.HistoryEntry{
		{Activation: "Plan[1]/think#1", Node: "think", Edge: "f1", Outcome: "TimedOut"},
		{Activation: "Plan[1]/rest#1", Node: "rest", Edge: "f3", Outcome: "Cancelled"},
		{Activation: "Plan#1", Node: "Plan", Outcome: "Completed", Call: &api.HistoryCall{Path: "Plan[1]", Component: "Plan"}},
	})
	nodes, _ := passed(run, entries, "")
	if nodes["approve"] != "failed" || nodes["think"] != "" || nodes["Plan"] != "" {
		t.Errorf("got %v", nodes)
	}
	nodes, edges := passed(run, entries, "Plan[1]")
	if nodes["think"] != "done" || nodes["ask"] != "open" || nodes["rest"] != "" || edges["f1"] != "done" || edges["f2"] != "done" {
		t.Errorf("got %v, %v", nodes, edges)
	}
	if componentOf(run, entries, "Plan[1]") != "Plan" || componentOf(run, entries, "Plan[2]") != "" {
		t.Error("the component of a call is not found")
	}
}
