package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

// registry is a server of wishes and deeds that lists and watches as the API
// server does. What is in /NAMESPACE/KIND/NAME stays.
type registry struct {
	mu      sync.Mutex
	entries []entry
	changed chan struct{}
}

type entry struct{ namespace, kind, name string }

func newRegistry(t *testing.T) (*registry, *rest.Config) {
	t.Helper()
	r := &registry{changed: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return r, &rest.Config{Host: server.URL}
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/"), "/")
	query := req.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.Method == http.MethodPost || req.Method == http.MethodPut:
		r.post(w, entry{parts[0], parts[1], parts[2]})
	case query.Get("watch") == "true":
		r.watch(w, req, entry{parts[0], parts[1], query.Get("resourceVersion")})
	default:
		names, version := r.list(parts[0], parts[1], query.Get("resourceVersion"))
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "items": names})
	}
}

func (r *registry) post(w http.ResponseWriter, e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.entries, e) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	r.entries = append(r.entries, e)
	close(r.changed)
	r.changed = make(chan struct{})
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprint(w, object(e.name, len(r.entries)))
}

func object(name string, version int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d"}}`, name, version)
}

// list returns names as of a version, of now if that is zero or empty.
func (r *registry) list(namespace, kind, version string) (names []string, now string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, err := strconv.Atoi(version)
	if err != nil || last == 0 {
		last = len(r.entries)
	}
	for _, e := range r.entries[:last] {
		if e.namespace == namespace && e.kind == kind {
			names = append(names, e.name)
		}
	}
	return names, strconv.Itoa(last)
}

// watch tells what came after a version, which is in the place of the name.
func (r *registry) watch(w http.ResponseWriter, req *http.Request, since entry) {
	next, _ := strconv.Atoi(since.name)
	for {
		r.mu.Lock()
		entries, changed := r.entries, r.changed
		r.mu.Unlock()
		for ; next < len(entries); next++ {
			if e := entries[next]; e.namespace == since.namespace && e.kind == since.kind {
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object(e.name, next+1))
			}
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-req.Context().Done():
			return
		}
	}
}

// servant does a deed for each wish. Wishes are named for their subjects, and a
// subject needs one deed however often it is wished for. A good one names deeds
// for their subjects, so that none can be done twice.
type servant struct {
	url    string
	client *http.Client
	// known are the names of each kind, as its cache has them.
	known map[string][]string
	// forgetful: it gives each deed a name of its own.
	forgetful bool
	// asks: before a deed it looks for others, not only in its cache.
	asks bool
	// hasty: it does not look at all.
	hasty bool
	// deaf: what it has to list again it does not hear.
	deaf bool
}

var deeds atomic.Int64

func (s *servant) run(ctx context.Context) error {
	s.known = map[string][]string{}
	events := make(chan [2]string)
	failed := make(chan error, 2)
	for _, kind := range []string{"deeds", "wishes"} {
		listed := make(chan struct{})
		go func() { failed <- s.follow(ctx, kind, events, listed) }()
		for isListed := false; !isListed; {
			select {
			case <-listed:
				isListed = true
			case event := <-events:
				s.known[event[0]] = append(s.known[event[0]], event[1])
			case err := <-failed:
				return err
			}
		}
	}
	if err := s.says(ctx, "ready"); err != nil {
		return err
	}
	for _, wish := range s.known["wishes"] {
		if err := s.fulfil(ctx, wish); err != nil {
			return err
		}
	}
	for {
		select {
		case err := <-failed:
			return err
		case event := <-events:
			s.known[event[0]] = append(s.known[event[0]], event[1])
			act := s.fulfil
			if event[0] == "deeds" {
				act = s.says
			}
			if err := act(ctx, event[1]); err != nil {
				return err
			}
		}
	}
}

