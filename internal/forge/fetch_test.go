package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/forge"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/testing/forgedouble"
)

// firstPasses lets the first page of a list through, and has the server fail from then on.
type firstPasses struct {
	next   http.RoundTripper
	server *forgedouble.Server
	end    string
	passed bool
}

func (p *firstPasses) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, p.end) && !p.passed {
		p.passed = true
		p.server.Fail("", p.end, -1, forgedouble.ServerError)
	}
	return response, err
}

// fetch is one from a page that answers as a handler does.
func fetch(t *testing.T, handler http.HandlerFunc) *forge.Fetch {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	r, err := remotes.Parse(map[string]string{"http": fmt.Sprintf("[{method: GET, url: '%s/*', private: true, plaintext: true}]", server.URL)})
	if err != nil {
		t.Fatal(err)
	}
	access, err := r.Fetch(http.MethodGet, server.URL+"/status")
	if err != nil {
		t.Fatal(err)
	}
	network, err := remotes.NewNetwork(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.CloseIdleConnections)
	return &forge.Fetch{Transport: network.Transport(access), Method: http.MethodGet, URL: server.URL + "/status"}
}

func fetched(t *testing.T, f *forge.Fetch) map[string]any {
	t.Helper()
	o, err := f.Observe(t.Context())
	if err != nil || o.Verdict != effect.Compatible {
		t.Fatalf("observed %+v, %v", o, err)
	}
	return o.Result["response"].(map[string]any)
}

func wantFetchFailure(t *testing.T, f *forge.Fetch, code string) {
	t.Helper()
	_, err := f.Observe(t.Context())
	failure, ok := errors.AsType[*effect.Failure](err)
	if !ok || failure.Code != code {
		t.Fatalf("the error is %v, want %s", err, code)
	}
}

func TestFetchIsWholeAndExact(t *testing.T) {
	f := fetch(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0p" || r.Header.Get("X-Mine") != "yes" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the header is %v", r.Header)
		}
		w.Header().Add("X-Twice", "a")
		w.Header().Add("X-Twice", "b")
		w.Header().Set("X-Bad", "a\x80")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(" größe\r\n"))
	})
	f.Token, f.Headers = "t0p", map[string]string{"x-mine": "yes"}
	got := fetched(t, f)
	headers := got["headers"].(map[string]any)
	if got["status"] != int64(418) || got["body"] != " größe\r\n" || headers["x-twice"] != "a, b" || headers["x-bad"] != nil || headers["X-Twice"] != nil {
		t.Errorf("the response is %v", got)
	}
	f.Require2xx = true
	wantFetchFailure(t, f, forge.CodeHTTPStatus)
	if f.IsCreate(effect.Observation{}) || f.Perform(t.Context(), effect.Observation{}) == nil {
		t.Error("a read performs something")
	}
}

func TestFetchFollowsNothing(t *testing.T) {
	requests := 0
	f := fetch(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	if got := fetched(t, f); got["status"] != int64(302) || requests != 1 {
		t.Errorf("%d requests, the response is %v", requests, got)
	}
	f.URL = "http://127.0.0.1:1/"
	wantFetchFailure(t, f, effect.CodeRemoteNotAllowed)
}

func TestFetchRefusesBodies(t *testing.T) {
	for _, c := range []struct {
		body, code string
	}{
		{strings.Repeat("a", 192<<10), ""},
		{strings.Repeat("a", 192<<10+1), effect.CodeResultTooLarge},
		{"\xff\xfe", forge.CodeBodyNotText},
	} {
		f := fetch(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) })
		if c.code != "" {
			wantFetchFailure(t, f, c.code)
		} else if got := fetched(t, f); got["body"] != c.body {
			t.Error("the body is cut")
		}
	}
}

func TestFetchOfWhatIsNotThere(t *testing.T) {
	f := fetch(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if o, err := f.Observe(t.Context()); err != nil || o.Verdict != effect.Unavailable || o.Reason != effect.ReasonNetwork {
		t.Errorf("observed %+v, %v", o, err)
	}
}

func TestHeadersOfRequests(t *testing.T) {
	for _, headers := range []map[string]string{
		{"Authorization": "x"}, {"host": "x"}, {"A": "1", "a": "2"}, {"a b": "x"}, {"": "x"}, {"a": "x\r\nb: y"}, {"Transfer-Encoding": "chunked"}, {"cookie": "x"},
	} {
		if err := forge.CheckHeaders(headers); err == nil {
			t.Errorf("%v is taken", headers)
		}
	}
	if err := forge.CheckHeaders(map[string]string{"Accept": "text/plain", "X-A": "b\tc"}); err != nil {
		t.Error(err)
	}
}
