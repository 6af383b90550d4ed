package live

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

func newApp(program string) *app {
	return &app{App: command.New(command.Environment{Program: program, Getenv: func(string) string { return "" }})}
}

func newTurn(how func(status *api.TurnStatus)) *api.Turn {
	turn := &api.Turn{ObjectMeta: metav1.ObjectMeta{Name: "t", Namespace: "n"}}
	turn.Spec.CompositionRef = &api.LocalRef{Name: "triage"}
	how(&turn.Status)
	return turn
}

func told(a *app, turn *api.Turn) string {
	answer := answerOf(turn)
	answer.next = a.nextSteps(&answer)
	p := &command.Page{}
	answer.Tell(p)
	return p.String()
}

func TestHowATurnStands(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	for name, tc := range map[string]struct {
		status func(*api.TurnStatus)
		isGood bool
		want   string
	}{
		"fresh":   {func(*api.TurnStatus) {}, true, "turn t: Pending\n  axiom turn watch t  # follow it\n"},
		"at work": {func(s *api.TurnStatus) { s.State = api.TurnWorking }, true, "turn t: Working\n  axiom turn watch t  # follow it\n"},
		"done": {func(s *api.TurnStatus) {
			s.State, s.Reply, s.Diff, s.Ops = api.TurnAwaitingResolution, "I added\r\na wait.\n", "added nodes: wait-1\nedges changed", 2
			s.ItemWrites = []api.ItemWrite{{Type: api.ItemTool, Name: "find", Action: api.ItemCreated, Staged: true}, {Type: api.ItemTool, Name: "done", Action: api.ItemUpdated}}
			s.Problems = []api.Problem{{Severity: api.SeverityError, Path: "nodes[wait-1]", Code: "INVALID_WAIT_DURATION", Message: "too long"}, {Severity: "warning", Code: "W", Message: "hm"}}
		}, true, `I added
a wait.

added nodes: wait-1
edges changed

error: nodes[wait-1]: too long (INVALID_WAIT_DURATION)
warning: hm (W)
turn t: AwaitingResolution, 2 workflow changes and 1 item to be decided on
  axiom turn accept t  # apply it
  axiom turn reject t  # leave it
`},
		"with one change": {
			func(s *api.TurnStatus) { s.State, s.Ops = api.TurnAwaitingResolution, 1 }, true,
			"turn t: AwaitingResolution, 1 workflow change to be decided on\n  axiom turn accept t  # apply it\n  axiom turn reject t  # leave it\n",
		},
		"without changes": {func(s *api.TurnStatus) { s.State = api.TurnCompleted }, true, "turn t: Completed\n"},
		"applied":         {func(s *api.TurnStatus) { s.State, s.ResultRevision = api.TurnApplied, "sha256:a1" }, true, "turn t: Applied, the workflow is now sha256:a1\n"},
		"items applied":   {func(s *api.TurnStatus) { s.State = api.TurnApplied }, true, "turn t: Applied\n"},
		"rejected":        {func(s *api.TurnStatus) { s.State = api.TurnRejected }, false, "turn t: Rejected\n"},
		"stale": {
			func(s *api.TurnStatus) { s.State, s.Detail, s.Retry = api.TurnStale, "the draft changed", "t-retry" }, false,
			"turn t: Stale, the draft changed\n  axiom turn watch t-retry  # the agent was asked again\n",
		},
		"failed": {func(s *api.TurnStatus) {
			s.State, s.Detail, s.Notices = api.TurnFailed, "The agent pod was lost", []string{"The AI turn ended with an error"}
		}, false, "notice: The AI turn ended with an error\nturn t: Failed, The agent pod was lost\n"},
		"refused":   {func(s *api.TurnStatus) { s.State, s.Detail = api.TurnRefused, "turn u works" }, false, "turn t: Refused, turn u works\n"},
		"cancelled": {func(s *api.TurnStatus) { s.State = api.TurnCancelled }, false, "turn t: Cancelled\n"},
		"undone": {func(s *api.TurnStatus) {
			s.State = api.TurnUndone
			s.Undo = &api.UndoReport{Restored: []string{"tool/b", "tool/a"}, Removed: []string{"tool/c"}, Skipped: []string{"action-type/d"}, WorkflowRestorable: true, WorkflowRestored: true}
		}, true, "turn t: Undone\n  restored  workflow\n  restored  tool/a\n  restored  tool/b\n  removed   tool/c\n  skipped   action-type/d\n"},
		"undone by half": {func(s *api.TurnStatus) {
			s.State, s.Undo = api.TurnUndone, &api.UndoReport{ForClient: []string{"tool/a"}, WorkflowRestorable: true}
		}, true, "turn t: Undone\n  for you   workflow\n  for you   tool/a\n  axiom turn export t --undo  # what you applied is yours to take back\n"},
		"undone in vain": {func(s *api.TurnStatus) {
			s.State, s.Undo = api.TurnRejected, &api.UndoReport{Skipped: []string{"tool/a"}}
			s.Conditions = []metav1.Condition{condition(api.ConditionUndone, metav1.ConditionFalse, api.ReasonSkipped, "everything was edited since")}
		}, false, "turn t: Rejected\n  nothing was taken back: everything was edited since\n  skipped   tool/a\n"},
		"hostile": {func(s *api.TurnStatus) { s.State, s.Reply, s.Detail = api.TurnFailed, "a\x1b[2J", "b\nc\x1b" }, false, "a�[2J\n\nturn t: Failed, b c�\n"},
	} {
		t.Run(name, func(t *testing.T) {
			turn := newTurn(tc.status)
			if diff := cmp.Diff(tc.want, told(newApp("axiom"), turn)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got := answerOf(turn).isGood(); got != tc.isGood {
				t.Errorf("is good: %v", got)
			}
		})
	}
}

func TestNextStepsAreThoseOfTheCaller(t *testing.T) {
	a := newApp("/opt/kubectl-axiom")
	a.access.overrides.Context.Namespace = "team-a"
	got := told(a, newTurn(func(*api.TurnStatus) {}))
	if want := "turn t: Pending\n  kubectl axiom turn watch t -n team-a  # follow it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Programs find every member, whatever the turn, and no list is null.
func TestAnswersAsJSON(t *testing.T) {
	data, err := json.Marshal(answerOf(newTurn(func(s *api.TurnStatus) { s.Undo = &api.UndoReport{} })))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"turn":"t","namespace":"n","composition":"triage","session":"triage-agent","state":"Pending","reason":"","detail":"","reply":"",` +
		`"baseRevision":"","resultRevision":"","operations":0,"summary":"","diff":null,"items":[],"problems":[],"notices":[],"retry":"",` +
		`"undo":{"restored":[],"removed":[],"skipped":[],"forClient":[],"workflowRestorable":false,"workflowRestored":false,"message":""},"usage":null}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	data, err = json.Marshal(outcome{answerOf(newTurn(func(s *api.TurnStatus) { s.State = api.TurnApplied }))})
	if err != nil || !json.Valid(data) || data[0] != '{' || !cmp.Equal(keysOf(t, data), keysOf(t, []byte(want))) {
		t.Errorf("an outcome is another thing: %s, %v", data, err)
	}
}

func keysOf(t *testing.T, data []byte) map[string]bool {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for key := range object {
		keys[key] = true
	}
	return keys
}
