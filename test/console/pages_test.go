package console

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const question = "Ask the security team before a patch is rolled out."

var _ = Describe("compositions", func() {
	It("are listed and drawn, with the changes of a turn, which is accepted and taken back", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.sample()
		p := w.opens(alice)

		By("looking at the draft")
		Expect(p.gets("place")).To(Equal(map[string]any{"namespace": w.namespace}))
		Expect(p.gets("compositions")).To(ConsistOf(And(
			HaveKeyWithValue("name", "cve-triage"), HaveKeyWithValue("valid", "True"), HaveKeyWithValue("pendingTurn", ""),
		)))
		draft := p.gets("compositions/cve-triage")
		Expect(draft).To(And(HaveKeyWithValue("turns", BeEmpty()), HaveKeyWithValue("nodes", HaveKeyWithValue("patch", ContainSubstring(`"id": "patch"`)))))
		Expect(draft).To(HaveKeyWithValue("picture", And(
			HaveKeyWithValue("compares", false), HaveKeyWithValue("nodes", ContainElement(And(HaveKeyWithValue("id", "patch"), Not(HaveKey("change"))))),
		)))

		By("looking at what a turn changes")
		w.sends("ask", question)
		Eventually(func() any { return p.gets("compositions") }).Should(ConsistOf(HaveKeyWithValue("pendingTurn", "ask")))
		Expect(p.gets("compositions/cve-triage")).To(HaveKeyWithValue("turns", ConsistOf(And(
			HaveKeyWithValue("turn", "ask"), HaveKeyWithValue("state", "AwaitingResolution"), HaveKeyWithValue("message", question),
		))))
		turn := p.gets("turns/ask")
		Expect(turn).To(And(
			HaveKeyWithValue("hidden", ""), HaveKeyWithValue("undoable", false), HaveKeyWithValue("changes", ContainSubstring("+ node approve")),
			HaveKeyWithValue("nodes", HaveKey("approve")), HaveKeyWithValue("reply", Not(BeEmpty())),
		))
		Expect(turn).To(HaveKeyWithValue("picture", And(
			HaveKeyWithValue("compares", true), HaveKeyWithValue("nodes", ContainElement(And(HaveKeyWithValue("id", "approve"), HaveKeyWithValue("change", "added")))),
			HaveKeyWithValue("edges", ContainElement(HaveKeyWithValue("change", "added"))),
		)))

		By("accepting it")
		before := w.settles("cve-triage").Status.WorkflowRevision
		p.posts("turns/ask/accept", "{}").gives(http.StatusOK)
		Eventually(func() api.TurnPhase { return w.turn("ask").Status.State }).Should(Equal(api.TurnApplied))
		Expect(w.turn("ask").Annotations).To(HaveKeyWithValue(api.AnnotationResolvedBy, "alice"))
		Expect(p.gets("turns/ask")).To(HaveKeyWithValue("undoable", true))
		Expect(p.posts("turns/ask/reject", "{}").gives(http.StatusUnprocessableEntity)).To(HaveKeyWithValue("error", ContainSubstring("must not change")))

		By("taking it back")
		p.posts("turns/ask/undo", "{}").gives(http.StatusOK)
		Eventually(func() api.TurnPhase { return w.turn("ask").Status.State }).Should(Equal(api.TurnUndone))
		Eventually(func() string { return w.settles("cve-triage").Status.WorkflowRevision }).Should(Equal(before))
		Expect(p.gets("turns/ask")).To(And(HaveKeyWithValue("undoable", false), HaveKeyWithValue("undo", HaveKeyWithValue("workflowRestored", true))))
	})

	It("are left as they are when a turn is rejected", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.sample()
		before := w.settles("cve-triage").Status.WorkflowRevision
		w.sends("ask", question)
		w.opens(alice).posts("turns/ask/reject", "{}").gives(http.StatusOK)
		Eventually(func() api.TurnPhase { return w.turn("ask").Status.State }).Should(Equal(api.TurnRejected))
		Expect(w.settles("cve-triage").Status.WorkflowRevision).To(Equal(before))
	})

	It("show to each what they may see, and do what they may do", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.sample()
		w.sends("ask", question)
		p := w.opens(bob)
		turn := p.gets("turns/ask")
		Expect(turn).To(And(HaveKeyWithValue("hidden", ContainSubstring("ConfigMaps, which you may not read")), HaveKeyWithValue("summary", ContainSubstring("added nodes: approve"))))
		Expect(turn).To(HaveKeyWithValue("picture", BeNil()))
		for _, wish := range []string{"accept", "reject", "undo"} {
			Expect(p.posts("turns/ask/"+wish, "{}").gives(http.StatusForbidden)).To(HaveKeyWithValue("error", ContainSubstring("cannot patch")))
		}
		Expect(w.turn("ask").Spec.Resolution).To(BeEmpty())
		Expect(p.sends(p.request(http.MethodGet, "/api/tasks", nil)).gives(http.StatusForbidden)).To(HaveKeyWithValue("error", ContainSubstring("cannot list")))
	})

	It("that are not there are said not to be", func(ctx SpecContext) {
		w := newWorld(ctx)
		p := w.opens(alice)
		for kind, what := range map[string]string{"compositions": "composition", "turns": "turn", "tasks": "task", "runs": "run"} {
			Expect(p.sends(p.request(http.MethodGet, "/api/"+kind+"/gone", nil)).gives(http.StatusNotFound)).
				To(HaveKeyWithValue("error", "there is no "+what+" gone in namespace "+w.namespace))
		}
		p.posts("turns/gone/accept", "{}").gives(http.StatusNotFound)
		p.posts("tasks/gone/answer", `{"fields":{}}`).gives(http.StatusNotFound)
		p.posts("runs/gone/resume", "{}").gives(http.StatusNotFound)
	})
})

