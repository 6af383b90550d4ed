package live

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

// hears gives an app whose answers are kept.
func hears() (*app, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &app{App: command.New(command.Environment{Program: "axiom", Stdout: out, Stderr: out, Getenv: func(string) string { return "" }})}, out
}

func (d *desk) stored() *api.WorkflowRun {
	d.t.Helper()
	run, err := d.cluster.getRun(d.t.Context(), d.run.Name)
	if err != nil {
		d.t.Fatal(err)
	}
	return run
}

func TestEachResumeCounts(t *testing.T) {
	d := newDesk(t)
	left := 2
	d.cluster.WithWatch = interceptor.NewClient(d.cluster.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if left > 0 { // somebody else comes first
				left--
				other := &api.WorkflowRun{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), other); err != nil {
					return err
				}
				other.Spec.ResumeRequests++
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	a, out := hears()
	if err := a.resumeRun(t.Context(), d.cluster, "r"); err != nil {
		t.Fatal(err)
	}
	if got := d.stored().Spec.ResumeRequests; got != 3 {
		t.Errorf("%d resumes are asked for, want 3", got)
	}
	if want := "asked for resume 3 of run r, which is Pending\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestResumeTellsOfOpenQuestions(t *testing.T) {
	d := newDesk(t)
	answered, open := &api.HumanTask{}, &api.HumanTask{}
	answered.Namespace, answered.Name, open.Namespace, open.Name = "ns", "t1", "ns", "t2"
	answered.Status.AnsweredBy = &api.Answerer{Username: "ann"}
	d.run.Status.Intents = []api.RunIntent{{Activation: "a#1", Task: "t1"}, {Activation: "b#1", Task: "t2"}, {Activation: "c#1", Task: "gone"}, {Activation: "d#1"}}
	d.cluster.WithWatch = fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(d.run, answered, open).WithStatusSubresource().Build()
	a, out := hears()
	if err := a.resumeRun(t.Context(), d.cluster, "r"); err != nil {
		t.Fatal(err)
	}
	const want = "asked for resume 1 of run r, which is Pending\n  task t1 was answered by ann\n" +
		"  task t2 has no answer yet; one that comes later needs another resume\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestWishesThatComeTooLate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*api.WorkflowRun)
		wish   func(*app, context.Context, *cluster, string) error
		want   string
	}{
		"resume of what is over":          {func(r *api.WorkflowRun) { r.Status.Phase = api.RunFailed }, (*app).resumeRun, "run r is Failed: there is nothing to resume\n"},
		"resume of what is cancelled":     {func(r *api.WorkflowRun) { r.Spec.Cancel = true }, (*app).resumeRun, "run r is being cancelled: there is nothing to resume\n"},
		"resume of what goes on anyway":   {func(r *api.WorkflowRun) { r.Spec.Git = nil }, (*app).resumeRun, "run r goes on by itself: its policy is Automatic\n"},
		"cancellation of what is over":    {func(r *api.WorkflowRun) { r.Status.Phase = api.RunCompleted }, (*app).endRun, "run r is Completed: there is nothing to cancel\n"},
		"cancellation of a cancelled run": {func(r *api.WorkflowRun) { r.Status.Phase = api.RunCancelled }, (*app).endRun, "run r is Cancelled: there is nothing to cancel\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			tc.change(d.run)
			d.cluster.WithWatch = fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(d.run).Build()
			before := d.stored()
			a, out := hears()
			if err := tc.wish(a, t.Context(), d.cluster, "r"); !errors.Is(err, command.ErrVerdict) {
				t.Errorf("got %v, want a negative verdict", err)
			}
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", out.String(), tc.want)
			}
			if d.stored().ResourceVersion != before.ResourceVersion {
				t.Error("something was written")
			}
		})
	}
}

func TestCancelIsPutDown(t *testing.T) {
	d := newDesk(t)
	a, out := hears()
	if err := a.endRun(t.Context(), d.cluster, "r"); err != nil || !d.stored().Spec.Cancel {
		t.Errorf("got %v, cancel %t", err, d.stored().Spec.Cancel)
	}
	if want := "asked for run r, which is Pending, to be cancelled\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestWishesThatAreRefused(t *testing.T) {
	d := newDesk(t)
	d.cluster.WithWatch = interceptor.NewClient(d.cluster.WithWatch, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: api.GroupVersion.Group, Resource: "workflowruns"}, "r", nil)
		},
	})
	for _, wish := range []func(*app, context.Context, *cluster, string) error{(*app).resumeRun, (*app).endRun} {
		a, out := hears()
		if err := wish(a, t.Context(), d.cluster, "r"); !errors.Is(err, command.ErrVerdict) || !strings.HasPrefix(out.String(), "refused: ") {
			t.Errorf("got %v, %q", err, out.String())
		}
		if err := wish(a, t.Context(), d.cluster, "s"); err == nil || err.Error() != "there is no run s in namespace ns" {
			t.Errorf("got %v of a run that is not there", err)
		}
	}
}

func TestInputsOfANewRun(t *testing.T) {
	for name, tc := range map[string]struct {
		run  newRun
		want string
		fail string
	}{
		"none":            {run: newRun{}},
		"texts and JSON":  {run: newRun{texts: []string{"a=1", "b=", "c=x=y"}, values: []string{`d={"n":[9007199254740993]}`}}, want: `{"a":"1","b":"","c":"x=y","d":{"n":[9007199254740993]}}`},
		"no name":         {run: newRun{texts: []string{"=x"}}, fail: "--input takes NAME=VALUE"},
		"no value":        {run: newRun{values: []string{"x"}}, fail: "--input-json takes NAME=VALUE"},
		"twice":           {run: newRun{texts: []string{"a=1"}, values: []string{"a=2"}}, fail: "input a is given twice"},
		"no JSON":         {run: newRun{values: []string{"a=sesame"}}, fail: "--input-json a is no JSON: put text into --input"},
		"no alias":        {run: newRun{credentials: []string{"secret"}}, fail: "--credential takes NAME=VALUE"},
		"an empty Secret": {run: newRun{credentials: []string{"a="}}, fail: "--credential a names no Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := tc.run.manifest()
			if tc.fail != "" {
				if err == nil || err.Error() != tc.fail {
					t.Errorf("got %v, want %s", err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if run.Spec.Inputs != nil {
				got = string(run.Spec.Inputs.Raw)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
