// Package forge brings about pull requests and issues on forges, reads what is said and checked about a pull request, and
// fetches listed pages. Each is an effect: it is observed whole or not at all, and performed only when it is proven
// missing.
//
// It knows the HTTP interfaces of Gitea and GitHub. It knows nothing of Kubernetes, of Git objects or of when to try again;
// whether a commit comes before another one its caller says.
package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

// Bounds of what is read.
const (
	pageSize     = 100
	maxPages     = 32
	maxPageBytes = 16 << 20
)

// A Client talks to one forge on behalf of one credential. It is safe for concurrent use.
type Client struct {
	forge     remotes.Forge
	transport http.RoundTripper
	token     string
	clock     clock.PassiveClock
}

// NewClient makes a client. The token may be empty, for what a forge shows to all; the clock tells how long a forge asks to
// be left alone.
func NewClient(forge remotes.Forge, transport http.RoundTripper, token string, passive clock.PassiveClock) *Client {
	return &Client{forge: forge, transport: transport, token: token, clock: passive}
}

// A missed answer is one that does not tell what is there.
type missed struct {
	reason     effect.Reason
	retryAfter time.Duration
	status     int
}

func (m *missed) Error() string {
	if m.status != 0 {
		return fmt.Sprintf("forge answered with status %d: %s", m.status, m.reason)
	}
	return "forge gave no answer of use: " + string(m.reason)
}

func miss(reason effect.Reason) error { return &missed{reason: reason} }

// settle makes an observation of an error: one that is missed, or the error itself if no repetition mends it.
func settle(ctx context.Context, err error) (effect.Observation, error) {
	if ended := ctx.Err(); ended != nil {
		return effect.Observation{}, ended
	}
	if m, ok := errors.AsType[*missed](err); ok {
		return effect.Missed(m.reason, m.retryAfter), nil
	}
	return effect.Observation{}, err
}

// An answer is one that came, whatever its status.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get reads one object with status 200.
func (c *Client) get(ctx context.Context, path string, into any) error {
	a, err := c.send(ctx, http.MethodGet, c.forge.API+path, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return c.refusal(a)
	}
	return decode(a.body, into)
}

// change sends one mutation. Its error says that clear success was not told.
func (c *Client) change(ctx context.Context, method, path string, body any) error {
	a, err := c.send(ctx, method, c.forge.API+path, body)
	if err != nil {
		return err
	}
	if a.status/100 != 2 {
		return c.refusal(a)
	}
	return nil
}