// follow lists a kind and watches it, again and again.
func (s *servant) follow(ctx context.Context, kind string, events chan<- [2]string, listed chan struct{}) error {
	var once sync.Once
	for {
		text, err := call(ctx, s.client, http.MethodGet, s.url+"/"+kind+"?resourceVersion=0")
		if err != nil {
			return err
		}
		var list struct {
			Metadata struct{ ResourceVersion string }
			Items    []string
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return err
		}
		for _, name := range list.Items {
			if isFirst := !isClosed(listed); isFirst || !s.deaf {
				events <- [2]string{kind, name}
			}
		}
		once.Do(func() { close(listed) })
		if err := s.watch(ctx, kind, list.Metadata.ResourceVersion, events); err != nil {
			return err
		}
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (s *servant) watch(ctx context.Context, kind, version string, events chan<- [2]string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/"+kind+"?watch=true&resourceVersion="+version, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.Type == "ERROR" {
			return err
		}
		select {
		case events <- [2]string{kind, event.Object.Metadata.Name}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}

func (s *servant) fulfil(ctx context.Context, wish string) error {
	subject, _, _ := strings.Cut(wish, "-")
	if s.asks {
		text, err := call(ctx, s.client, http.MethodGet, s.url+"/deeds")
		if err != nil || strings.Contains(text, `"`+subject) {
			return err
		}
	}
	isOf := func(deed string) bool { return strings.HasPrefix(deed, subject) }
	if !s.hasty && slices.ContainsFunc(s.known["deeds"], isOf) {
		return nil
	}
	deed := subject
	if s.forgetful {
		deed += fmt.Sprintf("-%d", deeds.Add(1))
	}
	_, err := call(ctx, s.client, http.MethodPost, s.url+"/deeds/"+deed)
	return err
}

// says has the servant say what it knows of, so that a person who is patient
// does not wish before.
func (s *servant) says(ctx context.Context, deed string) error {
	subject, _, _ := strings.Cut(deed, "-")
	_, err := call(ctx, s.client, http.MethodPut, s.url+"/said/"+subject)
	return err
}

// wishes plays a person who wishes for two things, the first one twice.
func wishes(r *registry, cfg *rest.Config, trait servant) crash.Scenario {
	plays := 0
	wish := func(ctx context.Context, namespace, name string) error {
		_, err := call(ctx, http.DefaultClient, http.MethodPost, cfg.Host+"/"+namespace+"/wishes/"+name)
		return err
	}
	return crash.Scenario{
		Config: cfg,
		World: func(context.Context) (string, error) {
			plays++
			return fmt.Sprintf("play%d", plays), nil
		},
		Start: started(func(ctx context.Context, c *http.Client, url string) error {
			s := trait
			s.url, s.client = url, c
			return s.run(ctx)
		}),
		Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
			defer cancel()
			err := errors.Join(r.await(ctx, entry{namespace, "said", "ready"}), wish(ctx, namespace, "tea-1"), r.await(ctx, entry{namespace, "deeds", "tea"}))
			// Half as long as the harness takes a silent process to be at work.
			waitCtx, stop := context.WithTimeout(ctx, quiet/2)
			defer stop()
			_ = r.await(waitCtx, entry{namespace, "said", "tea"})
			return nil, errors.Join(err, wish(ctx, namespace, "tea-2"), wish(ctx, namespace, "milk-1"),
				r.await(ctx, entry{namespace, "deeds", "milk"}))
		},
		Ending: func(_ context.Context, namespace string) ([]client.Object, error) {
			done, _ := r.list(namespace, "deeds", "")
			var objects []client.Object
			for _, deed := range done {
				object := &corev1.ConfigMap{}
				object.Name, _, _ = strings.Cut(deed, "-")
				objects = append(objects, object)
			}
			return objects, nil
		},
		// Names of a forgetful servant differ from play to play.
		Counts:   func(string) bool { return !trait.forgetful },
		Kinds:    crash.Faults(),
		Patience: 2 * time.Second,
		Quiet:    quiet,
	}
}

const quiet = 300 * time.Millisecond

// await waits until there is an entry whose name begins so.
func (r *registry) await(ctx context.Context, wanted entry) error {
	for {
		r.mu.Lock()
		entries, changed := r.entries, r.changed
		r.mu.Unlock()
		if slices.ContainsFunc(entries, func(e entry) bool {
			return e.namespace == wanted.namespace && e.kind == wanted.kind && strings.HasPrefix(e.name, wanted.name)
		}) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestAGoodServantStandsAllFaults(t *testing.T) {
	t.Parallel()
	r, cfg := newRegistry(t)
	out, err := crash.Explore(t.Context(), wishes(r, cfg, servant{}))
	if err != nil || out.Report() != "" {
		t.Fatalf("error %v, report:\n%s", err, out.Report())
	}
	// Two deeds, told of, and that it is ready; what lasts is played once.
	if want := 3*5 + 2*5 + 2; out.Writes != 5 || out.Events != 5 || out.Plays != want || out.Struck != want {
		t.Errorf("got %d writes, %d events, %d plays, %d struck; want 5, 5, %d, %d", out.Writes, out.Events, out.Plays, out.Struck, want, want)
	}
}

func TestEachKindFindsTheServantThatCannotStandIt(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		trait servant
		kind  crash.Kind
		found bool
	}{
		"forgetful and stopped before":              {servant{forgetful: true}, crash.StopBefore, false},
		"forgetful and stopped after":               {servant{forgetful: true}, crash.StopAfter, false},
		"forgetful and begun from before":           {servant{forgetful: true}, crash.StopAfterStale, true},
		"forgetful and kept waiting":                {servant{forgetful: true}, crash.Late, true},
		"forgetful, but asks and begun from before": {servant{forgetful: true, asks: true}, crash.StopAfterStale, false},
		"forgetful, but asks and kept waiting":      {servant{forgetful: true, asks: true}, crash.Late, false},
		"deaf and kept waiting":                     {servant{deaf: true}, crash.Late, false},
		"deaf and deprived":                         {servant{deaf: true}, crash.Lost, true},
		"hasty and told twice":                      {servant{forgetful: true, hasty: true}, crash.Repeated, true},
		"hasty and doubled":                         {servant{forgetful: true, hasty: true}, crash.Twins, true},
		"hasty and stopped after":                   {servant{forgetful: true, hasty: true}, crash.StopAfter, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, cfg := newRegistry(t)
			story := wishes(r, cfg, tc.trait)
			story.Kinds = []crash.Kind{tc.kind}
			out, err := crash.Explore(t.Context(), story)
			if err != nil {
				t.Fatal(err)
			}
			if found := len(out.Mismatches) > 0; found != tc.found {
				t.Errorf("found %t, want %t; report:\n%s", found, tc.found, out.Report())
			}
		})
	}
}
