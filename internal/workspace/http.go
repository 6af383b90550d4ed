package workspace

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// agent is what the program calls itself to servers.
const agent = "axiom-operator"

func isHTTP(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// httpTalk is a conversation of two requests.
type httpTalk struct {
	client  http.Client
	url     *url.URL
	auth    Auth
	service string
}

func (r *Remote) talkHTTP(service string) (conversation, error) {
	address, err := url.Parse(r.URL)
	if err != nil {
		// The error of the library quotes the address.
		return nil, unavailable(effect.ReasonNetwork, "the address is malformed")
	}
	return &httpTalk{
		client: http.Client{
			Transport:     r.HTTP,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url: address, auth: r.Auth, service: service,
	}, nil
}

// Close has nothing to do: connections belong to the round tripper.
func (t *httpTalk) Close() error {
	return nil
}

func (t *httpTalk) advertisement(ctx context.Context) (io.ReadCloser, error) {
	address := t.url.JoinPath("info", "refs")
	address.RawQuery = "service=" + t.service
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, unavailable(effect.ReasonNetwork, "the address is malformed")
	}
	body, err := t.do(request, "advertisement")
	if err != nil {
		return nil, err
	}
	if err := t.skipAnnouncement(body); err != nil {
		return nil, failed(ctx, "the list of refs was interrupted", joinClose(err, body))
	}
	return body, nil
}

// skipAnnouncement reads the packet that names the service, and the mark after it.
func (t *httpTalk) skipAnnouncement(body io.Reader) error {
	var want request
	want.packet("# service=" + t.service + "\n")
	want.flush()
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(body, got); err != nil {
		return unavailable(effect.ReasonIncomplete, "the list of refs ended early")
	}
	if !bytes.Equal(got, want.Bytes()) {
		return unavailable(effect.ReasonUnreadable, "the answer is no list of refs")
	}
	return nil
}

func (t *httpTalk) exchange(ctx context.Context, body []byte) (io.ReadCloser, error) {
	address := t.url.JoinPath(t.service)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, unavailable(effect.ReasonNetwork, "the address is malformed")
	}
	request.Header.Set("Content-Type", "application/x-"+t.service+"-request")
	return t.do(request, "result")
}

// do sends a request and takes an answer of the kind that was asked for.
func (t *httpTalk) do(request *http.Request, kind string) (io.ReadCloser, error) {
	want := "application/x-" + t.service + "-" + kind
	request.Header.Set("Accept", want)
	request.Header.Set("User-Agent", agent)
	if t.auth.Username != "" || t.auth.Password != "" {
		request.SetBasicAuth(t.auth.Username, t.auth.Password)
	}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, failed(request.Context(), "the server could not be reached", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, joinClose(statusError(response), response.Body)
	}
	if got, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); got != want {
		return nil, joinClose(unavailable(effect.ReasonUnreadable, "the answer is not that of a Git server"), response.Body)
	}
	return response.Body, nil
}

// joinClose closes what is not read. Its error would say nothing more.
func joinClose(err error, body io.Closer) error {
	_ = body.Close()
	return err
}

// statusError classifies an answer that is none.
func statusError(response *http.Response) error {
	reason := effect.ReasonServer
	switch response.StatusCode {
	case http.StatusUnauthorized:
		reason = effect.ReasonAuthentication
	case http.StatusTooManyRequests:
		reason = effect.ReasonRateLimited
	case http.StatusForbidden:
		reason = effect.ReasonAuthentication
		if response.Header.Get("Retry-After") != "" {
			reason = effect.ReasonRateLimited
		}
	}
	return &unavailableError{
		reason: reason, retryAfter: retryAfter(response.Header), message: "the server answered " + strconv.Itoa(response.StatusCode),
	}
}

// retryAfter is what the server asks for: seconds, or a time of its own clock.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, until.Sub(now))
}
