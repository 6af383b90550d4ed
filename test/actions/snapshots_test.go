package actions

import (
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// before calls f once, ahead of the first request that matches.
func before(f func(), matches func(*http.Request) bool) func(*process) {
	var once sync.Once
	return func(p *process) {
		p.wrap = func(base http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if matches(req) {
					once.Do(f)
				}
				return base.RoundTrip(req)
			})
		}
	}
}

// edits gives a composition another workflow, and waits until that is history.
func (w *world) edits(name, workflow string) *api.Composition {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	doc, err := yaml.YAMLToJSON([]byte(workflow))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, w.key(name), comp)).To(Succeed())
		comp.Spec.Workflow, comp.Spec.RevisionHistoryLimit = &runtime.RawExtension{Raw: doc}, 1
		g.Expect(bob.Update(w.ctx, comp)).To(Succeed())
	}).Should(Succeed())
	return sees(w, comp, func(g Gomega, comp *api.Composition) {
		g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation))
		g.Expect(comp.Status.Snapshot).NotTo(BeEmpty())
	})
}

var _ = Describe("A run of an old revision", func() {
	// old has the question in its history, and something else since.
	old := func(w *world) (revision, snapshot string) {
		GinkgoHelper()
		w.compose("ask", question, "")
		comp := &api.Composition{ObjectMeta: w.meta("ask")}
		sees(w, comp, func(g Gomega, comp *api.Composition) { g.Expect(comp.Status.Snapshot).NotTo(BeEmpty()) })
		revision, snapshot = comp.Status.WorkflowRevision, comp.Status.Snapshot
		Expect(admin.Get(w.ctx, w.key("ask"), comp)).To(Succeed())
		doc, err := yaml.YAMLToJSON([]byte(strings.Replace(question, "answered", "newer", 1)))
		Expect(err).NotTo(HaveOccurred())
		comp.Spec.Workflow = &runtime.RawExtension{Raw: doc}
		Expect(bob.Update(w.ctx, comp)).To(Succeed())
		sees(w, comp, func(g Gomega, comp *api.Composition) {
			g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation))
		})
		return revision, snapshot
	}
	pinned := func(revision string) func(*api.WorkflowRun) {
		return func(run *api.WorkflowRun) { run.Spec.CompositionRef.Revision = revision }
	}
	isCommit := func(req *http.Request) bool {
		return req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/workflowruns/ask-1/status")
	}

	It("keeps its definition although history is pruned while it pins it", func(ctx SpecContext) {
		w := newWorld(ctx)
		var revision, snapshot string
		stop := w.operate(before(func() {
			defer GinkgoRecover()
			for _, outcome := range []string{"one", "two", "three"} {
				w.edits("ask", strings.Replace(question, "answered", outcome, 1))
			}
		}, isCommit))
		revision, snapshot = old(w)
		run, task := w.run("ask-1", "ask", pinned(revision)), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		Expect(run.Status.Definition.Snapshot).To(Equal(snapshot))

		By("another operator going on with it, which remembers nothing")
		stop()
		w.operate()
		w.edits("ask", strings.Replace(question, "answered", "four", 1))
		Expect(ada.Status().Patch(ctx, task, answer(`{"ok":true}`))).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("answered"))
		Expect(admin.Get(ctx, w.key(snapshot), &appsv1.ControllerRevision{})).To(Succeed())
	})

	It("is refused, and says so, when history was pruned just before it pinned it", func(ctx SpecContext) {
		w := newWorld(ctx)
		var snapshot string
		w.operate(before(func() {
			defer GinkgoRecover()
			Expect(admin.Delete(ctx, &appsv1.ControllerRevision{ObjectMeta: w.meta(snapshot)})).To(Succeed())
		}, func(req *http.Request) bool {
			return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/controllerrevisions/")
		}))
		var revision string
		revision, snapshot = old(w)
		run := w.run("ask-1", "ask", pinned(revision))
		w.reaches(run, api.RunFailed)
		accepted := apimeta.FindStatusCondition(run.Status.Conditions, api.ConditionAccepted)
		Expect(accepted.Reason).To(Equal(api.ReasonRevisionMismatch))
		Expect(accepted.Message).To(ContainSubstring(revision))
		Expect(run.Status.Instance).To(BeNil())
	})
})
