package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// agentSession is a session with a working turn; this program is its agent.
type agentSession struct {
	world *world
	turn  *api.Turn
	// name of the composition.
	name  string
	token string
	// revision that the next set is based on.
	revision string
	// last set that was sent, and the ids of all that were applied.
	last map[string]any
	told []string
}

// startTurn makes a composition and a turn on it. Its pod never comes to life,
// but its token does.
func (w *world) startTurn(ctx context.Context, namespace string) (*agentSession, error) {
	comp := w.composition(w.name("draft"), namespace, chainOf(askNode, 8))
	comp.Spec.Agent.Runtime = api.RuntimeSpec{Image: "example.invalid/agent", Command: []string{"agent"}}
	if err := w.person.Create(ctx, comp); err != nil {
		return nil, fmt.Errorf("create composition: %w", err)
	}
	turn := &api.Turn{ObjectMeta: metav1.ObjectMeta{Name: comp.Name + "-1", Namespace: namespace}}
	turn.Spec = api.TurnSpec{CompositionRef: &api.LocalRef{Name: comp.Name}, Message: "Describe it."}
	if err := w.person.Create(ctx, turn); err != nil {
		return nil, fmt.Errorf("create turn: %w", err)
	}
	return &agentSession{world: w, turn: turn, name: comp.Name}, nil
}

// ready waits until the turn works and the gateway knows the token.
func (s *agentSession) ready(ctx context.Context) error {
	for {
		if err := s.look(ctx); err != nil {
			return err
		}
		if s.turn.Status.State == api.TurnWorking && s.token != "" {
			s.revision = s.turn.Status.WorkingRevision
			return nil
		}
		if turns.IsOver(s.turn.Status.State) {
			return fmt.Errorf("turn %s is %s: %s", s.turn.Name, s.turn.Status.State, s.turn.Status.Detail)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for turn %s: %w", s.turn.Name, err)
		}
	}
}

func (s *agentSession) look(ctx context.Context) error {
	admin := s.world.admin
	if err := admin.Get(ctx, client.ObjectKeyFromObject(s.turn), s.turn); err != nil {
		return fmt.Errorf("read turn: %w", err)
	}
	session := &api.AgentSession{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-agent", Namespace: s.turn.Namespace}}
	err := admin.Get(ctx, client.ObjectKeyFromObject(session), session)
	if err != nil || session.Status.TokenHash == "" {
		return client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: session.Namespace, Name: fmt.Sprintf("%s-%d", session.Name, session.Status.Attempt)}
	if err := admin.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	s.token = string(secret.Data["token"])
	return nil
}

// propose sends the next set, which must be applied.
func (s *agentSession) propose(ctx context.Context) error {
	id := fmt.Sprintf("cs-%d", len(s.told))
	s.last = map[string]any{
		"id": id, "baseRevision": s.revision, "summary": "Describe",
		"ops": []any{map[string]any{"op": "metadata", "patch": map[string]any{"description": id}}},
	}
	answer, err := s.send(ctx, s.last)
	if err != nil {
		return err
	}
	if !answer.Applied {
		return fmt.Errorf("%s: %s was refused: %s", s.name, id, answer.Error.Reason)
	}
	s.revision, s.told = answer.ContentRevision, append(s.told, id)
	return nil
}

// send sends a set, again as long as the gateway asks for it.
func (s *agentSession) send(ctx context.Context, set map[string]any) (openapi.ProposalResult, error) {
	for {
		var result openapi.ProposalResult
		status, text, err := s.post(ctx, set)
		if err != nil {
			return result, err
		}
		switch status {
		case http.StatusOK:
			return result, json.Unmarshal(text, &result)
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			if err := pause(ctx, time.Second); err != nil {
				return result, err
			}
		default:
			return result, fmt.Errorf("propose: %d: %s", status, text)
		}
	}
}

func (s *agentSession) post(ctx context.Context, set map[string]any) (int, []byte, error) {
	body, err := json.Marshal(set)
	if err != nil {
		return 0, nil, fmt.Errorf("write change set: %w", err)
	}
	url := fmt.Sprintf("https://%s/api/v1/compositions/%s/%s/agent/workflow/changesets", s.world.gateway, s.turn.Namespace, s.name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return 0, nil, fmt.Errorf("propose: %w", err)
	}
	request.Header.Set("X-Axiom-Session-Token", s.token)
	response, err := s.world.agents.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("propose: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// recorded are the ids of the sets that the turn has.
func (s *agentSession) recorded(ctx context.Context) ([]string, error) {
	if err := s.world.admin.Get(ctx, client.ObjectKeyFromObject(s.turn), s.turn); err != nil {
		return nil, fmt.Errorf("read turn: %w", err)
	}
	var ids []string
	for _, accepted := range s.turn.Status.ChangeSets {
		ids = append(ids, accepted.ID)
	}
	return ids, nil
}

// meetGateway finds an address for the gateway, and makes the client of those
// who ask it: they trust who serves the webhooks, which is the same process.
func (w *world) meetGateway(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find an address for the gateway: %w", err)
	}
	w.gateway = listener.Addr().String()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.env.Webhook.LocalServingCAData)
	w.agents = &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 100,
	}}
	return listener.Close()
}
