package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/ask"
	"github.com/apitomy/axiom-operator/cli/command"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// newTask is an open task, so many minutes old.
func newTask(namespace, name string, minutes int, how ...func(*api.HumanTask)) *api.HumanTask {
	task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute)),
	}}
	task.Spec.HumanContext.Title = "Ship " + name + "?"
	task.Status.Phase = api.TaskAwaitingInput
	for _, f := range how {
		f(task)
	}
	return task
}

// office is a cluster with tasks, to which ann comes.
func office(tasks ...client.Object) *cluster {
	away := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(tasks...).WithStatusSubresource(&api.HumanTask{}).
		WithIndex(&api.HumanTask{}, "status.phase", func(o client.Object) []string {
			task, _ := o.(*api.HumanTask)
			return []string{string(task.Status.Phase)}
		}).
		WithIndex(&api.WorkflowRun{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, isReview := o.(*authenticationv1.SelfSubjectReview); isReview {
				review.Status.UserInfo = authenticationv1.UserInfo{Username: "ann", Groups: []string{"leads"}}
				return nil
			}
			return c.Create(ctx, o, options...)
		}}).Build()
	return &cluster{WithWatch: away, namespace: "ns"}
}

// atNoon is an app whose answers and complaints are kept.
func atNoon(console ask.Console) (a *app, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	environment := command.Environment{Program: "axiom", Stdout: stdout, Stderr: stderr, Getenv: func(string) string { return "" }}
	return &app{App: command.New(environment), clock: clocktesting.NewFakeClock(noon), console: console}, stdout, stderr
}

func desks() []client.Object {
	return []client.Object{
		newTask("ns", "young", 1),
		newTask("ns", "old", 90, func(task *api.HumanTask) {
			task.Spec.RunRef = &api.TaskRunRef{Name: "release-7", Activation: "approve#1"}
			task.Spec.Assignees = &api.Assignees{Users: []string{"ann"}, Groups: []string{"owners"}}
			task.Spec.ExpiresAfter = "PT2H"
			task.Spec.HumanContext.Description = "Think\ntwice\x1b."
			task.Spec.Form = &api.TaskForm{Fields: []api.FormField{{Name: "approved", Type: "boolean", Required: true, Description: "Is it fit?"}, {Name: "note"}}}
		}),
		newTask("ns", "late", 90, func(task *api.HumanTask) { task.Spec.ExpiresAfter = "PT1H" }),
		newTask("ns", "done", 90, func(task *api.HumanTask) { task.Status.Phase = api.TaskCompleted }),
		newTask("ns", "closing", 90, func(task *api.HumanTask) { task.Status.Closed = &api.TaskClosed{Reason: api.CloseCancelled} }),
		newTask("ns", "theirs", 5, func(task *api.HumanTask) {
			task.Spec.Assignees = &api.Assignees{}
			task.Spec.ResponseSchema = &runtime.RawExtension{Raw: []byte(`{"type":"string"}`)}
		}),
		newTask("other", "far", 600),
	}
}

func TestInboxForPeople(t *testing.T) {
	a, out, _ := atNoon(nil)
	if err := a.showInbox(t.Context(), office(desks()...), search{}); err != nil {
		t.Fatal(err)
	}
	const want = `Ship old?
  waits for 90m, 30m left  run release-7 at approve#1  for ann, owners
  axiom answer old

Ship theirs?
  waits for 5m  for nobody
  axiom answer theirs

Ship young?
  waits for 60s
  axiom answer young
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	a, out, _ = atNoon(nil)
	if err := a.showInbox(t.Context(), office(), search{}); err != nil || out.String() != "nothing waits for an answer\n" {
		t.Errorf("got %v, %q", err, out.String())
	}
}

func TestInboxOfOnePersonEverywhere(t *testing.T) {
	a, out, _ := atNoon(nil)
	a.access.overrides.Context.Namespace = "ns"
	if err := a.showInbox(t.Context(), office(desks()...), search{everywhere: true, mine: true}); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(out.String()) {
		if words, isCommand := strings.CutPrefix(strings.TrimSpace(line), "axiom "); isCommand {
			commands = append(commands, words)
		}
	}
	if diff := cmp.Diff([]string{"answer far -n other", "answer old -n ns", "answer young -n ns"}, commands); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

func TestInboxWithAllThatIsAsked(t *testing.T) {
	tasks := inboxAnswer{isWide: true}
	a, _, _ := atNoon(nil)
	for _, object := range desks() {
		if task, _ := object.(*api.HumanTask); task.Name == "old" || task.Name == "theirs" {
			tasks.Tasks = append(tasks.Tasks, a.waitingTask(task, noon, false))
		}
	}
	p := &command.Page{}
	tasks.Tell(p)
	const want = "Ship old?\n  waits for 90m, 30m left  run release-7 at approve#1  for ann, owners\n    Think\n    twice\ufffd.\n" +
		"    - approved  boolean, required  Is it fit?\n    - note  string\n  axiom answer old\n\n" +
		"Ship theirs?\n  waits for 5m  for nobody\n    answer  {\"type\":\"string\"}\n  axiom answer theirs\n"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(tasks)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"fields":[{"name":"approved","type":"boolean"`, `"expiresAt":"2026-05-04T12:30:00Z"`, `"assignees":{}`, `"fields":[]`, `"responseSchema":{"type":"string"}`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in %s", want, data)
		}
	}
}

