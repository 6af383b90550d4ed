//go:build e2e

package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("the main job", Ordered, func() {
	var (
		before   string
		base     string
		taskName string
	)

	BeforeAll(settle)

	It("takes a draft and finds it valid", func(ctx SpecContext) {
		administrator.do(ctx, "apply", "-f", samples+"people.yaml", "-f", samples+"playbook.yaml")
		alice.do(ctx, "create", "-f", samples+"composition.yaml")
		comp := &api.Composition{}
		Eventually(func(g Gomega) {
			g.Expect(cluster.Get(ctx, key("cve-triage"), comp)).To(Succeed())
			g.Expect(apimeta.IsStatusConditionTrue(comp.Status.Conditions, api.ConditionValid)).To(BeTrue())
			g.Expect(comp.Status.WorkflowRevision).To(HavePrefix("sha256:"))
		}).Should(Succeed())
		base = comp.Status.WorkflowRevision
		before = alice.do(ctx, "get", "comp", "cve-triage", "-o", "yaml")
		Expect(alice.do(ctx, "get", "comp")).To(MatchRegexp(`cve-triage\s+True\s+idle\s+sha256:`))
	})

	It("lets an agent in a pod of its own propose a change", func(ctx SpecContext) {
		alice.do(ctx, "create", "-f", samples+"turn.yaml")
		pods := &corev1.PodList{}
		Eventually(func(g Gomega) {
			g.Expect(cluster.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{api.LabelComponent: api.ComponentAgent})).To(Succeed())
			g.Expect(pods.Items).NotTo(BeEmpty())
		}).Should(Succeed())
		Expect(pods.Items[0].Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		for _, volume := range pods.Items[0].Spec.Volumes {
			Expect(volume.Projected).To(BeNil(), "no service-account token may be mounted")
		}
		policies := &networkingv1.NetworkPolicyList{}
		Expect(cluster.List(ctx, policies, client.InNamespace(namespace))).To(Succeed())
		Expect(policies.Items).NotTo(BeEmpty())

		turn := &api.Turn{}
		Eventually(func(g Gomega) {
			g.Expect(cluster.Get(ctx, key("ask-security"), turn)).To(Succeed())
			g.Expect(turn.Status.State).To(Equal(api.TurnAwaitingResolution), "%s %s", turn.Status.State, turn.Status.Detail)
		}).Should(Succeed())
		Expect(turn.Status.Diff).To(Equal("added nodes: approve\nedges changed"))
		Expect(turn.Status.RejectedProposals).To(BeEquivalentTo(1), "the proposal on a revision that never was")
		Expect(turn.Status.BaseRevision).To(Equal(base))
		Expect(turn.Status.Reply).To(ContainSubstring("security team"))

		comp := &api.Composition{}
		Expect(cluster.Get(ctx, key("cve-triage"), comp)).To(Succeed())
		Expect(comp.Status.WorkflowRevision).To(Equal(base), "nothing is written before a person accepts")
	})

	It("applies it when a person with the right accepts", func(ctx SpecContext) {
		Expect(bob.refused(ctx, "patch", "turn", "ask-security", "--type=merge", "-p", `{"spec":{"resolution":"Accepted"}}`)).
			To(ContainSubstring("bob"))
		alice.do(ctx, "patch", "turn", "ask-security", "--type=merge", "-p", `{"spec":{"resolution":"Accepted"}}`)
		Eventually(func(g Gomega) {
			turn, comp := &api.Turn{}, &api.Composition{}
			g.Expect(cluster.Get(ctx, key("ask-security"), turn)).To(Succeed())
			g.Expect(turn.Status.State).To(Equal(api.TurnApplied))
			g.Expect(cluster.Get(ctx, key("cve-triage"), comp)).To(Succeed())
			g.Expect(comp.Status.WorkflowRevision).To(Equal(turn.Status.ResultRevision))
			g.Expect(comp.Status.Items[0].LastAuthor).To(Equal(api.AuthorAI))
			g.Expect(comp.Status.Items[0].LastTurn).To(Equal("ask-security"))
			g.Expect(comp.Annotations).To(HaveKeyWithValue(api.AnnotationEditedBy, "alice"))
		}).Should(Succeed())
		snapshots := &appsv1.ControllerRevisionList{}
		Expect(cluster.List(ctx, snapshots, client.InNamespace(namespace), client.MatchingLabels{api.LabelComposition: "cve-triage"})).To(Succeed())
		Expect(snapshots.Items).To(HaveLen(2))
	})

	It("refuses an edit of what was there before", func(ctx SpecContext) {
		edited := GinkgoT().TempDir() + "/edited.yaml"
		var kept []string
		for line := range strings.Lines(before) {
			if !strings.Contains(line, "resourceVersion:") && !strings.Contains(line, " uid:") {
				kept = append(kept, strings.Replace(line, "name: CVE triage", "name: CVE triage (edited)", 1))
			}
		}
		writeFile(edited, strings.Join(kept, ""))
		for _, dryRun := range []string{"--dry-run=server", "--dry-run=none"} {
			Expect(alice.refused(ctx, "replace", dryRun, "-f", edited)).
				To(And(ContainSubstring("base-revision "+base), ContainSubstring("is not the live revision sha256:")))
		}
	})

	It("runs the workflow up to the person", func(ctx SpecContext) {
		alice.do(ctx, "create", "-f", samples+"run.yaml")
		Eventually(func(g Gomega) {
			run := &api.WorkflowRun{}
			g.Expect(cluster.Get(ctx, key("cve-2026-1234"), run)).To(Succeed())
			g.Expect(run.Status.Phase).To(Equal(api.RunWaiting), "%v", run.Status.Conditions)
		}).Should(Succeed())
		tasks := &api.HumanTaskList{}
		Eventually(func(g Gomega) {
			g.Expect(cluster.List(ctx, tasks, client.InNamespace(namespace))).To(Succeed())
			g.Expect(tasks.Items).To(HaveLen(1))
			g.Expect(tasks.Items[0].Status.Phase).To(Equal(api.TaskAwaitingInput))
		}).Should(Succeed())
		taskName = tasks.Items[0].Name
		Expect(tasks.Items[0].Spec.HumanContext.Title).To(Equal("Patch CVE-2026-1234 now?"))
		Expect(bob.do(ctx, "get", "ht")).To(MatchRegexp(`Patch CVE-2026-1234 now\?\s+AwaitingInput\s+cve-2026-1234`))
	})

	It("refuses whoever may not answer, and what does not fit", func(ctx SpecContext) {
		patch := func(p person, body string) string {
			return p.refused(ctx, "patch", "ht", taskName, "--subresource=status", "--type=merge", "-p", body)
		}
		Expect(patch(bob, `{"status":{"answer":{"approved":true}}}`)).To(ContainSubstring(`user "bob" is not among the assignees`))
		Expect(patch(alice, `{"status":{"answer":{"approved":"perhaps"}}}`)).To(ContainSubstring("approved: type"))
		Expect(patch(alice, `{"status":{"answer":{}}}`)).To(ContainSubstring("approved: required"))
		Expect(patch(alice, `{"status":{"phase":"Completed","answer":{"approved":true}}}`)).To(ContainSubstring("status.phase"))
		Expect(patch(alice, `{"status":{"failure":{"reason":" "}}}`)).To(ContainSubstring("reason"))
	})

	It("completes with the first answer and knows who gave it", func(ctx SpecContext) {
		alice.do(ctx, "patch", "ht", taskName, "--subresource=status", "--type=merge", "-p", `{"status":{"answer":{"approved":"true","note":"rolled out"}}}`)
		Expect(alice.refused(ctx, "patch", "ht", taskName, "--subresource=status", "--type=merge", "-p", `{"status":{"answer":{"approved":false}}}`)).
			To(ContainSubstring("answered by alice"))

		run := &api.WorkflowRun{}
		Eventually(func(g Gomega) {
			g.Expect(cluster.Get(ctx, key("cve-2026-1234"), run)).To(Succeed())
			g.Expect(run.Status.Phase).To(Equal(api.RunCompleted))
		}).Should(Succeed())
		Expect(run.Status.Outcome).To(Equal("patch"))
		var told []string
		for _, entry := range run.Status.History.Entries {
			told = append(told, entry.Activation+" "+entry.Outcome+" "+entry.By)
		}
		Expect(told).To(Equal([]string{"start-1#1 Completed ", "assess#1 Completed ", "approve#1 Completed alice", "patch#1 Completed "}))
		Expect(run.Status.History.Entries[1].Output.Raw).To(MatchJSON(`{"score": 8, "advice": "CVE-2026-1234: reachable from outside, patch before the weekend"}`))
		Expect(run.Status.History.Entries[2].Output.Raw).To(MatchJSON(`{"approved": true, "note": "rolled out"}`), "coerced as the form says")
	})

	It("leaves no pod and no token of the run behind", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			pods := &corev1.PodList{}
			g.Expect(cluster.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{api.LabelComponent: api.ComponentAction})).To(Succeed())
			g.Expect(pods.Items).To(BeEmpty())
		}).Should(Succeed())
	})

	It("brings the agent back when its pod is killed", func(ctx SpecContext) {
		session := &api.AgentSession{}
		Expect(cluster.Get(ctx, key("cve-triage-agent"), session)).To(Succeed())
		attempt := session.Status.Attempt
		Expect(cluster.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{api.LabelComponent: api.ComponentAgent})).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(cluster.Get(ctx, key("cve-triage-agent"), session)).To(Succeed())
			g.Expect(session.Status.TokenHash).To(BeEmpty(), "the token goes with the pod")
		}).Should(Succeed())

		turn := &api.Turn{Spec: api.TurnSpec{CompositionRef: &api.LocalRef{Name: "cve-triage"}, Message: "Do what nobody wrote down"}}
		turn.Name, turn.Namespace = "again", namespace
		Expect(cluster.Create(ctx, turn)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(cluster.Get(ctx, key("again"), turn)).To(Succeed())
			g.Expect(turn.Status.State).To(Equal(api.TurnFailed), "the playbook has no such turn, so the agent refuses")
			g.Expect(turn.Status.Notices).To(HaveLen(1))
			g.Expect(cluster.Get(ctx, key("cve-triage-agent"), session)).To(Succeed())
			g.Expect(session.Status.Attempt).To(Equal(attempt + 1))
		}).Should(Succeed())
	})
})
