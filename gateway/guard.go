package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// basePath of the API.
const basePath = "/api/v1"

// finishTimeout bounds the work for one request whose caller may be gone.
const finishTimeout = 10 * time.Second

// Limits of bodies, in bytes.
const (
	maxBody           = 64 << 10
	maxChangeSetBody  = 512 << 10
	maxExpressionBody = 384 << 10
	maxAttemptBody    = 384 << 10
	maxEventsBody     = 1 << 20
)

// policy is what the guard has to know of a route.
type policy struct {
	// limit of the body in bytes.
	limit int64
	// body tells whether there must be one, in JSON.
	body bool
	// required members of the body.
	required []string
	// waits tells whether the route only waits for news, and may stop when its
	// caller is gone.
	waits bool
	// identify finds out who calls.
	identify func(*Server, *http.Request) (caller, error)
}

// policies of all routes, by the pattern that the generated code registers.
func policies() map[string]policy {
	return map[string]policy{
		"GET /compositions/{namespace}/{name}/agent/composition": {
			limit: maxBody, identify: (*Server).compositionCaller,
		},
		"POST /compositions/{namespace}/{name}/agent/workflow/changesets": {
			limit: maxChangeSetBody, body: true, identify: (*Server).compositionCaller,
		},
		"POST /expressions/evaluate": {
			limit: maxExpressionBody, body: true, required: []string{"expression", "scope"}, identify: (*Server).anySessionCaller,
		},
		"GET /sessions/{namespace}/{name}": {
			limit: maxBody, identify: (*Server).sessionCaller,
		},
		"GET /sessions/{namespace}/{name}/prompts": {
			limit: maxBody, waits: true, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/prompts/{id}/ack": {
			limit: maxBody, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/prompts/{id}/result": {
			limit: maxBody, body: true, required: []string{"outcome"}, identify: (*Server).sessionCaller,
		},
		"POST /sessions/{namespace}/{name}/events": {
			limit: maxEventsBody, body: true, required: []string{"events"}, identify: (*Server).sessionCaller,
		},
		"POST /attempts/{namespace}/{pod}/result": {
			limit: maxAttemptBody, body: true, required: []string{"exitCode"}, identify: (*Server).attemptCaller,
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
	body, err := readBody(w, r, p.limit)
	if err != nil {
		return caller{}, err
	}
	who, err := p.identify(s, r)
	if err != nil {
		return caller{}, err
	}
	if !s.rates.allow(who.key, s.clock.Now()) {
		return caller{}, rateLimited()
	}
	if err := p.checkSyntax(body); err != nil {
		return caller{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return who, nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, overLimit(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, overLimit(limit)
	}
	if err != nil {
		return nil, invalid("The body broke off")
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
