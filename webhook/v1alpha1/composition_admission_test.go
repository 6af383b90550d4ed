package v1alpha1_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

var _ = Describe("A composition", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	Describe("its revision and editor", func() {
		It("attack: are stamped at creation, whatever the client claims", func(ctx SpecContext) {
			c := newComposition(ns, "triage", blankFlow)
			c.Annotations = map[string]string{api.AnnotationBaseRevision: "sha256:old", api.AnnotationEditedBy: "mallory", "mine": "kept"}
			create(ctx, alice, c)
			Expect(reload(ctx, c).Annotations).To(Equal(map[string]string{
				api.AnnotationBaseRevision: revision(blankFlow), api.AnnotationEditedBy: "alice", "mine": "kept",
			}))
		})

		It("have no revision without a workflow", func(ctx SpecContext) {
			c := newComposition(ns, "triage", "")
			c.Annotations = map[string]string{api.AnnotationBaseRevision: "sha256:old"}
			create(ctx, alice, c)
			Expect(c.Annotations).NotTo(HaveKey(api.AnnotationBaseRevision))
		})

		It("follow the content and not the layout, a setting or a label", func(ctx SpecContext) {
			c := create(ctx, alice, newComposition(ns, "triage", blankFlow))
			moved := strings.Replace(blankFlow, `"type":"start"`, `"type":"start","position":{"x":4,"y":2}`, 1)
			for _, patch := range []string{
				fmt.Sprintf(`{"metadata":{"annotations":{%q:"mallory"}},"spec":{"workflow":%s}}`, api.AnnotationEditedBy, moved),
				`{"spec":{"goal":"another"}}`,
				fmt.Sprintf(`{"metadata":{"labels":{"a":"b"},"annotations":{%q:null}}}`, api.AnnotationEditedBy),
			} {
				Expect(admin.Patch(ctx, c, mergePatch("%s", patch))).To(Succeed())
				Expect(c.Annotations).To(HaveKeyWithValue(api.AnnotationEditedBy, "alice"), patch)
				Expect(c.Annotations).To(HaveKeyWithValue(api.AnnotationBaseRevision, revision(blankFlow)), patch)
			}
		})

		DescribeTable("change with", func(ctx SpecContext, patch string) {
			c := create(ctx, admin, newComposition(ns, "triage", blankFlow))
			Expect(alice.Patch(ctx, c, mergePatch(`%s`, patch))).To(Succeed())
			Expect(c.Annotations).To(HaveKeyWithValue(api.AnnotationEditedBy, "alice"))
		},
			Entry("the workflow", `{"spec":{"workflow":{"name":"other"}}}`),
			Entry("an action type", `{"spec":{"actionTypes":[{"name":"build","description":"Builds"}]}}`),
			Entry("a tool", `{"spec":{"tools":[{"name":"find","description":"Finds"}]}}`),
			Entry("the end of the workflow", `{"spec":{"workflow":null}}`),
		)

		It("may name another editor when the operator writes what somebody accepted", func(ctx SpecContext) {
			c := create(ctx, alice, newComposition(ns, "triage", blankFlow))
			patch := `{"metadata":{"annotations":{%q:%q}},"spec":{"workflow":{"name":%q}}}`
			Expect(operator.Patch(ctx, c, mergePatch(patch, api.AnnotationEditedBy, "bob", "one"))).To(Succeed())
			Expect(c.Annotations).To(HaveKeyWithValue(api.AnnotationEditedBy, "bob"))
			Expect(alice.Patch(ctx, c, mergePatch(patch, api.AnnotationEditedBy, "bob", "two"))).To(Succeed())
			Expect(c.Annotations).To(HaveKeyWithValue(api.AnnotationEditedBy, "alice"))
		})

		It("attack: bear the mark of the operator's latest write, which is nobody else's to set or drop", func(ctx SpecContext) {
			c := newComposition(ns, "triage", blankFlow)
			c.Annotations = map[string]string{api.AnnotationWrite: "accept/forged"}
			create(ctx, alice, c)
			Expect(c.Annotations).NotTo(HaveKey(api.AnnotationWrite))
			Expect(operator.Patch(ctx, c, mergePatch(`{"metadata":{"annotations":{%q:"accept/u"}},"spec":{"workflow":{"name":"one"}}}`, api.AnnotationWrite))).To(Succeed())
			for _, patch := range []string{
				`{"metadata":{"annotations":{%q:"undo/u"}},"spec":{"workflow":{"name":"two"}}}`, `{"metadata":{"annotations":{%q:null}}}`,
			} {
				Expect(alice.Patch(ctx, c, mergePatch(patch, api.AnnotationWrite))).To(Succeed())
				Expect(c.Annotations).To(HaveKeyWithValue(api.AnnotationWrite, "accept/u"), patch)
			}
		})

		It("leave the document as it was sent", func(ctx SpecContext) {
			flow := `{"id":"a","name":"<&>\u2028","x-n":[1,0.5,null,9007199254740993,{"z":null}],"nodes":[{"id":"n","type":"robot","x":{}}]}`
			c := create(ctx, alice, newComposition(ns, "triage", flow))
			Expect(document(string(reload(ctx, c).Spec.Workflow.Raw))).To(Equal(document(flow)))
		})
	})

	Describe("an edit based on an older workflow", func() {
		It("workbench 4: is refused naming both revisions, in a dry run too, while the author's own manifest goes on", func(ctx SpecContext) {
			create(ctx, alice, newComposition(ns, "triage", blankFlow))
			manifest := alice.run(ctx, "", "-n", ns, "get", "comp", "triage", "-o", "yaml")
			Expect(manifest).To(ContainSubstring(revision(blankFlow)))

			first := strings.Replace(manifest, "name: triage\n    nodes", "name: first\n    nodes", 1)
			Expect(first).NotTo(Equal(manifest))
			alice.run(ctx, first, "-n", ns, "replace", "-f", "-")

			late := strings.Replace(withoutVersion(manifest), "name: triage\n    nodes", "name: late\n    nodes", 1)
			for _, args := range [][]string{{"--dry-run=server"}, {}} {
				out := alice.fail(ctx, late, append([]string{"-n", ns, "replace", "-f", "-"}, args...)...)
				Expect(out).To(ContainSubstring("base-revision %s is not the live revision %s", revision(blankFlow), revision(renamed("first"))))
				Expect(out).To(ContainSubstring("(Conflict)"))
			}
			stored := &api.Composition{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "triage"}, stored)).To(Succeed())
			Expect(document(string(stored.Spec.Workflow.Raw))).To(HaveKeyWithValue("name", "first"))

			By("re-applying what is live, with the annotation of yesterday")
			again := strings.Replace(withoutVersion(manifest), "name: triage\n    nodes", "name: first\n    nodes", 1)
			alice.run(ctx, again, "-n", ns, "replace", "-f", "-")
		})

		It("is told by kubectl apply", func(ctx SpecContext) {
			manifest := func(base, name string) string {
				return fmt.Sprintf(`
apiVersion: axiom.apitomy.io/v1alpha1
kind: Composition
metadata:
  name: triage
  namespace: %s
  annotations: {axiom.apitomy.io/base-revision: %q}
spec: {workflow: {id: triage, name: %s}}
`, ns, base, name)
			}
			alice.run(ctx, manifest("", "one"), "apply", "-f", "-")
			one, two := revision(`{"id":"triage","name":"one"}`), revision(`{"id":"triage","name":"two"}`)
			alice.run(ctx, manifest(one, "two"), "apply", "-f", "-")
			By("saying the same again")
			alice.run(ctx, manifest(one, "two"), "apply", "-f", "-")
			out := alice.fail(ctx, manifest(one, "three"), "apply", "-f", "-", "--dry-run=server")
			Expect(out).To(ContainSubstring("base-revision %s is not the live revision %s", one, two))
			By("an edit without the annotation")
			alice.run(ctx, manifest("", "three"), "apply", "-f", "-")
			By("server-side apply, forced")
			out = alice.fail(ctx, manifest(two, "four"), "apply", "--server-side", "--force-conflicts", "-f", "-")
			Expect(out).To(ContainSubstring("base-revision %s is not the live revision", two))
		})

		It("is refused for action types and tools, and where there is no workflow", func(ctx SpecContext) {
			c := create(ctx, alice, newComposition(ns, "triage", ""))
			patch := mergePatch(`{"metadata":{"annotations":{%q:"sha256:00"}},"spec":{"tools":[{"name":"find"}]}}`, api.AnnotationBaseRevision)
			Expect(alice.Patch(ctx, c, patch)).To(beRefused(409, "base-revision sha256:00 is not the live revision (no workflow)"))
			By("the operator, too")
			Expect(operator.Patch(ctx, c, patch)).To(beRefused(409))
		})
	})

	DescribeTable("is refused when", func(ctx SpecContext, change func(c *api.Composition), parts ...string) {
		c := newComposition(ns, "triage", blankFlow)
		change(c)
		Expect(alice.Create(ctx, c)).To(beRefused(422, parts...))
		Expect(alice.Create(ctx, c, client.DryRunAll)).To(beRefused(422, parts...))
	},
		Entry("the workflow is no object", func(c *api.Composition) { c.Spec.Workflow = raw(`[]`) },
			"spec.workflow", "must be of type object"),
		Entry("the workflow is too large", func(c *api.Composition) {
			c.Spec.Workflow = rawOf(map[string]any{"id": strings.Repeat("x", 512<<10)})
		}, "spec.workflow", "524297", "524288"),
		Entry("it has too many nodes", func(c *api.Composition) {
			c.Spec.Workflow = rawOf(map[string]any{"nodes": make([]any, 1001)})
		}, "spec.workflow", "1001", "1000"),
		Entry("it has too many edges", func(c *api.Composition) {
			c.Spec.Workflow = rawOf(map[string]any{"edges": make([]any, 4001)})
		}, "spec.workflow", "4001", "4000"),
		Entry("an action type is too large", func(c *api.Composition) {
			c.Spec.ActionTypes = []api.NamedActionType{{Name: "big"}}
			for i := range 5 {
				c.Spec.ActionTypes[0].Inputs = append(c.Spec.ActionTypes[0].Inputs,
					api.ContractField{Name: fmt.Sprintf("i%d", i), Description: strings.Repeat("é", 4096)})
			}
			c.Spec.ActionTypes[0].Script.ScriptTemplate = strings.Repeat("x", 100<<10)
		}, "spec.actionTypes[big]", "131072"),
		Entry("a tool is too large", func(c *api.Composition) {
			c.Spec.Tools = []api.NamedTool{{Name: "big"}}
			c.Spec.Tools[0].ScriptTemplate = strings.Repeat("x", 128<<10)
		}, "spec.tools[big]", "131072"),
		Entry("all items together are too large", func(c *api.Composition) {
			for _, name := range []string{"a", "b", "c"} {
				tool := api.NamedTool{Name: name}
				tool.ScriptTemplate = strings.Repeat("x", 100<<10)
				c.Spec.Tools = append(c.Spec.Tools, tool)
			}
		}, "spec: Too long", "262144"),
		Entry("it has too many tools", func(c *api.Composition) {
			for i := range 101 {
				c.Spec.Tools = append(c.Spec.Tools, api.NamedTool{Name: fmt.Sprintf("t%d", i)})
			}
		}, "spec.tools", "101", "100"),
		Entry("its name is too long", func(c *api.Composition) { c.Name = strings.Repeat("n", 53) },
			"metadata.name", "53", "52"),
		Entry("a turn may last no time", func(c *api.Composition) { c.Spec.Agent.TurnTimeout = duration("0s") },
			"spec.agent.turnTimeout", "must be positive"),
		Entry("the idle time is negative", func(c *api.Composition) { c.Spec.Agent.IdleTimeout = duration("-1s") },
			"spec.agent.idleTimeout", "must not be negative"),
	)

	It("is stored with an invalid draft, and warned of", func(ctx SpecContext) {
		manifest := fmt.Sprintf(`{"apiVersion":"axiom.apitomy.io/v1alpha1","kind":"Composition","metadata":{"name":"draft","namespace":%q},
			"spec":{"agent":{"idleTimeout":"0s"},"workflow":{"id":"d","name":"d",
				"nodes":[{"id":"s","type":"start","name":"S"},{"id":"e","type":"end","name":"E"}],
				"edges":[{"id":"x","source":"s","target":"e","condition":"context.("}]}}}`, ns)
		out := alice.run(ctx, manifest, "create", "-f", "-")
		Expect(out).To(ContainSubstring("created"))
		Expect(out).To(ContainSubstring("Warning: spec.workflow.edges[x]: INVALID_CONDITION"))
	})

	Describe("its turn annotation", func() {
		annotate := func(name string) client.Patch {
			return mergePatch(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationTurn, name)
		}

		It("must name a turn of this composition when it changes", func(ctx SpecContext) {
			c := create(ctx, alice, newComposition(ns, "triage", blankFlow))
			create(ctx, alice, newComposition(ns, "other", blankFlow))
			create(ctx, alice, newTurn(ns, "mine", "triage"))
			create(ctx, alice, newTurn(ns, "theirs", "other"))
			for _, name := range []string{"none", "theirs"} {
				Expect(alice.Patch(ctx, c, annotate(name))).To(beRefused(422,
					"metadata.annotations[axiom.apitomy.io/turn]", name, "must name a turn of this composition"))
			}
			Expect(alice.Patch(ctx, c, annotate("mine"))).To(Succeed())

			By("keeping the value of a turn that is gone")
			Expect(admin.Delete(ctx, newTurn(ns, "mine", ""))).To(Succeed())
			Expect(alice.Patch(ctx, c, mergePatch(`{"spec":{"goal":"other"}}`))).To(Succeed())
			Expect(alice.Patch(ctx, c, annotate(""))).To(Succeed())
		})

		It("must name a turn at creation", func(ctx SpecContext) {
			c := newComposition(ns, "triage", blankFlow)
			c.Annotations = map[string]string{api.AnnotationTurn: "none"}
			Expect(alice.Create(ctx, c)).To(beRefused(422, "axiom.apitomy.io/turn"))
		})
	})

	It("can be labelled, released and deleted whatever it holds", func(ctx SpecContext) {
		c := newComposition(ns, "triage", blankFlow)
		c.Finalizers = []string{"axiom.apitomy.io/test"}
		create(ctx, operator, c)
		Expect(admin.Delete(ctx, c)).To(Succeed())
		Expect(operator.Patch(ctx, c, mergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(c), c)).To(beRefused(404))
	})

	It("lets one of two edits with the same base through", func(ctx SpecContext) {
		c := create(ctx, alice, newComposition(ns, "triage", blankFlow))
		results := make(chan error, 2)
		for _, name := range []string{"one", "two"} {
			go func() {
				patch := mergePatch(`{"metadata":{"annotations":{%q:%q}},"spec":{"workflow":{"name":%q}}}`,
					api.AnnotationBaseRevision, revision(blankFlow), name)
				results <- alice.Patch(ctx, newComposition(ns, "triage", ""), patch)
			}()
		}
		first, second := <-results, <-results
		if first != nil {
			first, second = second, first
		}
		Expect(first).NotTo(HaveOccurred())
		Expect(second).To(beRefused(409, "base-revision "+revision(blankFlow), reload(ctx, c).Annotations[api.AnnotationBaseRevision]))
		Expect(jsonvalue.Size(document(string(c.Spec.Workflow.Raw)))).To(BeNumerically(">", 0))
	})
})

// withoutVersion makes a manifest that the resource version does not guard.
func withoutVersion(manifest string) string {
	var kept []string
	for line := range strings.Lines(manifest) {
		if !strings.HasPrefix(line, "  resourceVersion:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
