package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayclient "github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/mcpserver"
)

// maxMCPBody has room for the largest change set with its envelope.
const maxMCPBody = maxChangeSetBody + maxBody

// innerURL is where the gateway finds itself; nobody looks the name up.
const innerURL = "https://gateway" + basePath

// mcpPolicy is that of both servers: a token on every request, whatever the
// protocol asks for.
func mcpPolicy() policy {
	return policy{limit: maxMCPBody, waits: true, identify: (*Server).anySessionCaller}
}

// mcpHandler serves the tools of one server over streamable HTTP. It keeps
// nothing between requests: what the tools work on is known from the token, and
// each call goes through the same routes, and the same checks, as that of a
// program in the pod.
func (s *Server) mcpHandler(name string, routes http.Handler) http.HandlerFunc {
	protocol := mcp.NewStreamableHTTPHandler(
		func(r *http.Request) *mcp.Server { return s.toolsFor(r, name, routes) },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMCPBody},
	)
	return s.guarded(mcpPolicy(), protocol.ServeHTTP)
}

// toolsFor makes the server for one request.
func (s *Server) toolsFor(r *http.Request, name string, routes http.Handler) *mcp.Server {
	session := callerOf(r.Context()).session
	target := client.ObjectKeyFromObject(session)
	if name == mcpserver.Workbench {
		target.Name = ""
		if ref := session.Spec.CompositionRef; ref != nil {
			target.Name = ref.Name
		}
	}
	gateway, err := gatewayclient.NewOver(inner{routes}, innerURL, r.Header.Get(tokenHeader))
	return mcpserver.New(name, mcpserver.Options{Gateway: gateway, Trouble: err, Target: target.String()})
}

type countedKey struct{}

// isCounted tells whether a request is the gateway's own, made for a caller whose
// request was counted already.
func isCounted(ctx context.Context) bool {
	is, _ := ctx.Value(countedKey{}).(bool)
	return is
}

// inner brings the gateway's own requests to its routes.
type inner struct{ routes http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t inner) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := request.Clone(context.WithValue(request.Context(), countedKey{}, true))
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	t.routes.ServeHTTP(answer, asked)
	if err := asked.Body.Close(); err != nil {
		return nil, fmt.Errorf("close body: %w", err)
	}
	return &http.Response{
		StatusCode: answer.status, Status: http.StatusText(answer.status), Header: answer.header, Request: request,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()),
	}, nil
}

// answer collects what a route answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements [http.ResponseWriter].
func (a *answer) Write(text []byte) (int, error) { return a.body.Write(text) }
