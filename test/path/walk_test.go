package path

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

const walkedPlaybook = `
apiVersion: v1
kind: ConfigMap
metadata: {name: demo}
data:
  playbook.yaml: |
    turns:
    - when: Wait an hour
      steps:
      - call: {tool: get_composition, save: comp}
      - call:
          tool: propose_workflow_changes
          args:
            changeSet:
              id: cs-1
              baseRevision: ${comp.workflowRevision}
              summary: Wait an hour between start and end
              ops:
              - {op: removeEdge, id: edge-1}
              - {op: addNode, node: {id: wait-1, type: wait, name: Wait an hour, config: {duration: PT1H}}}
              - {op: addEdge, edge: {id: edge-2, source: start-1, target: wait-1, priority: 0, isDefault: true}}
              - {op: addEdge, edge: {id: edge-3, source: wait-1, target: end-1, priority: 0, isDefault: true}}
          expect: "^APPLIED"
      - say: I added a wait.
`

const walkedComposition = `
apiVersion: axiom.apitomy.io/v1alpha1
kind: Composition
metadata: {name: triage}
spec:
  goal: Triage new issues and ask for missing logs
  workflow: ` + blankWorkflow + `
  agent: {runtime: {playbookRef: {name: demo, key: playbook.yaml}}}
`

const walkedTurn = `
apiVersion: axiom.apitomy.io/v1alpha1
kind: Turn
metadata: {name: triage-x7k2p}
spec: {compositionRef: {name: triage}, message: "Wait an hour before closing.", selection: {nodes: [end-1]}}
`

var _ = Describe("a turn", func() {
	It("workbench 58: is walked with kubectl alone, against the scripted agent", func(ctx SpecContext) {
		d := newDesk().hasNode()
		cfg, err := env.User("walker", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		kubectl, err := env.Kubectl(cfg)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(kubectl.Close)
		run := func(stdin string, args ...string) string {
			GinkgoHelper()
			out, err := kubectl.Run(ctx, stdin, append([]string{"--namespace", d.namespace}, args...)...)
			Expect(err).NotTo(HaveOccurred(), out)
			return out
		}
		nodes := func() string { return run("", "get", "comp", "triage", "-o", "jsonpath={.spec.workflow.nodes[*].id}") }
		patch := func(patch string) { run("", "patch", "turn", "triage-x7k2p", "--type", "merge", "-p", patch) }

		run(walkedPlaybook, "create", "-f", "-")
		run(walkedComposition, "create", "-f", "-")
		run(walkedTurn, "create", "-f", "-")
		run("", "wait", "turn/triage-x7k2p", "--for=condition=AgentDone", "--timeout=60s")
		Expect(run("", "get", "turn", "triage-x7k2p", "-o", "jsonpath={.status.diff}")).To(Equal("added nodes: wait-1\nedges changed"))
		Expect(run("", "get", "turns")).To(MatchRegexp(`(?m)^NAME +FOR +STATE +OPS +AGE$[\s\S]*^triage-x7k2p +triage +AwaitingResolution +4 `))
		Expect(nodes()).To(Equal("start-1 end-1"))

		patch(`{"spec":{"resolution":"Accepted"}}`)
		run("", "wait", "turn/triage-x7k2p", "--for=condition=Resolved", "--timeout=60s")
		Expect(run("", "get", "turn", "triage-x7k2p", "-o", "jsonpath={.status.state}")).To(Equal("Applied"))
		Expect(nodes()).To(Equal("start-1 end-1 wait-1"))

		patch(`{"spec":{"undo":true}}`)
		run("", "wait", "turn/triage-x7k2p", "--for=condition=Undone", "--timeout=60s")
		Expect(nodes()).To(Equal("start-1 end-1"))
	})

	It("workbench 25: comes to the same objects when operator and gateway are killed at their writes of start, propose, upsert, finish, accept and undo", func(ctx SpecContext) {
		outcome, err := crash.Explore(ctx, crash.Scenario{
			Config: env.Operator,
			World:  makeWorld,
			Start:  runOperator,
			Others: func(ctx context.Context, namespace string) error { return nodeOf(namespace).Run(ctx) },
			Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
				return nil, InterceptGomegaFailure(func() { (&desk{ctx: ctx, story: story{namespace: namespace}}).writesAndUndoes() })
			},
			Ending:    endingWithJournals,
			Kinds:     crash.Faults(),
			Every:     crash.Sampled(13),
			Normalize: forgetChance,
			Log:       func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.Report()).To(BeEmpty())
		Expect(outcome.Writes).To(BeNumerically(">", 25), "the story should have been explored")
		Expect(outcome.Struck).To(BeNumerically(">=", outcome.Plays*3/4), "faults that struck")
	}, SpecTimeout(crashTimeout))
})

// writesAndUndoes has the agent change a tool, create one and rename a node,
// alice accept that, and then take it back.
func (d *desk) writesAndUndoes() {
	GinkgoHelper()
	proposes := strings.Replace(renames("Renamed"), `"^APPLIED"`, `"^(APPLIED|REJECTED .stale)"`, 1) // the answer may get lost
	comp := d.composes("triage", plays("Go", "["+writesTool("changed")+", "+writesTool("created")+", "+proposes+", {say: Done}]"),
		func(comp *api.Composition) { comp.Spec.Tools = []api.NamedTool{{Name: "changed"}} })
	sees(d, comp, func(g Gomega, comp *api.Composition) { g.Expect(comp.Status.Snapshot).NotTo(BeEmpty()) })
	turn := d.reaches(d.asks(comp, "t-1", "Go"), api.TurnAwaitingResolution)
	Expect(tools(fresh(d, comp))).To(Equal([]string{"changed", "created"}))
	Expect(alice.Patch(d.ctx, turn, merge(`{"spec":{"resolution":"Accepted"}}`))).To(Succeed())
	d.reaches(turn, api.TurnApplied)
	Expect(string(fresh(d, comp).Spec.Workflow.Raw)).To(ContainSubstring("Renamed"))
	Expect(alice.Patch(d.ctx, turn, merge(`{"spec":{"undo":true}}`))).To(Succeed())
	d.reaches(turn, api.TurnUndone)
	Expect(turn.Status.Undo).To(HaveValue(And(
		HaveField("Restored", []string{"tool/changed"}), HaveField("Removed", []string{"tool/created"}), HaveField("WorkflowRestored", true),
	)))
	Expect(tools(fresh(d, comp))).To(Equal([]string{"changed"}))
}

// endingWithJournals is the ending, and what was said on the way to it.
func endingWithJournals(ctx context.Context, namespace string) ([]client.Object, error) {
	objects, err := ending(ctx, namespace)
	if err != nil {
		return nil, err
	}
	chunks := &corev1.ConfigMapList{}
	if err := admin.List(ctx, chunks, client.InNamespace(namespace), client.HasLabels{store.LabelJournal}); err != nil {
		return nil, err
	}
	for i := range chunks.Items {
		chunk := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: chunks.Items[i].Name}, Data: map[string]string{}}
		for n, event := range journal.Load(chunks.Items[i].Data[store.Key]) {
			chunk.Data[fmt.Sprintf("%03d", n)] = lineOf(event)
		}
		objects = append(objects, chunk)
	}
	return objects, nil
}
