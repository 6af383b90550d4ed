package gateway_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/secretscan"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	"github.com/apitomy/axiom-operator/internal/token"
)

func TestGateway(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Gateway")
}

var (
	env         *testenv.Environment
	k8s         client.WithWatch
	sessions    cache.Cache
	expressions = expression.NewCache()
	// issuer lends its certificate to every gateway, and has a client that trusts it.
	issuer *httptest.Server
)

var _ = BeforeSuite(func() {
	log.SetLogger(logr.Discard())
	issuer = httptest.NewTLSServer(http.NotFoundHandler())
	DeferCleanup(issuer.Close)
	var err error
	env, err = testenv.Start(testenv.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	k8s, err = env.Client(env.Operator)
	Expect(err).NotTo(HaveOccurred())
	sessions, err = cache.New(env.Operator, cache.Options{Scheme: env.Scheme})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	go func() {
		defer GinkgoRecover()
		Expect(sessions.Start(ctx)).To(Succeed())
	}()
})

// start is when every fake clock begins.
var start = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// world is a gateway with a namespace of its own.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakeClock
	server    *gateway.Server
	url       string
	// headers that every request has besides.
	headers map[string]string
}

// newWorld starts a gateway on TLS whose calls of the API server the hooks may
// spoil.
func newWorld(ctx context.Context, hooks interceptor.Funcs) *world {
	GinkgoHelper()
	namespace := testenv.Namespace("gateway")
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	w := &world{ctx: ctx, namespace: namespace.Name, clock: clocktesting.NewFakeClock(start)}
	spoiled := interceptor.NewClient(k8s, hooks)
	scanner, err := secretscan.New()
	Expect(err).NotTo(HaveOccurred())
	certificate := &issuer.TLS.Certificates[0]
	w.server = gateway.New(gateway.Options{
		Client: spoiled, Reader: spoiled, Cached: spoiled, Informers: sessions, Expressions: expressions,
		Template: templateOf, Scanner: scanner, Clock: w.clock, Log: logr.Discard(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
	})
	// The spec's own context ends with the node that made the world.
	serving, stop := context.WithCancel(context.Background())
	Expect(w.server.Connect(serving)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(serving, listener) }()
	DeferCleanup(func() {
		issuer.Client().CloseIdleConnections()
		stop()
		Expect(<-ended).To(Succeed())
	})
	w.url = "https://" + listener.Addr().String()
	return w
}

func templateOf(_ context.Context, _, name string) (api.SessionTemplateSpec, error) {
	if name != "axiom-workbench" {
		return api.SessionTemplateSpec{}, apierrors.NewNotFound(schema.GroupResource{Resource: "sessiontemplates"}, name)
	}
	return api.SessionTemplateSpec{
		SystemPrompt: "You build workflows.",
		AllowedTools: []string{"mcp__workbench__get_composition", "Bash(jq *)"},
		MCPServers:   []api.MCPServer{{Name: "docs", URL: "https://docs.example"}},
	}, nil
}

// reply is an answer of the gateway.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) problem() openapi.Problem {
	GinkgoHelper()
	Expect(r.header.Get("Content-Type")).To(Equal("application/problem+json"), r.body)
	var p openapi.Problem
	Expect(json.Unmarshal([]byte(r.body), &p)).To(Succeed())
	Expect(p.Status).To(Equal(r.status))
	Expect(p.Title).To(Equal(http.StatusText(r.status)))
	return p
}

// expectProblem checks an answer that refuses.
func expectProblem(r reply, status int, code openapi.ProblemCode, detail string) {
	GinkgoHelper()
	Expect(r.status).To(Equal(status), r.body)
	p := r.problem()
	Expect(p.Code).To(Equal(code))
	Expect(p.Detail).To(ContainSubstring(detail))
}

func into[T any](r reply) T {
	GinkgoHelper()
	Expect(r.status).To(Equal(http.StatusOK), r.body)
	var value T
	Expect(json.Unmarshal([]byte(r.body), &value)).To(Succeed())
	return value
}

// call sends a request; the body may be a text or anything that JSON can hold.
func (w *world) call(method, path, presented string, body any) reply {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(w.ctx, method, w.url+path, bodyOf(body))
	Expect(err).NotTo(HaveOccurred())
	if presented != "" {
		request.Header.Set("X-Axiom-Session-Token", presented)
	}
	for name, value := range w.headers {
		request.Header.Set(name, value)
	}
	return replyTo(request)
}

func replyTo(request *http.Request) reply {
	GinkgoHelper()
	response, err := issuer.Client().Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(response.Body.Close()).To(Succeed()) }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return reply{status: response.StatusCode, header: response.Header, body: string(text)}
}

func bodyOf(body any) io.Reader {
	GinkgoHelper()
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	}
	data, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	return strings.NewReader(string(data))
}

// blank is the smallest workflow that runs.
func blank() map[string]any {
	return map[string]any{
		"id": "triage", "name": "triage",
		"nodes": []any{
			map[string]any{"id": "start-1", "type": "start", "name": "Start", "config": map[string]any{"inputs": []any{}}},
			map[string]any{"id": "end-1", "type": "end", "name": "End", "config": map[string]any{}},
		},
		"edges": []any{map[string]any{"id": "edge-1", "source": "start-1", "target": "end-1", "priority": 0, "isDefault": true}},
	}
}

func revisionOf(doc map[string]any) string {
	GinkgoHelper()
	revision, err := changeset.Revision(decoded(doc))
	Expect(err).NotTo(HaveOccurred())
	return revision
}

