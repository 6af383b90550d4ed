package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/turns"
)

func meta(w *world, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: w.namespace}
}

func (w *world) getComposition() openapi.AgentComposition {
	GinkgoHelper()
	return into[openapi.AgentComposition](w.try(compositionRoutes[0], tokenOf(w, "triage-agent")))
}

func (w *world) propose(set any) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	return w.call("POST", w.path("/compositions/{ns}/triage/agent/workflow/changesets"), tokenOf(w, "triage-agent"), set)
}

var _ = Describe("The composition", func() {
	It("is shown as it is live while no turn runs", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		comp := w.composition("triage", blank())
		w.session("triage-agent", "triage")
		comp.Spec.Tools = []api.NamedTool{
			{Name: "say", ToolSpec: api.ToolSpec{Description: "Says something", Interpreter: "cobol", ScriptTemplate: "echo"}},
			{Name: "ask", ToolSpec: api.ToolSpec{Description: "Asks", ScriptTemplate: "echo"}},
		}
		comp.Spec.ActionTypes = []api.NamedActionType{{Name: "work"}}
		Expect(k8s.Update(ctx, comp)).To(Succeed())

		got := w.getComposition()
		Expect(got.CompositionID).To(Equal(w.namespace + "/triage"))
		Expect(got.TurnID).To(BeEmpty())
		Expect(got.Goal).To(Equal("Close old issues"))
		Expect(got.WorkflowName).To(Equal("triage"))
		Expect(got.WorkflowRevision).To(Equal(revisionOf(blank())))
		Expect(string(got.Workflow)).To(MatchJSON(raw(blank()).Raw))
		Expect(got.Items).To(HaveLen(4))
		Expect(got.Items[0]).To(Equal(openapi.Item{
			Type: "workflow", Name: "triage", ContentRevision: revisionOf(blank()), Valid: true, Problems: []openapi.ItemProblem{},
		}))
		Expect([]string{got.Items[1].Name, got.Items[2].Name, got.Items[3].Name}).To(Equal([]string{"work", "ask", "say"}))
		Expect(got.Items[2].Valid).To(BeTrue())
		Expect(got.Items[3].Valid).To(BeFalse())
		Expect(got.Items[3].Problems).To(ContainElement(And(
			HaveField("Severity", openapi.SeverityError), HaveField("Code", "INVALID_INTERPRETER"), HaveField("Path", "interpreter"))))
		for _, item := range got.Items {
			Expect(item.ContentRevision).To(HavePrefix("sha256:"))
		}
	}, NodeTimeout(time.Minute))

	It("is shown as the turn has made it while one runs", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		comp, _ := w.workbench()
		Expect(into[openapi.ProposalResult](w.propose(changeSet("cs-1", revisionOf(blank()), "Triage 2"))).Applied).To(BeTrue())
		comp = reload(w, comp)
		comp.Spec.Workflow = raw(map[string]any{"id": "triage", "name": "edited by a person", "nodes": []any{}, "edges": []any{}})
		Expect(k8s.Update(ctx, comp)).To(Succeed())

		want := blank()
		want["name"] = "Triage 2"
		got := w.getComposition()
		Expect(got.TurnID).To(Equal("triage-1"))
		Expect(got.WorkflowName).To(Equal("Triage 2"))
		Expect(got.WorkflowRevision).To(Equal(revisionOf(want)))
		Expect(string(got.Workflow)).To(MatchJSON(raw(want).Raw))
	}, NodeTimeout(time.Minute))

	It("may have no workflow", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		comp := w.composition("triage", nil)
		w.session("triage-agent", "triage")
		w.turn(comp, "triage-1")
		got := w.call("GET", w.path("/compositions/{ns}/triage/agent/composition"), tokenOf(w, "triage-agent"), nil)
		Expect(got.body).To(MatchJSON(fmt.Sprintf(
			`{"compositionId": %q, "goal": "Close old issues", "turnId": "triage-1", "items": []}`, w.namespace+"/triage")))
		expectProblem(w.propose(changeSet("cs-1", "", "x")), http.StatusBadRequest, openapi.ProblemCodeInvalid,
			"The composition has no workflow yet; create one with upsert_item type workflow")
	}, NodeTimeout(time.Minute))

	It("may be gone while its session still lives", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{})
		comp, _ := w.workbench()
		Expect(k8s.Delete(ctx, comp)).To(Succeed())
		for _, r := range compositionRoutes {
			expectProblem(w.try(r, tokenOf(w, "triage-agent")), http.StatusNotFound, openapi.ProblemCodeNotFound, "triage not found")
		}
	}, NodeTimeout(time.Minute))
})

