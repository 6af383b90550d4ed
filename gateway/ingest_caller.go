package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/token"
)

const (
	maxIngestBody = 320 << 10
	// senderPatience is what a sender has for its body: each holds a connection
	// before it is known.
	senderPatience = 15 * time.Second

	// Senders come in bursts, and some of them do not come again.
	eventsPerSecond = 100
	eventBurst      = 500

	// Keys of the Secret of an ingest source.
	keyHMAC   = "hmac"
	keyBearer = "bearer"

	headerSignature      = "X-Hub-Signature-256"
	headerGitHubEvent    = "X-GitHub-Event"
	headerGitHubDelivery = "X-GitHub-Delivery"

	detailBadCredential = "Unknown event source, or missing or invalid credential" //nolint:gosec // a message, no credential
)

// delivery is what a sender of events sent.
type delivery struct {
	message event.Message
	// isGitHub: it is a webhook delivery of a kind and id.
	isGitHub bool
	kind, id string
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// sourceCaller is a sender of events that holds the credential of the ingest
// source in the path: it signed the body, or it presents the bearer. Whoever
// else calls learns nothing, not even whether there is such a source.
func (s *Server) sourceCaller(r *http.Request) (caller, error) {
	sent, err := readDelivery(r)
	if err != nil {
		return caller{}, err
	}
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("eventSourceId")}
	source := &corev1.Secret{}
	found, err := s.find(r.Context(), key, source)
	if err != nil {
		return caller{}, fmt.Errorf("read event source: %w", err)
	}
	isOpen := sent.opens(r, source.Data)
	if !found || source.Labels[api.LabelEventSource] != "true" || !isOpen {
		return caller{}, refuse(http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, detailBadCredential)
	}
	return caller{key: "source/" + key.String(), delivery: sent}, nil
}

func readDelivery(r *http.Request) (*delivery, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, invalid("The body broke off")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	header := r.Header.Clone()
	return &delivery{
		message: event.Message{ContentType: header.Get("Content-Type"), Header: header.Values, Body: body},
		// A signature says what is meant even if the kind is missing: the request
		// is then refused for that and not for its bearer.
		isGitHub: header.Get(headerGitHubEvent) != "" || header.Get(headerSignature) != "",
		kind:     header.Get(headerGitHubEvent),
		id:       header.Get(headerGitHubDelivery),
	}, nil
}

// opens tells whether a delivery has the credential for its kind among those of
// a source. It takes as long for a source that is not there.
func (d *delivery) opens(r *http.Request, credentials map[string][]byte) bool {
	if d.isGitHub {
		return event.IsSigned(credential(credentials, keyHMAC), d.message.Body, r.Header.Get(headerSignature))
	}
	scheme, presented, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	isSame := token.Matches(token.Hash(string(credential(credentials, keyBearer))), presented)
	return isSame && strings.EqualFold(scheme, "bearer")
}

// credential drops the line break that a file may have left at its end.
func credential(credentials map[string][]byte, key string) []byte {
	return bytes.TrimRight(credentials[key], "\r\n")
}

// hurry bounds the time in which what is to come of a request must arrive. What
// the gateway asks itself comes over no connection, and is all there.
func hurry(w http.ResponseWriter, limit time.Duration) error {
	deadline := time.Now().Add(limit) //nolint:forbidigo // connections know the machine's time alone
	err := http.NewResponseController(w).SetReadDeadline(deadline)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("limit time of body: %w", err)
	}
	return nil
}