// decoded is a value as it comes back from the API server.
func decoded(doc any) map[string]any {
	GinkgoHelper()
	value, err := jsonvalue.Decode(raw(doc).Raw)
	Expect(err).NotTo(HaveOccurred())
	return value.(map[string]any)
}

func raw(value any) *runtime.RawExtension {
	GinkgoHelper()
	data, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return &runtime.RawExtension{Raw: data}
}

// composition creates a composition; a nil workflow is none.
func (w *world) composition(name string, workflow map[string]any) *api.Composition {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	comp.Spec.Goal = "Close old issues"
	if workflow != nil {
		comp.Spec.Workflow = raw(workflow)
	}
	Expect(k8s.Create(w.ctx, comp)).To(Succeed())
	return comp
}

// session creates a session with a live pod, bound to a composition unless
// that is empty. Its token is "token-of-" and its name.
func (w *world) session(name, composition string) *api.AgentSession {
	GinkgoHelper()
	session := &api.AgentSession{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	session.Spec.TemplateRef.Name = "axiom-workbench"
	if composition != "" {
		session.Spec.CompositionRef = &api.LocalRef{Name: composition}
	}
	Expect(k8s.Create(w.ctx, session)).To(Succeed())
	session.Status = api.AgentSessionStatus{
		Capabilities: []string{"composition"}, Attempt: 1, TokenHash: token.Hash(tokenOf(w, name)), Phase: api.SessionStarting,
	}
	Expect(k8s.Status().Update(w.ctx, session)).To(Succeed())
	return session
}

func tokenOf(w *world, session string) string { return "token-of-" + session + "-in-" + w.namespace }

// turn starts a turn on a composition, as the operator does.
func (w *world) turn(comp *api.Composition, name string) *api.Turn {
	GinkgoHelper()
	turn := &api.Turn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	turn.Spec = api.TurnSpec{CompositionRef: &api.LocalRef{Name: comp.Name}, Message: "Do something."}
	Expect(k8s.Create(w.ctx, turn)).To(Succeed())
	turn.Status.State, turn.Status.ItemPolicy = api.TurnWorking, comp.Spec.Agent.ItemPolicy
	if comp.Spec.Workflow != nil {
		ref, err := content.Store{Client: k8s}.Put(w.ctx, turn, comp.Spec.Workflow.Raw)
		Expect(err).NotTo(HaveOccurred())
		turn.Status.Base = &ref
		turn.Status.BaseRevision = revisionOf(decoded(comp.Spec.Workflow))
		turn.Status.WorkingRevision = turn.Status.BaseRevision
	}
	Expect(k8s.Status().Update(w.ctx, turn)).To(Succeed())
	comp.Status.TurnState = api.TurnStateWorking
	comp.Status.CurrentTurn = turn.Name
	comp.Status.Claim = &api.Claim{Turn: turn.Name, UID: string(turn.UID)}
	comp.Status.LastTurnGeneration = comp.Generation
	Expect(k8s.Status().Update(w.ctx, comp)).To(Succeed())
	return turn
}

// workbench is a composition with the blank workflow, a session and a working
// turn.
func (w *world) workbench() (comp *api.Composition, turn *api.Turn) {
	GinkgoHelper()
	comp = w.composition("triage", blank())
	w.session("triage-agent", "triage")
	return comp, w.turn(comp, "triage-1")
}

// reload reads an object again.
func reload[T client.Object](w *world, object T) T {
	GinkgoHelper()
	fresh := object.DeepCopyObject().(T)
	Expect(k8s.Get(w.ctx, client.ObjectKeyFromObject(object), fresh)).To(Succeed())
	return fresh
}

func (w *world) path(format string) string {
	return "/api/v1" + strings.ReplaceAll(format, "{ns}", w.namespace)
}

// prompt queues the text of the turn triage-1 as a session's first prompt, as
// the operator does.
func (w *world) prompt(session *api.AgentSession, text string) {
	GinkgoHelper()
	ref, err := content.Store{Client: k8s}.Put(w.ctx, session, []byte(text))
	Expect(err).NotTo(HaveOccurred())
	fresh := reload(w, session)
	fresh.Status.Prompt = &api.SessionPrompt{Sequence: 1, ID: "triage-1", Ref: ref, State: api.PromptQueued}
	Expect(k8s.Status().Update(w.ctx, fresh)).To(Succeed())
}

// changeSet is a set of one operation that renames the workflow.
func changeSet(id, base, name string) map[string]any {
	return map[string]any{
		"id": id, "baseRevision": base, "author": "host", "summary": "Rename",
		"ops": []any{map[string]any{"op": "metadata", "patch": map[string]any{"name": name}}},
	}
}

// attemptPod creates the pod of an action attempt whose token is "attempt-token".
func (w *world) attemptPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	GinkgoHelper()
	controller := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: w.namespace,
		Labels:      map[string]string{api.LabelComponent: api.ComponentAction, api.LabelRun: "run-uid"},
		Annotations: map[string]string{api.AnnotationTokenHash: token.Hash("attempt-token")},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: api.GroupVersion.String(), Kind: "WorkflowRun", Name: "run", UID: "run-uid", Controller: &controller,
		}},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "script", Image: "script"}}
	if change != nil {
		change(pod)
	}
	Expect(k8s.Create(w.ctx, pod)).To(Succeed())
	return pod
}
