package path

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// draft is a manifest of a composition with a workflow of these nodes and edges.
func draft(name, nodes, edges string) string {
	return fmt.Sprintf(`
apiVersion: axiom.apitomy.io/v1alpha1
kind: Composition
metadata: {name: %s}
spec:
  workflow: {id: %s, name: %s, nodes: [%s], edges: [%s]}
`, name, name, name, nodes, edges)
}

const (
	startNode = `{id: start-1, type: start, name: Start, config: {inputs: []}}`
	endNode   = `{id: end-1, type: end, name: End, config: {}}`
	edge      = `{id: edge-1, source: start-1, target: end-1, priority: 0, isDefault: true}`
)

var _ = Describe("bad input", Ordered, func() {
	var (
		s       story
		kubectl *testenv.KubeCtl
		stop    context.CancelFunc
		ended   = make(chan error, 1)
	)

	BeforeAll(func(ctx SpecContext) {
		s = story{namespace: newWorld(ctx)}
		var err error
		kubectl, err = env.Kubectl(env.Admin)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(kubectl.Close)
		var runCtx context.Context
		runCtx, stop = context.WithCancel(context.Background())
		go func() { ended <- runOperator(runCtx, rest.CopyConfig(env.Operator), s.namespace) }()
		DeferCleanup(func() {
			stop()
			Expect(<-ended).To(Succeed())
		})
	})

	// as runs kubectl as a person of the security team.
	as := func(ctx context.Context, manifest string, args ...string) (string, error) {
		return kubectl.Run(ctx, manifest, append([]string{"--namespace", s.namespace, "--as", "alice", "--as-group", "security", "--as-group", "system:masters"}, args...)...)
	}
	// refused is a command that must fail, and say all of this.
	refused := func(ctx context.Context, manifest string, reasons []string, args ...string) {
		GinkgoHelper()
		out, err := as(ctx, manifest, args...)
		Expect(err).To(HaveOccurred(), out)
		for _, reason := range reasons {
			Expect(out).To(ContainSubstring(reason))
		}
	}
	accepted := func(ctx context.Context, manifest string, args ...string) {
		GinkgoHelper()
		out, err := as(ctx, manifest, args...)
		Expect(err).NotTo(HaveOccurred(), out)
	}
	create := []string{"create", "-f", "-"}

	DescribeTable("a workflow that is none", func(ctx SpecContext, workflow, reason string) {
		manifest := strings.Replace(draft("none", startNode, edge), "{id: none, name: none, nodes: ["+startNode+"], edges: ["+edge+"]}", workflow, 1)
		refused(ctx, manifest, []string{"spec.workflow", reason}, create...)
		Expect(client.IgnoreNotFound(admin.Get(ctx, s.key("none"), &api.Composition{}))).To(Succeed())
		Expect(admin.Get(ctx, s.key("none"), &api.Composition{})).NotTo(Succeed(), "nothing may be stored")
	},
		Entry("text", `"start to end"`, "must be of type object"),
		Entry("a list", `[start, end]`, "must be of type object"),
		Entry("a number", `7`, "must be of type object"),
	)

	It("names what is too large, and the limit", func(ctx SpecContext) {
		nodes := []string{startNode}
		for i := range 1001 {
			nodes = append(nodes, fmt.Sprintf(`{id: n%d, type: wait, name: N, config: {duration: PT1S}}`, i))
		}
		refused(ctx, draft("large", strings.Join(nodes, ", "), edge), []string{"spec.workflow", "1002", "1000"}, create...)
	})

	DescribeTable("a draft with errors is kept, and does not run", func(ctx SpecContext, name, nodes, edges, code, place string) {
		accepted(ctx, draft(name, nodes, edges), create...)
		comp := &api.Composition{}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, s.key(name), comp)).To(Succeed())
			valid := apimeta.FindStatusCondition(comp.Status.Conditions, api.ConditionValid)
			g.Expect(valid).NotTo(BeNil())
			g.Expect(string(valid.Status)).To(Equal("False"))
			g.Expect(valid.Message).To(And(ContainSubstring(code), ContainSubstring(place)))
		}).Should(Succeed())

		accepted(ctx, fmt.Sprintf(`{apiVersion: axiom.apitomy.io/v1alpha1, kind: WorkflowRun, metadata: {name: %s}, spec: {compositionRef: {name: %s}}}`, name, name), create...)
		run := &api.WorkflowRun{}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, s.key(name), run)).To(Succeed())
			g.Expect(run.Status.Phase).To(Equal(api.RunFailed))
			verdict := apimeta.FindStatusCondition(run.Status.Conditions, api.ConditionAccepted)
			g.Expect(verdict).NotTo(BeNil())
			g.Expect(verdict.Reason).To(Equal(api.ReasonInvalidDefinition))
			g.Expect(verdict.Message).To(ContainSubstring(code))
		}).Should(Succeed())
	},
		Entry("an unknown node type", "unknown-type", startNode+`, {id: robot-1, type: robot, name: R, config: {}}, `+endNode, edge, "INVALID_NODE_TYPE", "nodes[robot-1]"),
		Entry("two nodes with one id", "twice", startNode+`, `+endNode+`, `+endNode, edge, "DUPLICATE_NODE_ID", "nodes[end-1]"),
		Entry("an edge to nowhere", "nowhere", startNode+`, `+endNode, edge+`, {id: edge-2, source: start-1, target: gone, priority: 1}`, "INVALID_EDGE_TARGET", "edges[edge-2]"),
		Entry("a condition that does not compile", "no-cel", startNode+`, `+endNode, `{id: edge-1, source: start-1, target: end-1, condition: "context.("}`, "INVALID_CONDITION", "edges[edge-1]"),
	)

	It("refuses an edit of what somebody changed meanwhile, with both revisions", func(ctx SpecContext) {
		accepted(ctx, draft("edited", startNode+`, `+endNode, edge), create...)
		before, err := as(ctx, "", "get", "comp", "edited", "-o", "jsonpath={.metadata.annotations.axiom\\.apitomy\\.io/base-revision}")
		Expect(err).NotTo(HaveOccurred(), before)
		accepted(ctx, "", "patch", "comp", "edited", "--type=merge", "-p", `{"spec":{"workflow":{"name":"faster"}}}`)
		stale := fmt.Sprintf(`{"metadata":{"annotations":{"axiom.apitomy.io/base-revision":%q}},"spec":{"workflow":{"name":"slower"}}}`, before)
		for _, dryRun := range []string{"--dry-run=server", "--dry-run=none"} {
			refused(ctx, "", []string{before, "is not the live revision sha256:"}, "patch", "comp", "edited", "--type=merge", dryRun, "-p", stale)
		}
		name, err := as(ctx, "", "get", "comp", "edited", "-o", "jsonpath={.spec.workflow.name}")
		Expect(err).NotTo(HaveOccurred())
		Expect(name).To(Equal("faster"))
	})

	It("refuses a second turn while one works, blank ones and those for nothing", func(ctx SpecContext) {
		turn := func(name, target, message string) string {
			return fmt.Sprintf(`{apiVersion: axiom.apitomy.io/v1alpha1, kind: Turn, metadata: {name: %s}, spec: {compositionRef: {name: %s}, message: %q}}`, name, target, message)
		}
		accepted(ctx, draft("busy", startNode+`, `+endNode, edge)+"  agent: {runtime: {image: some-image, command: [some-agent]}}\n", create...)
		accepted(ctx, turn("first", "busy", "Work."), create...)
		Eventually(func(g Gomega) {
			first := &api.Turn{}
			g.Expect(admin.Get(ctx, s.key("first"), first)).To(Succeed())
			g.Expect(first.Status.State).To(Equal(api.TurnWorking), "no node runs its pod here, so it stays")
		}).Should(Succeed())
		refused(ctx, turn("second", "busy", "Me too."), []string{"An AI turn is already running: first"}, create...)
		refused(ctx, turn("blank", "busy", "  "), []string{"spec.message", "blank"}, create...)
		refused(ctx, turn("lost", "no-such-composition", "Hello."), []string{"no-such-composition", "not found"}, create...)
		Expect(admin.Get(ctx, s.key("second"), &api.Turn{})).NotTo(Succeed())
	})

	It("refuses answers of the wrong type, beside other fields, or to a finished task, and changes nothing", func(ctx SpecContext) {
		accepted(ctx, `
apiVersion: axiom.apitomy.io/v1alpha1
kind: HumanTask
metadata: {name: question}
spec:
  humanContext: {title: "How many?"}
  form: {fields: [{name: count, type: number, required: true}]}
`, create...)
		answer := func(patch string) []string {
			return []string{"patch", "ht", "question", "--subresource=status", "--type=merge", "-p", patch}
		}
		refused(ctx, "", []string{"count: type"}, answer(`{"status":{"answer":{"count":"many"}}}`)...)
		refused(ctx, "", []string{"count: required"}, answer(`{"status":{"answer":{}}}`)...)
		refused(ctx, "", []string{"answer: type"}, answer(`{"status":{"answer":[1]}}`)...)
		refused(ctx, "", []string{"status.phase"}, answer(`{"status":{"answeredBy":{"username":"bob"},"phase":"Completed"}}`)...)
		refused(ctx, "", []string{"status.phase"}, answer(`{"status":{"phase":"Completed","answer":{"count":1}}}`)...)
		task := &api.HumanTask{}
		Expect(admin.Get(ctx, s.key("question"), task)).To(Succeed())
		Expect(task.Status.Answer).To(BeNil())
		Expect(task.Status.AnsweredBy).To(BeNil())

		accepted(ctx, "", answer(`{"status":{"answer":{"count":"3"}}}`)...)
		refused(ctx, "", []string{"already answered by alice"}, answer(`{"status":{"answer":{"count":4}}}`)...)
		refused(ctx, "", []string{"already answered by alice"}, answer(`{"status":{"answer":null,"failure":{"reason":"changed my mind"}}}`)...)
		Expect(admin.Get(ctx, s.key("question"), task)).To(Succeed())
		Expect(task.Status.Answer.Raw).To(MatchJSON(`{"count":"3"}`))
		Expect(task.Status.AnsweredBy.Username).To(Equal("alice"))
	})
})
