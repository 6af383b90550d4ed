package controllers

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestARunIsNewsUnlessThisProcessWroteIt(t *testing.T) {
	t.Parallel()
	version := func(resourceVersion string, change func(*api.WorkflowRun)) *api.WorkflowRun {
		run := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u", ResourceVersion: resourceVersion, Generation: 1}}
		if change != nil {
			change(run)
		}
		return run
	}
	step := func(run *api.WorkflowRun) { run.Status.Instance = &api.RunInstance{Step: 2} }
	cancelled := func(run *api.WorkflowRun) { step(run); run.Spec.Cancel, run.Generation = true, 2 }
	written, answered, failed := step, "2", "failed"
	for name, tc := range map[string]struct {
		commit string
		before *api.WorkflowRun
		after  *api.WorkflowRun
		isNews bool
	}{
		"its own commit":                              {answered, version("1", nil), version("2", step), false},
		"its own commit, before the answer":           {"", version("1", nil), version("2", written), false},
		"somebody's edit of its commit":               {answered, version("2", step), version("3", cancelled), true},
		"an edit of its commit, before the answer":    {"", version("2", step), version("3", cancelled), true},
		"another operator's commit":                   {answered, version("2", step), version("4", nil), true},
		"another operator's commit, before an answer": {"", version("1", nil), version("4", nil), true},
		"a commit of which nobody knows":              {failed, version("1", nil), version("2", step), true},
		"the same again, after a while":               {answered, version("2", step), version("2", step), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &WorkflowRunReconciler{}
			r.commits.begin("u", &version("", written).Status)
			switch tc.commit {
			case answered:
				r.commits.end(version("2", step), nil)
			case failed:
				r.commits.end(version("1", nil), errors.New("boom"))
			}
			if got := r.news().Update(ctrlevent.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.isNews {
				t.Errorf("news: %t, want %t", got, tc.isNews)
			}
			r.news().Delete(ctrlevent.DeleteEvent{Object: tc.after})
			if len(r.commits.last) > 0 {
				t.Error("a deleted run is remembered")
			}
		})
	}
}

func TestATaskIsNewsWhenItIsNoLongerOpen(t *testing.T) {
	t.Parallel()
	open, answered, other := &api.HumanTask{}, &api.HumanTask{}, &api.HumanTask{}
	answered.Status.Answer = &runtime.RawExtension{}
	other.Labels = map[string]string{api.LabelRun: "another"}
	phased := open.DeepCopy()
	phased.Status.Phase = api.TaskAwaitingInput
	news := taskNews()
	for name, tc := range map[string]struct{ got, want bool }{
		"a new task":                       {news.Create(ctrlevent.CreateEvent{Object: open}), false},
		"one that was answered in between": {news.Create(ctrlevent.CreateEvent{Object: answered}), true},
		"its answer":                       {news.Update(ctrlevent.UpdateEvent{ObjectOld: open, ObjectNew: answered}), true},
		"its phase":                        {news.Update(ctrlevent.UpdateEvent{ObjectOld: open, ObjectNew: phased}), false},
		"that it belongs to another run":   {news.Update(ctrlevent.UpdateEvent{ObjectOld: open, ObjectNew: other}), true},
		"that it is gone, answered or not": {news.Delete(ctrlevent.DeleteEvent{Object: open}), true},
		"a later look at an answered task": {news.Update(ctrlevent.UpdateEvent{ObjectOld: answered, ObjectNew: answered}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s is news: %t, want %t", name, tc.got, tc.want)
		}
	}
}

func TestACommitThatOpensWhatHasNoChildIsLookedAtOnceMore(t *testing.T) {
	t.Parallel()
	run := func(branches ...api.ActiveBranch) *api.WorkflowRun {
		return &api.WorkflowRun{Status: api.WorkflowRunStatus{Instance: &api.RunInstance{ActiveBranches: branches}}}
	}
	task := api.ActiveBranch{Activation: "ask#1", Child: &api.ChildRef{Name: "c"}}
	wait := api.ActiveBranch{Activation: "rest#1"}
	finished := run(wait)
	finished.Status.FinishedAt = &metav1.Time{Time: runTestNow}
	for name, tc := range map[string]struct {
		before, after *api.WorkflowRun
		want          bool
	}{
		"a start that waits":   {&api.WorkflowRun{}, run(wait), true},
		"a start that asks":    {&api.WorkflowRun{}, run(task), false},
		"a wait that was open": {run(wait), run(wait, task), false},
		"a wait after a task":  {run(task), run(wait), true},
		"an end":               {run(task), finished, false},
		"nothing begun":        {&api.WorkflowRun{}, &api.WorkflowRun{}, false},
	} {
		if got := opensSilently(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
