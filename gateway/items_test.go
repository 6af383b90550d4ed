package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/turns"
)

func compactJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// tool is the content of a tool that says something.
func tool(name, says string) map[string]any {
	return map[string]any{"name": name, "description": "Says " + says, "scriptTemplate": "echo " + says}
}

func (w *world) upsert(kind string, wanted any, base ...string) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	body := map[string]any{"type": kind, "content": wanted}
	if len(base) > 0 {
		body["baseRevision"] = base[0]
	}
	return w.call("PUT", w.path("/compositions/{ns}/triage/agent/items"), tokenOf(w, "triage-agent"), body)
}

func (w *world) item(kind, name string) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	return w.call("GET", w.path("/compositions/{ns}/triage/agent/items/"+kind+"/"+name), tokenOf(w, "triage-agent"), nil)
}

func (w *world) remove(kind, name, query string) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	return w.call("DELETE", w.path("/compositions/{ns}/triage/agent/items/"+kind+"/"+name+query), tokenOf(w, "triage-agent"), nil)
}

// toolsOf are the tools of a draft, with their scripts.
func toolsOf(comp *api.Composition) []string {
	found := []string{}
	for _, t := range comp.Spec.Tools {
		found = append(found, t.Name+": "+t.ScriptTemplate)
	}
	return found
}

