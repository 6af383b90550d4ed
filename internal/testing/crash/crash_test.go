package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

// shelf is a server with one list of names for each namespace. POST
// /NAMESPACE/NAME adds one; adding it again is a conflict.
type shelf struct {
	mu      sync.Mutex
	names   map[string]map[string]bool
	changed chan struct{}
	// requests by method and path, in order.
	requests []string
}

func newShelf(t *testing.T) (*shelf, *rest.Config) {
	t.Helper()
	s := &shelf{names: map[string]map[string]bool{}, changed: make(chan struct{}, 100)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL}
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req.Method+" "+req.URL.Path)
	namespace, name, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if req.Method != http.MethodPost {
		for name := range s.names[namespace] {
			_, _ = fmt.Fprintln(w, name)
		}
		return
	}
	if s.names[namespace] == nil {
		s.names[namespace] = map[string]bool{}
	}
	if s.names[namespace][name] {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.names[namespace][name] = true
	s.changed <- struct{}{}
}

// await waits until the namespace has that many names, and returns them.
func (s *shelf) await(ctx context.Context, namespace string, count int) ([]client.Object, error) {
	for {
		s.mu.Lock()
		names := slices.Sorted(maps.Keys(s.names[namespace]))
		s.mu.Unlock()
		if len(names) >= count {
			return objectsOf(names), nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func objectsOf(names []string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		object := &corev1.ConfigMap{}
		object.Name = name
		objects = append(objects, object)
	}
	return objects
}

// on are the objects of a namespace as they are.
func (s *shelf) on(_ context.Context, namespace string) ([]client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return objectsOf(slices.Sorted(maps.Keys(s.names[namespace]))), nil
}

// scenario plays in numbered namespaces until three names are there.
func scenario(s *shelf, cfg *rest.Config, start func(ctx context.Context, c *http.Client, url string) error) crash.Scenario {
	plays := 0
	return crash.Scenario{
		Config: cfg,
		World: func(context.Context) (string, error) {
			plays++
			return fmt.Sprintf("play-%d", plays), nil
		},
		Start: started(func(ctx context.Context, c *http.Client, url string) error {
			if err := start(ctx, c, url); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}),
		Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
			return s.await(ctx, namespace, 3)
		},
	}
}

// started runs a process with the client and the address of its namespace.
func started(run func(ctx context.Context, c *http.Client, url string) error) func(context.Context, *rest.Config, string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		c, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		return run(ctx, c, cfg.Host+"/"+namespace)
	}
}

func call(ctx context.Context, c *http.Client, method, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := c.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), errors.Join(err, answer.Body.Close())
}

