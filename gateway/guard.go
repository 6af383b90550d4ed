package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"
)

// basePath of the API.
const basePath = "/api/v1"

// finishTimeout bounds the work for one request whose caller may be gone.
const finishTimeout = 10 * time.Second

// bodyTimeout is what a body has to arrive: a caller that trickles holds a
// connection, and nobody knows yet who it is.
const bodyTimeout = 30 * time.Second

// Limits of bodies, in bytes.
const (
	maxBody           = 64 << 10
	maxItemBody       = 160 << 10
	maxChangeSetBody  = 512 << 10
	maxExpressionBody = 384 << 10
	maxAttemptBody    = 384 << 10
	maxEventsBody     = 1 << 20
	// maxResultBody has room for the longest reply that a runner sends, however
	// it is escaped.
	maxResultBody = 1 << 20
)

// policy is what the guard has to know of a route.
type policy struct {
	// limit of the body in bytes.
	limit int64
	// body tells whether there must be one, in JSON.
	body bool
	// required members of the body.
	required []string
	// isOutside tells whether anybody may knock: bodies must then arrive soon, and
	// callers may come in bursts.
	isOutside bool
	// waits tells whether the route only waits for news, and may stop when its
	// caller is gone.
	waits bool
	// identify finds out who calls.
	identify identify
}

// policies of all routes, by the pattern that the generated code registers.
func policies() map[string]policy {
	all := map[string]policy{}
	for _, routes := range []map[string]policy{compositionPolicies(), sessionPolicies(), itemPolicies(), namespacePolicies()} {
		maps.Copy(all, routes)
	}
	return all
}

func compositionPolicies() map[string]policy {
	return map[string]policy{
		"GET /compositions/{namespace}/{name}/agent/composition": {
			limit: maxBody, identify: (*Server).compositionCaller,
		},
		"PUT /compositions/{namespace}/{name}/agent/items": {
			limit: maxItemBody, body: true, required: []string{"type", "content"}, identify: (*Server).compositionCaller,
		},
		"GET /compositions/{namespace}/{name}/agent/items/{type}/{item}": {
			limit: maxBody, identify: (*Server).compositionCaller,
		},
		"DELETE /compositions/{namespace}/{name}/agent/items/{type}/{item}": {
			limit: maxBody, identify: (*Server).compositionCaller,
		},
		"POST /compositions/{namespace}/{name}/agent/workflow/changesets": {
			limit: maxChangeSetBody, body: true, identify: (*Server).compositionCaller,
		},
		"GET /compositions/{namespace}/{name}/events": {
			limit: maxBody, waits: true, identify: (*Server).compositionWatcher,
		},
	}
}

func sessionPolicies() map[string]policy {
	return map[string]policy{
		"GET /sessions/{namespace}/{name}": {
			limit: maxBody, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/conversation": {
			limit: maxBody, body: true, required: []string{"canLoad", "home"}, identify: (*Server).sessionCaller,
		},
		"PUT /sessions/{namespace}/{name}/conversation": {
			limit: maxBody, body: true, required: []string{"id"}, identify: (*Server).sessionCaller,
		},
		"GET /sessions/{namespace}/{name}/prompts": {
			limit: maxBody, waits: true, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/prompts/{id}/ack": {
			limit: maxBody, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/prompts/{id}/result": {
			limit: maxResultBody, body: true, required: []string{"outcome"}, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/events": {
			limit: maxEventsBody, body: true, required: []string{"events"}, identify: (*Server).sessionCaller,
		},
		"GET /sessions/{namespace}/{name}/events": {
			limit: maxBody, waits: true, identify: (*Server).sessionReader,
		},
		"POST /events/{namespace}/{eventSourceId}": {
			limit: maxIngestBody, isOutside: true, identify: (*Server).sourceCaller,
		},
		"POST /attempts/{namespace}/{pod}/result": {
			limit: maxAttemptBody, body: true, required: []string{"exitCode"}, identify: (*Server).attemptCaller,
		},
	}
}

func itemPolicies() map[string]policy {
	return map[string]policy{
		"GET /sessions/{namespace}/{name}/items": {
			limit: maxBody, identify: (*Server).itemsReader,
		},
		"PUT /sessions/{namespace}/{name}/items": {
			limit: maxItemBody, body: true, required: []string{"type", "content"}, identify: (*Server).itemsAgent,
		},
		"GET /sessions/{namespace}/{name}/items/{type}/{item}": {
			limit: maxBody, identify: (*Server).itemsReader,
		},
		"DELETE /sessions/{namespace}/{name}/items/{type}/{item}": {
			limit: maxBody, identify: (*Server).itemsAgent,
		},
		"POST /sessions/{namespace}/{name}/validate": {
			limit: maxItemBody, body: true, required: []string{"type", "item"}, identify: (*Server).itemsAgent,
		},
		"POST /sessions/{namespace}/{name}/apply": {
			limit: maxBody, body: true, required: []string{"items"}, identify: (*Server).itemsPerson,
		},
	}
}

