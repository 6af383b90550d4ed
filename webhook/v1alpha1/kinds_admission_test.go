package v1alpha1_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A run", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	newRun := func() *api.WorkflowRun {
		run := &api.WorkflowRun{}
		run.Namespace, run.Name = ns, "r"
		run.Spec.CompositionRef.Name = "triage"
		run.Spec.Inputs = raw(`{"ref":"r-17"}`)
		return run
	}

	DescribeTable("is refused when", func(ctx SpecContext, change func(r *api.WorkflowRun), parts ...string) {
		run := newRun()
		change(run)
		Expect(alice.Create(ctx, run, client.DryRunAll)).To(beRefused(422, parts...))
		Expect(alice.Create(ctx, run)).To(beRefused(422, parts...))
	},
		Entry("its deadline is no duration", func(r *api.WorkflowRun) { r.Spec.ActiveDeadline = "1h" }, "spec.activeDeadline", "ISO 8601"),
		Entry("its deadline is in the past", func(r *api.WorkflowRun) { r.Spec.ActiveDeadline = "-PT1H" }, "spec.activeDeadline", "must be positive"),
		Entry("its inputs are no object", func(r *api.WorkflowRun) { r.Spec.Inputs = raw(`[1]`) }, "spec.inputs", "must be of type object"),
	)

	It("runs what it was made for; only three members change", func(ctx SpecContext) {
		run := newRun()
		run.Spec.ActiveDeadline = "P2D"
		create(ctx, alice, run)
		for patch, member := range map[string]string{
			`[{"op":"replace","path":"/spec/inputs","value":{"ref":"r-18"}}]`:       "spec.inputs",
			`[{"op":"replace","path":"/spec/inputs","value":{"other":"r-17"}}]`:     "spec.inputs",
			`[{"op":"remove","path":"/spec/inputs"}]`:                               "spec.inputs",
			`[{"op":"replace","path":"/spec/compositionRef","value":{"name":"x"}}]`: "spec.compositionRef",
			`[{"op":"replace","path":"/spec/activeDeadline","value":"P3D"}]`:        "spec.activeDeadline",
			`[{"op":"replace","path":"/spec/resumePolicy","value":"Explicit"}]`:     "spec.resumePolicy",
		} {
			for _, as := range []person{alice, operator} {
				Expect(as.Patch(ctx, run, jsonPatch("%s", patch))).To(beRefused(422, member, "must not change"), patch)
			}
		}
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"resumeRequests":1,"ttlSecondsAfterFinished":60,"cancel":true}}`))).To(Succeed())
		out := alice.fail(ctx, "", "-n", ns, "patch", "wfr", "r", "--type=merge", "-p", `{"spec":{"inputs":{"ref":"r-18"}}}`)
		Expect(out).To(ContainSubstring(`The WorkflowRun "r" is invalid: spec.inputs: Forbidden: must not change`))
	})
})

var _ = Describe("A session", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("is refused when", func(ctx SpecContext, change func(s *api.AgentSession), code int, parts ...string) {
		session := newSession(ns, "s")
		change(session)
		Expect(alice.Create(ctx, session, client.DryRunAll)).To(beRefused(code, parts...))
		Expect(alice.Create(ctx, session)).To(beRefused(code, parts...))
	},
		Entry("somebody binds it to a composition", func(s *api.AgentSession) {
			s.Spec.CompositionRef = &api.LocalRef{Name: "triage"}
		}, 403, "spec.compositionRef", "only the operator"),
		Entry("somebody binds it to a run", func(s *api.AgentSession) { s.Spec.RunRef = &api.LocalRef{Name: "r"} }, 403, "spec.runRef", "only the operator"),
		Entry("somebody gives it a role", func(s *api.AgentSession) {
			s.Spec.RunRef, s.Spec.Role = &api.LocalRef{Name: "r"}, api.RolePrompt
		}, 403, "spec.role", "only the operator"),
		Entry("somebody suspends it", func(s *api.AgentSession) { s.Spec.Suspended = true }, 403, "spec.suspended", "only the operator"),
		Entry("turns may last no time", func(s *api.AgentSession) { s.Spec.TurnTimeout = duration("0s") }, 422, "spec.turnTimeout", "must be positive"),
		Entry("its idle time is negative", func(s *api.AgentSession) { s.Spec.IdleTimeout = duration("-1m") }, 422, "spec.idleTimeout", "must not be negative"),
		Entry("its environment shadows the operator's", func(s *api.AgentSession) {
			s.Spec.Runtime.Env = []api.EnvVar{{Name: "AXIOM_API_URL", Value: "x"}}
		}, 422, "spec.runtime.env[0].name", "AXIOM_"),
		Entry("its environment steers the linker", func(s *api.AgentSession) {
			s.Spec.Runtime.Env = []api.EnvVar{{Name: "LD_PRELOAD", Value: "x"}}
		}, 422, "spec.runtime.env[0].name", "LD_"),
		Entry("a variable is no identifier", func(s *api.AgentSession) {
			s.Spec.Runtime.Env = []api.EnvVar{{Name: "a-b", Value: "x"}}
		}, 422, "spec.runtime.env[0].name"),
	)

	It("is about what its creator may read", func(ctx SpecContext) {
		about := func(kind api.SubjectKind, name string) *api.AgentSession {
			session := newSession(ns, "s")
			session.Spec.Subject = &api.Subject{Kind: kind, Name: name}
			return session
		}
		dave := addPerson("dave", "talkers")
		grant(ctx, "talkers",
			rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"agentsessions"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{"axiom.apitomy.io"}, Resources: []string{"tools"}, Verbs: []string{"get"}})
		Eventually(func() error { return dave.Create(ctx, about("Tool", "ask"), client.DryRunAll) }).Should(Succeed())
		Expect(dave.Create(ctx, about("Composition", "triage"))).To(beRefused(403, `spec.subject: user "dave" must be allowed to get Composition triage`))
		Expect(alice.Create(ctx, about("Composition", "triage"))).To(Succeed())
	})

	It("has durations that can be read", func(ctx SpecContext) {
		create(ctx, alice, newSession(ns, "s"))
		out := alice.fail(ctx, "", "-n", ns, "patch", "as", "s", "--type=merge", "-p", `{"spec":{"turnTimeout":"soon"}}`)
		Expect(out).To(And(ContainSubstring("spec.turnTimeout: Invalid value"), ContainSubstring("must be a duration such as '30m'")))
	})

	It("keeps to the rules when it changes, and to its composition", func(ctx SpecContext) {
		session := create(ctx, alice, newSession(ns, "s"))
		Expect(alice.Patch(ctx, session, mergePatch(`{"spec":{"turnTimeout":"0s"}}`))).To(beRefused(422, "spec.turnTimeout"))
		Expect(alice.Patch(ctx, session, mergePatch(`{"spec":{"idleTimeout":"0s"}}`))).To(Succeed())
		bound := newSession(ns, "bound")
		bound.Spec.CompositionRef = &api.LocalRef{Name: "triage"}
		create(ctx, operator, bound)
		Expect(alice.Patch(ctx, bound, mergePatch(`{"spec":{"compositionRef":{"name":"other"}}}`))).To(beRefused(422, "must not change"))
		Expect(alice.Patch(ctx, bound, mergePatch(`{"spec":{"stopped":true}}`))).To(Succeed())
	})
})

var _ = Describe("An event", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	newEvent := func(payload string) *api.StreamEvent {
		e := &api.StreamEvent{}
		e.Namespace, e.Name = ns, "e"
		e.Spec = api.StreamEventSpec{ID: "e", Type: "pr.merged", EventSourceID: "gh", Payload: raw(payload)}
		return e
	}

	It("has a limit", func(ctx SpecContext) {
		// A thousand characters that Go's encoder would write six times as long.
		fitting := fmt.Sprintf(`{"x":%q}`, strings.Repeat("<", 1000)+strings.Repeat("x", 256<<10-1008))
		Expect(alice.Create(ctx, newEvent(strings.Replace(fitting, "<", "<<", 1)))).
			To(beRefused(413, "spec.payload has 262145 bytes of JSON, the limit is 262144"))
		Expect(alice.Create(ctx, newEvent(fitting))).To(Succeed())
	})

	It("has a time in the form of RFC 3339", func(ctx SpecContext) {
		e := newEvent(`{}`)
		e.Spec.Timestamp = "yesterday"
		Expect(alice.Create(ctx, e)).To(beRefused(422, "spec.timestamp", "RFC 3339"))
		e.Spec.Timestamp = "2026-05-04T10:11:12.25+02:00"
		Expect(alice.Create(ctx, e)).To(Succeed())
	})

	It("never changes", func(ctx SpecContext) {
		e := create(ctx, alice, newEvent(`{"a":1}`))
		Expect(alice.Patch(ctx, e, jsonPatch(`[{"op":"replace","path":"/spec/payload","value":{"b":1}}]`))).
			To(beRefused(422, "spec.payload: Forbidden: must not change"))
		Expect(alice.Patch(ctx, e, mergePatch(`{"spec":{"type":"other"}}`))).To(beRefused(422, "spec"))
		Expect(alice.Patch(ctx, e, mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed())
	})
})

var _ = Describe("A template", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	newTemplate := func(name string) *api.SessionTemplate {
		t := &api.SessionTemplate{}
		t.Namespace, t.Name = ns, name
		t.Spec.SystemPrompt = "You help with {{reference}}."
		return t
	}

	DescribeTable("is refused when", func(ctx SpecContext, change func(t *api.SessionTemplate), parts ...string) {
		template := newTemplate("mine")
		change(template)
		Expect(alice.Create(ctx, template, client.DryRunAll)).To(beRefused(422, parts...))
		Expect(alice.Create(ctx, template)).To(beRefused(422, parts...))
	},
		Entry("it has the name of a built-in", func(t *api.SessionTemplate) { t.Name = "general-assistant" }, "metadata.name", "built-in"),
		Entry("it claims capabilities", func(t *api.SessionTemplate) { t.Spec.Capabilities = []string{"composition"} }, "spec.capabilities"),
		Entry("a pattern does not compile", func(t *api.SessionTemplate) { t.Spec.ToolNamePatterns = []string{"^ok (?P<tool>x)", "("} },
			"spec.toolNamePatterns[1]", "regular expression"),
		Entry("a pattern names no tool", func(t *api.SessionTemplate) { t.Spec.ToolNamePatterns = []string{"^(?P<server>.*)/(.*)$"} },
			"spec.toolNamePatterns[0]", "group `tool`"),
		Entry("a tool's server is not declared", func(t *api.SessionTemplate) { t.Spec.AllowedTools = []string{"mcp__docs__search"} },
			"spec.allowedTools[0]", "mcp__docs__search", "`mcpServers`"),
	)

	It("is stored with its servers, and warned of placeholders that stay", func(ctx SpecContext) {
		out := alice.run(ctx, fmt.Sprintf(`
