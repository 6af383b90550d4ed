package forge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

// Codes of fetches.
const (
	CodeBodyNotText = "BODY_NOT_TEXT"
	CodeHTTPStatus  = "HTTP_STATUS"
)

// The longest body that a result has room for.
const maxBody = 192 << 10

// Fetch requests one page that the list of remotes names. Every status is data. The result is {response: {status, headers,
// body}}.
type Fetch struct {
	read
	// Transport to the host, which remotes.Remotes.Fetch gave leave for.
	Transport http.RoundTripper
	// Method is GET or HEAD.
	Method, URL string
	// Headers by name, as the action has them.
	Headers map[string]string
	// Token goes along as that of a bearer; empty: none.
	Token string
	// Require2xx makes a failure of any other status.
	Require2xx bool
}

var _ effect.Effect = (*Fetch)(nil)

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// reserved are the fields of requests that are not the author's: they say how a message is carried and who sends it.
var reserved = []string{
	"authorization", "connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer",
	"transfer-encoding", "upgrade",
}

// CheckHeaders gives an INPUT_CONTRACT for fields that a request cannot have: names that are none, reserved or there twice in
// different case, and values that are not one line.
func CheckHeaders(headers map[string]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		if !headerName.MatchString(name) || seen[lower] || slices.Contains(reserved, lower) || !isSafe(headers[name]) {
			return &effect.Failure{Code: effect.CodeInputContract, Message: "headers: has a field that a request cannot have"}
		}
		seen[lower] = true
	}
	return nil
}

// Observe sends the request.
func (f *Fetch) Observe(ctx context.Context) (effect.Observation, error) {
	if err := CheckHeaders(f.Headers); err != nil {
		return effect.Observation{}, err
	}
	r, err := http.NewRequestWithContext(ctx, f.Method, f.URL, http.NoBody)
	if err != nil {
		return effect.Observation{}, urlInvalid("is not a URL")
	}
	r.Header.Set("User-Agent", "axiom-operator")
	for name, value := range f.Headers {
		r.Header.Set(name, value)
	}
	if f.Token != "" {
		r.Header.Set("Authorization", "Bearer "+f.Token)
	}
	a, err := roundTrip(f.Transport, r, maxBody)
	if errors.Is(err, remotes.ErrBodyTooLarge) {
		return effect.Observation{}, &effect.Failure{Code: effect.CodeResultTooLarge, Message: "the body is too large"}
	}
	if err != nil {
		return settle(ctx, err)
	}
	return f.told(a)
}

// told makes a result of an answer.
func (f *Fetch) told(a answer) (effect.Observation, error) {
	if f.Require2xx && a.status/100 != 2 {
		return effect.Observation{}, &effect.Failure{Code: CodeHTTPStatus, Message: fmt.Sprintf("the status is %d", a.status)}
	}
	if !utf8.Valid(a.body) {
		return effect.Observation{}, &effect.Failure{Code: CodeBodyNotText, Message: "the body is not UTF-8"}
	}
	response := map[string]any{"status": int64(a.status), "headers": fields(a.header), "body": string(a.body)}
	return effect.Observation{Verdict: effect.Compatible, Result: map[string]any{"response": response}}, nil
}

// fields are those of an answer, by lower-case name; several of one name are one list, as HTTP has it. What is not plain
// text is left out.
func fields(header http.Header) map[string]any {
	all := map[string]any{}
	for name, values := range header {
		if value := strings.Join(values, ", "); headerName.MatchString(name) && isSafe(value) {
			all[strings.ToLower(name)] = value
		}
	}
	return all
}

// isSafe tells whether a value is one line of ASCII.
func isSafe(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f })
}
