package path

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/client"
)

// stands creates a free-standing session of a template, and the playbook of its
// agent.
func (d *desk) stands(name, template, turns string, how ...func(*api.AgentSession)) *api.AgentSession {
	GinkgoHelper()
	book := &corev1.ConfigMap{ObjectMeta: d.meta(name + "-playbook"), Data: map[string]string{"playbook.yaml": "turns:\n" + turns}}
	Expect(alice.Create(d.ctx, book)).To(Succeed())
	session := &api.AgentSession{ObjectMeta: d.meta(name)}
	session.Spec.TemplateRef.Name = template
	session.Spec.Runtime.PlaybookRef = &api.KeyRef{Name: book.Name, Key: "playbook.yaml"}
	for _, f := range how {
		f(session)
	}
	Expect(alice.Create(d.ctx, session)).To(Succeed())
	return session
}

// tells has alice send a message to a free-standing session, as soon as no other
// turn works in it, and waits for the turn's end.
func (d *desk) tells(session *api.AgentSession, name, message string, how ...func(*api.Turn)) *api.Turn {
	GinkgoHelper()
	turn := &api.Turn{ObjectMeta: d.meta(name)}
	turn.Spec = api.TurnSpec{SessionRef: &api.LocalRef{Name: session.Name}, Message: message}
	for _, f := range how {
		f(turn)
	}
	Eventually(func() error { return alice.Create(d.ctx, turn) }).Should(Succeed())
	return sees(d, turn, func(g Gomega, turn *api.Turn) {
		g.Expect(turn.Status.State).To(Or(Equal(api.TurnCompleted), Equal(api.TurnFailed), Equal(api.TurnRefused)))
	})
}

// isReady waits until the session's agent is there, and returns the token of its
// pod.
func (d *desk) isReady(session *api.AgentSession) (token string) {
	GinkgoHelper()
	sees(d, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Phase).To(Equal(api.SessionReady), session.Status.LastFailure)
	})
	secret := &corev1.Secret{ObjectMeta: d.meta(fmt.Sprintf("%s-%d", session.Name, session.Status.Attempt))}
	return string(fresh(d, secret).Data["token"])
}

// gatewayWith calls the gateway with a token.
func gatewayWith(token string) *client.Client {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(keeper.CA())).To(BeTrue())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	DeferCleanup(transport.CloseIdleConnections)
	calls, err := client.NewOver(transport, "https://"+service.address()+"/api/v1", token)
	Expect(err).NotTo(HaveOccurred())
	return calls
}

// recorder is an agent that notes in a file what it is offered when a
// conversation begins, and says what each prompt took.
const recorder = `
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed 's/^{"jsonrpc":"2.0","id":\([^,]*\),.*/\1/')
  case $line in
  *'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
  *'"method":"session/new"'*) printf '%s\n' "$line" >>"${RECORD#file:}"; result='{"sessionId":"s"}' ;;
  *'"method":"session/prompt"'*) result='{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":7,"totalTokens":107}}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// recording runs that agent. The file is one of the machine's, which the prefix
// keeps from being looked for in the pod.
func recording(file string) api.RuntimeSpec {
	return api.RuntimeSpec{Image: "recorder", Command: []string{"/bin/sh", "-c", recorder}, Env: []api.EnvVar{{Name: "RECORD", Value: "file:" + file}}}
}
