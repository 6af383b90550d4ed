package path

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
)

// desk is a namespace with an operator and a node of its own, where alice works
// on compositions with the scripted agent.
type desk struct {
	story
	ctx context.Context
}

// newDesk lasts as long as the spec.
func newDesk() *desk {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	d := &desk{ctx: ctx, story: story{namespace: newWorld(ctx)}}
	ended := make(chan error, 1)
	go func() { ended <- runOperator(ctx, rest.CopyConfig(env.Operator), d.namespace) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return d
}

// hasNode has the pods run from now on.
func (d *desk) hasNode() *desk {
	GinkgoHelper()
	ctx, stop := context.WithCancel(d.ctx)
	d.node = &kubelet.Kubelet{Client: admin, Namespace: d.namespace, Programs: programs, Log: GinkgoWriter}
	ended := make(chan error, 1)
	go func() { ended <- d.node.Run(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return d
}

// blankWorkflow is the smallest one, as YAML.
const blankWorkflow = `{id: triage, name: triage, nodes: [` + startNode + `, ` + endNode + `], edges: [` + edge + `]}`

// composes creates a composition and the playbook of its agent.
func (d *desk) composes(name, turns string, how ...func(*api.Composition)) *api.Composition {
	GinkgoHelper()
	book := &corev1.ConfigMap{ObjectMeta: d.meta(name + "-playbook"), Data: map[string]string{"playbook.yaml": "turns:\n" + turns}}
	Expect(alice.Create(d.ctx, book)).To(Succeed())
	comp := &api.Composition{ObjectMeta: d.meta(name)}
	comp.Spec.Goal = "Close old issues"
	comp.Spec.Workflow = rawYAML(blankWorkflow)
	comp.Spec.Agent.Runtime.PlaybookRef = &api.KeyRef{Name: book.Name, Key: "playbook.yaml"}
	for _, f := range how {
		f(comp)
	}
	Expect(alice.Create(d.ctx, comp)).To(Succeed())
	return comp
}

// asks has alice send a message, as soon as nobody works on the composition.
func (d *desk) asks(comp *api.Composition, name, message string) *api.Turn {
	GinkgoHelper()
	turn := &api.Turn{ObjectMeta: d.meta(name)}
	turn.Spec = api.TurnSpec{CompositionRef: &api.LocalRef{Name: comp.Name}, Message: message}
	Eventually(func() error { return alice.Create(d.ctx, turn) }).Should(Succeed())
	return turn
}

// reaches waits until the turn is in a state, and the composition rests if that
// ends the agent's part.
func (d *desk) reaches(turn *api.Turn, state api.TurnPhase) *api.Turn {
	GinkgoHelper()
	sees(d, turn, func(g Gomega, turn *api.Turn) {
		g.Expect(turn.Status.State).To(Equal(state), "detail %q, prompt %+v", turn.Status.Detail, d.session(turn.Spec.CompositionRef.Name).Status.Prompt)
	})
	if state != api.TurnWorking {
		comp := &api.Composition{ObjectMeta: d.meta(turn.Spec.CompositionRef.Name)}
		sees(d, comp, func(g Gomega, comp *api.Composition) {
			g.Expect(comp.Status.Claim).To(BeNil())
			g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation))
		})
	}
	return turn
}

// sees waits until an object is as it should be.
func sees[T client.Object](d *desk, object T, check func(g Gomega, object T)) T {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(d.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).Should(Succeed())
	return object
}

// session is that of a composition, empty when there is none yet.
func (d *desk) session(composition string) *api.AgentSession {
	session := &api.AgentSession{ObjectMeta: d.meta(composition + "-agent")}
	_ = admin.Get(d.ctx, client.ObjectKeyFromObject(session), session)
	return session
}

// isTaken waits until the agent has the turn's prompt.
func (d *desk) isTaken(turn *api.Turn) {
	GinkgoHelper()
	session := &api.AgentSession{ObjectMeta: d.meta(turn.Spec.CompositionRef.Name + "-agent")}
	sees(d, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Prompt).To(HaveValue(And(
			HaveField("TurnUID", string(turn.UID)), HaveField("State", api.PromptDelivered),
		)))
	})
}

// loses has the machine take the session's live pod, and waits until that is
// noticed.
func (d *desk) loses(session *api.AgentSession) {
	GinkgoHelper()
	attempt := session.Status.Attempt
	Expect(d.node.Kill(fmt.Sprintf("%s-%d", session.Name, attempt))).To(BeTrue())
	sees(d, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.TokenHash == "" || session.Status.Attempt > attempt).To(BeTrue())
	})
}

// journal is what was said and done in the composition's session, a line each.
func (d *desk) journal(composition string) []string {
	GinkgoHelper()
	return d.lines(d.session(composition))
}

// lines are what was said and done in a session, a line each.
func (d *desk) lines(session *api.AgentSession) []string {
	GinkgoHelper()
	var lines []string
	next := int64(1)
	_, err := store.Store{Client: admin, Reader: admin}.Walk(d.ctx, session, 0, func(line journal.Line) error {
		Expect(line.Number).To(Equal(next), "events are numbered in order")
		next++
		lines = append(lines, lineOf(line.Event))
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	return lines
}

// lineOf is an event in short.
func lineOf(event journal.Event) string {
	parts := []string{event.Type}
	for _, member := range []string{"content", "text", "name", "attempt"} {
		if value, has := event.Data[member]; has {
			parts = append(parts, fmt.Sprint(value))
		}
	}
	if event.Data["notice"] == true {
		parts[0] = "notice"
	}
	return strings.Join(parts, " ")
}

// told is what the operator put into the turn's prompt.
func (d *desk) told(turn *api.Turn) string {
	GinkgoHelper()
	text, err := content.Store{Client: admin}.Get(d.ctx, d.namespace, turn.Status.Prompt.Digest)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