var _ = Describe("A change set", func() {
	var w *world
	var comp *api.Composition
	var turn *api.Turn
	base := func() string { return revisionOf(blank()) }

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		comp, turn = w.workbench()
	}, NodeTimeout(time.Minute))

	It("workbench 11: becomes part of the working document, and of nothing else", func(ctx context.Context) {
		w.ctx = ctx
		first := into[openapi.ProposalResult](w.propose(changeSet("cs-1", base(), "Triage 2")))
		Expect(first.Applied).To(BeTrue())
		Expect(first.Error).To(BeNil())
		Expect(first.Problems).To(BeEmpty())
		second := into[openapi.ProposalResult](w.propose(map[string]any{
			"baseRevision": first.ContentRevision, "author": "host",
			"ops": []any{map[string]any{"op": "removeEdge", "id": "edge-1"}},
		}))
		Expect(second.Applied).To(BeTrue())
		Expect(second.Problems).To(ContainElement(And(
			HaveField("Severity", openapi.SeverityError), HaveField("Path", "nodes[start-1]"), HaveField("Message", Not(BeEmpty())))))

		got := reload(w, turn)
		Expect(got.Status.WorkingRevision).To(Equal(second.ContentRevision))
		Expect(got.Status.BaseRevision).To(Equal(base()))
		Expect(got.Status.RejectedProposals).To(BeZero())
		Expect(got.Status.ChangeSets).To(HaveLen(2))
		Expect(got.Status.ChangeSets[0]).To(And(HaveField("ID", "cs-1"), HaveField("Ops", int32(1)), HaveField("Revision", first.ContentRevision)))
		sets, err := turns.ChangeSets(ctx, content.Store{Client: k8s}, got)
		Expect(err).NotTo(HaveOccurred())
		Expect(sets[0].Author).To(Equal("agent:axiom-workbench"))
		Expect(sets[1].Author).To(Equal("agent:axiom-workbench"))
		Expect(sets[1].BaseRevision).To(Equal(first.ContentRevision))
		Expect(reload(w, comp).Spec).To(Equal(comp.Spec))
	}, NodeTimeout(time.Minute))

	It("is kept by reference when it is large", func(ctx context.Context) {
		w.ctx = ctx
		set := changeSet("cs-1", base(), strings.Repeat("n", 5000))
		Expect(into[openapi.ProposalResult](w.propose(set)).Applied).To(BeTrue())
		got := reload(w, turn)
		Expect(got.Status.ChangeSets[0].Content).To(BeNil())
		Expect(got.Status.ChangeSets[0].Ref.Size).To(BeNumerically(">", 5000))
		working, err := turns.Working(ctx, content.Store{Client: k8s}, got)
		Expect(err).NotTo(HaveOccurred())
		Expect(working["name"]).To(Equal(strings.Repeat("n", 5000)))
	}, NodeTimeout(time.Minute))

	DescribeTable("is refused", func(ctx context.Context, set any, code openapi.RejectionCode, opIndex *int, reason string) {
		w.ctx = ctx
		result := into[openapi.ProposalResult](w.propose(set))
		Expect(result.Applied).To(BeFalse())
		Expect(result.ContentRevision).To(BeEmpty())
		Expect(result.Problems).To(Equal([]openapi.ItemProblem{}))
		Expect(result.Error.Code).To(Equal(code))
		Expect(result.Error.OpIndex).To(Equal(opIndex))
		Expect(result.Error.Reason).To(ContainSubstring(reason))

		got := reload(w, turn)
		Expect(got.Status.RejectedProposals).To(Equal(int32(1)))
		got.Status.RejectedProposals = 0
		Expect(got.Status).To(Equal(turn.Status))
	},
		Entry("that is no object", "[]", openapi.RejectionCodeMalformed, nil, "not an object", NodeTimeout(time.Minute)),
		Entry("that is null", "null", openapi.RejectionCodeMalformed, nil, "not an object", NodeTimeout(time.Minute)),
		Entry("on another base", changeSet("cs-1", "sha256:00", "x"), openapi.RejectionCodeStale, nil,
			"Base revision sha256:00 is not the current working revision "+revisionText()+"; call get_composition", NodeTimeout(time.Minute)),
		Entry("without a base", `{"ops":[]}`, openapi.RejectionCodeStale, nil,
			"Base revision (none) is not the current working revision", NodeTimeout(time.Minute)),
		Entry("with a very long base", changeSet("cs-1", strings.Repeat("b", 1000), "x"), openapi.RejectionCodeStale, nil,
			"Base revision "+strings.Repeat("b", 80)+" is not", NodeTimeout(time.Minute)),
		Entry("without ops", map[string]any{"baseRevision": revisionText()}, openapi.RejectionCodeMalformed, nil, "ops", NodeTimeout(time.Minute)),
		Entry("with a bad operation", map[string]any{"baseRevision": revisionText(), "ops": []any{
			map[string]any{"op": "removeEdge", "id": "edge-1"}, map[string]any{"op": "removeEdge", "id": "edge-9"},
		}}, openapi.RejectionCodeTargetMissing, new(1), "edge-9", NodeTimeout(time.Minute)),
		Entry("that restores, whoever it says it is by", map[string]any{"baseRevision": revisionText(), "author": "host", "ops": []any{
			map[string]any{"op": "restore", "member": "name", "value": "x"},
		}}, openapi.RejectionCodeMalformed, new(0), "restore", NodeTimeout(time.Minute)),
	)

	It("workbench 11: is stale when it is sent again, or comes on the old base", func(ctx context.Context) {
		w.ctx = ctx
		set := changeSet("cs-1", base(), "Triage 2")
		Expect(into[openapi.ProposalResult](w.propose(set)).Applied).To(BeTrue())
		again := into[openapi.ProposalResult](w.propose(set))
		Expect(again.Error.Code).To(Equal(openapi.RejectionCodeStale))
		Expect(reload(w, turn).Status.ChangeSets).To(HaveLen(1))
	}, NodeTimeout(time.Minute))

	It("needs a running turn", func(ctx context.Context) {
		w.ctx = ctx
		noTurn := func() {
			GinkgoHelper()
			expectProblem(w.propose(changeSet("cs-1", base(), "x")), http.StatusConflict, openapi.ProblemCodeNoTurn, "No AI turn is running")
		}
		By("a turn that is over")
		turn.Status.State = api.TurnAwaitingResolution
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		noTurn()
		By("a turn of the same name that did not claim the composition")
		turn.Status.State = api.TurnWorking
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		comp.Status.Claim.UID = "another"
		Expect(k8s.Status().Update(ctx, comp)).To(Succeed())
		noTurn()
		By("an idle composition")
		comp.Status.TurnState, comp.Status.CurrentTurn, comp.Status.Claim = api.TurnStateIdle, "", nil
		Expect(k8s.Status().Update(ctx, comp)).To(Succeed())
		noTurn()
		By("a turn that is missing")
		comp.Status.TurnState, comp.Status.CurrentTurn = api.TurnStateWorking, "gone"
		Expect(k8s.Status().Update(ctx, comp)).To(Succeed())
		noTurn()
	}, NodeTimeout(time.Minute))

	DescribeTable("is too much for a turn", func(ctx context.Context, fill func(*api.TurnStatus), fits, tooMuch int) {
		w.ctx = ctx
		fill(&turn.Status)
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		ops := func(n int) map[string]any {
			set := changeSet("cs-1", "sha256:00", "x")
			list := []any{}
			for range n {
				list = append(list, map[string]any{"op": "removeEdge", "id": "edge-1"})
			}
			set["ops"] = list
			return set
		}
		expectProblem(w.propose(ops(tooMuch)), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge,
			"This turn is full; finish it and continue in a new turn")
		if fits >= 0 { // it is looked at
			Expect(into[openapi.ProposalResult](w.propose(ops(fits))).Error).NotTo(BeNil())
		}
	},
		Entry("with 64 sets", func(s *api.TurnStatus) { s.ChangeSets = noOps(64, 0) }, -1, 0, NodeTimeout(time.Minute)),
		Entry("with 2,000 operations", func(s *api.TurnStatus) { s.ChangeSets = noOps(2, 999) }, 2, 3, NodeTimeout(time.Minute)),
		Entry("of 512 KiB", func(s *api.TurnStatus) {
			s.ChangeSets = noOps(1, 0)
			s.ChangeSets[0].Ref = &api.ContentRef{Digest: "sha256:" + strings.Repeat("0", 64), Size: 512<<10 - 200}
			s.ChangeSets[0].Content = nil
		}, -1, 10, NodeTimeout(time.Minute)),
	)

	It("is answered with an error when the recorded working revision is not that of the document", func(ctx context.Context) {
		w.ctx = ctx
		turn.Status.WorkingRevision = "sha256:00"
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		Expect(w.propose(changeSet("cs-1", "sha256:00", "x")).status).To(Equal(http.StatusServiceUnavailable))
		Expect(reload(w, turn).Status).To(Equal(turn.Status))
	}, NodeTimeout(time.Minute))
})

