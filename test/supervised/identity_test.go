package supervised

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

// openGate is a gate at which nobody is asked.
const openGate = `---
name: Gate
inputs:
  - {name: material, type: string, required: true}
outputs:
  - {name: proceed, type: boolean, expression: "true"}
---
` + "```yaml workflow" + `
nodes:
  - {id: start, type: start, name: Start, config: {}}
  - {id: end, type: end, name: Decided, config: {}}
edges:
  - {id: e1, source: start, target: end}
` + "```" + `
`

// askingAgain publishes its own gate, and then comes to it a second time.
var askingAgain = strings.NewReplacer(
	"notes/today.md", "flows/Gate.md",
	"  - {id: e7, source: push, target: done}\n", "  - {id: e7, source: push, target: again}\n  - {id: e8, source: again, target: done}\n",
	"  - {id: done, type", `  - id: again
    type: component
    name: Ask again
    config:
      component: Gate
      inputs: {material: context.text}
      outputs: {proceed: result.proceed}
  - {id: done, type`,
).Replace(publish)

// tamper changes something of a run behind the operator's back, and gives what
// makes it good again.
type tamper func(w *world, run *api.WorkflowRun) (restore func())

// sourceOf the run with another text in it, in the place of the retained one.
func tamperSource(w *world, run *api.WorkflowRun) func() {
	GinkgoHelper()
	kept := run.Status.Definition.Sources
	return w.replaces(content.Name(kept[len(kept)-1].Digest), func(text string) string {
		return strings.Replace(text, "proceed", "proceeds", 1)
	})
}

// loseSource takes a retained source away.
func loseSource(w *world, run *api.WorkflowRun) func() {
	GinkgoHelper()
	kept := run.Status.Definition.Sources
	return w.replaces(content.Name(kept[0].Digest), nil)
}

// replaces a stored text; without a change it is taken away.
func (w *world) replaces(name string, change func(string) string) func() {
	GinkgoHelper()
	before := &corev1.ConfigMap{ObjectMeta: w.meta(name)}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(before), before)).To(Succeed())
	before.ResourceVersion, before.UID = "", ""
	Expect(before.BinaryData).To(HaveLen(1))
	Expect(admin.Delete(w.ctx, before)).To(Succeed())
	if change != nil {
		other := before.DeepCopy()
		for key, data := range other.BinaryData {
			other.BinaryData[key] = []byte(change(string(data)))
		}
		Expect(admin.Create(w.ctx, other)).To(Succeed())
	}
	return func() {
		Expect(client.IgnoreNotFound(admin.Delete(w.ctx, before.DeepCopy()))).To(Succeed())
		Expect(admin.Create(w.ctx, before.DeepCopy())).To(Succeed())
	}
}

// tamperStatus writes to a run's status what only the operator may.
func tamperStatus(change func(*api.WorkflowRunStatus)) tamper {
	return func(w *world, run *api.WorkflowRun) func() {
		GinkgoHelper()
		before := run.Status.DeepCopy()
		write := func(status *api.WorkflowRunStatus) {
			Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
			run.Status = *status
			Expect(operatorPerson().Status().Update(w.ctx, run)).To(Succeed())
		}
		changed := before.DeepCopy()
		change(changed)
		write(changed)
		return func() {
			Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
			before.Conditions = run.Status.Conditions
			write(before)
		}
	}
}

func changeCall(status *api.WorkflowRunStatus) {
	for i := range status.History.Entries {
		if call := status.History.Entries[i].Call; call != nil {
			call.SourceHash = strings.Repeat("0", 40)
			return
		}
	}
	Fail("no component was called")
}

