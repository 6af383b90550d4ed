//go:build interop

package interop

import (
	"encoding/json"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/journal/store"
)

// agent is one that others wrote, and how it is configured.
type agent struct {
	// key is the variable with the credential of the model.
	key     string
	command []string
	// env besides, with the model's server at a URL.
	env func(url string) []api.EnvVar
	// wantAgent is how it introduces itself.
	wantAgent string
}

func variable(name, value string) api.EnvVar { return api.EnvVar{Name: name, Value: value} }

var agents = map[string]agent{
	"claude-code-acp": {
		key:     "ANTHROPIC_API_KEY",
		command: []string{"claude-code-acp"},
		env: func(url string) []api.EnvVar {
			return []api.EnvVar{
				variable("ANTHROPIC_BASE_URL", url),
				variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
			}
		},
		wantAgent: "@zed-industries/claude-code-acp",
	},
	"opencode": {
		key:     "MODEL_KEY",
		command: []string{"opencode", "acp"},
		env: func(url string) []api.EnvVar {
			config, err := json.Marshal(object{
				"autoupdate": false, "share": "disabled",
				"model": "local/stub", "small_model": "local/stub",
				"provider": object{"local": object{
					"npm": "@ai-sdk/openai-compatible", "name": "Local",
					"options": object{"baseURL": url + "/v1", "apiKey": "{env:MODEL_KEY}"},
					"models":  object{"stub": object{"name": "Stub"}},
				}},
				"permission": object{"*": "deny", "workbench_*": "ask"},
			})
			Expect(err).NotTo(HaveOccurred())
			return []api.EnvVar{
				variable("OPENCODE_CONFIG_CONTENT", string(config)),
				variable("OPENCODE_DISABLE_MODELS_FETCH", "1"),
				variable("OPENCODE_DISABLE_AUTOUPDATE", "1"),
			}
		},
		wantAgent: "OpenCode",
	},
}

// employ makes a composition with the agent, which is skipped if there is none
// for this machine.
func (w *world) employ(a agent, m *model, how ...func(*api.CompositionAgent)) {
	GinkgoHelper()
	if _, err := exec.LookPath(a.command[0]); err != nil {
		Skip(a.command[0] + " is not made for this machine")
	}
	settings := api.CompositionAgent{
		Runtime:        api.RuntimeSpec{Image: "example.com/agents/agent:1", Command: a.command, Env: a.env(m.url)},
		ModelSecretRef: w.credential(a.key),
	}
	for _, f := range how {
		f(&settings)
	}
	w.compose(settings)
	DeferCleanup(w.dump, m)
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
