package crash

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// read lets a request through that changes nothing. The first list of each
// cache is answered with the past, where the process begins in it.
func (g *gate) read(req *http.Request) (*http.Response, error) {
	if !g.life.isFirstList(req) {
		return g.base.RoundTrip(req)
	}
	past := req.Clone(req.Context())
	query := past.URL.Query()
	query.Set("resourceVersion", strconv.FormatInt(g.life.past, 10))
	query.Set("resourceVersionMatch", "Exact")
	past.URL.RawQuery = query.Encode()
	return g.base.RoundTrip(past)
}

// isFirstList tells whether a request is a cache's first list. Only caches name
// the resource version that they have, and who wants the present names none.
func (l *life) isFirstList(req *http.Request) bool {
	if l.past == 0 || !req.URL.Query().Has("resourceVersion") {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun == nil {
		l.begun = map[string]bool{}
	}
	if l.begun[req.URL.Path] {
		return false
	}
	l.begun[req.URL.Path] = true
	return true
}

// refuse is the answer of a server that does not know a request.
func refuse(req *http.Request) *http.Response {
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"not here"}`
	return &http.Response{
		Status: http.StatusText(http.StatusUnprocessableEntity), StatusCode: http.StatusUnprocessableEntity,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}
}
