package api

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const composition = `
apiVersion: axiom.apitomy.io/v1alpha1
kind: Composition
metadata: {name: triage, namespace: default}
spec:
  goal: Triage new issues
  workflow:
    id: triage
    name: triage
    x-owner: {team: a, none: null}
    nodes:
    - {id: start-1, type: start, name: Start, config: {inputs: [], x-deep: [1, null, {a: null}]}}
    - {id: end-1, type: end, name: End, config: {}}
    edges:
    - {id: edge-1, source: start-1, target: end-1, priority: 0, isDefault: true}
`

var _ = Describe("schemas", func() {
	It("keep unknown members and nulls of a workflow at every depth", func(ctx SpecContext) {
		out, err := admin.Run(ctx, composition, "apply", "--server-side", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		out, err = admin.Run(ctx, "", "get", "comp", "triage", "-o", "jsonpath={.spec.workflow.x-owner} {.spec.workflow.nodes[0].config.x-deep}")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(Equal(`{"none":null,"team":"a"} [1,null,{"a":null}]`))
	})

	It("print what a turn is for, whichever target it has", func(ctx SpecContext) {
		out, err := admin.Run(ctx, `
apiVersion: axiom.apitomy.io/v1alpha1
kind: Turn
metadata: {name: t-1, namespace: default}
spec: {compositionRef: {name: triage}, message: hello}
---
apiVersion: axiom.apitomy.io/v1alpha1
kind: Turn
metadata: {name: t-2, namespace: default}
spec: {sessionRef: {name: helper}, message: hello}
`, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		out, err = admin.Run(ctx, "", "get", "turn")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(MatchRegexp(`t-1\s+triage`))
		Expect(out).To(MatchRegexp(`t-2\s+helper`))
	})
})