var _ = Describe("the inbox", func() {
	It("asks by the form of a task, and takes what fits", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.asks("go", api.HumanTaskSpec{
			HumanContext: api.HumanContext{Title: "Release 7", Details: []api.LabelledValue{{Label: "Change", Value: "7"}}},
			Form: &api.TaskForm{Fields: []api.FormField{
				{Name: "approved", Type: "boolean", Required: true, Label: "Goes out"},
				{Name: "count", Type: "number", DefaultValue: &runtime.RawExtension{Raw: []byte("3")}},
				{Name: "window", Type: "string", Widget: "select", Options: []api.FormOption{{Label: "Now", Value: "now"}}},
				{Name: "extra", Type: "object"},
			}},
		})
		p := w.opens(alice)
		Expect(p.gets("tasks")).To(ConsistOf(And(HaveKeyWithValue("name", "go"), HaveKeyWithValue("title", "Release 7"), HaveKeyWithValue("open", true))))
		Expect(p.gets("tasks/go")).To(And(
			HaveKeyWithValue("context", HaveKeyWithValue("details", HaveLen(1))),
			HaveKeyWithValue("fields", HaveExactElements(
				And(HaveKeyWithValue("kind", "boolean"), HaveKeyWithValue("required", true), HaveKeyWithValue("label", "Goes out")),
				And(HaveKeyWithValue("kind", "number"), HaveKeyWithValue("default", "3"), HaveKeyWithValue("label", "count")),
				And(HaveKeyWithValue("kind", "select"), HaveKeyWithValue("options", ConsistOf(HaveKeyWithValue("value", "now")))),
				HaveKeyWithValue("kind", "json"),
			)),
		))

		By("refusing what does not fit, before it is sent")
		for body, problem := range map[string]map[string]any{
			`{"fields":{}}`:                                    {"path": "approved", "rule": "required"},
			`{"fields":{"approved":"perhaps"}}`:                {"path": "approved", "rule": "type"},
			`{"whole":"{\"approved\":\"no no\"}"}`:             {"path": "approved", "rule": "type"},
			`{"whole":"[true]"}`:                               {"path": "answer", "rule": "type"},
			`{"whole":"{"}`:                                    {"path": "answer", "rule": "json"},
			`{"fields":{"approved":"true","extra":"{"}}`:       {"path": "extra", "rule": "json"},
			`{"fields":{"approved":"true","window":"later"}}`:  {"path": "window", "rule": "option"},
			`{"fields":{"approved":"true","count":"several"}}`: {"path": "count", "rule": "type"},
		} {
			Expect(p.posts("tasks/go/answer", body).gives(http.StatusUnprocessableEntity)).To(HaveKeyWithValue("problems", ContainElement(problem)), body)
		}
		p.posts("tasks/go/answer", `[]`).gives(http.StatusBadRequest)
		Expect(w.task("go").Status.AnsweredBy).To(BeNil())

		By("answering as whoever started the console")
		given := p.posts("tasks/go/answer", `{"fields":{"approved":"true","count":"9007199254740993","window":"now","extra":"{\"a\":null}"}}`).gives(http.StatusOK)
		Expect(given).To(And(HaveKeyWithValue("open", false), HaveKeyWithValue("answeredBy", HaveKeyWithValue("username", "alice"))))
		Expect(string(w.task("go").Status.Answer.Raw)).To(Equal(`{"approved":true,"count":9007199254740993,"extra":{"a":null},"window":"now"}`))
		Expect(p.posts("tasks/go/answer", `{"fields":{"approved":"false"}}`).StatusCode).To(BeNumerically(">=", 400))
	})

	It("asks by the schema of a task, and tells that it cannot be done", func(ctx SpecContext) {
		w := newWorld(ctx)
		strict := &runtime.RawExtension{Raw: []byte(`{"type":"object","additionalProperties":false,"required":["level","why"],"properties":{` +
			`"why":{"type":"string","minLength":3,"maxLength":80,"title":"Why"},"level":{"enum":["low",2]},"by":{"type":"array","items":{"type":"string"}}}}`)}
		w.asks("rate", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "Rate it"}, ResponseSchema: strict})
		w.asks("again", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "Rate it again"}, ResponseSchema: strict})
		p := w.opens(alice)
		Expect(p.gets("tasks/rate")).To(HaveKeyWithValue("fields", HaveExactElements(
			And(HaveKeyWithValue("name", "level"), HaveKeyWithValue("kind", "choice"), HaveKeyWithValue("options", HaveExactElements(
				HaveKeyWithValue("value", `"low"`), HaveKeyWithValue("value", "2"),
			))),
			And(HaveKeyWithValue("name", "why"), HaveKeyWithValue("kind", "text"), HaveKeyWithValue("label", "Why")),
			And(HaveKeyWithValue("name", "by"), HaveKeyWithValue("kind", "json"), HaveKeyWithValue("required", false)),
		)))
		Expect(p.posts("tasks/rate/answer", `{"fields":{"level":"2","why":"so"}}`).gives(http.StatusUnprocessableEntity)).
			To(HaveKeyWithValue("problems", ContainElement(map[string]any{"path": "why", "rule": "minLength"})))
		p.posts("tasks/rate/answer", `{"fields":{"level":"2","why":"because","by":"[\"x\"]"}}`).gives(http.StatusOK)
		Expect(string(w.task("rate").Status.Answer.Raw)).To(MatchJSON(`{"level":2,"why":"because","by":["x"]}`))

		Expect(p.posts("tasks/again/answer", `{"failure":" "}`).StatusCode).To(Equal(http.StatusUnprocessableEntity))
		Expect(p.posts("tasks/again/answer", `{"failure":"nobody knows"}`).gives(http.StatusOK)).To(HaveKeyWithValue("phase", "Failed"))
	})

	It("leaves a question to those that it is for", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.asks("go", api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "Go"}, Assignees: &api.Assignees{Users: []string{"carol"}}})
		p := w.opens(alice)
		p.posts("tasks/go/answer", `{"whole":"{}"}`).gives(http.StatusForbidden)
		Expect(w.task("go").Status.AnsweredBy).To(BeNil())
	})
})

