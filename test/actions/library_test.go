package actions

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// verdict of a library object, as problems and conditions tell it.
func verdict(status api.LibraryStatus) (problems []string, conditions map[string]string) {
	for _, p := range status.Problems {
		problems = append(problems, fmt.Sprintf("%s %s %s", p.Severity, p.Code, p.Path))
	}
	conditions = map[string]string{}
	for _, c := range status.Conditions {
		conditions[c.Type] = string(c.Status)
	}
	return problems, conditions
}

// judged waits until the operator has judged a library object.
func judged(w *world, object client.Object, status func() api.LibraryStatus) ([]string, map[string]string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(status().ObservedGeneration).To(Equal(object.GetGeneration()))
	}).Should(Succeed())
	return verdict(status())
}

var _ = Describe("An action type of the library", func() {
	DescribeTable("is judged:",
		func(ctx SpecContext, name, spec string, want ...string) {
			w := newWorld(ctx)
			w.operate()
			library := &api.ActionType{ObjectMeta: w.meta(name)}
			Expect(yaml.UnmarshalStrict([]byte(spec), &library.Spec)).To(Succeed())
			Expect(bob.Create(ctx, library)).To(Succeed())
			problems, conditions := judged(w, library, func() api.LibraryStatus { return library.Status })
			Expect(append([]string{}, problems...)).To(Equal(append([]string{}, want...)))
			isValid := "True"
			if len(want) > 0 && strings.HasPrefix(want[0], "error") {
				isValid = "False"
			}
			Expect(conditions).To(And(HaveKeyWithValue("Valid", isValid), HaveKeyWithValue("Ready", isValid)))
			Expect(library.Status.ContentRevision).To(HavePrefix("sha256:"))
		},
		Entry("fine", "a", `{description: D., mode: script, script: {scriptTemplate: "true"}}`),
		Entry("a warning", "a", `{mode: script, script: {scriptTemplate: "true"}}`, "warning MISSING_DESCRIPTION description"),
		Entry("a built-in's name", "git.commit", `{description: D., mode: script, script: {scriptTemplate: "true"}}`, "error RESERVED_NAME name"),
		Entry("no mode", "a", `{description: D.}`, "error INVALID_MODE mode"),
		Entry("another interpreter", "a", `{description: D., mode: node, script: {scriptTemplate: "true", interpreter: ruby}}`, "error INVALID_INTERPRETER script.interpreter"),
		Entry("no script", "a", `{description: D., mode: script}`, "error MISSING_SCRIPT script.scriptTemplate"),
		Entry("a placeholder in a script", "a", `{description: D., mode: script, script: {scriptTemplate: "echo {{inputs.ref}}"}}`, "error SCRIPT_PLACEHOLDER script.scriptTemplate"),
		Entry("no prompt", "a", `{description: D., mode: agent}`, "error MISSING_PROMPT agent.promptTemplate"),
		Entry("placeholders that are none", "a", `{description: D., mode: agent, agent: {promptTemplate: "${{ inputs.a }} ${{ context.a }} ${{  }} ${{ inputs."}}`,
			"error INVALID_PLACEHOLDER agent.promptTemplate", "error INVALID_PLACEHOLDER agent.promptTemplate", "error INVALID_PLACEHOLDER agent.promptTemplate"),
		Entry("a template that nobody knows", "a", `{description: D., mode: agent, agent: {promptTemplate: P, sessionTemplate: nobody}}`, "error UNKNOWN_SESSION_TEMPLATE agent.sessionTemplate"),
		Entry("a built-in template", "a", `{description: D., mode: agent, agent: {promptTemplate: P, sessionTemplate: general-assistant}}`),
		Entry("a Secret that nobody knows", "a", `{description: D., mode: script, script: {scriptTemplate: "true"}, env: [{name: A, secretKeyRef: {name: s, key: k}}]}`, "error UNKNOWN_SECRET env[0].secretKeyRef.name"),
		Entry("a Secret that none could be", "a", `{description: D., mode: script, script: {scriptTemplate: "true"}, env: [{name: A, secretKeyRef: {name: "../S", key: k}}]}`, "error UNKNOWN_SECRET env[0].secretKeyRef.name"),
		Entry("variables", "a", `{description: D., mode: script, script: {scriptTemplate: "true"}, env: [{name: AXIOM_X}, {name: "1"}, {name: A}, {name: A}, {name: B, secretKeyRef: {key: k}}]}`,
			"error INVALID_ENV_NAME env[0].name", "error INVALID_ENV_NAME env[1].name", "error DUPLICATE_ENV_NAME env[3].name", "error INVALID_SECRET_REF env[4].secretKeyRef"),
		Entry("fields", "a", `{description: D., mode: script, script: {scriptTemplate: "true"}, inputs: [{name: " "}, {name: a-b}, {name: a, type: list}], outputs: [{name: a}, {name: a}]}`,
			"error MISSING_FIELD_NAME inputs[0].name", "error INVALID_FIELD_NAME inputs[1].name", "error INVALID_FIELD_TYPE inputs[2].type", "error DUPLICATE_FIELD_NAME outputs[1].name"),
	)

	It("becomes valid when what it refers to appears, and invalid when it goes", func(ctx SpecContext) {
		w := newWorld(ctx)
		var listed atomic.Int32
		w.operate(func(p *process) {
			p.wrap = func(base http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/secrets") {
						listed.Add(1)
					}
					return base.RoundTrip(req)
				})
			}
		})
		agent := apply(w, &api.ActionType{}, `
metadata: {name: agent}
spec: {description: D., mode: agent, agent: {promptTemplate: P, sessionTemplate: assessor}}
`)
		script := apply(w, &api.ActionType{}, `
metadata: {name: script}
spec: {description: D., mode: script, script: {scriptTemplate: "true"}, env: [{name: A, secretKeyRef: {name: db, key: k}}]}
`)
		valid := func(object *api.ActionType, want string) {
			GinkgoHelper()
			sees(w, object, func(g Gomega, object *api.ActionType) {
				_, conditions := verdict(object.Status)
				g.Expect(conditions).To(HaveKeyWithValue("Valid", want))
				isWaiting := map[string]string{"True": "False", "False": "True"}[want]
				g.Expect(conditions).To(And(HaveKeyWithValue("Reconciling", isWaiting), HaveKeyWithValue("Stalled", "False")))
			})
		}
		valid(agent, "False")
		valid(script, "False")

		By("making a template")
		template := apply(w, &api.SessionTemplate{}, "metadata: {name: assessor}\nspec: {systemPrompt: You assess.}\n")
		valid(agent, "True")
		Expect(bob.Delete(ctx, template)).To(Succeed())
		valid(agent, "False")

		By("making a Secret, first without the label")
		secret := w.grants(func(s *corev1.Secret) { s.Labels = nil })
		w.advance(time.Minute, script)
		valid(script, "False")
		Expect(admin.Patch(ctx, secret, merge(`{"metadata":{"labels":{"axiom.apitomy.io/credential":"true"}}}`))).To(Succeed())
		w.advance(time.Minute, script)
		valid(script, "True")
		Expect(listed.Load()).To(BeZero(), "Secrets are never listed")
	})

	It("is looked at again by itself while a Secret is missing", func(ctx SpecContext) {
		w := newLivelyWorld(ctx)
		w.operate()
		script := apply(w, &api.ActionType{}, `
metadata: {name: script}
spec: {description: D., mode: script, script: {scriptTemplate: "true"}, env: [{name: A, secretKeyRef: {name: db, key: k}}]}
`)
		problems, _ := judged(w, script, func() api.LibraryStatus { return script.Status })
		Expect(problems).To(ConsistOf("error UNKNOWN_SECRET env[0].secretKeyRef.name"))
		w.grants()
		sees(w, script, func(g Gomega, script *api.ActionType) { g.Expect(script.Status.Problems).To(BeEmpty()) })
	})

	It("tells of its problems at once, and in a line of kubectl", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		out, err := bob.kubectl.Run(ctx, `{"apiVersion":"axiom.apitomy.io/v1alpha1","kind":"ActionType","metadata":{"name":"a"},"spec":{"mode":"agent","agent":{"promptTemplate":"${{ context.x }}"}}}`,
			"-n", w.namespace, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("Warning: spec.agent.promptTemplate: INVALID_PLACEHOLDER: placeholder in line 1 does not compile"))
		Expect(out).To(ContainSubstring("Warning: spec.description: MISSING_DESCRIPTION"))
		out, err = bob.kubectl.Run(ctx, `{"apiVersion":"axiom.apitomy.io/v1alpha1","kind":"Tool","metadata":{"name":"t"},"spec":{"description":"D.","scriptTemplate":"echo $AXIOM_PARAM_x"}}`,
			"-n", w.namespace, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("Warning: spec.scriptTemplate: UNKNOWN_PARAMETER: AXIOM_PARAM_x"))
		Eventually(func(g Gomega) {
			out, err := bob.kubectl.Run(ctx, "", "-n", w.namespace, "get", "actiontypes,tools")
			g.Expect(err).NotTo(HaveOccurred())
			lines := table(out)
			g.Expect(lines).To(ContainElement(HaveExactElements("NAME", "MODE", "VALID", "PROBLEM", "AGE")))
			g.Expect(lines).To(ContainElement(HaveExactElements("actiontype.axiom.apitomy.io/a", "agent", "False", "INVALID_PLACEHOLDER", Not(BeEmpty()))))
			g.Expect(lines).To(ContainElement(HaveExactElements("tool.axiom.apitomy.io/t", "False", "UNKNOWN_PARAMETER", Not(BeEmpty()))))
		}).Should(Succeed())
	})
})