// namespacePolicies are those of routes that are about no object in their path.
func namespacePolicies() map[string]policy {
	return map[string]policy{
		"POST /expressions/evaluate": {
			limit: maxExpressionBody, body: true, required: []string{"expression", "scope"}, identify: sessionOrPerson(toEvaluate),
		},
		"GET /stream/events": {
			limit: maxBody, identify: sessionOrPerson(toListEvents),
		},
		"GET /stream/events/{id}": {
			limit: maxBody, identify: sessionOrPerson(toReadEvent),
		},
		"GET /library/{kind}": {
			limit: maxBody, identify: sessionOrPerson(toListLibrary),
		},
		"GET /library/{kind}/{name}": {
			limit: maxBody, identify: sessionOrPerson(toReadLibrary),
		},
	}
}

// guardedMux registers the routes of the generated code, each behind the guard.
type guardedMux struct {
	*http.ServeMux
	server   *Server
	policies map[string]policy
}

// HandleFunc registers a route. A route without a policy must not be served.
func (m guardedMux) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(pattern, " ")
	route := method + " " + strings.TrimPrefix(path, basePath)
	p, ok := m.policies[route]
	if !ok {
		panic(fmt.Sprintf("route %s has no policy", route)) // only a mistake in this package gets here
	}
	m.ServeMux.HandleFunc(pattern, m.server.guarded(p, handler))
}

// guarded makes the checks that every route begins with, and then sees to it
// that the request is carried out even if its caller is gone.
func (s *Server) guarded(p policy, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		who, err := s.admit(w, r, p)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		who.wantsStream = wantsStream(r)
		ctx := context.WithValue(r.Context(), callerKey{}, who)
		if !p.waits {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
			defer cancel()
		}
		next(w, r.WithContext(ctx))
	}
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request, p policy) (caller, error) {
	body, err := s.readBody(w, r, p)
	if err != nil {
		return caller{}, err
	}
	// Some callers are known by what they signed.
	r.Body = io.NopCloser(bytes.NewReader(body))
	who, err := p.identify(s, r)
	if err != nil {
		return caller{}, err
	}
	if !isCounted(r.Context()) && !s.ratesOf(p).allow(who.key, s.clock.Now()) {
		return caller{}, rateLimited()
	}
	if err := p.checkSyntax(body); err != nil {
		return caller{}, err
	}
	return who, nil
}

// patience is how long the parts of a request may take to arrive.
type patience struct {
	// header, and the handshake before it.
	header time.Duration
	// body of a caller, and sender that of somebody who sends events.
	body, sender time.Duration
}

// ofBody is what the body has to arrive, zero if there is none.
func (t patience) ofBody(r *http.Request, p policy) time.Duration {
	switch {
	case r.ContentLength == 0:
		return 0
	case p.isOutside:
		return t.sender
	}
	return t.body
}

func (s *Server) readBody(w http.ResponseWriter, r *http.Request, p policy) ([]byte, error) {
	if r.ContentLength > p.limit {
		return nil, overLimit(p.limit)
	}
	limit := s.patience.ofBody(r, p)
	if limit > 0 {
		if err := hurry(w, limit); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, p.limit))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, overLimit(p.limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, tooSlow()
	}
	if err != nil {
		return nil, invalid("The body broke off")
	}
	if limit > 0 && p.waits { // the deadline of the body would end the wait
		return body, hurry(w, requestTimeout)
	}
	return body, nil
}

// checkSyntax checks what the generated code does not: that the body is JSON to
// its end, and that it has what it must have.
func (p policy) checkSyntax(body []byte) error {
	if !p.body {
		return nil
	}
	if !json.Valid(body) {
		return invalid("The body is not JSON")
	}
	if len(p.required) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return invalid("The body is not an object")
	}
	for _, name := range p.required {
		if value, ok := members[name]; !ok || string(value) == "null" {
			return invalid("%s is required", name)
		}
	}
	return nil
}

func overLimit(limit int64) error {
	return tooLarge("The body is larger than %d bytes", limit)
}

// fail answers with the problem of an error, and logs the error if the caller
// is not to blame.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable && r.Context().Err() == nil {
		s.log.Error(err, "Could not serve request", "route", r.Pattern)
	}
	p.write(w)
}

// misread answers a request whose parameters or body do not have their types.
func misread(w http.ResponseWriter, _ *http.Request, err error) {
	invalid("%s", err).write(w)
}
