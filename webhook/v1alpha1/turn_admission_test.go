package v1alpha1_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A turn", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	// claim makes the composition one that an agent works on.
	claim := func(ctx context.Context, c *api.Composition, turn string) {
		GinkgoHelper()
		c.Status.TurnState, c.Status.CurrentTurn = api.TurnStateWorking, turn
		Expect(operator.Status().Update(ctx, c)).To(Succeed())
	}

	Describe("at creation", func() {
		DescribeTable("is refused when", func(ctx SpecContext, change func(t *api.Turn), code int, parts ...string) {
			create(ctx, admin, staged(newComposition(ns, "triage", blankFlow)))
			turn := newTurn(ns, "t", "triage")
			change(turn)
			Expect(bob.Create(ctx, turn, client.DryRunAll)).To(beRefused(code, parts...))
			Expect(bob.Create(ctx, turn)).To(beRefused(code, parts...))
		},
			Entry("the message is blank", func(t *api.Turn) { t.Spec.Message = " \n\t" }, 422, "spec.message", "must not be blank"),
			Entry("the message is blank in another script", func(t *api.Turn) { t.Spec.Message = "\u2003\u3000" }, 422, "spec.message", "must not be blank"),
			Entry("the message is too long", func(t *api.Turn) { t.Spec.Message = strings.Repeat("é", 40000) }, 422, "spec.message", "80000", "65536"),
			Entry("the name is too long", func(t *api.Turn) { t.Name = strings.Repeat("n", 58) }, 422, "metadata.name", "57"),
			Entry("the composition is not there", func(t *api.Turn) { t.Spec.CompositionRef.Name = "none" }, 404, `compositions.axiom.apitomy.io "none" not found`),
			Entry("it is a retry", func(t *api.Turn) { t.Spec.RetryOf = "t0" }, 403, "spec.retryOf", "only the operator"),
			Entry("it is resolved", func(t *api.Turn) { t.Spec.Resolution = api.ResolutionRejected }, 422, "spec.resolution", "must not be set at creation"),
			Entry("it is interrupted", func(t *api.Turn) { t.Spec.Interrupt = true }, 422, "spec.interrupt", "must not be set at creation"),
			Entry("it is undone", func(t *api.Turn) { t.Spec.Undo = true }, 422, "spec.undo", "must not be set at creation"),
		)

		It("needs the right to update a composition that it changes at once", func(ctx SpecContext) {
			direct := newComposition(ns, "direct", blankFlow)
			automatic := staged(newComposition(ns, "automatic", blankFlow))
			automatic.Spec.Agent.ChangeSetPolicy = api.ChangeSetAutomatic
			create(ctx, admin, direct)
			create(ctx, admin, automatic)
			create(ctx, admin, staged(newComposition(ns, "staged", blankFlow)))
			for _, name := range []string{"direct", "automatic"} {
				Expect(bob.Create(ctx, newTurn(ns, "bob-"+name, name))).To(beRefused(403, `user "bob"`, "must be allowed to update composition "+name))
				Expect(alice.Create(ctx, newTurn(ns, "alice-"+name, name))).To(Succeed())
			}
			Expect(bob.Create(ctx, newTurn(ns, "bob-staged", "staged"))).To(Succeed())
		})

		It("needs the right for this composition, in this namespace", func(ctx SpecContext) {
			elsewhere := newNamespace(ctx)
			for _, in := range []string{ns, elsewhere} {
				create(ctx, admin, newComposition(in, "his", blankFlow))
				create(ctx, admin, newComposition(in, "hers", blankFlow))
			}
			role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"compositions"}, Verbs: []string{"update"}, ResourceNames: []string{"his"},
			}}}
			role.Namespace, role.Name = ns, "his"
			create(ctx, admin, role)
			binding := &rbacv1.RoleBinding{
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: bob.name}},
			}
			binding.Namespace, binding.Name = ns, "his"
			create(ctx, admin, binding)

			// The authorizer learns of the role a moment later.
			Eventually(func() error { return bob.Create(ctx, newTurn(ns, "t1", "his")) }).Should(Succeed())
			Expect(bob.Create(ctx, newTurn(ns, "t2", "hers"))).To(beRefused(403, "update composition hers"))
			Expect(bob.Create(ctx, newTurn(elsewhere, "t3", "his"))).To(beRefused(403, "update composition his"))
		})

		It("waits for the running turn", func(ctx SpecContext) {
			c := create(ctx, admin, staged(newComposition(ns, "triage", blankFlow)))
			claim(ctx, c, "t0")
			Expect(bob.Create(ctx, newTurn(ns, "t1", "triage"))).To(beRefused(409, "An AI turn is already running: t0"))
			By("the operator, whose claim decides")
			Expect(operator.Create(ctx, newTurn(ns, "t2", "triage"))).To(Succeed())
		})

		It("needs a session that is not stopped", func(ctx SpecContext) {
			c := create(ctx, admin, staged(newComposition(ns, "triage", blankFlow)))
			c.Status.Session = "triage-agent"
			Expect(operator.Status().Update(ctx, c)).To(Succeed())
			By("no session yet")
			create(ctx, bob, newTurn(ns, "t1", "triage"))
			session := newSession(ns, "triage-agent")
			session.Spec.CompositionRef, session.Spec.Stopped = &api.LocalRef{Name: "triage"}, true
			create(ctx, operator, session)
			Expect(bob.Create(ctx, newTurn(ns, "t2", "triage"))).To(beRefused(409, "agent session triage-agent is stopped"))
		})

		It("may ask a free-standing session only, one that is idle and lives", func(ctx SpecContext) {
			ask := func(name, session string) *api.Turn {
				t := newTurn(ns, name, "")
				t.Spec.CompositionRef, t.Spec.SessionRef = nil, &api.LocalRef{Name: session}
				return t
			}
			Expect(bob.Create(ctx, ask("t1", "none"))).To(beRefused(404, `agentsessions.axiom.apitomy.io "none" not found`))

			bound := newSession(ns, "bound")
			bound.Spec.CompositionRef = &api.LocalRef{Name: "triage"}
			create(ctx, operator, bound)
			Expect(bob.Create(ctx, ask("t1", "bound"))).To(beRefused(422, "spec.sessionRef.name", "free-standing"))

			free := create(ctx, alice, newSession(ns, "free"))
			selecting := ask("t1", "free")
			selecting.Spec.Selection = &api.Selection{Nodes: []string{"end-1"}}
			Expect(bob.Create(ctx, selecting)).To(beRefused(422, "spec.selection", "compositions only"))
			Expect(bob.Create(ctx, ask("t1", "free"))).To(Succeed())

			free.Status.CurrentTurn, free.Status.Capabilities = "t1", []string{}
			Expect(operator.Status().Update(ctx, free)).To(Succeed())
			Expect(bob.Create(ctx, ask("t2", "free"))).To(beRefused(409, "An AI turn is already running: t1"))
			setState(ctx, reload(ctx, ask("t1", "free")), api.TurnWorking, api.TurnCompleted)
			Expect(bob.Create(ctx, ask("t2", "free"), client.DryRunAll)).To(Succeed(), "its turn is over")

			free.Status.CurrentTurn = ""
			Expect(operator.Status().Update(ctx, free)).To(Succeed())
			Expect(alice.Patch(ctx, free, mergePatch(`{"spec":{"stopped":true}}`))).To(Succeed())
			Expect(bob.Create(ctx, ask("t2", "free"))).To(beRefused(409, "agent session free is stopped"))
		})

		It("can be a retry of the operator's", func(ctx SpecContext) {
			create(ctx, admin, newComposition(ns, "triage", blankFlow))
			retry := newTurn(ns, "t-retry", "triage")
			retry.Spec.RetryOf = "t"
			retry.Annotations = map[string]string{api.AnnotationRequestedBy: "bob"}
			retry.Name = strings.Repeat("t", 57) + "-retry"
			create(ctx, operator, retry)
			Expect(retry.Annotations).To(HaveKeyWithValue(api.AnnotationRequestedBy, "bob"))
		})

		It("works with a generated name", func(ctx SpecContext) {
			create(ctx, admin, staged(newComposition(ns, "triage", blankFlow)))
			turn := newTurn(ns, "", "triage")
			turn.GenerateName = "triage-"
			create(ctx, bob, turn)
			Expect(turn.Name).To(HavePrefix("triage-"))
		})
	})

	Describe("its stamps", func() {
		forged := map[string]string{
			api.AnnotationRequestedBy: "mallory", api.AnnotationResolvedBy: "mallory",
			api.AnnotationInterruptedBy: "mallory", api.AnnotationUndoneBy: "mallory",
		}

		It("attack: tell who asked, interrupted and resolved, whatever clients claim", func(ctx SpecContext) {
			create(ctx, admin, staged(newComposition(ns, "triage", blankFlow)))
			turn := newTurn(ns, "t", "triage")
			turn.Annotations = forged
			create(ctx, bob, turn)
			Expect(turn.Annotations).To(Equal(map[string]string{api.AnnotationRequestedBy: "bob"}))

			setState(ctx, turn, api.TurnPending, api.TurnWorking)
			Expect(carol.Patch(ctx, turn, mergePatch(`{"spec":{"interrupt":true}}`))).To(Succeed())
			setState(ctx, turn, api.TurnAwaitingResolution)
			Expect(alice.Patch(ctx, turn, mergePatch(`{"metadata":{"annotations":{%q:"mallory"}},"spec":{"resolution":"Accepted"}}`, api.AnnotationResolvedBy))).To(Succeed())
			want := map[string]string{
				api.AnnotationRequestedBy: "bob", api.AnnotationInterruptedBy: "carol", api.AnnotationResolvedBy: "alice",
			}
			Expect(turn.Annotations).To(Equal(want))

			By("forging them later")
			turn.Annotations = forged
			Expect(alice.Update(ctx, turn)).To(Succeed())
			Expect(turn.Annotations).To(Equal(want))
			By("dropping them")
			turn.Annotations = nil
			Expect(alice.Update(ctx, turn)).To(Succeed())
			Expect(turn.Annotations).To(Equal(want))
		})

		It("are the operator's to set on behalf of others", func(ctx SpecContext) {
			create(ctx, admin, newComposition(ns, "triage", blankFlow))
			turn := create(ctx, alice, newTurn(ns, "t", "triage"))
			Expect(operator.Patch(ctx, turn, mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed())
			Expect(turn.Annotations).To(Equal(map[string]string{api.AnnotationRequestedBy: "alice"}))
			Expect(operator.Patch(ctx, turn, mergePatch(`{"metadata":{"annotations":{%q:"bob"}}}`, api.AnnotationUndoneBy))).To(Succeed())
			Expect(turn.Annotations).To(HaveKeyWithValue(api.AnnotationUndoneBy, "bob"))
		})
	})

	Describe("a decision", func() {
		const accept, reject, interrupt, undo = `{"spec":{"resolution":"Accepted"}}`, `{"spec":{"resolution":"Rejected"}}`,
			`{"spec":{"interrupt":true}}`, `{"spec":{"undo":true}}`

		DescribeTable("is refused", func(ctx SpecContext, states []api.TurnPhase, patch string, code int, message string) {
			create(ctx, admin, newComposition(ns, "triage", blankFlow))
			turn := create(ctx, alice, newTurn(ns, "t", "triage"))
			setState(ctx, turn, states...)
			Expect(alice.Patch(ctx, turn, mergePatch("%s", patch), client.DryRunAll)).To(beRefused(code, message))
			Expect(alice.Patch(ctx, turn, mergePatch("%s", patch))).To(beRefused(code, message))
		},
			Entry("before the operator saw it", nil, reject, 409, "the turn is Pending, not AwaitingResolution"),
			Entry("while it works", []api.TurnPhase{api.TurnWorking}, accept, 409, "the turn is Working, not AwaitingResolution"),
			Entry("once it is completed", []api.TurnPhase{api.TurnWorking, api.TurnCompleted}, accept, 409, "the turn is Completed, not AwaitingResolution"),
			Entry("to interrupt what is over", []api.TurnPhase{api.TurnWorking, api.TurnCompleted}, interrupt, 409, "the turn is over: it is Completed"),
			Entry("to interrupt what waits", []api.TurnPhase{api.TurnWorking, api.TurnAwaitingResolution}, interrupt, 409, "the turn is over: it is AwaitingResolution"),
			Entry("to undo what works", []api.TurnPhase{api.TurnWorking}, undo, 409, "Wait for the AI turn to finish before undoing"),
			Entry("to undo what changed nothing", []api.TurnPhase{api.TurnWorking, api.TurnCompleted}, undo, 404, "turn t changed nothing"),
		)

		It("to accept or undo needs the right to update the composition", func(ctx SpecContext) {
			create(ctx, admin, staged(newComposition(ns, "triage", blankFlow)))
			turn := create(ctx, bob, newTurn(ns, "t", "triage"))
			setState(ctx, turn, api.TurnWorking, api.TurnAwaitingResolution)
			Expect(bob.Patch(ctx, turn, mergePatch(accept))).To(beRefused(403, `user "bob"`, "update composition triage"))
			Expect(bob.Patch(ctx, turn, mergePatch(undo))).To(beRefused(403, `user "bob"`, "update composition triage"))
			Expect(bob.Patch(ctx, turn, mergePatch(reject))).To(Succeed())
		})

		It("to undo is taken of a turn that changed something, with the name of who asks", func(ctx SpecContext) {
			create(ctx, admin, newComposition(ns, "triage", blankFlow))
			applied := create(ctx, alice, newTurn(ns, "t-1", "triage"))
			setState(ctx, applied, api.TurnWorking, api.TurnApplied)
			Expect(alice.Patch(ctx, applied, mergePatch(undo))).To(Succeed())
			Expect(applied.Annotations).To(HaveKeyWithValue(api.AnnotationUndoneBy, "alice"))
			By("once")
			Expect(alice.Patch(ctx, applied, mergePatch(`{"spec":{"undo":false}}`))).To(beRefused(422, "`undo` must stay true"))

			wrote := create(ctx, alice, newTurn(ns, "t-2", "triage"))
			wrote.Status.ItemWrites = []api.ItemWrite{{Type: api.ItemTool, Name: "a", Action: api.ItemCreated, State: api.ItemWritten}}
			setState(ctx, wrote, api.TurnWorking, api.TurnFailed)
			Expect(alice.Patch(ctx, wrote, mergePatch(undo))).To(Succeed())

			waits := create(ctx, alice, newTurn(ns, "t-3", "triage"))
			waits.Status.ItemWrites = []api.ItemWrite{{Type: api.ItemTool, Name: "a", Action: api.ItemCreated, Staged: true, State: api.ItemIntended}}
			setState(ctx, waits, api.TurnWorking, api.TurnAwaitingResolution)
			Expect(alice.Patch(ctx, waits, mergePatch(undo))).To(beRefused(404, "turn t-3 changed nothing"))
		})

		It("workbench 10: is made once, and what was asked stays: no immutable field changes, no resolution is cleared, no retry is claimed", func(ctx SpecContext) {
			create(ctx, admin, newComposition(ns, "triage", blankFlow))
			turn := create(ctx, alice, newTurn(ns, "t", "triage"))
			setState(ctx, turn, api.TurnWorking, api.TurnAwaitingResolution)
			out := alice.run(ctx, "", "-n", ns, "patch", "turn", "t", "--type=merge", "-p", reject)
			Expect(out).To(ContainSubstring("patched"))
			for patch, want := range map[string]string{
				accept:                         "spec.resolution",
				`{"spec":{"resolution":null}}`: "must not be cleared",
				`{"spec":{"message":"other"}}`: "spec.message",
				`{"spec":{"retryOf":"t0"}}`:    "spec.retryOf",
			} {
				out := alice.fail(ctx, "", "-n", ns, "patch", "turn", "t", "--type=merge", "-p", patch)
				Expect(out).To(ContainSubstring(want), patch)
			}
		})

		It("is shown by kubectl with what is wrong", func(ctx SpecContext) {
			create(ctx, admin, newComposition(ns, "triage", blankFlow))
			create(ctx, alice, newTurn(ns, "t", "triage"))
			out := alice.fail(ctx, "", "-n", ns, "patch", "turn", "t", "--type=merge", "-p", accept)
			Expect(out).To(ContainSubstring("(Conflict)"))
			Expect(out).To(ContainSubstring("the turn is Pending, not AwaitingResolution"))
			out = alice.fail(ctx, fmt.Sprintf(`
apiVersion: axiom.apitomy.io/v1alpha1
kind: Turn
metadata: {name: t2, namespace: %s}
spec: {compositionRef: {name: triage}, message: hello, interrupt: true}
`, ns), "create", "-f", "-")
			Expect(out).To(ContainSubstring(`The Turn "t2" is invalid: spec.interrupt: Forbidden: must not be set at creation`))
		})
	})
})

func newSession(namespace, name string) *api.AgentSession {
	s := &api.AgentSession{}
	s.Namespace, s.Name = namespace, name
	s.Spec.TemplateRef.Name = "general-assistant"
	return s
}