var _ = Describe("runs", func() {
	It("are a timeline over their graph, also after the draft was edited", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.starts("release", release, `{"ref":"7"}`)
		task := w.opensTask("release")
		p := w.opens(alice)
		Expect(p.gets("runs")).To(ConsistOf(And(HaveKeyWithValue("name", "release"), HaveKeyWithValue("of", "release"))))
		page := p.gets("runs/release")
		Expect(page).To(And(
			HaveKeyWithValue("hidden", ""), HaveKeyWithValue("tasks", Equal(map[string]any{"approve#1": task})),
			HaveKeyWithValue("open", ConsistOf(HaveKeyWithValue("activation", "approve#1"))),
			HaveKeyWithValue("history", ConsistOf(And(HaveKeyWithValue("node", "start-1"), HaveKeyWithValue("outcome", "Completed")))),
			HaveKeyWithValue("picture", HaveKeyWithValue("nodes", HaveLen(5))), HaveKeyWithValue("resumable", false),
		))
		p.posts("tasks/"+task+"/answer", `{"fields":{"approved":"false"}}`).gives(http.StatusOK)
		Eventually(func() api.RunPhase { return w.run("release").Status.Phase }).Should(Equal(api.RunCompleted))

		Expect(admin.Delete(ctx, w.settles("release"))).To(Succeed())
		page = p.gets("runs/release")
		Expect(page).To(And(
			HaveKeyWithValue("outcome", "refused"), HaveKeyWithValue("open", BeEmpty()), HaveKeyWithValue("history", HaveLen(3)),
			HaveKeyWithValue("picture", HaveKeyWithValue("nodes", HaveLen(5))),
		))
		Expect(p.gets("runs/release/activation?of=approve%231")).To(And(
			HaveKeyWithValue("text", ContainSubstring(`"approved": false`)), HaveKeyWithValue("hidden", ""),
		))
		p.sends(p.request(http.MethodGet, "/api/runs/release/activation?of=gone", nil)).gives(http.StatusNotFound)
		p.posts("runs/release/resume", "{}").gives(http.StatusConflict)
	})

	It("are resumed where somebody has to ask", func(ctx SpecContext) {
		w := newWorld(ctx)
		run := &api.WorkflowRun{ObjectMeta: w.meta("later")}
		run.Spec.CompositionRef.Name, run.Spec.ResumePolicy = "not-there-yet", api.ResumeExplicit
		Expect(admin.Create(ctx, run)).To(Succeed())
		p := w.opens(alice)
		Expect(p.gets("runs/later")).To(And(HaveKeyWithValue("resumable", true), HaveKeyWithValue("picture", BeNil())))
		p.posts("runs/later/resume", "{}").gives(http.StatusOK)
		Expect(w.run("later").Spec.ResumeRequests).To(BeEquivalentTo(1))
	})
})
