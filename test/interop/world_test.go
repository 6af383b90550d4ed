//go:build interop

package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const (
	tokenHeader = "X-Axiom-Session-Token"
	// modelKey is what agents show to the model's server; it must not get
	// anywhere else.
	modelKey = "sk-interop-0123456789abcdef"

	compositionName = "triage"
	turnName        = "triage-1"
	sourceName      = "forge"
	sourceBearer    = "a-bearer-of-good-news"
)

// world is a namespace with a node.
type world struct {
	ctx       context.Context
	namespace string
}

// newWorld makes a namespace whose node runs until the spec ends.
func newWorld() *world {
	GinkgoHelper()
	ctx, end := context.WithCancel(context.Background())
	ns := testenv.Namespace("interop")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	node := &kubelet.Kubelet{Client: admin, Namespace: ns.Name, Programs: programs, Log: GinkgoWriter}
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	DeferCleanup(func() {
		end()
		Expect(<-ended).To(Succeed())
	})
	return &world{ctx: ctx, namespace: ns.Name}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) create(object client.Object) {
	GinkgoHelper()
	Expect(alice.Create(w.ctx, object)).To(Succeed())
}

// sees waits until an object is as it should be.
func sees[T client.Object](w *world, object T, check func(g Gomega, object T)) T {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).Should(Succeed())
	return object
}

// compose makes a composition with the blank workflow, once the operator knows it.
func (w *world) compose(agent api.CompositionAgent) *api.Composition {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: w.meta(compositionName)}
	comp.Spec = api.CompositionSpec{Goal: "Close what nobody answers", Workflow: rawOf(workflow.Blank(compositionName)), Agent: agent}
	w.create(comp)
	return sees(w, comp, func(g Gomega, comp *api.Composition) { g.Expect(comp.Status.WorkflowRevision).NotTo(BeEmpty()) })
}

// ask sends a message to the composition's agent.
func (w *world) ask(message string) *api.Turn {
	GinkgoHelper()
	turn := &api.Turn{ObjectMeta: w.meta(turnName)}
	turn.Spec = api.TurnSpec{CompositionRef: &api.LocalRef{Name: compositionName}, Message: message}
	w.create(turn)
	return turn
}

// idle is the runtime of an agent that never ends its turn.
func (w *world) idle() api.RuntimeSpec {
	GinkgoHelper()
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("idle"), Data: map[string]string{"playbook.yaml": "turns: [{steps: [{hang: true}]}]"}})
	return api.RuntimeSpec{PlaybookRef: &api.KeyRef{Name: "idle", Key: "playbook.yaml"}}
}

// token waits for the token of a session whose agent is up.
func (w *world) token(session string, phases ...api.SessionPhase) string {
	GinkgoHelper()
	sees(w, &api.AgentSession{ObjectMeta: w.meta(session)}, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Phase).To(BeElementOf(phases), "%s", session.Status.LastFailure)
	})
	secret := &corev1.Secret{}
	Expect(admin.Get(w.ctx, w.key(session+"-1"), secret)).To(Succeed())
	return string(secret.Data["token"])
}

// credential makes the Secret with the key of the model, as the samples name it,
// under the names of variables that agents look for it in.
func (w *world) credential(variables ...string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: w.meta("model-key"), StringData: map[string]string{}}
	secret.Labels = map[string]string{api.LabelCredential: "true"}
	for _, name := range variables {
		secret.StringData[name] = modelKey
	}
	w.create(secret)
}

// happens sends an event to the gateway and returns its id.
func (w *world) happens() string {
	GinkgoHelper()
	source := &corev1.Secret{ObjectMeta: w.meta(sourceName), StringData: map[string]string{"bearer": sourceBearer}}
	source.Labels = map[string]string{api.LabelEventSource: "true"}
	w.create(source)
	body := `{"specversion": "1.0", "id": "42", "source": "https://forge.example.com", "type": "issue.created", "subject": "issues/7",
		"time": "2026-05-04T10:11:12Z", "data": {"number": 7, "labels": ["bug"]}}`
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost,
		"https://"+address+"/api/v1/events/"+w.namespace+"/"+sourceName, bytes.NewReader([]byte(body)))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("Authorization", "Bearer "+sourceBearer)
	answer, err := (&http.Client{Transport: trusting()}).Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(answer.Body.Close()).To(Succeed()) }()
	var receipt struct {
		ID string `json:"id"`
	}
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	Expect(json.NewDecoder(answer.Body).Decode(&receipt)).To(Succeed())
	return receipt.ID
}

// trusting reaches the gateway.
func trusting() *http.Transport {
	GinkgoHelper()
	certificates, err := os.ReadFile(caFile)
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(certificates)).To(BeTrue())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
}

func rawOf(value any) *runtime.RawExtension {
	GinkgoHelper()
	data, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return &runtime.RawExtension{Raw: data}
}
