package supervised

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/definition"
)

// applies a manifest as a person does with kubectl, and gives what that says.
func (w *world) applies(manifest any) string {
	GinkgoHelper()
	data, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	out, err := bob.kubectl.Run(w.ctx, string(data), "-n", w.namespace, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

var _ = Describe("A supervised run that is applied again", func() {
	It("supervised 05: is the same one with an equal manifest, and takes no other definition or inputs", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.project.Commit("main", nil)
		commit := w.defines(publishing)
		const secondGate = "workflow:\n  components:\n    Another: Gate.md\n    Gate: Gate.md\n"
		others := map[string]string{
			"names":  w.defines(map[string]string{"flows/start.md": replaced(publish, "workflow:\n  components:\n    Gate: Gate.md\n", secondGate)}),
			"path":   w.defines(map[string]string{"flows/start.md": replaced(publish, "Gate: Gate.md", "Gate: gates/Gate.md"), "flows/gates/Gate.md": gate}),
			"source": w.defines(map[string]string{"flows/start.md": publish, "flows/Gate.md": openGate}),
		}
		manifest := map[string]any{
			"apiVersion": api.GroupVersion.String(), "kind": "WorkflowRun", "metadata": map[string]any{"name": "notes", "namespace": w.namespace},
			"spec": map[string]any{
				"git":         map[string]any{"url": w.definitions.URL, "commit": commit, "path": "flows/start.md", "credentialsRef": map[string]any{"name": "git"}},
				"inputs":      map[string]any{"text": "All is well.\n", "repository": w.project.URL},
				"credentials": []any{map[string]any{"name": "project", "secretRef": map[string]any{"name": "git"}}},
			},
		}
		Expect(w.applies(manifest)).To(ContainSubstring("created"))
		run := &api.WorkflowRun{ObjectMeta: w.meta("notes")}

		holds := func() {
			GinkgoHelper()
			before := run.DeepCopy()
			Expect(w.applies(manifest)).To(ContainSubstring("unchanged"))
			for what, other := range others {
				w.refuses(run, fmt.Sprintf(`{"git":{"commit":%q}}`, other), "spec.git.commit", what)
			}
			w.refuses(run, `{"git":{"path":"flows/other.md"}}`, "spec.git.path", "another path")
			w.refuses(run, `{"inputs":{"text":"Nothing is well."}}`, "spec.inputs", "another input")
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
			Expect(run.Generation).To(Equal(before.Generation))
			Expect(activations(run)).To(Equal(activations(before)))
			Expect(run.Status.Executions).To(Equal(before.Status.Executions))
			Expect(run.Status.Definition).To(Equal(before.Status.Definition))
		}
		task := w.checkpoint(run)
		holds()
		w.answers(task, `{"proceed":true}`)
		w.resumes(run)
		w.reaches(run, api.RunCompleted)
		holds()
	})
})

// replaced is a text with something else in it.
func replaced(text, old, other string) string {
	GinkgoHelper()
	Expect(text).To(ContainSubstring(old))
	return strings.Replace(text, old, other, 1)
}

// refuses holds that a change of a run's spec is denied, naming the field alone.
func (w *world) refuses(run *api.WorkflowRun, spec, field, what string) {
	GinkgoHelper()
	err := bob.Patch(w.ctx, run.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))
	Expect(err).To(MatchError(HaveSuffix("spec is immutable: "+field)), what)
}

var _ = Describe("A run of a composition", func() {
	compose := func(w *world, name, nodes string) *api.WorkflowRun {
		GinkgoHelper()
		flow, err := yaml.YAMLToJSON([]byte(nodes))
		Expect(err).NotTo(HaveOccurred())
		composition := &api.Composition{ObjectMeta: w.meta(name)}
		composition.Spec.Workflow = &runtime.RawExtension{Raw: flow}
		Expect(bob.Create(w.ctx, composition)).To(Succeed())
		run := &api.WorkflowRun{ObjectMeta: w.meta(name)}
		run.Spec.CompositionRef.Name = name
		Expect(bob.Create(w.ctx, run)).To(Succeed())
		return run
	}

	DescribeTable("supervised 08: does not start with what only a definition in Git may have", func(ctx SpecContext, node string) {
		w := newWorld(ctx)
		w.operate()
		run := compose(w, "steps", `
id: steps
name: Steps
nodes:
- {id: start, type: start, name: Start}
- {id: step, name: Step, `+node+`}
- {id: end, type: end, name: End}
edges:
- {id: e1, source: start, target: step}
- {id: e2, source: step, target: end}
`)
		w.reaches(run, api.RunFailed)
		Expect(condition(run, api.ConditionAccepted)).To(Equal("False " + api.ReasonInvalidDefinition))
		Expect(show(run.Status.Conditions)).To(ContainSubstring(definition.CodeSupervisedOnly))
		Expect(run.Status.Instance).To(BeNil())
		Expect(run.Status.History.Total).To(BeZero())
		for _, list := range []client.ObjectList{&api.HumanTaskList{}, &api.TurnList{}, &api.AgentSessionList{}, &corev1.PodList{}} {
			Expect(admin.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
			Expect(list).To(HaveField("Items", BeEmpty()))
		}
		Expect(w.git.Requests()).To(BeEmpty())
	},
		Entry("a component", `type: component, config: {component: Gate}`),
		Entry("a prompt", `type: action, config: {actionType: agent.prompt}`),
		Entry("a push", `type: action, config: {actionType: git.push}`),
		Entry("a fragment", `type: action, config: {actionType: fragment.evaluate}`),
	)

	It("supervised 08: goes on by itself, and knows nothing of executions", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run := compose(w, "asking", `
id: asking
name: Asking
nodes:
- {id: start, type: start, name: Start}
- {id: ask, type: human-task, name: Ask, config: {outputs: [{name: ok, type: boolean}]}}
- {id: end, type: end, name: End}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: ask, target: end}
`)
		task := &api.HumanTask{ObjectMeta: w.meta("")}
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(run.Status.Instance).NotTo(BeNil())
			g.Expect(run.Status.Instance.ActiveBranches).To(HaveLen(1))
			g.Expect(run.Status.Instance.ActiveBranches[0].Child).NotTo(BeNil())
			task.Name = run.Status.Instance.ActiveBranches[0].Child.Name
		})
		sees(w, task, func(Gomega, *api.HumanTask) {})
		Expect(task.Spec.Fingerprint).To(BeEmpty())
		w.answers(task, `{"ok":true}`)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Executions).To(BeEmpty())
		Expect(run.Status.Intents).To(BeEmpty())
		Expect(w.git.Requests()).To(BeEmpty())
	})
})
