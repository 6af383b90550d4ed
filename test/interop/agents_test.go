//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

// agent is one that others wrote. How it is configured is in a sample, whose
// model is at modelURL.
type agent struct {
	sample string
	// wantAgent is how it introduces itself.
	wantAgent string
}

const modelURL = "https://model.example.com"

var agents = map[string]agent{
	"claude-code-acp": {"claude-code.yaml", "@zed-industries/claude-code-acp"},
	"opencode":        {"opencode.yaml", "OpenCode"},
}

// settings are those of the sample, with the model's server at a URL.
func (a agent) settings(url string) api.CompositionAgent {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "agents", a.sample))
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).To(ContainSubstring(modelURL))
	comp := &api.Composition{}
	Expect(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), modelURL, url)), comp)).To(Succeed())
	return comp.Spec.Agent
}

// employ makes a composition with the agent, which is skipped if there is none
// for this machine.
func (w *world) employ(a agent, m *model, how ...func(*api.CompositionAgent)) {
	GinkgoHelper()
	settings := a.settings(m.url)
	if program := settings.Runtime.Command[0]; !isThere(program) {
		Skip(program + " is not made for this machine")
	}
	w.credential("ANTHROPIC_API_KEY", "MODEL_KEY")
	for _, f := range how {
		f(&settings)
	}
	w.compose(settings)
	DeferCleanup(w.dump, m)
}

func isThere(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// dump writes what happened into the log.
func (w *world) dump(m *model) {
	for _, e := range w.journal() {
		GinkgoWriter.Printf("%s", e.Line())
	}
	GinkgoWriter.Printf("not understood: %v\n", m.foreign)
}

// ends waits until the agent has ended the turn.
func (w *world) ends(turn *api.Turn, state api.TurnPhase) {
	GinkgoHelper()
	sees(w, turn, func(g Gomega, turn *api.Turn) {
		g.Expect(turn.Status.State).NotTo(BeElementOf(api.TurnPhase(""), api.TurnPending, api.TurnWorking))
	})
	Expect(turn.Status.State).To(Equal(state), turn.Status.Detail)
}

// journal is what the agent's session has told.
func (w *world) journal() []journal.Event {
	GinkgoHelper()
	session := &api.AgentSession{}
	Expect(admin.Get(w.ctx, w.key(compositionName+"-agent"), session)).To(Succeed())
	events, err := store.Store{Reader: admin}.Load(w.ctx, session)
	Expect(err).NotTo(HaveOccurred())
	return events
}

// told are the events of a type, each as the JSON of its data.
func (w *world) told(kind string) []string {
	GinkgoHelper()
	var told []string
	for _, e := range w.journal() {
		if e.Type == kind {
			data, err := json.Marshal(e.Data)
			Expect(err).NotTo(HaveOccurred())
			told = append(told, string(data))
		}
	}
	return told
}

const asked = "Wait an hour before closing."

var _ = Describe("An agent that others wrote", func() {
	for _, name := range sortedKeys(agents) {
		a := agents[name]
		It("completes a turn: "+name, func() {
			m, w := startModel(), newWorld()
			w.employ(a, m)
			turn := w.ask(asked)
			w.ends(turn, api.TurnAwaitingResolution)

			Expect(turn.Status.Diff).To(Equal("added nodes: wait-1\nedges changed"))
			Expect(turn.Status.Reply).To(Equal(closing))
			Expect(m.conversations()).To(HaveLen(3))
			for _, c := range m.conversations() {
				Expect(c.key).To(Equal(modelKey))
				Expect(c.said).To(ContainSubstring("Edit workflows only with propose_workflow_changes"))
				Expect(c.said).To(ContainSubstring("[Workbench context]\nWorkflow content revision: " + turn.Status.BaseRevision))
			}
			Expect(w.told("session_init")).To(ConsistOf(ContainSubstring(a.wantAgent)))
			Expect(w.told("tool_use")).To(HaveExactElements(
				ContainSubstring(`"name":"mcp__workbench__get_composition"`), ContainSubstring(`"name":"mcp__workbench__propose_workflow_changes"`)))
			Expect(w.told("permission_resolved")).To(HaveEach(ContainSubstring(`"allow":true`)))
			for _, e := range w.journal() {
				Expect(string(e.Line())).NotTo(ContainSubstring(modelKey))
			}
			tell.section("Agent `%s`", name)
			tell.events(w.journal(), w)
		})

		It("is kept from a tool that its template does not allow: "+name, func() {
			m, w := startModel(), newWorld()
			w.create(&api.SessionTemplate{ObjectMeta: w.meta("reader"), Spec: api.SessionTemplateSpec{
				SystemPrompt: "Look at the composition.", MCPServers: []api.MCPServer{{Name: "@axiom-workbench"}},
				AllowedTools: []string{"mcp__workbench__get_composition"},
			}})
			w.employ(a, m, func(settings *api.CompositionAgent) { settings.Template = "reader" })
			turn := w.ask(asked)
			w.ends(turn, api.TurnCompleted)

			Expect(turn.Status.ChangeSets).To(BeEmpty())
			Expect(turn.Status.RejectedProposals).To(BeZero())
			Expect(w.told("permission_resolved")).To(HaveExactElements(ContainSubstring(`"allow":true`), ContainSubstring(`"allow":false`)))
		})

		It("stops when it is interrupted, and is there for the next turn: "+name, func() {
			m, w := startModel(), newWorld()
			m.hangs = true
			w.employ(a, m)
			turn := w.ask(asked)
			Eventually(m.conversations).ShouldNot(BeEmpty())
			Expect(alice.Patch(w.ctx, turn, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"interrupt":true}}`)))).To(Succeed())
			w.ends(turn, api.TurnCompleted)

			Expect(w.told("turn_complete")).To(ConsistOf(ContainSubstring(`"stopReason":"cancelled"`)))
			sees(w, &api.AgentSession{ObjectMeta: w.meta(compositionName + "-agent")}, func(g Gomega, session *api.AgentSession) {
				g.Expect(session.Status.Phase).To(Equal(api.SessionReady))
				g.Expect(session.Status.Attempt).To(BeEquivalentTo(1))
			})
		})
	}
})