// careful adds what is missing, under names that it can find again.
func careful(ctx context.Context, c *http.Client, url string) error {
	there, err := call(ctx, c, http.MethodGet, url)
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "b", "c"} {
		if strings.Contains(there, name) {
			continue
		}
		if _, err := call(ctx, c, http.MethodPost, url+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

func TestACarefulProcessPasses(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	out, err := crash.Explore(t.Context(), scenario(s, cfg, careful))
	if err != nil || out.Report() != "" {
		t.Fatalf("error %v, report:\n%s", err, out.Report())
	}
	if out.Writes != 3 || out.Plays != 6 || out.Struck != 6 {
		t.Errorf("got %d writes, %d plays, %d struck; want 3, 6, 6", out.Writes, out.Plays, out.Struck)
	}
}

func TestFaultsStrikeBeforeAndAfterTheWrite(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	if _, err := crash.Explore(t.Context(), scenario(s, cfg, careful)); err != nil {
		t.Fatal(err)
	}
	// play-1 is undisturbed; play-4 is stopped before write 2, play-5 after it.
	for namespace, want := range map[string]string{
		"play-4": "GET /play-4, POST /play-4/a, GET /play-4, POST /play-4/b, POST /play-4/c",
		"play-5": "GET /play-5, POST /play-5/a, POST /play-5/b, GET /play-5, POST /play-5/c",
	} {
		var got []string
		for _, request := range s.requests {
			if strings.HasSuffix(request, namespace) || strings.Contains(request, namespace+"/") {
				got = append(got, request)
			}
		}
		if joined := strings.Join(got, ", "); joined != want {
			t.Errorf("%s: got %s, want %s", namespace, joined, want)
		}
	}
}

func TestAForgetfulProcessIsFound(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	lives := 0
	out, err := crash.Explore(t.Context(), scenario(s, cfg, func(ctx context.Context, c *http.Client, url string) error {
		lives++
		for i := range 3 {
			// Names that change from life to life: what was made is made again.
			if _, err := call(ctx, c, http.MethodPost, fmt.Sprintf("%s/%c%d", url, 'a'+i, lives)); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Mismatches) == 0 || !strings.Contains(out.Report(), "objects differ") {
		t.Errorf("got %d mismatches, report:\n%s", len(out.Mismatches), out.Report())
	}
}

func TestAStoppedProcessHasNoLastWord(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	var lastWords []error
	out, err := crash.Explore(t.Context(), scenario(s, cfg, func(ctx context.Context, c *http.Client, url string) error {
		err := careful(ctx, c, url)
		if errors.Is(err, crash.ErrStopped) {
			_, lastWord := call(context.WithoutCancel(ctx), c, http.MethodPost, url+"/last-word")
			lastWords = append(lastWords, lastWord)
		}
		return err
	}))
	if err != nil || out.Report() != "" {
		t.Fatalf("error %v, report:\n%s", err, out.Report())
	}
	if len(lastWords) != 6 {
		t.Fatalf("%d processes were stopped, want 6", len(lastWords))
	}
	for _, err := range lastWords {
		if !errors.Is(err, crash.ErrStopped) {
			t.Errorf("a stopped process got %v, want ErrStopped", err)
		}
	}
}

func TestAProcessThatEndsByItselfFailsThePlay(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	broken := errors.New("out of memory")
	_, err := crash.Explore(t.Context(), scenario(s, cfg, func(context.Context, *http.Client, string) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestEveryNthWrite(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	few := scenario(s, cfg, careful)
	few.Every = 2
	out, err := crash.Explore(t.Context(), few)
	if err != nil || out.Plays != 3 { // before writes 1 and 3, after write 2
		t.Errorf("got %d plays and error %v, want 3", out.Plays, err)
	}
}

func TestAnEndingIsAwaited(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	// The play is over with the first name, while the process goes on.
	hasty := scenario(s, cfg, careful)
	hasty.Play = func(ctx context.Context, namespace string) ([]client.Object, error) {
		return s.await(ctx, namespace, 1)
	}
	hasty.Ending = s.on
	out, err := crash.Explore(t.Context(), hasty)
	if err != nil || out.Report() != "" {
		t.Fatalf("error %v, report:\n%s", err, out.Report())
	}
	if out.Writes != 3 || out.Struck != 6 {
		t.Errorf("got %d writes and %d struck, want 3 and 6", out.Writes, out.Struck)
	}
}

func TestAnEndingThatStaysDifferentIsFound(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	lives := 0
	wasteful := scenario(s, cfg, func(ctx context.Context, c *http.Client, url string) error {
		lives++
		_, err := call(ctx, c, http.MethodPost, fmt.Sprintf("%s/a%d", url, lives))
		return err
	})
	wasteful.Play = func(ctx context.Context, namespace string) ([]client.Object, error) {
		return s.await(ctx, namespace, 1)
	}
	wasteful.Ending, wasteful.Patience = s.on, 4*time.Second
	out, err := crash.Explore(t.Context(), wasteful)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Mismatches) != 2 || !strings.Contains(out.Report(), "objects differ") {
		t.Errorf("got %d mismatches, want 2; report:\n%s", len(out.Mismatches), out.Report())
	}
}

func TestARestlessWorldIsFound(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	restless := scenario(s, cfg, careful)
	looks := 0
	restless.Patience = time.Second
	restless.Ending = func(context.Context, string) ([]client.Object, error) {
		looks++
		object := &corev1.ConfigMap{}
		object.ResourceVersion = strconv.Itoa(looks)
		return []client.Object{object}, nil
	}
	if _, err := crash.Explore(t.Context(), restless); err == nil || !strings.Contains(err.Error(), "do not come to rest") {
		t.Errorf("got %v, want that the objects do not come to rest", err)
	}
}

func TestOthersThatFailEndThePlay(t *testing.T) {
	t.Parallel()
	s, cfg := newShelf(t)
	broken := errors.New("the node is gone")
	alone := scenario(s, cfg, careful)
	alone.Play = func(ctx context.Context, namespace string) ([]client.Object, error) {
		return s.await(ctx, namespace, 4)
	}
	alone.Others = func(context.Context, string) error { return broken }
	if _, err := crash.Explore(t.Context(), alone); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
