package console_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/console"
)

// open serves routes and returns the link and how to end it.
func open(t *testing.T, options console.Options) (link string, end func() error) {
	t.Helper()
	listener, err := console.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	server, err := console.New(listener, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	isOver := false
	end = func() error {
		if isOver {
			return nil
		}
		isOver = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return server.URL(), end
}

// enter is a browser that followed the link, and the origin of the page.
func enter(t *testing.T, link string) (browser *http.Client, origin string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser = &http.Client{Jar: jar}
	if status, body := get(t, browser, link); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	address, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return browser, "http://" + address.Host
}

// A message is a request to be sent.
type message struct {
	method, target, body string
	header               http.Header
}

func get(t *testing.T, browser *http.Client, target string) (status int, text string) {
	t.Helper()
	return send(t, browser, message{method: http.MethodGet, target: target})
}

func send(t *testing.T, browser *http.Client, m message) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), m.method, m.target, strings.NewReader(m.body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, m.header)
	response, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

func TestRoutes(t *testing.T) {
	echo := func(_ context.Context, r console.Request) (any, error) {
		return map[string]any{"name": r.Name, "of": r.Query.Get("of"), "body": string(r.Body)}, nil
	}
	fails := func(err error) func(context.Context, console.Request) (any, error) {
		return func(context.Context, console.Request) (any, error) { return nil, err }
	}
	link, _ := open(t, console.Options{Routes: []console.Route{
		{Method: http.MethodGet, Path: "things/{name}", Answer: echo},
		{Method: http.MethodPost, Path: "things/{name}", Answer: echo},
		{Method: http.MethodGet, Path: "refused", Answer: fails(&console.RefusalError{Status: http.StatusConflict, Message: "no", Problems: []string{"p"}})},
		{Method: http.MethodGet, Path: "broken", Answer: fails(errors.New("gone"))},
		{Method: http.MethodGet, Path: "odd", Answer: func(context.Context, console.Request) (any, error) { return func() {}, nil }},
	}})
	browser, origin := enter(t, link)
	own := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Origin": {origin}}
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"a read":                   {http.MethodGet, "/api/things/a%2Fb?of=x%231", "", 200, `{"body":"","name":"a/b","of":"x#1"}`},
		"a write":                  {http.MethodPost, "/api/things/a", `{"v":1}`, 200, `{"body":"{\"v\":1}","name":"a","of":""}`},
		"a write that is too much": {http.MethodPost, "/api/things/a", strings.Repeat("x", 600<<10), 413, `{"error":"the request is too large"}`},
		"a refusal":                {http.MethodGet, "/api/refused", "", 409, `{"error":"no","problems":["p"]}`},
		"a fault":                  {http.MethodGet, "/api/broken", "", 502, `{"error":"gone"}`},
		"an answer that is none":   {http.MethodGet, "/api/odd", "", 500, `{"error":"the answer is no JSON"}`},
		"another verb":             {http.MethodDelete, "/api/things/a", "", 405, "Method Not Allowed\n"},
		"another path":             {http.MethodGet, "/api/secrets", "", 404, "404 page not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			status, got := send(t, browser, message{tc.method, origin + tc.path, tc.body, own})
			if status != tc.status || got != tc.want {
				t.Errorf("%d %s, want %d %s", status, got, tc.status, tc.want)
			}
		})
	}
}

// What pages hold is known ahead: nothing inline, nothing from elsewhere.
func TestPagesNeedNothingFromElsewhere(t *testing.T) {
	link, _ := open(t, console.Options{})
	browser, origin := enter(t, link)
	for _, path := range []string{"/", "/app.js", "/api.js", "/dom.js", "/graph.js", "/compositions.js", "/turns.js", "/tasks.js", "/runs.js", "/style.css", "/icon.svg"} {
		status, text := get(t, browser, origin+path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		for _, foreign := range []string{"http://", "url(", "@import", "innerHTML", "insertAdjacentHTML", "<script>", "eval("} {
			if strings.Contains(text, foreign) {
				t.Errorf("%s has %s", path, foreign)
			}
		}
	}
}

func TestOthersCannotReachIt(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if _, err := console.New(listener, console.Options{}); err == nil || !strings.Contains(err.Error(), "no loopback address") {
		t.Errorf("New() = %v", err)
	}
}

func TestLinksDoNotOpenOtherConsoles(t *testing.T) {
	first, _ := open(t, console.Options{})
	second, _ := open(t, console.Options{})
	browser, _ := enter(t, first)
	_, token, _ := strings.Cut(first, "?")
	page, _, _ := strings.Cut(second, "/enter")
	if status, _ := get(t, browser, page+"/enter?"+token); status != http.StatusForbidden {
		t.Errorf("the token of another console: %d", status)
	}
	if status, _ := get(t, browser, page+"/"); status != http.StatusUnauthorized {
		t.Errorf("the cookie of another console: %d", status)
	}
	if status, _ := get(t, browser, second); status != http.StatusOK {
		t.Errorf("its own token, after a wrong one: %d", status)
	}
}

func TestEventsEndWithTheProgram(t *testing.T) {
	watching := make(chan struct{})
	link, end := open(t, console.Options{Watch: func(ctx context.Context, tell func(console.Event) error) error {
		if err := tell(console.Event{Kind: "turn", Name: "a"}); err != nil {
			return err
		}
		close(watching)
		<-ctx.Done()
		return ctx.Err()
	}})
	browser, origin := enter(t, link)
	got := make(chan string, 1)
	go func() {
		_, text := get(t, browser, origin+"/api/events")
		got <- text
	}()
	<-watching
	if err := end(); err != nil {
		t.Error(err)
	}
	if text := <-got; text != "retry: 2000\n\ndata: {\"kind\":\"turn\",\"name\":\"a\"}\n\n" {
		t.Errorf("events are %q", text)
	}
}
