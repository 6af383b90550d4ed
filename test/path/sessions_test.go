package path

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

const (
	resumed = "This conversation is being resumed after Axiom restarted. Your previous process ended, so here is a recap."
	lookNow = "Call get_composition before making changes."

	failedPrefix    = "The AI turn ended with an error: "
	failedDiscarded = " Workflow changes from this turn were discarded; action type and tool changes were kept (use Undo AI turn to revert them)."
)

// welcome is what a session of the workbench begins with.
func welcome() string {
	spec, _ := template.BuiltIn(api.TemplateWorkbench)
	return "assistant_text " + spec.WelcomeMessage
}

// exactly is a pattern that matches a text alone, whatever the workbench's own
// preamble says in the middle of it.
func exactly(before, message string) string {
	return `(?s)\A` + before + `\[Workbench context\].*\[End of workbench context\]\n\n` + message + `\z`
}

// plays is a turn of a playbook that answers a text.
func plays(when, steps string) string {
	return "- when: '" + when + "'\n  steps: " + steps + "\n"
}

// recapOf is a pattern of what an agent is told that was not there.
func recapOf(lines ...string) string {
	text := strings.Join(append(append([]string{resumed, "Goal: Close old issues", "Recent conversation (oldest first):"}, lines...), lookNow), "\n") + "\n\n"
	return strings.NewReplacer("\n", `\n`, ".", `\.`, "(", `\(`, ")", `\)`).Replace(text)
}

var _ = Describe("a conversation over several pods", Ordered, func() {
	var (
		d    *desk
		comp *api.Composition
	)
	greeting := "- assistant: " + strings.TrimPrefix(welcome(), "assistant_text ")

	BeforeAll(func() {
		d = newDesk().hasNode()
		comp = d.composes("triage",
			plays(exactly("", "One"), "[{say: First}]")+
				plays(exactly("", "Two"), "[{say: Second}]")+
				plays(exactly(recapOf(greeting, "- user: One", "- assistant: First", "- user: Two", "- assistant: Second"), "Three"), "[{say: Third}]")+
				plays(exactly("", "Four"), "[{say: Fourth}]"))
	})

	It("workbench 29: two turns share one session without a recap; after pod loss the next prompt has one, with goal and earlier message, and the one after none", func() {
		for _, message := range []string{"One", "Two"} {
			d.reaches(d.asks(comp, "t-"+strings.ToLower(message), message), api.TurnCompleted)
		}
		Expect(d.session("triage").Status.Attempt).To(Equal(int32(1)))
		d.loses(d.session("triage"))
		third := d.reaches(d.asks(comp, "t-3", "Three"), api.TurnCompleted)
		Expect(third.Status.Reply).To(Equal("Third"))
		Expect(d.told(third)).To(HavePrefix("[Workbench context]"), "a recap is of the pod, not of the turn")
		Expect(d.session("triage").Status.RecapPending).To(BeFalse())
		d.reaches(d.asks(comp, "t-4", "Four"), api.TurnCompleted)
		Expect(d.session("triage").Status.Attempt).To(Equal(int32(2)))
	})

	It("workbench 30: has every event once and in order", func() {
		Expect(d.journal("triage")).To(Equal([]string{
			welcome(), "session_init 1",
			"user_message One", "assistant_text First", "turn_complete",
			"user_message Two", "assistant_text Second", "turn_complete",
			"session_init 2",
			"user_message Three", "assistant_text Third", "turn_complete",
			"user_message Four", "assistant_text Fourth", "turn_complete",
		}))
		Expect(d.session("triage").Status.Journal).To(HaveValue(Equal(api.SessionJournal{Chunks: 1, FirstSeq: 1, LastSeq: 15})))
	})
})

var _ = Describe("a notice", func() {
	It("workbench 31: is in the journal and in no prompt or recap", func() {
		d := newDesk().hasNode()
		greeting := "- assistant: " + strings.TrimPrefix(welcome(), "assistant_text ")
		comp := d.composes("triage",
			plays(exactly("", "One"), "[{say: Hm}, {error: out of credit}]")+
				plays(exactly(recapOf(greeting, "- user: One", "- assistant: Hm"), "Two"), "[{say: Second}]"))
		failed := d.reaches(d.asks(comp, "t-1", "One"), api.TurnFailed)
		notice := failedPrefix + "out of credit" + failedDiscarded
		Expect(failed.Status.Notices).To(Equal([]string{notice}))
		sees(d, failed, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.PostedNotices).To(Equal(int32(1))) })
		Eventually(func(g Gomega) {
			events := &eventsv1.EventList{}
			g.Expect(admin.List(d.ctx, events, client.InNamespace(d.namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("Reason", "AgentNotice"), HaveField("Note", notice), HaveField("Regarding.Name", "triage"),
			)))
		}).Should(Succeed())

		d.loses(d.session("triage"))
		second := d.reaches(d.asks(comp, "t-2", "Two"), api.TurnCompleted)
		Expect(d.told(second)).NotTo(ContainSubstring("out of credit"))
		Expect(d.journal("triage")).To(Equal([]string{
			welcome(), "session_init 1",
			"user_message One", "assistant_text Hm", "session_error AgentError", "notice " + notice,
			"session_init 2",
			"user_message Two", "assistant_text Second", "turn_complete",
		}))
	})
})

// takesNoJournals has the API server refuse what would hold the namespace's
// journals.
func (d *desk) takesNoJournals() {
	GinkgoHelper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: d.namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}},
	}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "!object.metadata.name.contains('-journal-')"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	Expect(admin.Create(d.ctx, policy)).To(Succeed())
	Expect(admin.Create(d.ctx, binding)).To(Succeed())
	probe := &corev1.ConfigMap{ObjectMeta: d.meta("a-journal-1")}
	Eventually(func() error { return admin.Create(d.ctx, probe.DeepCopy(), client.DryRunAll) }).ShouldNot(Succeed())
}

var _ = Describe("a session", func() {
	It("workbench 42: whose journal cannot be written works all the same", func() {
		d := newDesk().hasNode()
		d.takesNoJournals()
		comp := d.composes("triage", plays(exactly("", "One"), "["+renames("Renamed")+", {say: Done}]")+plays(exactly("", "Two"), "[{error: no}]"))
		first := d.reaches(d.asks(comp, "t-1", "One"), api.TurnAwaitingResolution)
		Expect(first.Status.Reply).To(Equal("Done"))
		failed := d.reaches(d.asks(comp, "t-2", "Two"), api.TurnFailed)
		Expect(failed.Status.Notices).To(Equal([]string{failedPrefix + "no" + failedDiscarded}))
		Expect(d.session("triage").Status.Attempt).To(Equal(int32(1)))
		Expect(d.journal("triage")).To(BeEmpty())
	})
})
