package path

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	gatewayclient "github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/template"
)

// offer is an MCP server that an agent was offered.
type offer struct {
	Name string
	Env  []struct{ Name, Value string }
}

func (o offer) value(name string) string {
	for _, variable := range o.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

// offers are the MCP servers of each conversation that the recorder noted.
func offers(file string) [][]offer {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var all [][]offer
	for line := range strings.Lines(string(data)) {
		var request struct{ Params struct{ MCPServers []offer } }
		Expect(json.Unmarshal([]byte(line), &request)).To(Succeed())
		all = append(all, request.Params.MCPServers)
	}
	return all
}

var _ = Describe("the tools of a session", func() {
	It("workbench 32: get AXIOM_COMPOSITION_ID as <ns>/<name> and the Secret's token, of 43 characters at least, another for each session and attempt", func() {
		d := newDesk().hasNode()
		dir := GinkgoT().TempDir()
		recorded := func(name string) func(*api.Composition) {
			return func(comp *api.Composition) { comp.Spec.Agent.Runtime = recording(filepath.Join(dir, name)) }
		}
		var tokens []string
		for _, name := range []string{"triage", "other"} {
			comp := d.composes(name, "", recorded(name))
			d.reaches(d.asks(comp, name+"-1", "Go"), api.TurnCompleted)
			session := d.session(name)
			tokens = append(tokens, d.isReady(session))
			d.loses(session)
			d.reaches(d.asks(comp, name+"-2", "Go"), api.TurnCompleted)
			tokens = append(tokens, d.isReady(session))
			Expect(session.Status.Attempt).To(Equal(int32(2)))

			told := offers(filepath.Join(dir, name))
			Expect(told).To(HaveLen(2))
			for i, servers := range told {
				Expect(servers).To(HaveLen(1))
				Expect(servers[0].Name).To(Equal("workbench"))
				Expect(servers[0].value("AXIOM_COMPOSITION_ID")).To(Equal(d.namespace + "/" + name))
				Expect(servers[0].value("AXIOM_SESSION_TOKEN")).To(Equal(tokens[len(tokens)-2+i]))
				Expect(servers[0].value("AXIOM_API_URL")).To(Equal("https://" + service.address() + "/api/v1"))
			}
		}
		seen := map[string]bool{}
		for _, token := range tokens {
			Expect(len(token)).To(BeNumerically(">=", 43))
			seen[token] = true
		}
		Expect(seen).To(HaveLen(4))
	})

	It("are those of no composition in a free-standing session", func() {
		d := newDesk().hasNode()
		file := filepath.Join(GinkgoT().TempDir(), "record")
		session := d.stands("helper", "axiom-config-assistant", "", func(s *api.AgentSession) { s.Spec.Runtime = recording(file) })
		token := d.isReady(session)
		servers := offers(file)[0]
		Expect(servers).To(HaveLen(1))
		Expect(servers[0].Name).To(Equal("axiom"))
		Expect(servers[0].value("AXIOM_ASSISTANT_SESSION_ID")).To(Equal(d.namespace + "/helper"))
		Expect(servers[0].value("AXIOM_SESSION_TOKEN")).To(Equal(token))
		Expect(servers[0].value("AXIOM_COMPOSITION_ID")).To(BeEmpty())
	})
})

var _ = Describe("a token", func() {
	It("workbench 33: is in the Secret only; after the pod the Secret is gone and the token is 401", func() {
		d := newDesk().hasNode()
		session := d.stands("helper", "general-assistant", plays("Hello", "[{say: Hi}]"))
		turn := d.tells(session, "t-1", "Hello")
		Expect(turn.Status.Reply).To(Equal("Hi"))
		token := d.isReady(session)
		_, err := gatewayWith(token).GetSession(d.ctx, d.namespace, session.Name)
		Expect(err).NotTo(HaveOccurred())

		var holders []string
		for _, list := range []client.ObjectList{
			&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &api.AgentSessionList{}, &api.TurnList{}, &eventsv1.EventList{},
		} {
			holders = append(holders, d.holders(list, token)...)
		}
		Expect(holders).To(Equal([]string{"Secret helper-1"}))

		Expect(alice.Patch(d.ctx, session, merge(`{"spec":{"stopped":true}}`))).To(Succeed())
		sees(d, session, func(g Gomega, session *api.AgentSession) {
			g.Expect(session.Status.Phase).To(Equal(api.SessionStopped))
			g.Expect(session.Status.TokenHash).To(BeEmpty())
		})
		err = admin.Get(d.ctx, d.key("helper-1"), &corev1.Secret{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		_, err = gatewayWith(token).GetSession(d.ctx, d.namespace, session.Name)
		problem, isProblem := errors.AsType[*gatewayclient.Problem](err)
		Expect(isProblem).To(BeTrue(), "%v", err)
		Expect(problem.Status).To(Equal(http.StatusUnauthorized))
		Expect(problem.Detail).To(Equal("Missing or invalid X-Axiom-Session-Token"))
		Expect(d.lines(session)).To(ContainElement("assistant_text Hi"), "the journal is kept")
	})
})

// holders are the objects of the namespace, as kind and name, that hold a text,
// also where it is encoded.
func (d *desk) holders(list client.ObjectList, text string) []string {
	GinkgoHelper()
	Expect(admin.List(d.ctx, list, client.InNamespace(d.namespace))).To(Succeed())
	var found []string
	Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
		plain, err := json.Marshal(item)
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		if strings.Contains(string(plain), text) || strings.Contains(string(plain), encoded) {
			kinds, _, err := env.Scheme.ObjectKinds(item)
			Expect(err).NotTo(HaveOccurred())
			found = append(found, kinds[0].Kind+" "+item.(client.Object).GetName())
		}
		return err
	})).To(Succeed())
	return found
}