apiVersion: axiom.apitomy.io/v1alpha1
kind: SessionTemplate
metadata: {name: mine, namespace: %s}
spec:
  systemPrompt: "{{reference}} {{changesetReference}} {{other}}"
  mcpServers: [{name: "@axiom-workbench"}, {name: docs, url: "https://docs.example.com/mcp"}]
  allowedTools: [mcp__docs__search, mcp__workbench__get_item, mcp__axiom__axiom_list_tools, "Bash(jq *)", Read]
  toolNamePatterns: ['^(?P<server>\w+)/(?P<tool>\w+)$', '^(?<tool>\w+)$']
`, ns), "create", "-f", "-")
		Expect(out).To(ContainSubstring("Warning: spec.systemPrompt: {{other}} is not replaced"))
		Expect(out).NotTo(ContainSubstring("{{reference}}"))
		out = alice.fail(ctx, "", "-n", ns, "patch", "sessiontemplate", "mine", "--type=merge", "-p", `{"spec":{"mcpServers":null}}`)
		Expect(out).To(ContainSubstring(`The SessionTemplate "mine" is invalid: spec.allowedTools[0]: Invalid value: "mcp__docs__search"`))
	})
})

var _ = Describe("A status that the operator observes", func() {
	DescribeTable("attack: is written by nobody else", func(ctx SpecContext, build func(ns string) client.Object, patch string) {
		ns := newNamespace(ctx)
		obj := build(ns)
		Expect(operator.Create(ctx, obj)).To(Succeed())
		for _, as := range []person{alice, admin} {
			Expect(as.Status().Patch(ctx, obj, mergePatch("%s", patch))).To(beRefused(403, "only the operator writes the status"))
		}
		Expect(operator.Status().Patch(ctx, obj, mergePatch("%s", patch))).To(Succeed())
	},
		Entry("compositions", func(ns string) client.Object { return newComposition(ns, "c", "") }, `{"status":{"currentTurn":"t"}}`),
		Entry("agent sessions", func(ns string) client.Object { return newSession(ns, "s") }, `{"status":{"phase":"Ready","capabilities":[]}}`),
		Entry("runs", func(ns string) client.Object {
			run := &api.WorkflowRun{}
			run.Namespace, run.Name, run.Spec.CompositionRef.Name = ns, "r", "c"
			return run
		}, `{"status":{"phase":"Running"}}`),
		Entry("events", func(ns string) client.Object {
			e := &api.StreamEvent{}
			e.Namespace, e.Name = ns, "e"
			e.Spec = api.StreamEventSpec{ID: "e", Type: "t", EventSourceID: "s"}
			return e
		}, `{"status":{"deliveries":[{"run":"r","uid":"u","activation":"a#1","outcome":"Completed","at":"2026-01-01T00:00:00Z"}]}}`),
		Entry("action types", func(ns string) client.Object {
			a := &api.ActionType{}
			a.Namespace, a.Name = ns, "a"
			return a
		}, `{"status":{"observedGeneration":1}}`),
		Entry("tools", func(ns string) client.Object {
			t := &api.Tool{}
			t.Namespace, t.Name = ns, "t"
			return t
		}, `{"status":{"observedGeneration":1}}`),
	)
})

var _ = Describe("An object that is being deleted", func() {
	DescribeTable("can be released by its finalizer's owner", func(ctx SpecContext, build func(ns string) client.Object) {
		ns := newNamespace(ctx)
		create(ctx, admin, newComposition(ns, "c", ""))
		obj := build(ns)
		obj.SetFinalizers([]string{"axiom.apitomy.io/test"})
		Expect(operator.Create(ctx, obj)).To(Succeed())
		Expect(admin.Delete(ctx, obj)).To(Succeed())
		Expect(operator.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		obj.SetFinalizers(nil)
		Expect(operator.Update(ctx, obj)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(beRefused(404))
	},
		Entry("composition", func(ns string) client.Object { return newComposition(ns, "other", blankFlow) }),
		Entry("turn", func(ns string) client.Object { return newTurn(ns, "t", "c") }),
		Entry("task", func(ns string) client.Object { return newTask(ns, "t") }),
		Entry("session", func(ns string) client.Object { return newSession(ns, "s") }),
		Entry("run", func(ns string) client.Object {
			run := &api.WorkflowRun{}
			run.Namespace, run.Name, run.Spec.CompositionRef.Name = ns, "r", "c"
			run.Spec.Inputs = raw(`{"a":1.0,"b":[null]}`)
			return run
		}),
	)
})
