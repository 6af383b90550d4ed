package supervised

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// cancels asks for the end of a run.
func (w *world) cancels(run *api.WorkflowRun) {
	GinkgoHelper()
	Expect(bob.Patch(w.ctx, run, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`)))).To(Succeed())
}

// condition of a run, with its reason.
func condition(run *api.WorkflowRun, kind string) string {
	found := apimeta.FindStatusCondition(run.Status.Conditions, kind)
	if found == nil {
		return ""
	}
	return string(found.Status) + " " + found.Reason
}

var _ = Describe("The life of a supervised run", func() {
	It("supervised 16: is over once it is cancelled, whatever was answered, and supervised 19: stays so", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		w.answers(task, `{"proceed":true}`)
		w.cancels(run)
		w.reaches(run, api.RunCancelled)
		Expect(run.Status.Intents).To(BeEmpty())
		Expect(w.project.Head("agent/notes")).To(BeEmpty())

		history := activations(run)
		w.resumes(run)
		other := w.starts("other", w.definitions.Head("main"), map[string]any{"repository": w.project.URL, "text": ""}, func(other *api.WorkflowRun) {
			other.Spec.Git.Path = "flows/absent.md"
		})
		w.reaches(other, api.RunFailed)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		Expect(run.Status.Phase).To(Equal(api.RunCancelled))
		Expect(activations(run)).To(Equal(history))
		Expect(w.project.Head("agent/notes")).To(BeEmpty())
	})

	It("supervised 17: leaves nothing when it is deleted, but what it pushed", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		w.answers(task, `{"proceed":true}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(task.OwnerReferences).To(HaveLen(1))
		Expect(task.OwnerReferences[0].UID).To(Equal(run.UID))
		Expect(admin.Delete(ctx, run)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(run), run))
		}).Should(BeTrue())
		Expect(w.project.Head("agent/notes")).NotTo(BeEmpty())
	})

	It("supervised 18: does not start over when its status is gone", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		w.checkpoint(run)
		stop()
		run.Status = api.WorkflowRunStatus{}
		Expect(operatorPerson().Status().Update(ctx, run)).To(Succeed())
		requests := w.git.Requests()
		w.operate()
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(condition(run, api.ConditionStalled)).To(Equal("True " + api.ReasonStatusLost))
		})
		Expect(run.Status.Instance).To(BeNil())
		Expect(w.git.Requests()).To(Equal(requests))
	})

	It("supervised 06: goes on from what it retained when the definitions are gone", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		stop()
		w.git.Answer(func(answer http.ResponseWriter, request *http.Request) bool {
			isGone := strings.HasPrefix(request.URL.Path, "/team/workflows")
			if isGone {
				answer.WriteHeader(http.StatusNotFound)
			}
			return isGone
		})
		w.cache = GinkgoT().TempDir() // an operator that has fetched nothing yet
		w.operate()
		w.answers(task, `{"proceed":true}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(condition(run, api.ConditionDefinitionSource)).To(HaveSuffix(" " + api.ReasonRetained))
		Expect(w.project.Head("agent/notes")).NotTo(BeEmpty())
	})

	It("supervised 24: observes a resume without an answer, and supervised 25: asks again what was deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		w.resumes(run)
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(run.Status.ObservedResumeRequests).To(Equal(int64(1)))
		})
		Expect(run.Status.Phase).To(Equal(api.RunSuspended))
		Expect(run.Status.Executions).To(HaveLen(1))

		before := task.UID
		Expect(admin.Delete(ctx, task)).To(Succeed())
		sees(w, task, func(g Gomega, task *api.HumanTask) { g.Expect(task.UID).NotTo(Equal(before)) })
		Expect(task.Spec.Fingerprint).To(Equal(run.Status.Intents[0].Fingerprint))
		w.answers(task, `{"proceed":false}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("stopped"))
	})

	It("supervised 26: claims an answer after a restart, and once", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run := w.publishes("notes", "All is well.\n")
		task := w.checkpoint(run)
		w.answers(task, `{"proceed":true}`)
		stop()
		w.resumes(run)
		w.operate()
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Executions).To(HaveLen(2))
		Expect(w.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
	})
})
