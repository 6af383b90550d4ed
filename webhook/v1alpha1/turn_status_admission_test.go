package v1alpha1_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
)

// waitOps put a wait between the start and the end.
const waitOps = `[{"op":"removeEdge","id":"edge-1"},
	{"op":"addNode","node":{"id":"wait-1","type":"wait","name":"Wait","config":{"duration":"PT1H"}}},
	{"op":"addEdge","edge":{"id":"edge-2","source":"start-1","target":"wait-1","priority":0,"isDefault":true}},
	{"op":"addEdge","edge":{"id":"edge-3","source":"wait-1","target":"end-1","priority":0,"isDefault":true}}]`

// proposal is a change set as the gateway records it.
type proposal struct {
	ID           string `json:"id"`
	BaseRevision string `json:"baseRevision"`
	Author       string `json:"author"`
	Summary      string `json:"summary"`
	Ops          []any  `json:"ops"`
}

var _ = Describe("The record of a turn", func() {
	var (
		ns   string
		turn *api.Turn
		work content.Store
	)
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		work = content.Store{Client: operator}
		create(ctx, admin, newComposition(ns, "triage", blankFlow))
		turn = create(ctx, alice, newTurn(ns, "t", "triage"))
	})

	store := func(ctx context.Context, text string) *api.ContentRef {
		GinkgoHelper()
		ref, err := work.Put(ctx, turn, []byte(text))
		Expect(err).NotTo(HaveOccurred())
		return &ref
	}
	// begin records the start of the turn on a workflow.
	begin := func(ctx context.Context, flow string) {
		GinkgoHelper()
		turn.Status = api.TurnStatus{
			State: api.TurnWorking, Base: store(ctx, flow), BaseRevision: revision(flow), WorkingRevision: revision(flow),
		}
		Expect(operator.Status().Update(ctx, turn)).To(Succeed())
	}
	// propose records one more change set on base, and returns the working
	// revision that it makes.
	propose := func(base map[string]any, ops string) (map[string]any, *api.Turn) {
		GinkgoHelper()
		var list []any
		Expect(json.Unmarshal([]byte(ops), &list)).To(Succeed())
		rev, err := changeset.Revision(base)
		Expect(err).NotTo(HaveOccurred())
		set := proposal{ID: "cs", BaseRevision: rev, Author: api.AuthorWorkbench, Ops: list}
		next := turn.DeepCopy()
		result, rejection := changeset.Apply(base, list)
		after := rev
		if rejection == nil {
			after, err = changeset.Revision(result)
			Expect(err).NotTo(HaveOccurred())
		}
		next.Status.ChangeSets = append(next.Status.ChangeSets, api.AcceptedChangeSet{
			ID: set.ID, Ops: int32(len(list)), Revision: after, Content: rawOf(set),
		})
		next.Status.WorkingRevision = after
		return result, next
	}
	// refused writes a status for which there must be an error, dry and wet.
	refused := func(ctx context.Context, next *api.Turn, parts ...string) {
		GinkgoHelper()
		Expect(operator.Status().Update(ctx, next.DeepCopy(), client.DryRunAll)).To(beRefused(422, parts...))
		Expect(operator.Status().Update(ctx, next.DeepCopy())).To(beRefused(422, parts...))
	}

	It("attack: is written by the operator alone", func(ctx SpecContext) {
		for _, as := range []person{alice, admin} {
			Expect(as.Status().Patch(ctx, turn, mergePatch(`{"status":{"state":"Working"}}`))).
				To(beRefused(403, "only the operator writes the status"))
		}
		setState(ctx, turn, api.TurnPending)
	})

	It("moves along the states of a turn only", func(ctx SpecContext) {
		setState(ctx, turn, api.TurnPending)
		turn.Status.State = api.TurnApplied
		refused(ctx, turn, "status.state", "must not follow Pending")
		setState(ctx, turn, api.TurnRefused)
		turn.Status.State = api.TurnWorking
		refused(ctx, turn, "status.state", "must not follow Refused")
	})

	It("grows by change sets that apply to the working workflow", func(ctx SpecContext) {
		begin(ctx, blankFlow)
		working, next := propose(document(blankFlow), waitOps)
		Expect(operator.Status().Update(ctx, next)).To(Succeed())
		turn = next

		By("one kept outside")
		_, next = propose(working, `[{"op":"metadata","patch":{"description":"With a pause"}}]`)
		last := &next.Status.ChangeSets[1]
		last.Ref, last.Content = store(ctx, string(last.Content.Raw)), nil
		Expect(operator.Status().Update(ctx, next)).To(Succeed())
		turn = next

		By("anything else of the status")
		turn.Status.Reply = "Done."
		setState(ctx, turn, api.TurnAwaitingResolution, api.TurnApplied)
	})

	It("refuses what was not accepted by the rules of change sets", func(ctx SpecContext) {
		begin(ctx, blankFlow)
		_, next := propose(document(blankFlow), `[{"op":"removeEdge","id":"edge-1"},{"op":"removeNode","id":"ghost"}]`)
		refused(ctx, next, "status.changeSets[0]", "target-missing at op 1")

		_, next = propose(document(renamed("other")), waitOps)
		refused(ctx, next, "status.changeSets[0]", "stale", revision(renamed("other")), revision(blankFlow))

		_, next = propose(document(blankFlow), `[{"op":"restore","member":"name"}]`)
		refused(ctx, next, "status.changeSets[0]", "malformed at op 0")

		_, next = propose(document(blankFlow), waitOps)
		next.Status.ChangeSets[0].Content = raw(`{"baseRevision":"` + revision(blankFlow) + `"}`)
		refused(ctx, next, "status.changeSets[0]", "malformed")

		_, next = propose(document(blankFlow), waitOps)
		next.Status.ChangeSets[0].Content = nil
		refused(ctx, next, "status.changeSets[0]", "malformed")

		next.Status.ChangeSets[0].Ref = &api.ContentRef{Digest: content.Digest([]byte("nowhere"))}
		refused(ctx, next, "status.changeSets[0]", "not stored")
	})

	It("refuses revisions and counts that are not those of the result", func(ctx SpecContext) {
		begin(ctx, blankFlow)
		_, good := propose(document(blankFlow), waitOps)

		next := good.DeepCopy()
		next.Status.WorkingRevision = revision(blankFlow)
		refused(ctx, next, "status.workingRevision", good.Status.WorkingRevision)

		next = good.DeepCopy()
		next.Status.ChangeSets[0].Revision = revision(blankFlow)
		refused(ctx, next, "status.changeSets[0]", "`revision` must be", good.Status.WorkingRevision)

		next = good.DeepCopy()
		next.Status.ChangeSets[0].Ops = 3
		refused(ctx, next, "status.changeSets[0]", "`ops` must be 4")

		next = turn.DeepCopy()
		next.Status.WorkingRevision = ""
		refused(ctx, next, "status.workingRevision", revision(blankFlow))
	})

	It("keeps what was accepted", func(ctx SpecContext) {
		begin(ctx, blankFlow)
		_, next := propose(document(blankFlow), waitOps)
		Expect(operator.Status().Update(ctx, next)).To(Succeed())
		turn = next

		shrunk := turn.DeepCopy()
		shrunk.Status.ChangeSets, shrunk.Status.WorkingRevision = nil, revision(blankFlow)
		refused(ctx, shrunk, "status.changeSets", "must only grow")

		changed := turn.DeepCopy()
		changed.Status.ChangeSets[0].ID = "other"
		refused(ctx, changed, "status.changeSets[0]", "must not change")
	})

	It("takes its base once", func(ctx SpecContext) {
		By("a base that is not the revision's")
		next := turn.DeepCopy()
		next.Status = api.TurnStatus{State: api.TurnWorking, Base: store(ctx, blankFlow), BaseRevision: revision(renamed("x")), WorkingRevision: revision(renamed("x"))}
		refused(ctx, next, "status.baseRevision", revision(blankFlow))
		next.Status.Base = nil
		refused(ctx, next, "status.base", "together")
		next.Status.Base = &api.ContentRef{Digest: content.Digest([]byte("nowhere"))}
		refused(ctx, next, "status.base", "not stored")

		By("a workflow that the agent makes")
		setState(ctx, turn, api.TurnWorking)
		begin(ctx, blankFlow)

		next = turn.DeepCopy()
		next.Status.Base, next.Status.BaseRevision, next.Status.WorkingRevision = store(ctx, renamed("x")), revision(renamed("x")), revision(renamed("x"))
		refused(ctx, next, "status.baseRevision", "status.base", "must not change once it is set")
	})

	It("needs a workflow for change sets", func(ctx SpecContext) {
		setState(ctx, turn, api.TurnWorking)
		_, next := propose(document(blankFlow), waitOps)
		refused(ctx, next, "status.changeSets[0]", "malformed")
	})

	It("can end when its stored work is lost", func(ctx SpecContext) {
		begin(ctx, blankFlow)
		lost := &api.ContentRef{}
		*lost = *turn.Status.Base
		Expect(admin.Delete(ctx, configMap(ns, content.Name(lost.Digest)))).To(Succeed())
		setState(ctx, turn, api.TurnFailed)
	})

	It("never holds a working revision that its change sets do not make", func(ctx SpecContext) {
		begin(ctx, blankFlow)
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 7))
		working := document(blankFlow)
		for range 40 {
			ops := []string{
				waitOps, `[{"op":"metadata","patch":{"version":2}}]`, `[{"op":"removeNode","id":"end-1"}]`,
				`[{"op":"renameNode","id":"start-1","newId":"begin"}]`, `[{"op":"nope"}]`, `[]`,
			}[rng.IntN(6)]
			result, next := propose(working, ops)
			honest := result != nil
			switch rng.IntN(4) {
			case 0:
				next.Status.WorkingRevision, honest = revision(renamed("forged")), false
			case 1:
				next.Status.ChangeSets[len(next.Status.ChangeSets)-1].Revision, honest = revision(renamed("forged")), false
			}
			err := operator.Status().Update(ctx, next)
			Expect(err == nil).To(Equal(honest), "%s: %v", ops, err)
			if err == nil {
				turn, working = next, result
			}
			stored := reload(ctx, turn.DeepCopy())
			rev, err := changeset.Revision(working)
			Expect(err).NotTo(HaveOccurred())
			Expect(stored.Status.WorkingRevision).To(Equal(rev))
		}
	})
})