// send sends one request to the forge and reads the answer.
func (c *Client) send(ctx context.Context, method, address string, body any) (answer, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return answer{}, fmt.Errorf("encode request: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	// A request that was sent is not sent again by the transport.
	r.GetBody = nil
	c.describe(r, body != nil)
	return roundTrip(c.transport, r, maxPageBytes)
}

// describe sets the header of a request.
func (c *Client) describe(r *http.Request, hasBody bool) {
	r.Header.Set("User-Agent", "axiom-operator")
	r.Header.Set("Accept", "application/json")
	if hasBody {
		r.Header.Set("Content-Type", "application/json")
	}
	scheme := "token "
	if c.forge.Provider == remotes.ProviderGitHub {
		r.Header.Set("Accept", "application/vnd.github+json")
		r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
		scheme = "Bearer "
	}
	if c.token != "" {
		r.Header.Set("Authorization", scheme+c.token)
	}
}

// roundTrip carries a request and reads the answer. What comes of the network or of its end is missed; a request that must
// not leave is a failure. Texts of errors are left out, since they quote addresses.
func roundTrip(transport http.RoundTripper, r *http.Request, limit int64) (answer, error) {
	response, err := transport.RoundTrip(r)
	if err != nil {
		if failure, ok := errors.AsType[*effect.Failure](err); ok {
			return answer{}, failure
		}
		return answer{}, miss(effect.ReasonNetwork)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := remotes.ReadBody(response.Body, limit)
	if errors.Is(err, remotes.ErrBodyTooLarge) {
		return answer{}, err
	}
	if err != nil {
		return answer{}, miss(effect.ReasonNetwork)
	}
	return answer{status: response.StatusCode, header: response.Header, body: body}, nil
}

// refusal tells why a status is none that an observation can be made of.
func (c *Client) refusal(a answer) error {
	m := &missed{status: a.status, retryAfter: c.retryAfter(a.header), reason: effect.ReasonRejected}
	limited := a.header.Get("Retry-After") != "" || a.header.Get("X-Ratelimit-Remaining") == "0"
	switch {
	case a.status == http.StatusTooManyRequests, a.status == http.StatusForbidden && limited:
		m.reason = effect.ReasonRateLimited
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		m.reason = effect.ReasonAuthentication
	case a.status >= http.StatusInternalServerError:
		m.reason = effect.ReasonServer
	}
	return m
}

// retryAfter is how long a forge asks to be left alone, as seconds, as a date or as the second its limit ends.
func (c *Client) retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(c.clock.Now()))
	}
	if header.Get("X-Ratelimit-Remaining") != "0" {
		return 0
	}
	second, err := strconv.ParseInt(header.Get("X-Ratelimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, time.Unix(second, 0).Sub(c.clock.Now()))
}

// decode reads JSON; bytes that are no UTF-8 are no text that could be passed on as it is.
func decode(body []byte, into any) error {
	if !utf8.Valid(body) || json.Unmarshal(body, into) != nil {
		return miss(effect.ReasonUnreadable)
	}
	return nil
}

// An identified object of a list is one that can be told from others.
type identified interface{ identity() string }

// list reads all pages of a list. An object that is there twice, or a page too many, shows that what was read is not the
// list as it is.
func list[T identified](ctx context.Context, c *Client, path string) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	next := c.forge.API + withQuery(path, "per_page", "limit")
	for page := 1; next != ""; page++ {
		if page > maxPages {
			return nil, miss(effect.ReasonIncomplete)
		}
		items, a, err := readPage[T](ctx, c, next)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if item.identity() == "" {
				return nil, miss(effect.ReasonUnreadable)
			}
			if seen[item.identity()] {
				return nil, miss(effect.ReasonIncomplete)
			}
			seen[item.identity()] = true
		}
		all = append(all, items...)
		if next, err = c.next(next, a, page, len(items), len(all)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withQuery asks for full pages, by the names that the forges have for that.
func withQuery(path string, names ...string) string {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	query := url.Values{}
	for _, name := range names {
		query.Set(name, strconv.Itoa(pageSize))
	}
	return path + separator + query.Encode()
}

// readPage reads one page, which is an array or, of check runs, an object that has one.
func readPage[T any](ctx context.Context, c *Client, address string) ([]T, answer, error) {
	a, err := c.send(ctx, http.MethodGet, address, nil)
	if errors.Is(err, remotes.ErrBodyTooLarge) {
		return nil, a, miss(effect.ReasonIncomplete)
	}
	if err != nil {
		return nil, a, err
	}
	if a.status != http.StatusOK {
		return nil, a, c.refusal(a)
	}
	body := bytes.TrimSpace(a.body)
	if bytes.HasPrefix(body, []byte("{")) {
		var object struct {
			CheckRuns json.RawMessage `json:"check_runs"`
		}
		if err := decode(body, &object); err != nil {
			return nil, a, err
		}
		body = object.CheckRuns
	}
	if !bytes.HasPrefix(body, []byte("[")) {
		return nil, a, miss(effect.ReasonUnreadable)
	}
	var items []T
	if err := decode(body, &items); err != nil {
		return nil, a, err
	}
	return items, a, nil
}

// relNext finds the address of the next page in a Link header.
var relNext = regexp.MustCompile(`<([^>]*)>\s*;[^,]*rel="?next"?`)

// next is the address of the page after one, or empty. Where a forge gives no links, the number of all objects tells
// whether there is another page; an empty page is the last one in any case.
func (c *Client) next(current string, a answer, page, got, read int) (string, error) {
	if m := relNext.FindStringSubmatch(strings.Join(a.header.Values("Link"), ", ")); m != nil {
		if !c.isMine(m[1]) {
			return "", miss(effect.ReasonIncomplete)
		}
		return m[1], nil
	}
	total, _ := strconv.Atoi(a.header.Get("X-Total-Count"))
	if got == 0 || read >= total {
		return "", nil
	}
	u, err := url.Parse(current)
	if err != nil {
		return "", fmt.Errorf("parse address of page: %w", err)
	}
	query := u.Query()
	query.Set("page", strconv.Itoa(page+1))
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// isMine tells whether an address that the forge gave is one of its own interface.
func (c *Client) isMine(address string) bool {
	next, err := remotes.CheckURL(address)
	if err != nil {
		return false
	}
	mine, err := url.Parse(c.forge.API)
	return err == nil && next.Scheme == mine.Scheme && strings.EqualFold(next.Host, mine.Host)
}