var _ = Describe("a template", func() {
	It("workbench 36: of a user has no capabilities and no built-in's name; capabilities are sorted and present; mcp__workbench__ tools alone yield exactly @axiom-workbench", func() {
		d := newDesk().hasNode()
		mine := func(name string) *api.SessionTemplate {
			return &api.SessionTemplate{ObjectMeta: d.meta(name), Spec: api.SessionTemplateSpec{
				SystemPrompt: "Help.", AllowedTools: []string{"mcp__workbench__get_composition", "mcp__workbench__get_item"},
			}}
		}
		for _, capability := range []string{"composition", "config-items", "validation-feedback", "root"} {
			capable := mine("mine")
			capable.Spec.Capabilities = []string{capability}
			Expect(apierrors.IsInvalid(alice.Create(d.ctx, capable))).To(BeTrue(), capability)
		}
		for _, name := range []string{"axiom-workbench", "axiom-config-assistant", "general-assistant", "subject-assistant"} {
			Expect(apierrors.IsInvalid(alice.Create(d.ctx, mine(name)))).To(BeTrue(), name)
		}
		foreign := mine("mine")
		foreign.Spec.AllowedTools = []string{"mcp__search__find"}
		Expect(apierrors.IsInvalid(alice.Create(d.ctx, foreign))).To(BeTrue(), "its server is not declared")

		Expect(alice.Create(d.ctx, mine("mine"))).To(Succeed())
		session := d.stands("helper", "mine", plays("Hello", "[{say: Hi}]"))
		told, err := gatewayWith(d.isReady(session)).GetSession(d.ctx, d.namespace, session.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(told.MCPServers).To(Equal([]openapi.MCPServer{{Name: "@axiom-workbench"}}))
		Expect(told.Capabilities).To(Equal([]string{}))
		Expect(session.Status.Capabilities).To(Equal([]string{}))

		assistant := d.stands("assistant", "axiom-config-assistant", plays("Hello", "[{say: Hi}]"))
		told, err = gatewayWith(d.isReady(assistant)).GetSession(d.ctx, d.namespace, assistant.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(told.Capabilities).To(Equal([]string{"config-items", "validation-feedback"}))
		Expect(assistant.Status.Capabilities).To(Equal(told.Capabilities))
	})

	It("workbench 56: of the workbench has the nine rules and both references, whose example applies to the blank workflow", func() {
		d := newDesk().hasNode()
		comp := d.composes("triage", plays("Hello", "[{say: Hi}]")+plays("Wait", "["+example(template.Render("{{changesetReference}}"))+"]"))
		d.reaches(d.asks(comp, "t-1", "Hello"), api.TurnCompleted)
		session := d.session("triage")
		told, err := gatewayWith(d.isReady(session)).GetSession(d.ctx, d.namespace, session.Name)
		Expect(err).NotTo(HaveOccurred())
		for _, rule := range rules {
			Expect(strings.Split(told.SystemPrompt, "\n")).To(ContainElement("- " + rule))
		}
		for _, placeholder := range []string{"{{reference}}", "{{changesetReference}}"} {
			Expect(told.SystemPrompt).To(ContainSubstring(template.Render(placeholder)))
			Expect(told.SystemPrompt).NotTo(ContainSubstring(placeholder))
		}
		for _, code := range []string{"target-missing", "duplicate-id", "edge-endpoint-missing", "malformed", "stale"} {
			Expect(template.Render("{{changesetReference}}")).To(ContainSubstring("`" + code + "`"))
		}
		for _, tool := range told.AllowedTools {
			Expect(tool).To(Or(HavePrefix("mcp__workbench__"), Equal("Bash(jq *)")))
		}
		turn := d.reaches(d.asks(comp, "t-2", "Wait"), api.TurnAwaitingResolution)
		Expect(turn.Status.Diff).To(Equal("added nodes: wait-1\nedges changed"))
		Expect(turn.Status.Problems).To(BeEmpty())
	})

	It("keeps placeholders that it does not know, and is warned of them", func() {
		d := newDesk().hasNode()
		cfg, err := env.User("author", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		kubectl, err := env.Kubectl(cfg)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(kubectl.Close)
		out, err := kubectl.Run(d.ctx, `{apiVersion: axiom.apitomy.io/v1alpha1, kind: SessionTemplate, metadata: {name: mine}, spec: {systemPrompt: "Hi {{name}}. {{changesetReference}}"}}`,
			"--namespace", d.namespace, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("Warning: spec.systemPrompt: {{name}} is not replaced"))
		session := d.stands("helper", "mine", plays("Hello", "[{say: Hi}]"))
		told, err := gatewayWith(d.isReady(session)).GetSession(d.ctx, d.namespace, session.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(told.SystemPrompt).To(Equal("Hi {{name}}. " + template.Render("{{changesetReference}}")))
	})
})

// rules of the workbench's agent.
var rules = []string{
	"Edit workflows only with propose_workflow_changes",
	"Use the workflowRevision from get_composition, or the revision returned by your last change set, as baseRevision",
	"Before writing a CEL expression that reads event data, inspect a real event of that type with get_stream_event and check the expression with evaluate_expression",
	"If no events of that type exist, say so and use the documented event schema",
	"Prefer node action types for non-AI steps",
	"Declare an input for everything an action uses",
	"Receive-event nodes must correlate",
	"Never describe the output format in an agent prompt",
	"Your workflow changes are applied by the user's editor when your turn ends",
}

// example is the steps of an agent that proposes a reference's example.
func example(reference string) string {
	GinkgoHelper()
	_, rest, _ := strings.Cut(reference, "```json\n")
	set, _, hasExample := strings.Cut(rest, "\n```")
	Expect(hasExample).To(BeTrue())
	var compact bytes.Buffer
	Expect(json.Compact(&compact, []byte(set))).To(Succeed())
	set = strings.Replace(compact.String(), "sha256:<workflowRevision from get_composition>", "${comp.workflowRevision}", 1)
	return `{call: {tool: get_composition, save: comp}}, {call: {tool: propose_workflow_changes, args: {"changeSet": ` + set + `}, expect: "^APPLIED"}}`
}

// drafts is a step that drafts a tool, whose interpreter may be wrong.
func drafts(interpreter, expect string) string {
	return `{call: {tool: axiom_put_item, args: {type: tool, item: {name: ask, description: Asks, parameters: [], interpreter: ` + interpreter +
		`, scriptTemplate: echo hi}}, expect: "^` + expect + `"}}`
}

var _ = Describe("the configuration assistant", func() {
	const heading = `\AValidation found problems in your items\. Fix them:\ntool ''ask'':\n- \[ERROR\] \S+ INVALID_INTERPRETER: .*`

	It("workbench 39: is told of the problems of its drafts in one follow-up prompt, at most three times", func() {
		d := newDesk().hasNode()
		session := d.stands("helper", "axiom-config-assistant",
			plays("Draft", "["+drafts("cobol", "INVALID")+", {say: Drafted}]")+
				plays(heading+`cobol.*\z`, "["+drafts("bash", "VALID")+", {say: Mended}]")+
				plays("Never mind", "["+drafts("one", "INVALID")+", {say: First}]")+
				plays(heading+`one.*\z`, "["+drafts("two", "INVALID")+", {say: Second}]")+
				plays(heading+`two.*\z`, "["+drafts("three", "INVALID")+", {say: Third}]")+
				plays(heading+`three.*\z`, "["+drafts("four", "INVALID")+", {say: Fourth}]"))
		mended := d.tells(session, "t-1", "Draft")
		Expect(mended.Status.State).To(Equal(api.TurnCompleted), mended.Status.Detail)
		Expect(mended.Status.Reply).To(Equal("Mended"))
		Expect(fresh(d, session).Status.Items).To(HaveExactElements(And(HaveField("Name", "ask"), HaveField("Valid", true))))

		// What has no end in the playbook would be refused, and fail the turn.
		endless := d.tells(session, "t-2", "Never mind")
		Expect(endless.Status.State).To(Equal(api.TurnCompleted), endless.Status.Detail)
		Expect(endless.Status.Reply).To(Equal("Fourth"))
		Expect(fresh(d, session).Status.Items).To(HaveExactElements(HaveField("Valid", false)))

		said := d.lines(session)
		Expect(said).To(ContainElements("user_message Draft", "assistant_text Drafted", "assistant_text Mended", "user_message Never mind"))
		Expect(strings.Join(said, "\n")).NotTo(ContainSubstring("Validation found"), "only people's messages are theirs")
		Expect(session.Status.Usage).To(HaveValue(HaveField("Turns", int64(2))), "a follow-up is no turn of its own")
	})
})

var _ = Describe("a free-standing session", func() {
	It("welcomes, answers, forgets when it is told to, and counts what it takes over pods and resets", func() {
		d := newDesk().hasNode()
		Expect(alice.Create(d.ctx, &api.SessionTemplate{ObjectMeta: d.meta("mine"), Spec: api.SessionTemplateSpec{
			SystemPrompt: "Help.", WelcomeMessage: "How can I help?",
		}})).To(Succeed())
		file := filepath.Join(GinkgoT().TempDir(), "record")
		session := d.stands("helper", "mine", "", func(s *api.AgentSession) { s.Spec.Runtime = recording(file) })
		d.isReady(session)
		first := d.tells(session, "t-1", "One")
		Expect(first.Status.State).To(Equal(api.TurnCompleted), first.Status.Detail)
		Expect(first.Status.Usage).To(HaveValue(And(HaveField("InputTokens", int64(100)), HaveField("OutputTokens", int64(7)))))
		Expect(d.told(first)).To(Equal("One"))
		d.loses(session)
		d.tells(session, "t-2", "Two")
		d.tells(session, "t-3", "Three", func(turn *api.Turn) { turn.Spec.NewConversation = true })
		Expect(fresh(d, session).Status.Usage).To(HaveValue(And(
			HaveField("Turns", int64(3)), HaveField("InputTokens", int64(300)), HaveField("OutputTokens", int64(21)),
			HaveField("Duration.Duration", BeNumerically(">", time.Duration(0))),
		)))
		Expect(offers(file)).To(HaveLen(3), "a conversation for each pod and one for the reset")
		Expect(d.lines(session)).To(Equal([]string{
			"assistant_text How can I help?", "session_init 1",
			"user_message One", "turn_complete",
			"session_init 2", "user_message Two", "turn_complete",
			"user_message Three", "conversation_reset", "turn_complete",
		}))
	})
})
