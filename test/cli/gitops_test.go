package cli

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

// health is what tools that use kstatus, such as Flux, say of an object.
func (w *world) health(kind, name string) func() status.Status {
	return func() status.Status {
		GinkgoHelper()
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
		Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object)).To(Succeed())
		result, err := status.Compute(object)
		Expect(err).NotTo(HaveOccurred())
		return result.Status
	}
}

// managers of an object's fields outside its status.
func (w *world) managers(kind, name string) []string {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object)).To(Succeed())
	var all []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && !slices.Contains(all, entry.Manager) {
			all = append(all, entry.Manager)
		}
	}
	return all
}

// syncs applies a manifest as a tool with a name would, and gives what it printed.
func (w *world) syncs(manager, manifest string, flags ...string) (string, error) {
	args := append([]string{"-n", w.namespace, "apply", "--server-side", "--field-manager", manager, "-f", "-"}, flags...)
	return root.Run(w.ctx, manifest, args...)
}

func (w *world) synced(manager, manifest string) {
	GinkgoHelper()
	out, err := w.syncs(manager, manifest)
	Expect(err).NotTo(HaveOccurred(), out)
}

const asksAPerson = `
kind: Composition
apiVersion: axiom.apitomy.io/v1alpha1
metadata: {name: closing}
spec:
  goal: Close the day.
  workflow:
    id: closing
    name: Closing
    version: 1
    nodes:
    - {id: start, type: start, name: Start, config: {inputs: []}}
    - id: ask
      type: human-task
      name: Ask
      config: {title: "'Close?'", description: "'It is late.'", responseSchema: {type: object, properties: {close: {type: boolean}}, required: [close]}}
    - {id: end-1, type: end, name: Closed, config: {}}
    edges:
    - {id: e1, source: start, target: ask}
    - {id: e2, source: ask, target: end-1}
`

var _ = Describe("GitOps tools", func() {
	It("read health from objects alone", func(ctx SpecContext) {
		w := newWorld(ctx)

		By("looking at drafts")
		w.synced("flux", asksAPerson)
		Eventually(w.health("Composition", "closing")).Should(Equal(status.CurrentStatus))
		w.synced("flux", strings.Replace(asksAPerson, "target: end-1", "target: nowhere", 1))
		Eventually(func() bool {
			return apimeta.IsStatusConditionFalse(w.settles("closing").Status.Conditions, api.ConditionValid)
		}).Should(BeTrue())
		Expect(w.health("Composition", "closing")()).To(Equal(status.CurrentStatus), "a draft may have problems; its runs may not")
		w.synced("flux", asksAPerson)
		w.settles("closing")

		By("looking at a run that waits for a person, and at its task")
		run := "kind: WorkflowRun\napiVersion: axiom.apitomy.io/v1alpha1\nmetadata: {name: %s}\nspec: {compositionRef: {name: closing}}\n"
		w.synced("flux", fmt.Sprintf(run, "today"))
		task := w.asked("today")
		Expect(w.health("WorkflowRun", "today")()).To(Equal(status.InProgressStatus))
		Eventually(w.health("HumanTask", task)).Should(Equal(status.InProgressStatus))
		w.as(alice, "answer", task, "--answer", `{"close":true}`).gives(command.ExitOK)
		Eventually(w.health("WorkflowRun", "today")).Should(Equal(status.CurrentStatus))
		Eventually(w.health("HumanTask", task)).Should(Equal(status.CurrentStatus))

		By("looking at a run that fails")
		w.synced("flux", fmt.Sprintf(run, "never"))
		w.as(alice, "answer", w.asked("never"), "--failure", "nobody is here").gives(command.ExitOK)
		Eventually(w.health("WorkflowRun", "never")).Should(Equal(status.FailedStatus))

		By("applying all of it again")
		generation := w.generationOf("WorkflowRun", "today")
		w.synced("flux", fmt.Sprintf(run, "today"))
		Expect(w.generationOf("WorkflowRun", "today")).To(Equal(generation))
	})

	It("share a draft with each other, and have its fields to themselves", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.keeps("closing", renames)
		fromGit := asksAPerson + "  tools: [{name: look, scriptTemplate: 'ls'}]\n"
		fromTeam := `
kind: Composition
apiVersion: axiom.apitomy.io/v1alpha1
metadata: {name: closing, annotations: {team: evening}}
spec:
  tools: [{name: find, scriptTemplate: 'grep -r day .'}]
  agent: {runtime: {playbookRef: {name: closing, key: playbook.yaml}}}
`
		w.synced("flux", fromGit)
		w.synced("argocd", fromTeam)
		comp := w.settles("closing")
		Expect(comp.Spec.Tools).To(HaveLen(2))
		Expect(w.managers("Composition", "closing")).To(ConsistOf("flux", "argocd"))

		By("applying again, which changes nothing")
		generation := comp.Generation
		w.synced("flux", fromGit)
		w.synced("argocd", fromTeam)
		Expect(w.generationOf("Composition", "closing")).To(Equal(generation))

		By("letting go of what one of them had")
		w.synced("argocd", strings.Replace(fromTeam, "tools: [{name: find, scriptTemplate: 'grep -r day .'}]", "tools: []", 1))
		Expect(w.settles("closing").Spec.Tools).To(HaveLen(1))

		By("seeing who changed the draft, if it is not the repository")
		w.as(alice, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)
		w.as(alice, "turn", "accept", "rename").gives(command.ExitOK)
		out, err := w.syncs("flux", fromGit)
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring(`conflict with "axiom-operator"`), ContainSubstring(".spec.workflow")))
	})

	It("bring a turn's result to the draft as a commit, without a fight over it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.keeps("closing", renames)
		fromGit := asksAPerson + "  agent: {runtime: {playbookRef: {name: closing, key: playbook.yaml}}}\n"
		w.synced("flux", fromGit)
		w.settles("closing")
		w.as(alice, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)

		exported := w.as(alice, "turn", "export", "rename").gives(command.ExitOK).stdout.String()
		w.synced("flux", exported)
		Eventually(func() api.TurnPhase { return w.turn("rename").Status.State }).Should(Equal(api.TurnApplied))
		Expect(w.managers("Composition", "closing")).To(ConsistOf("flux"))
		Eventually(w.health("Turn", "rename")).Should(Equal(status.CurrentStatus))
		Eventually(w.health("Composition", "closing")).Should(Equal(status.CurrentStatus))

		generation := w.generationOf("Composition", "closing")
		w.synced("flux", exported)
		Expect(w.generationOf("Composition", "closing")).To(Equal(generation))
	})
})

// asked is the task that a run waits for.
func (w *world) asked(run string) string {
	GinkgoHelper()
	var name string
	Eventually(func(g Gomega) {
		var tasks api.HumanTaskList
		g.Expect(admin.List(w.ctx, &tasks, client.InNamespace(w.namespace))).To(Succeed())
		open := slices.IndexFunc(tasks.Items, func(t api.HumanTask) bool {
			return t.Spec.RunRef.Name == run && t.Status.Phase == api.TaskAwaitingInput
		})
		g.Expect(open).To(BeNumerically(">=", 0))
		name = tasks.Items[open].Name
	}).Should(Succeed())
	return name
}

func (w *world) generationOf(kind, name string) int64 {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object)).To(Succeed())
	return object.GetGeneration()
}