// typist is a console at which lines are typed.
type typist struct {
	lines  []string
	screen strings.Builder
}

func (p *typist) Say(text string) { p.screen.WriteString(text + "\n") }

func (p *typist) Line(context.Context, string) (string, error) {
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	text := p.lines[0]
	p.lines = p.lines[1:]
	return text, nil
}

func (p *typist) Secret(ctx context.Context, prompt string) (string, error) {
	return p.Line(ctx, prompt)
}

func TestAnswerIsAskedFor(t *testing.T) {
	asks := newTask("ns", "old", 9, func(task *api.HumanTask) {
		task.Spec.HumanContext.Details = []api.LabelledValue{{Label: "Risk", Value: "high"}}
		task.Spec.HumanContext.References = []api.LabelledURL{{Label: "Change", URL: "https://example.com/7"}}
		task.Spec.Form = &api.TaskForm{Fields: []api.FormField{{Name: "approved", Type: "boolean", Required: true}, {Name: "api-key"}}}
	})
	c := office(asks)
	person := &typist{lines: []string{"perhaps", "y", "sesame", "y"}}
	a, stdout, _ := atNoon(person)
	if err := a.interview(t.Context(), c, "old"); err != nil {
		t.Fatal(err)
	}
	task, err := c.getTask(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(task.Status.Answer.Raw); got != `{"api-key":"sesame","approved":true}` {
		t.Errorf("the answer is %s", got)
	}
	screen := person.screen.String()
	if want := "Ship old?\n  Risk: high\n  Change: https://example.com/7\n\napproved  yes or no, required\n"; !strings.HasPrefix(screen, want) {
		t.Errorf("it shows\n%s", screen)
	}
	if strings.Contains(screen+stdout.String(), "sesame") {
		t.Errorf("the secret is shown\n%s", screen)
	}
}

func TestAnswersThatAreNotAskedFor(t *testing.T) {
	by := func(task *api.HumanTask) {
		task.Status.Answer, task.Status.AnsweredBy = &runtime.RawExtension{Raw: []byte("{}")}, &api.Answerer{Username: "bob"}
	}
	for name, tc := range map[string]struct {
		task *api.HumanTask
		want string
	}{
		"of an answered task": {newTask("ns", "t", 90, by), "refused: answered by bob\n"},
		"of a closed task": {newTask("ns", "t", 90, func(task *api.HumanTask) {
			task.Status.Closed = &api.TaskClosed{Reason: api.CloseCancelled, Message: "run cancelled"}
		}), "refused: closed: Cancelled, run cancelled\n"},
		"of a task whose time passed": {newTask("ns", "t", 90, func(task *api.HumanTask) { task.Spec.ExpiresAfter = "PT90M" }), "refused: its time passed at 2026-05-04T12:00:00Z\n"},
	} {
		t.Run(name, func(t *testing.T) {
			person := &typist{}
			a, stdout, _ := atNoon(person)
			if err := a.interview(t.Context(), office(tc.task), "t"); !errors.Is(err, command.ErrVerdict) {
				t.Errorf("got %v, want a negative verdict", err)
			}
			if stdout.String() != tc.want || person.screen.Len() > 0 {
				t.Errorf("got %q and %q, want %q", stdout.String(), person.screen.String(), tc.want)
			}
		})
	}
	a, _, _ := atNoon(&typist{lines: []string{"y"}})
	c := office(newTask("ns", "t", 1))
	if err := a.interview(t.Context(), c, "t"); !errors.Is(err, ask.ErrLeft) {
		t.Errorf("got %v of a person who left", err)
	}
	if task, err := c.getTask(t.Context(), "t"); err != nil || task.Status.Answer != nil {
		t.Errorf("got %v, an answer %v", err, task.Status.Answer)
	}
	if err := a.interview(t.Context(), c, "gone"); err == nil || err.Error() != "there is no task gone in namespace ns" {
		t.Errorf("got %v of a task that is not there", err)
	}
}
