package main

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

const (
	testToken = "tok-0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
	// patience is how long a test waits for what has to come; it is no part of
	// any assertion.
	patience = time.Minute
)

// fakeGateway keeps one session and the results of attempts in memory, and
// answers as the gateway's contract says.
type fakeGateway struct {
	t      *testing.T
	server *httptest.Server
	caFile string

	mu       sync.Mutex
	changed  chan struct{}
	session  openapi.Session
	prompt   *openapi.Prompt
	done     bool
	acked    []string
	events   []openapi.Event
	results  map[string]openapi.PromptResult
	attempts map[string]openapi.AttemptResult
	requests int
	// fails makes the n-th request, counted from 1, fail if it says so.
	fails func(n int) bool
	// maxOutputs bounds the outputs of an attempt; 0 is no bound.
	maxOutputs int
}

func newFakeGateway(t *testing.T) *fakeGateway {
	t.Helper()
	g := &fakeGateway{
		t:        t,
		changed:  make(chan struct{}),
		results:  make(map[string]openapi.PromptResult),
		attempts: make(map[string]openapi.AttemptResult),
		session: openapi.Session{
			SystemPrompt: "You build workflows.", AllowedTools: []string{"mcp__workbench__echo", "Bash(jq *)"},
			MCPServers: []openapi.MCPServer{{Name: "@axiom-workbench"}}, PermissionPolicy: openapi.PermissionPolicyAllowlist,
			TurnTimeout: "30m0s", Capabilities: []string{"composition"},
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/sessions/team-a/helper", g.getSession)
	mux.HandleFunc("GET /api/v1/sessions/team-a/helper/prompts", g.nextPrompt)
	mux.HandleFunc("POST /api/v1/sessions/team-a/helper/prompts/{id}/ack", g.ackPrompt)
	mux.HandleFunc("POST /api/v1/sessions/team-a/helper/prompts/{id}/result", g.finishPrompt)
	mux.HandleFunc("POST /api/v1/sessions/team-a/helper/events", g.appendEvents)
	mux.HandleFunc("POST /api/v1/attempts/team-a/{pod}/result", g.attemptResult)
	g.server = httptest.NewTLSServer(g.checked(mux))
	t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	g.caFile = filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	if err := os.WriteFile(g.caFile, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *fakeGateway) url() string { return g.server.URL + "/api/v1" }

func (g *fakeGateway) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.requests++
		fails := g.fails != nil && g.fails(g.requests)
		g.mu.Unlock()
		switch {
		case fails:
			problem(w, http.StatusServiceUnavailable, "")
		case r.Header.Get(client.TokenHeader) != testToken:
			problem(w, http.StatusUnauthorized, "")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func problem(w http.ResponseWriter, status int, expected string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(openapi.Problem{Status: status, Title: http.StatusText(status), Expected: expected})
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// change runs f and wakes those who wait for something to change.
func (g *fakeGateway) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()

	f()
	close(g.changed)
	g.changed = make(chan struct{})
}

// await returns when the condition holds, or false when the time is over.
func (g *fakeGateway) await(wait time.Duration, stop <-chan struct{}, condition func() bool) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		g.mu.Lock()
		ok, changed := condition(), g.changed
		g.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-stop:
			return false
		case <-timer.C:
			return false
		}
	}
}

func (g *fakeGateway) getSession(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()

	answer(w, g.session)
}

func (g *fakeGateway) nextPrompt(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	seconds, _ := strconv.Atoi(r.URL.Query().Get("wait"))
	var found openapi.Prompt
	ok := g.await(time.Duration(seconds)*time.Second, r.Context().Done(), func() bool {
		if g.prompt == nil || g.done {
			return false
		}
		found = *g.prompt
		return found.Sequence > after || found.Sequence == after && found.Cancel
	})
	if !ok {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, found)
}

func (g *fakeGateway) ackPrompt(w http.ResponseWriter, r *http.Request) {
	g.change(func() { g.acked = append(g.acked, r.PathValue("id")) })
	w.WriteHeader(http.StatusNoContent)
}

func (g *fakeGateway) finishPrompt(w http.ResponseWriter, r *http.Request) {
	var result openapi.PromptResult
	if err := json.NewDecoder(r.Body).Decode(&result); err != nil {
		problem(w, http.StatusBadRequest, "")
		return
	}
	g.change(func() {
		g.results[r.PathValue("id")] = result
		g.done = true
	})
	w.WriteHeader(http.StatusNoContent)
}

func (g *fakeGateway) appendEvents(w http.ResponseWriter, r *http.Request) {
	var batch openapi.EventBatch
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
		problem(w, http.StatusBadRequest, "")
		return
	}
	gap := false
	g.change(func() {
		for _, event := range batch.Events {
			last := int64(len(g.events))
			if event.Sequence > last+1 {
				gap = true
				return
			}
			if event.Sequence == last+1 {
				g.events = append(g.events, event)
			}
		}
	})
	if gap {
		problem(w, http.StatusConflict, strconv.Itoa(len(g.events)+1))
		return
	}
	answer(w, openapi.EventReceipt{AcceptedThrough: int64(len(g.events))})
}

func (g *fakeGateway) attemptResult(w http.ResponseWriter, r *http.Request) {
	var result openapi.AttemptResult
	if err := json.NewDecoder(r.Body).Decode(&result); err != nil {
		problem(w, http.StatusBadRequest, "")
		return
	}
	if g.maxOutputs > 0 && len(result.Outputs) > g.maxOutputs {
		problem(w, http.StatusRequestEntityTooLarge, "")
		return
	}
	g.change(func() { g.attempts[r.PathValue("pod")] = result })
	w.WriteHeader(http.StatusNoContent)
}

// queue queues a prompt.
func (g *fakeGateway) queue(id, text string) {
	g.change(func() {
		var sequence int64 = 1
		if g.prompt != nil {
			sequence = g.prompt.Sequence + 1
		}
		g.prompt, g.done = &openapi.Prompt{Sequence: sequence, ID: id, Text: text}, false
	})
}

func (g *fakeGateway) interrupt() { g.change(func() { g.prompt.Cancel = true }) }

// result waits for the result of a prompt.
func (g *fakeGateway) result(id string) openapi.PromptResult {
	g.t.Helper()
	var result openapi.PromptResult
	if !g.await(patience, nil, func() (ok bool) { result, ok = g.results[id]; return ok }) {
		g.t.Fatalf("no result of %s; events: %s", id, g.transcript())
	}
	return result
}

// awaitEvent waits for an event of the type whose data holds the text.
func (g *fakeGateway) awaitEvent(kind, text string) {
	g.t.Helper()
	matches := func(e openapi.Event) bool { return e.Type == kind && strings.Contains(string(e.Data), text) }
	if !g.await(patience, nil, func() bool { return slices.ContainsFunc(g.events, matches) }) {
		g.t.Fatalf("no event %s with %q; events: %s", kind, text, g.transcript())
	}
}

// transcript is every event, a line each.
func (g *fakeGateway) transcript() string {
	g.mu.Lock()
	defer g.mu.Unlock()

	var lines strings.Builder
	for _, event := range g.events {
		lines.WriteString(event.Type + " " + cmp.Or(string(event.Data), "{}") + "\n")
	}
	return lines.String()
}

// kinds are the types of all events.
func (g *fakeGateway) kinds() []string {
	g.mu.Lock()
	defer g.mu.Unlock()

	var kinds []string
	for _, event := range g.events {
		kinds = append(kinds, event.Type)
	}
	return kinds
}
