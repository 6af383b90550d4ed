package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var _ = Describe("The operator", func() {
	It("may be killed at any write of a run", Label("crash"), func(ctx SpecContext) {
		var worlds sync.Map // namespace to *world
		worldOf := func(namespace string) *world {
			found, _ := worlds.Load(namespace)
			return found.(*world)
		}
		out, err := crash.Explore(ctx, crash.Scenario{
			Config: env.Operator,
			World: func(ctx context.Context) (string, error) {
				ns := testenv.Namespace("crash")
				err := admin.Create(ctx, ns)
				worlds.Store(ns.Name, &world{namespace: ns.Name, clock: clocktesting.NewFakePassiveClock(time.Now())})
				return ns.Name, err
			},
			Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
				return process{clock: worldOf(namespace).clock}.start(ctx, cfg, namespace)
			},
			Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
				w := worldOf(namespace)
				w.ctx = ctx
				return w.play()
			},
			Log: func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Report()).To(BeEmpty())
		Expect(out.Writes).To(BeNumerically(">", 20))
		Expect(out.Struck).To(BeNumerically(">", out.Plays*3/4))
	}, NodeTimeout(10*time.Minute))
})

// play lets one run ask a person, try a script twice and complete, and cancels
// another one in the midst of the same. It returns all that is left of them.
func (w *world) play() ([]client.Object, error) {
	w.compose("both", both, work)
	completed, cancelled := w.run("both-1", "both"), w.run("both-2", "both")
	for _, act := range []func() error{
		func() error { return w.retries(completed) },
		func() error { return w.answers(completed) },
		func() error { return w.cancels(cancelled) },
		func() error { return w.rests(completed, api.RunCompleted) },
		func() error { return w.rests(cancelled, api.RunCancelled) },
	} {
		if err := act(); err != nil {
			return nil, err
		}
	}
	return w.remains()
}

func (w *world) retries(run *api.WorkflowRun) error {
	pod := &corev1.Pod{}
	if err := w.await("the first pod", func() (bool, error) { return w.hasChild(run, "work#1", 1, pod) }); err != nil {
		return err
	}
	if err := w.reports(pod, `{"exitCode":2}`); err != nil {
		return err
	}
	err := w.await("the second attempt", func() (bool, error) {
		open := branchOf(w.fresh(run), "work#1")
		return open != nil && open.Attempt == 2, nil
	})
	if err != nil {
		return err
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	err = w.await("the second pod", func() (bool, error) {
		// Timers do not follow the play's clock.
		if err := w.touch(run); err != nil {
			return false, err
		}
		return w.hasChild(run, "work#1", 2, pod)
	})
	if err != nil {
		return err
	}
	return w.reports(pod, `{"exitCode":0,"outputs":{"done":true}}`)
}

func (w *world) answers(run *api.WorkflowRun) error {
	task := &api.HumanTask{}
	if err := w.await("the task", func() (bool, error) { return w.hasChild(run, "ask#1", 0, task) }); err != nil {
		return err
	}
	w.answer(task, `{"ok":true}`)
	return nil
}

func (w *world) cancels(run *api.WorkflowRun) error {
	err := w.await("its children", func() (bool, error) {
		hasTask, err := w.hasChild(run, "ask#1", 0, &api.HumanTask{})
		if err != nil || !hasTask {
			return false, err
		}
		return w.hasChild(run, "work#1", 1, &corev1.Pod{})
	})
	if err != nil {
		return err
	}
	return admin.Patch(w.ctx, run, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`)))
}

// rests waits until nothing of the run moves any more.
func (w *world) rests(run *api.WorkflowRun, phase api.RunPhase) error {
	var left error
	err := w.await("the end of "+run.Name, func() (bool, error) {
		left = w.isClean(run)
		return w.fresh(run).Status.Phase == phase && left == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: it is %s: %w", err, run.Status.Phase, left)
	}
	return nil
}

// remains are all objects that a run or the operator made.
func (w *world) remains() ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&api.WorkflowRunList{}, &api.HumanTaskList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
	} {
		if err := admin.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
			return nil, err
		}
		objects = append(objects, itemsOf(list)...)
	}
	return objects, nil
}

func itemsOf(list client.ObjectList) []client.Object {
	var objects []client.Object
	_ = apimeta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object))
		return nil
	})
	return objects
}

func (w *world) await(what string, ready func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(w.ctx, 20*time.Millisecond, patience, true, func(context.Context) (bool, error) { return ready() })
	if err != nil {
		return fmt.Errorf("await %s: %w", what, errors.Join(err, context.Cause(w.ctx)))
	}
	return nil
}

// hasChild reads the child of an open activation at an attempt.
func (w *world) hasChild(run *api.WorkflowRun, activation string, attempt int32, child client.Object) (bool, error) {
	open := branchOf(w.fresh(run), activation)
	if open == nil || open.Child == nil || open.Attempt != attempt {
		return false, nil
	}
	err := admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: open.Child.Name}, child)
	return err == nil, client.IgnoreNotFound(err)
}
