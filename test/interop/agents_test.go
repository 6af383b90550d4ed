//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
	// template is a SessionTemplate to make for it; nil: the built-in one does.
	template *api.SessionTemplateSpec
	// wantAgent is how it introduces itself, wantTools is what it calls the tools.
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

// employ makes a composition with the agent.
func (w *world) employ(a agent, m *model) *api.Composition {
	GinkgoHelper()
	settings := api.CompositionAgent{
		Runtime:        api.RuntimeSpec{Image: "example.com/agents/agent:1", Command: a.command, Env: a.env(m.url)},
		ModelSecretRef: w.credential(a.key),
	}
	if a.template != nil {
		w.create(&api.SessionTemplate{ObjectMeta: w.meta("agent"), Spec: *a.template})
		settings.Template = "agent"
	}
	return w.compose(settings)
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

var _ = Describe("An agent that others wrote", func() {
	for _, name := range sortedKeys(agents) {
		It(fmt.Sprintf("completes a turn: %s", name), func() {
			a, m, w := agents[name], startModel(), newWorld()
			w.employ(a, m)
			turn := w.ask("Wait an hour before closing.")
			DeferCleanup(func() {
				for _, e := range w.journal() {
					GinkgoWriter.Printf("%s %v\n", e.Type, e.Data)
				}
				GinkgoWriter.Printf("%v\n", m.foreign)
			})

			sees(w, turn, func(g Gomega, turn *api.Turn) {
				g.Expect(turn.Status.State).NotTo(BeElementOf(api.TurnPhase(""), api.TurnPending, api.TurnWorking))
			})
			Expect(turn.Status.State).To(Equal(api.TurnAwaitingResolution), turn.Status.Detail)
			Expect(turn.Status.Diff).To(Equal("added nodes: wait-1\nedges changed"))
			Expect(turn.Status.Reply).To(Equal(closing))
			for _, c := range m.conversations() {
				Expect(c.key).To(Equal(modelKey))
				Expect(c.system + c.said).To(ContainSubstring("Edit workflows only with propose_workflow_changes"))
				Expect(c.said).To(ContainSubstring("[Workbench context]\nWorkflow content revision: " + turn.Status.BaseRevision))
			}
			var text strings.Builder
			for _, e := range w.journal() {
				text.Write(e.Line())
			}
			Expect(text.String()).NotTo(ContainSubstring(modelKey))
			Expect(text.String()).To(ContainSubstring(a.wantAgent))
			tell.section("Agent `%s`", name)
			tell.events(w.journal(), w)
		})
	}
})
