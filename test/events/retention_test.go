package events

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/operator"
)

var _ = Describe("An event that is old", func() {
	It("goes, unless a run could still take it, and then with its limit", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{change: func(o *operator.Options) {
			o.Events = controllers.EventRetention{After: time.Hour, Limit: 24 * time.Hour}
		}})
		w.compose("gated", fmt.Sprintf(gated, ""), "")
		run := w.run("gated-1", "gated", `{"ref":"pr-7"}`)
		w.opens(run, "ask#1")
		unwanted := w.isObserved(w.event("unwanted", "pr.closed", "pr-7", ""))
		wanted := w.isObserved(w.event("wanted", "pr.merged", "pr-8", ""))
		isGone := func(e *api.StreamEvent) func() bool {
			return func() bool {
				return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(e), &api.StreamEvent{}))
			}
		}
		w.clock.Step(2 * time.Hour)
		// The arrival of another one is when the operator looks.
		w.event("noise-1", "noise", "", "")
		Eventually(isGone(unwanted)).Should(BeTrue())
		Consistently(isGone(wanted), "300ms").Should(BeFalse())

		By("once the run is over")
		w.patch(run, `{"spec":{"cancel":true}}`)
		w.reaches(run, api.RunCancelled)
		w.event("noise-2", "noise", "", "")
		Eventually(isGone(wanted)).Should(BeTrue())

		By("or when its time is up in any case")
		other := w.run("gated-2", "gated", `{"ref":"pr-7"}`)
		w.opens(other, "ask#1")
		waited := w.isObserved(w.event("waited", "pr.merged", "pr-8", ""))
		w.event("noise-3", "noise", "", "")
		Consistently(isGone(waited), "300ms").Should(BeFalse())
		w.clock.Step(25 * time.Hour)
		w.event("noise-4", "noise", "", "")
		Eventually(isGone(waited)).Should(BeTrue())
	})
})
