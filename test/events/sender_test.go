package events

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	hmacSecret  = "It's a Secret to Everybody"
	bearerToken = "a-bearer-of-good-news"
)

// source lets senders in under a name.
func (w *world) source(name string, data map[string]string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: w.meta(name), StringData: data}
	secret.Labels = map[string]string{api.LabelEventSource: "true"}
	Expect(admin.Create(w.ctx, secret)).To(Succeed())
	return secret
}

// reply is an answer of the gateway.
type reply struct {
	status int
	text   string
}

func (r reply) receipt() (id string, duplicate bool) {
	GinkgoHelper()
	Expect(r.status).To(Equal(http.StatusOK), r.text)
	var receipt struct {
		ID        string `json:"id"`
		Duplicate bool   `json:"duplicate"`
	}
	Expect(json.Unmarshal([]byte(r.text), &receipt)).To(Succeed())
	return receipt.ID, receipt.Duplicate
}

// refusal checks an answer that refuses, and returns why.
func (r reply) refusal(status int) string {
	GinkgoHelper()
	Expect(r.status).To(Equal(status), r.text)
	var problem struct {
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}
	Expect(json.Unmarshal([]byte(r.text), &problem)).To(Succeed())
	Expect(problem.Status).To(Equal(status))
	return problem.Detail
}

// sender sends to the gateway over TLS and trusts its certificate.
func sender() *http.Client {
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(keeper.CA())).To(BeTrue())
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
}

// post sends a body to a path behind /api/v1, with headers in pairs.
func (w *world) post(path string, body []byte, headers ...string) reply {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "https://"+address+"/api/v1"+path, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return w.do(request)
}

func (w *world) do(request *http.Request) reply {
	GinkgoHelper()
	var answer *http.Response
	Eventually(func() (err error) { // the gateway may be on its way up
		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return err
			}
		}
		answer, err = sender().Do(request) //nolint:bodyclose // closed below
		return err
	}).Should(Succeed())
	defer func() { Expect(answer.Body.Close()).To(Succeed()) }()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return reply{answer.StatusCode, string(text)}
}

func (w *world) ingest(source string) string { return "/events/" + w.namespace + "/" + source }

// gitHub sends a webhook delivery, signed with the suite's secret.
func (w *world) gitHub(source, kind, delivery, body string, headers ...string) reply {
	GinkgoHelper()
	return w.post(w.ingest(source), []byte(body), append([]string{
		"Content-Type", "application/json", "X-GitHub-Event", kind, "X-GitHub-Delivery", delivery,
		"X-Hub-Signature-256", signatureOf(hmacSecret, body),
	}, headers...)...)
}

func signatureOf(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// cloudEvent sends a structured event with the suite's bearer.
func (w *world) cloudEvent(source, body string) reply {
	GinkgoHelper()
	return w.post(w.ingest(source), []byte(body), "Content-Type", "application/cloudevents+json", "Authorization", "Bearer "+bearerToken)
}