// revisionText is the revision of the blank workflow, for tables.
func revisionText() string {
	return "sha256:" + blankDigest
}

// blankDigest is checked against the document by a test of its own.
const blankDigest = "8c4bc9e35db2aa5fb650922f68d11afe2f66400f2a3e32e2f00688a681dfce13"

var _ = It("The blank workflow has the revision that the tables name", func() {
	Expect(revisionOf(blank())).To(Equal(revisionText()))
})

// noOps are n accepted sets that count as ops operations each and do nothing.
func noOps(n int, ops int32) []api.AcceptedChangeSet {
	sets := make([]api.AcceptedChangeSet, n)
	for i := range sets {
		sets[i] = api.AcceptedChangeSet{Ops: ops, Revision: revisionText(), Content: raw(map[string]any{"ops": []any{}})}
	}
	return sets
}

var _ = Describe("Change sets that race", func() {
	It("are accepted once, and stale once", func(ctx context.Context) {
		barrier := newBarrier(2)
		w := newWorld(ctx, interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if _, isTurn := o.(*api.Turn); isTurn {
				barrier.wait()
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		}})
		_, turn := w.workbench()
		results := make(chan openapi.ProposalResult, 2)
		for i := range 2 {
			go func() {
				defer GinkgoRecover()
				results <- into[openapi.ProposalResult](w.propose(changeSet("cs", revisionOf(blank()), fmt.Sprintf("name %d", i))))
			}()
		}
		first, second := <-results, <-results
		Expect(first.Applied).NotTo(Equal(second.Applied))
		loser := first
		if first.Applied {
			loser = second
		}
		Expect(loser.Error.Code).To(Equal(openapi.RejectionCodeStale))
		got := reload(w, turn)
		Expect(got.Status.ChangeSets).To(HaveLen(1))
		Expect(got.Status.RejectedProposals).To(Equal(int32(1)))
	}, NodeTimeout(time.Minute))

	It("are given up after five conflicts in a row", func(ctx context.Context) {
		tries := 0
		w := newWorld(ctx, interceptor.Funcs{SubResourceUpdate: func(
			_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			tries++
			return apierrors.NewConflict(schema.GroupResource{Resource: "turns"}, o.GetName(), nil)
		}})
		_, turn := w.workbench()
		got := w.propose(changeSet("cs-1", revisionOf(blank()), "x"))
		expectProblem(got, http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, "Others keep changing")
		Expect(got.header.Get("Retry-After")).To(Equal("1"))
		Expect(tries).To(Equal(5))
		Expect(reload(w, turn).Status).To(Equal(turn.Status))
	}, NodeTimeout(time.Minute))

	It("are refused when admission does not like them", func(ctx context.Context) {
		w := newWorld(ctx, interceptor.Funcs{SubResourceUpdate: func(
			_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Turn"}, o.GetName(), nil)
		}})
		w.workbench()
		expectProblem(w.propose(changeSet("cs-1", revisionOf(blank()), "x")), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "triage-1")
	}, NodeTimeout(time.Minute))

	It("are recorded even when the caller hangs up after the checks", func(ctx context.Context) {
		request, hangUp := context.WithCancel(ctx)
		w := newWorld(ctx, interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			hangUp()
			return c.SubResource(sub).Update(ctx, o, opts...)
		}})
		_, turn := w.workbench()
		w.serve(request, "POST", "/compositions/{ns}/triage/agent/workflow/changesets", changeSet("cs-1", revisionOf(blank()), "x"))
		Expect(reload(w, turn).Status.ChangeSets).To(HaveLen(1))
	}, NodeTimeout(time.Minute))
})

// barrier lets the first n callers go on together, and all later ones at once.
type barrier struct {
	mu     sync.Mutex
	left   int
	opened chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{left: n, opened: make(chan struct{})} }

func (b *barrier) wait() {
	b.mu.Lock()
	b.left--
	if b.left == 0 {
		close(b.opened)
	}
	b.mu.Unlock()
	<-b.opened
}
