package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
	It("may be killed at any write between an event and what comes of it", Label("crash"), func(ctx SpecContext) {
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
				worlds.Store(ns.Name, &world{namespace: ns.Name, clock: clocktesting.NewFakeClock(time.Now())})
				return ns.Name, err
			},
			Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
				return process{clock: worldOf(namespace).clock, silent: true}.start(ctx, cfg, namespace)
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
		Expect(out.Writes).To(BeNumerically(">", 10))
		Expect(out.Struck).To(BeNumerically(">", out.Plays*3/4))
	}, NodeTimeout(10*time.Minute))
})

// play lets one event complete a run that waits, and start two others, of which
// one is deleted at once; and another event fail for both.
func (w *world) play() ([]client.Object, error) {
	w.compose("based", based, `[{name: merged, eventType: pr.merged, filter: event.payload.base == 'main', inputs: {ref: event.id}}]`)
	w.compose("review", reviewed, `[{name: merged, eventType: pr.merged, inputs: {ref: event.payload.base}, run: {ttlSecondsAfterFinished: 0}}]`)
	run := w.run("waiting", "based", `{"ref":"pr-7"}`)
	if err := w.await("the wait", func() bool { return branchOf(fresh(w, run), "merged#1") != nil }); err != nil {
		return nil, err
	}
	bad := w.event("bad", "pr.merged", "pr-7", `{}`)
	err := w.await("the failures", func() bool {
		branch := branchOf(fresh(w, run), "merged#1")
		return branch.LastError != nil && len(fresh(w, bad).Status.Deliveries) == 1 && len(bad.Status.Triggers) == 2
	})
	if err != nil {
		return nil, err
	}
	good := w.event("good", "pr.merged", "pr-7", `{"base":"main"}`)
	err = w.await("the end", func() bool {
		return fresh(w, run).Status.Phase == api.RunCompleted && len(fresh(w, good).Status.Deliveries) == 1 &&
			slices.Equal(triggersOf(good), []string{"based/merged Started", "review/merged Started"}) && w.isAtRest()
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, show(good.Status))
	}
	return w.remains()
}

// isAtRest tells whether the run that the event started waits, the other one is
// gone, and the compositions tell of the failures.
func (w *world) isAtRest() bool {
	runs := w.runs()
	if len(runs) != 2 {
		return false
	}
	for i := range runs {
		if runs[i].Status.Phase != api.RunCompleted && runs[i].Status.Phase != api.RunWaiting {
			return false
		}
	}
	var comps api.CompositionList
	Expect(admin.List(w.ctx, &comps, client.InNamespace(w.namespace))).To(Succeed())
	for i := range comps.Items {
		if len(comps.Items[i].Status.Triggers) != 1 || len(comps.Items[i].Status.Triggers[0].Failures) != 1 {
			return false
		}
	}
	return true
}

// remains are all objects that events have to do with.
func (w *world) remains() ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{&api.WorkflowRunList{}, &api.StreamEventList{}, &api.CompositionList{}} {
		if err := admin.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
			return nil, err
		}
		_ = apimeta.EachListItem(list, func(object runtime.Object) error {
			objects = append(objects, object.(client.Object))
			return nil
		})
	}
	return objects, nil
}

func (w *world) await(what string, ready func() bool) error {
	err := wait.PollUntilContextTimeout(w.ctx, 20*time.Millisecond, patience, true, func(context.Context) (bool, error) { return ready(), nil })
	if err != nil {
		return fmt.Errorf("await %s: %w", what, errors.Join(err, context.Cause(w.ctx)))
	}
	return nil
}