// stored is a content that a turn keeps.
func (w *world) stored(kept *api.ItemContent) string {
	GinkgoHelper()
	Expect(kept).NotTo(BeNil())
	data, err := content.Store{Client: k8s}.Get(w.ctx, w.namespace, kept.Digest)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// counted counts calls, and lets hooks spoil the n-th.
type counted struct{ n int }

var _ = Describe("An item of a turn", func() {
	var w *world
	var comp *api.Composition
	var turn *api.Turn
	var hooks interceptor.Funcs

	// begin starts a turn on a draft with the blank workflow and one tool.
	begin := func(ctx context.Context, how ...func(*api.Composition)) {
		GinkgoHelper()
		w = newWorld(ctx, hooks)
		comp = w.composition("triage", blank())
		comp.Spec.Tools = []api.NamedTool{
			{Name: "say", ToolSpec: api.ToolSpec{Description: "Says hi", ScriptTemplate: "echo hi"}},
		}
		for _, f := range how {
			f(comp)
		}
		Expect(k8s.Update(ctx, comp)).To(Succeed())
		w.operate()
		w.session("triage-agent", "triage")
		comp = w.observed(comp)
		turn = w.turn(comp, "triage-1")
	}
	staged := func(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged }
	noWorkflow := func(comp *api.Composition) { comp.Spec.Workflow = nil }

	BeforeEach(func() { hooks = interceptor.Funcs{} })

	It("workbench 12: is written at once and noted in the turn, a second time in the same entry", func(ctx context.Context) {
		begin(ctx)
		got := into[openapi.Item](w.upsert("tool", tool("ask", "one")))
		Expect(got).To(Equal(openapi.Item{Type: "tool", Name: "ask", ContentRevision: got.ContentRevision, Valid: true, Problems: []openapi.ItemProblem{}}))
		comp = w.observed(comp)
		Expect(toolsOf(comp)).To(Equal([]string{"say: echo hi", "ask: echo one"}))
		Expect(comp.Annotations[api.AnnotationWrite]).To(HavePrefix("item/" + string(turn.UID)))
		writes := reload(w, turn).Status.ItemWrites
		Expect(writes).To(HaveLen(1))
		Expect(writes[0]).To(Equal(api.ItemWrite{
			Type: api.ItemTool, Name: "ask", Action: api.ItemCreated, State: api.ItemWritten,
			After: &api.ItemContent{Revision: got.ContentRevision, Digest: writes[0].After.Digest},
		}))
		Expect(w.stored(writes[0].After)).To(MatchJSON(compactJSON(tool("ask", "one"))))

		second := into[openapi.Item](w.upsert("tool", tool("ask", "two")))
		Expect(toolsOf(w.observed(comp))).To(Equal([]string{"say: echo hi", "ask: echo two"}))
		writes = reload(w, turn).Status.ItemWrites
		Expect(writes).To(HaveLen(1))
		Expect(writes[0].Action).To(Equal(api.ItemCreated))
		Expect(writes[0].Before).To(BeNil())
		Expect(writes[0].After.Revision).To(Equal(second.ContentRevision))

		By("an update keeps what was there before the turn")
		Expect(w.upsert("tool", tool("say", "bye")).status).To(Equal(http.StatusOK))
		Expect(w.upsert("tool", tool("say", "farewell")).status).To(Equal(http.StatusOK))
		entry := turns.FindWrite(&reload(w, turn).Status, turns.Item{Type: api.ItemTool, Name: "say"})
		Expect(entry.Action).To(Equal(api.ItemUpdated))
		Expect(w.stored(entry.Before)).To(ContainSubstring("echo hi"))
		Expect(w.stored(entry.After)).To(ContainSubstring("echo farewell"))

		By("a second workflow")
		other := blank()
		other["name"] = "another"
		expectProblem(w.upsert("workflow", other), http.StatusBadRequest, openapi.ProblemCodeInvalid, "already has a workflow")
	}, NodeTimeout(time.Minute))

	It("workbench 12: needs a running turn, and there is one workflow", func(ctx context.Context) {
		begin(ctx)
		other := blank()
		other["name"] = "another"
		expectProblem(w.upsert("workflow", other), http.StatusBadRequest, openapi.ProblemCodeInvalid, "already has a workflow")
		expectProblem(w.remove("workflow", "triage", ""), http.StatusBadRequest, openapi.ProblemCodeInvalid, "cannot be removed")
		turn.Status.State = api.TurnCompleted
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		for _, got := range []reply{w.upsert("tool", tool("ask", "one")), w.upsert("workflow", other), w.remove("tool", "nothing", "")} {
			expectProblem(got, http.StatusConflict, openapi.ProblemCodeNoTurn, "No AI turn is running")
		}
	}, NodeTimeout(time.Minute))

	It("workbench 13: that a person changed meanwhile is a conflict until the new revision is sent", func(ctx context.Context) {
		begin(ctx)
		edited := w.edit(comp, func(comp *api.Composition) { comp.Spec.Tools[0].ScriptTemplate = "echo edited" })
		revision, err := turns.LiveRevision(edited, turns.Item{Type: api.ItemTool, Name: "say"})
		Expect(err).NotTo(HaveOccurred())
		for _, got := range []reply{w.upsert("tool", tool("say", "x")), w.upsert("tool", tool("say", "x"), "sha256:00"), w.remove("tool", "say", "")} {
			expectProblem(got, http.StatusConflict, openapi.ProblemCodeConflict,
				"tool/say was changed by the user during this turn; send its revision as baseRevision")
			Expect(got.problem().Actual).To(Equal(revision))
		}
		Expect(reload(w, turn).Status).To(Equal(turn.Status))
		Expect(w.upsert("tool", tool("say", "x"), revision).status).To(Equal(http.StatusOK))
		Expect(toolsOf(w.observed(comp))).To(Equal([]string{"say: echo x"}))

		By("an own write that a person changed")
		w.edit(comp, func(comp *api.Composition) { comp.Spec.Tools[0].ScriptTemplate = "echo again" })
		expectProblem(w.upsert("tool", tool("say", "y")), http.StatusConflict, openapi.ProblemCodeConflict, "tool/say was changed")

		By("one that a person removed, or made")
		w.edit(comp, func(comp *api.Composition) {
			comp.Spec.Tools = []api.NamedTool{{Name: "new", ToolSpec: api.ToolSpec{Description: "d", ScriptTemplate: "echo"}}}
		})
		expectProblem(w.upsert("tool", tool("say", "y")), http.StatusConflict, openapi.ProblemCodeConflict, "tool/say was changed")
		expectProblem(w.upsert("tool", tool("new", "y")), http.StatusConflict, openapi.ProblemCodeConflict, "tool/new was changed")
		Expect(w.upsert("tool", tool("say", "y"), "").status).To(Equal(http.StatusOK))
	}, NodeTimeout(time.Minute))

	It("may be written after other items changed", func(ctx context.Context) {
		begin(ctx)
		w.edit(comp, func(comp *api.Composition) {
			comp.Spec.Goal = "Another goal"
			comp.Spec.ActionTypes = []api.NamedActionType{{Name: "new"}}
		})
		Expect(w.upsert("tool", tool("say", "x")).status).To(Equal(http.StatusOK))
		Expect(w.upsert("tool", tool("ask", "x")).status).To(Equal(http.StatusOK))
		Expect(toolsOf(w.observed(comp))).To(Equal([]string{"say: echo x", "ask: echo x"}))
	}, NodeTimeout(time.Minute))

	It("workbench 14: waits in the turn if that is the policy, and the agent sees it", func(ctx context.Context) {
		begin(ctx, staged)
		before := reload(w, comp)
		Expect(w.upsert("tool", tool("ask", "one")).status).To(Equal(http.StatusOK))
		Expect(w.upsert("tool", tool("say", "bye")).status).To(Equal(http.StatusOK))
		Expect(reload(w, comp).Spec).To(Equal(before.Spec))
		Expect(w.item("tool", "ask").body).To(MatchJSON(compactJSON(tool("ask", "one"))))
		Expect(w.item("tool", "say").body).To(ContainSubstring("echo bye"))
		for _, entry := range reload(w, turn).Status.ItemWrites {
			Expect(entry.Staged).To(BeTrue())
			Expect(entry.State).To(Equal(api.ItemIntended))
		}

		By("an item that goes, and one that comes back as it was")
		Expect(w.remove("tool", "say", "").status).To(Equal(http.StatusNoContent))
		Expect(w.item("tool", "say").status).To(Equal(http.StatusNotFound))
		expectProblem(w.remove("tool", "say", ""), http.StatusNotFound, openapi.ProblemCodeNotFound, "no tool/say")
		Expect(w.upsert("tool", map[string]any{"name": "say", "description": "Says hi", "scriptTemplate": "echo hi"}).status).To(Equal(http.StatusOK))
		Expect(w.remove("tool", "ask", "").status).To(Equal(http.StatusNoContent))
		Expect(reload(w, turn).Status.ItemWrites).To(BeEmpty())
		Expect(reload(w, comp).Spec).To(Equal(before.Spec))

		By("an item that a person changed meanwhile")
		Expect(w.upsert("tool", tool("say", "bye")).status).To(Equal(http.StatusOK))
		edited := w.edit(comp, func(comp *api.Composition) { comp.Spec.Tools[0].ScriptTemplate = "echo edited" })
		revision, err := turns.LiveRevision(edited, turns.Item{Type: api.ItemTool, Name: "say"})
		Expect(err).NotTo(HaveOccurred())
		items := w.getComposition().Items
		Expect(items[1].Problems).To(ContainElement(And(HaveField("Code", "CHANGED_BY_USER"), HaveField("Message", ContainSubstring(revision)))))
		expectProblem(w.upsert("tool", tool("say", "ciao")), http.StatusConflict, openapi.ProblemCodeConflict, "tool/say was changed")
		Expect(w.upsert("tool", tool("say", "ciao"), revision).status).To(Equal(http.StatusOK))
		Expect(w.stored(reload(w, turn).Status.ItemWrites[0].Before)).To(ContainSubstring("echo edited"))

		By("content that the API server would refuse later")
		expectProblem(w.upsert("tool", tool("Not A Name", "x")), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "spec.tools")
		Expect(reload(w, turn).Status.ItemWrites).To(HaveLen(1))
	}, NodeTimeout(time.Minute))

	DescribeTable("that is a new workflow is what the turn goes on from", func(ctx context.Context, policy func(*api.Composition)) {
		begin(ctx, noWorkflow, policy)
		expectProblem(w.propose(changeSet("cs-1", "", "x")), http.StatusBadRequest, openapi.ProblemCodeInvalid, "has no workflow yet")
		got := into[openapi.Item](w.upsert("workflow", blank()))
		Expect(got.ContentRevision).To(Equal(revisionOf(blank())))
		now := reload(w, turn)
		Expect(now.Status.BaseRevision).To(Equal(got.ContentRevision))
		Expect(now.Status.WorkingRevision).To(Equal(got.ContentRevision))
		Expect(now.Status.ItemWrites).To(HaveLen(1))
		Expect(into[openapi.ProposalResult](w.propose(changeSet("cs-1", got.ContentRevision, "Triage 2"))).Applied).To(BeTrue())
		Expect(w.item("workflow", "Triage%202").status).To(Equal(http.StatusOK))
		isLive := reload(w, comp).Spec.Workflow != nil
		Expect(isLive).To(Equal(comp.Spec.Agent.ItemPolicy != api.ItemStaged))

		By("sent again, and another one")
		Expect(w.upsert("workflow", blank()).status).To(Equal(http.StatusOK))
		other := blank()
		other["description"] = "another"
		expectProblem(w.upsert("workflow", other), http.StatusBadRequest, openapi.ProblemCodeInvalid, "already has a workflow")
	},
		Entry("written at once", func(*api.Composition) {}, NodeTimeout(time.Minute)),
		Entry("or waiting", staged, NodeTimeout(time.Minute)),
	)

	It("is kept although it is invalid, and what the API has no place for is told", func(ctx context.Context) {
		begin(ctx)
		odd := tool("ask", "one")
		odd["interpreter"], odd["colour"] = "cobol", "red"
		got := into[openapi.Item](w.upsert("tool", odd))
		Expect(got.Valid).To(BeFalse())
		Expect(got.Problems).To(ContainElement(HaveField("Code", "INVALID_INTERPRETER")))
		Expect(got.Problems).To(ContainElement(And(HaveField("Code", "UNKNOWN_MEMBER"), HaveField("Path", "colour"), HaveField("Severity", openapi.SeverityWarning))))
		live, err := turns.LiveRevision(reload(w, comp), turns.Item{Type: api.ItemTool, Name: "ask"})
		Expect(err).NotTo(HaveOccurred())
		Expect(live).To(Equal(got.ContentRevision))
		Expect(w.getComposition().Items).To(ContainElement(And(HaveField("Name", "ask"), HaveField("Valid", false))))
	}, NodeTimeout(time.Minute))

	It("is removed", func(ctx context.Context) {
		begin(ctx)
		expectProblem(w.remove("tool", "nothing", ""), http.StatusNotFound, openapi.ProblemCodeNotFound, "no tool/nothing")
		Expect(w.remove("tool", "say", "").status).To(Equal(http.StatusNoContent))
		Expect(toolsOf(w.observed(comp))).To(BeEmpty())
		entry := reload(w, turn).Status.ItemWrites[0]
		Expect(entry.Action).To(Equal(api.ItemRemoved))
		Expect(entry.After).To(BeNil())
		Expect(w.stored(entry.Before)).To(ContainSubstring("echo hi"))
		expectProblem(w.remove("tool", "say", ""), http.StatusNotFound, openapi.ProblemCodeNotFound, "no tool/say")
		Expect(w.upsert("tool", tool("say", "back")).status).To(Equal(http.StatusOK))
		Expect(reload(w, turn).Status.ItemWrites[0].Action).To(Equal(api.ItemUpdated))
	}, NodeTimeout(time.Minute))

	It("is one of 64 at most", func(ctx context.Context) {
		begin(ctx)
		for i := range turns.MaxItems {
			turn.Status.ItemWrites = append(turn.Status.ItemWrites, api.ItemWrite{
				Type: api.ItemTool, Name: fmt.Sprintf("t-%d", i), Action: api.ItemRemoved, State: api.ItemWritten,
			})
		}
		Expect(k8s.Status().Update(ctx, turn)).To(Succeed())
		expectProblem(w.upsert("tool", tool("ask", "one")), http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge,
			"This turn is full; finish it and continue in a new turn")
		Expect(w.upsert("tool", tool("t-0", "one")).status).To(Equal(http.StatusOK))
	}, NodeTimeout(time.Minute))

	It("that the API server refuses leaves no trace", func(ctx context.Context) {
		begin(ctx)
		for _, bad := range []map[string]any{tool("Not A Name", "x"), {"name": "ask", "parameters": "none"}, {"name": "ask", "description": strings.Repeat("d", 5000)}} {
			expectProblem(w.upsert("tool", bad), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "")
			Expect(reload(w, turn).Status).To(Equal(turn.Status))
			Expect(reload(w, comp).Spec).To(Equal(comp.Spec))
		}
		Expect(w.upsert("tool", tool("say", "one")).status).To(Equal(http.StatusOK))
		before := reload(w, turn).Status
		long := tool("say", "two")
		long["description"] = strings.Repeat("d", 5000)
		expectProblem(w.upsert("tool", long), http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, "")
		Expect(reload(w, turn).Status).To(Equal(before))
	}, NodeTimeout(time.Minute))

	DescribeTable("is refused for what its request lacks", func(ctx context.Context, body any, detail string) {
		begin(ctx)
		w.clock.Step(time.Second)
		got := w.call("PUT", w.path("/compositions/{ns}/triage/agent/items"), tokenOf(w, "triage-agent"), body)
		expectProblem(got, http.StatusBadRequest, openapi.ProblemCodeInvalid, detail)
	},
		Entry("a type", `{"content":{"name":"a"}}`, "type is required", NodeTimeout(time.Minute)),
		Entry("a known type", `{"type":"rule","content":{"name":"a"}}`, "Unknown type", NodeTimeout(time.Minute)),
		Entry("a content", `{"type":"tool","content":null}`, "content is required", NodeTimeout(time.Minute)),
		Entry("an object", `{"type":"tool","content":["a"]}`, "not an object", NodeTimeout(time.Minute)),
		Entry("a name", `{"type":"tool","content":{"name":""}}`, "name is required", NodeTimeout(time.Minute)),
		Entry("a name that is a text", `{"type":"tool","content":{"name":7}}`, "name is required", NodeTimeout(time.Minute)),
		Entry("a name of some length", `{"type":"tool","content":{"name":"`+strings.Repeat("n", 254)+`"}}`, "longer than 253", NodeTimeout(time.Minute)),
		Entry("a number that is one", `{"type":"tool","content":{"name":"a","n":1e999}}`, "cannot be read", NodeTimeout(time.Minute)),
	)

	It("attack: is found by its name alone, whatever tricks a path plays", func(ctx context.Context) {
		begin(ctx)
		for _, name := range []string{
			"..", "%2E%2E", "..%2Fsay", "%2e%2e%2f%2e%2e%2fcomposition", "say%00", "%00", "s%C3%A4y", "say%2F", "%252F", "say%20", "SAY", "%F0%9F%98%80",
			strings.Repeat("a", 2000), "say%3Ftype=tool", "%ff",
		} {
			for _, got := range []reply{w.item("tool", name), w.remove("tool", name, "")} {
				By(name)
				Expect(got.status).To(BeElementOf(http.StatusNotFound, http.StatusBadRequest), got.body)
				got.problem()
				Expect(len(got.body)).To(BeNumerically("<", 400))
			}
		}
		expectProblem(w.item("rule", "say"), http.StatusBadRequest, openapi.ProblemCodeInvalid, "Unknown type")
		Expect(toolsOf(reload(w, comp))).To(Equal([]string{"say: echo hi"}))
		Expect(w.item("tool", "say").status).To(Equal(http.StatusOK))
	}, NodeTimeout(time.Minute))
})

var _ = Describe("The write of an item", func() {
	var w *world
	var comp *api.Composition
	var turn *api.Turn

	begin := func(ctx context.Context, hooks interceptor.Funcs) {
		GinkgoHelper()
		w = newWorld(ctx, hooks)
		w.operate()
		comp = w.composition("triage", blank())
		w.session("triage-agent", "triage")
		comp = w.observed(comp)
		turn = w.turn(comp, "triage-1")
	}
	errLost := errors.New("connection lost")
	isItem := func(o client.Object) bool { _, is := o.(*api.Turn); return is }

	// lost spoils the n-th write of the turn or of the draft, before or after it
	// is done.
	lost := func(n int, after bool) interceptor.Funcs {
		writes := counted{}
		spoil := func(do func() error) error {
			writes.n++
			if writes.n != n {
				return do()
			}
			if after {
				return errors.Join(errLost, do())
			}
			return errLost
		}
		return interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				if !isItem(o) {
					return c.SubResource(sub).Update(ctx, o, opts...)
				}
				return spoil(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return spoil(func() error { return c.Patch(ctx, o, patch, opts...) })
			},
		}
	}

	for n, write := range map[int]string{1: "the intent", 2: "the draft", 3: "the receipt"} {
		for _, after := range []bool{false, true} {
			It(fmt.Sprintf("is completed when it is asked for again, %s lost (done: %t)", write, after), func(ctx context.Context) {
				begin(ctx, lost(n, after))
				Expect(w.upsert("tool", tool("ask", "one")).status).To(Equal(http.StatusServiceUnavailable))
				Expect(w.upsert("tool", tool("ask", "one")).status).To(Equal(http.StatusOK))
				Expect(toolsOf(w.observed(comp))).To(Equal([]string{"ask: echo one"}))
				writes := reload(w, turn).Status.ItemWrites
				Expect(writes).To(HaveLen(1))
				Expect(writes[0].State).To(Equal(api.ItemWritten))
				Expect(writes[0].Action).To(Equal(api.ItemCreated))
				Expect(writes[0].Before).To(BeNil())
				Expect(writes[0].Replaces).To(BeEmpty())
				Expect(writes[0].Confirmed).To(BeNil())
			}, NodeTimeout(time.Minute))

			It(fmt.Sprintf("gives way to another one, %s lost (done: %t)", write, after), func(ctx context.Context) {
				begin(ctx, lost(n, after))
				Expect(w.upsert("tool", tool("ask", "one")).status).To(Equal(http.StatusServiceUnavailable))
				Expect(w.upsert("tool", tool("ask", "two")).status).To(Equal(http.StatusOK))
				Expect(toolsOf(w.observed(comp))).To(Equal([]string{"ask: echo two"}))
				writes := reload(w, turn).Status.ItemWrites
				Expect(writes).To(HaveLen(1))
				Expect(writes[0].State).To(Equal(api.ItemWritten))
				Expect(w.stored(writes[0].After)).To(ContainSubstring("echo two"))
			}, NodeTimeout(time.Minute))
		}
	}

	It("of a workflow whose receipt is lost is what change sets go on from", func(ctx context.Context) {
		w = newWorld(ctx, lost(3, false))
		w.operate()
		comp = w.composition("triage", nil)
		w.session("triage-agent", "triage")
		turn = w.turn(w.observed(comp), "triage-1")
		Expect(w.upsert("workflow", blank()).status).To(Equal(http.StatusServiceUnavailable))
		Expect(into[openapi.ProposalResult](w.propose(changeSet("cs-1", revisionOf(blank()), "Triage 2"))).Applied).To(BeTrue())
		Expect(reload(w, turn).Status.ItemWrites[0].State).To(Equal(api.ItemWritten))
	}, NodeTimeout(time.Minute))

	It("workbench 45: is finished even when the caller hangs up after the checks", func(ctx context.Context) {
		request, hangUp := context.WithCancel(ctx)
		begin(ctx, interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			hangUp()
			return c.SubResource(sub).Update(ctx, o, opts...)
		}})
		w.serve(request, "PUT", "/compositions/{ns}/triage/agent/items", map[string]any{"type": "tool", "content": tool("ask", "one")})
		Expect(toolsOf(w.observed(comp))).To(Equal([]string{"ask: echo one"}))
		Expect(reload(w, turn).Status.ItemWrites[0].State).To(Equal(api.ItemWritten))
	}, NodeTimeout(time.Minute))

	It("is given up after five conflicts in a row", func(ctx context.Context) {
		tries := 0
		begin(ctx, interceptor.Funcs{Patch: func(
			_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption,
		) error {
			tries++
			return apierrors.NewConflict(schema.GroupResource{Resource: "compositions"}, o.GetName(), nil)
		}})
		got := w.upsert("tool", tool("ask", "one"))
		expectProblem(got, http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, "Others keep changing")
		Expect(got.header.Get("Retry-After")).To(Equal("1"))
		Expect(tries).To(Equal(5))
	}, NodeTimeout(time.Minute))

	It("attack: is not tried again with a token that was revoked meanwhile", func(ctx context.Context) {
		revoked := false
		begin(ctx, interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			session := reload(w, &api.AgentSession{ObjectMeta: meta(w, "triage-agent")})
			session.Status.TokenHash = hashOf("another")
			Expect(k8s.Status().Update(ctx, session)).To(Succeed())
			revoked = true
			return apierrors.NewConflict(schema.GroupResource{Resource: "turns"}, o.GetName(), nil)
		}})
		expectProblem(w.upsert("tool", tool("ask", "one")), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
		Expect(revoked).To(BeTrue())
		Expect(reload(w, turn).Status.ItemWrites).To(BeEmpty())
	}, NodeTimeout(time.Minute))

	It("waits for the snapshot of what it replaces", func(ctx context.Context) {
		patched := make(chan struct{}, 1)
		w = newWorld(ctx, interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			patched <- struct{}{}
			return c.Patch(ctx, o, patch, opts...)
		}})
		comp = w.composition("triage", blank())
		w.session("triage-agent", "triage")
		turn = w.turn(comp, "triage-1")
		answered := make(chan reply, 1)
		go func() {
			defer GinkgoRecover()
			answered <- w.upsert("tool", tool("ask", "one"))
		}()
		Eventually(w.server.Listeners).Should(Equal(1))
		Expect(patched).To(BeEmpty())
		w.operate()
		Expect((<-answered).status).To(Equal(http.StatusOK))
		Expect(patched).To(HaveLen(1))
	}, NodeTimeout(time.Minute))
})