// table is what kubectl prints, word by word.
func table(out string) [][]string {
	var lines [][]string
	for line := range bytes.Lines([]byte(out)) {
		lines = append(lines, strings.Fields(string(line)))
	}
	return lines
}

var _ = Describe("A tool of the library", func() {
	DescribeTable("is judged:",
		func(ctx SpecContext, name, spec string, want ...string) {
			w := newWorld(ctx)
			w.operate()
			tool := &api.Tool{ObjectMeta: w.meta(name)}
			Expect(yaml.UnmarshalStrict([]byte(spec), &tool.Spec)).To(Succeed())
			Expect(bob.Create(ctx, tool)).To(Succeed())
			problems, _ := judged(w, tool, func() api.LibraryStatus { return tool.Status })
			Expect(append([]string{}, problems...)).To(Equal(append([]string{}, want...)))
		},
		Entry("fine", "a", `{description: D., scriptTemplate: "echo $AXIOM_PARAM_p", parameters: [{name: p}]}`),
		Entry("an unusual name", "1a.b", `{description: D., scriptTemplate: "true"}`, "warning UNUSUAL_NAME name"),
		Entry("no script, no description", "a", `{}`, "error MISSING_SCRIPT scriptTemplate", "warning MISSING_DESCRIPTION description"),
		Entry("another interpreter", "a", `{description: D., scriptTemplate: "true", interpreter: ruby}`, "error INVALID_INTERPRETER interpreter"),
		Entry("placeholders", "a", `{description: D., scriptTemplate: "echo {{p}} {{p_file}} {{q}} $AXIOM_PARAMS", parameters: [{name: p}]}`,
			"error SCRIPT_PLACEHOLDER scriptTemplate", "error SCRIPT_PLACEHOLDER scriptTemplate"),
		Entry("parameters", "a", `{description: D., scriptTemplate: "$AXIOM_PARAMS", parameters: [{name: p}, {name: P}, {name: " "}, {name: a-b}, {name: o, type: object}]}`,
			"error DUPLICATE_FIELD_NAME parameters[1].name", "error MISSING_FIELD_NAME parameters[2].name", "error INVALID_FIELD_NAME parameters[3].name", "error INVALID_FIELD_TYPE parameters[4].type"),
		Entry("what it uses", "a", `{description: D., scriptTemplate: "echo $AXIOM_PARAM_x", parameters: [{name: p}]}`,
			"error UNKNOWN_PARAMETER scriptTemplate", "warning UNUSED_PARAMETER parameters[0].name"),
		Entry("labels", "a", `{description: D., scriptTemplate: "true", labels: [a, A, " "]}`, "error BLANK_LABEL labels[2]", "warning DUPLICATE_LABEL labels[1]"),
	)
})