var _ = Describe("The definition of a supervised run", func() {
	DescribeTable("supervised 07: is held against what was retained, and a run with another one does not go on",
		func(ctx SpecContext, meddle tamper, reason string) {
			w := newWorld(ctx)
			stop := w.operate()
			run := w.publishes("notes", "All is well.\n")
			task := w.checkpoint(run)
			w.answers(task, `{"proceed":true}`)
			sees(w, run, func(g Gomega, run *api.WorkflowRun) { g.Expect(run.Status.WaitsFor).To(HaveSuffix("(answered)")) })
			stop()
			restore := meddle(w, run)
			tampered := run.DeepCopy()
			w.resumes(run)

			stop = w.operate()
			sees(w, run, func(g Gomega, run *api.WorkflowRun) {
				g.Expect(condition(run, api.ConditionAccepted)).To(Equal("False " + reason))
			})
			stop()
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
			refused := run.Status.DeepCopy()
			refused.Conditions = tampered.Status.Conditions
			Expect(show(refused)).To(Equal(show(tampered.Status)))
			Expect(w.project.Head("agent/notes")).To(BeEmpty())

			By("making it good again, with nothing asked anew")
			restore()
			w.operate()
			w.reaches(run, api.RunCompleted)
			Expect(condition(run, api.ConditionAccepted)).To(HavePrefix("True "))
			Expect(run.Status.ObservedResumeRequests).To(Equal(run.Spec.ResumeRequests))
			Expect(w.project.Head("agent/notes")).NotTo(BeEmpty())
		},
		Entry("source changed", tamper(tamperSource), api.ReasonDefinitionChanged),
		Entry("source gone", tamper(loseSource), api.ReasonDefinitionChanged),
		Entry("hash of a source", tamperStatus(func(status *api.WorkflowRunStatus) {
			status.Definition.Sources[0].SourceHash = strings.Repeat("0", 40)
		}), api.ReasonDefinitionChanged),
		Entry("digest of the bundle", tamperStatus(func(status *api.WorkflowRunStatus) {
			status.Definition.Digest = "sha256:" + strings.Repeat("0", 64)
		}), api.ReasonDefinitionChanged),
		Entry("call in the history", tamperStatus(changeCall), api.ReasonHistoryDisagrees),
	)

	It("supervised 02: is the pinned one, whatever else bears its names", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		const trap = "components: {Gate: flows/Gate.md}"
		run := w.publishes("notes", trap, func(run *api.WorkflowRun) {
			run.Annotations = map[string]string{"axiom.apitomy.io/components": trap, "flows/Gate.md": "flows/Gate.md"}
		})
		task := w.checkpoint(run)
		descriptor := run.Status.Definition.Descriptor.DeepCopy()

		By("moving the branch to a component that stops at nothing, and leaving its name everywhere")
		other := w.defines(map[string]string{"flows/start.md": publish, "flows/Gate.md": openGate})
		Expect(other).NotTo(Equal(run.Spec.Git.Commit))
		Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "gate", Labels: map[string]string{api.LabelRun: string(run.UID)},
		}, Data: map[string]string{"Gate.md": openGate}})).To(Succeed())
		w.answers(task, `{"proceed":false}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("stopped"))
		Expect(run.Status.Definition.Descriptor).To(Equal(descriptor))
	})

	It("supervised 02: is the pinned one before and after a resume, and what the run itself writes and pushes is none", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		commit := w.defines(map[string]string{"flows/start.md": askingAgain, "flows/Gate.md": gate})
		w.defines(map[string]string{"flows/Gate.md": openGate})
		const written = openGate + "\nThe run wrote this.\n"
		run := w.starts("notes", commit, map[string]any{"repository": w.definitions.URL, "text": written})
		for range 2 {
			w.answers(w.checkpoint(run), `{"proceed":true}`)
			w.resumes(run)
		}
		w.reaches(run, api.RunCompleted)
		Expect(w.definitions.Git("show", "agent/notes:flows/Gate.md")).To(Equal(strings.TrimSpace(written)))
		var hashes []string
		for _, entry := range w.history(run) {
			if entry.Call != nil {
				hashes = append(hashes, entry.Call.SourceHash)
			}
		}
		pinned := w.definitions.Git("rev-parse", commit+":flows/Gate.md")
		Expect(hashes).To(Equal([]string{pinned, pinned}))
	})

	It("supervised 07: is read anew before a resume by an operator that admitted it, too", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := w.publishes("notes", "All is well.\n")
		w.answers(w.checkpoint(run), `{"proceed":true}`)
		restore := tamperSource(w, run)
		w.resumes(run)
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(condition(run, api.ConditionAccepted)).To(Equal("False " + api.ReasonDefinitionChanged))
		})
		Expect(run.Status.Executions).To(HaveLen(1))
		Expect(run.Status.ObservedResumeRequests).To(BeZero())
		restore()
		w.touch(run, "restored")
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.ObservedResumeRequests).To(Equal(run.Spec.ResumeRequests))
	})
})
