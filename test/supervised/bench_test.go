package supervised

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// benchVariable names the file that gets the table; without it nothing is measured.
const benchVariable = "AXIOM_BENCH"

const (
	// resumesMeasured are runs that are resumed, each beside a raw round trip.
	resumesMeasured = 15
	// largeRepository is what one of 200 MiB has, in files of 4 MiB.
	largeRepository, largeFile = 200 << 20, 4 << 20
	rebuildsMeasured           = 3
)

// tally counts requests by method and resource.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		t.mu.Lock()
		if t.counts == nil {
			t.counts = map[string]int{}
		}
		t.counts[requestKey(req)]++
		t.mu.Unlock()
		return base.RoundTrip(req)
	})
}

// requestKey names method, resource and subresource.
func requestKey(req *http.Request) string {
	_, inside, _ := strings.Cut(req.URL.Path, "/namespaces/")
	parts := strings.Split(inside, "/")
	if len(parts) < 2 {
		return req.Method + " " + path.Base(req.URL.Path)
	}
	key := req.Method + " " + parts[1]
	if len(parts) > 3 {
		key += "/" + parts[3]
	}
	return key
}

// writes are the requests that may change something, Events left out.
func (t *tally) writes() (total int, each string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(t.counts)) {
		if strings.HasPrefix(key, "GET ") || strings.HasSuffix(key, " events") {
			continue
		}
		total += t.counts[key]
		lines = append(lines, fmt.Sprintf("%s %d", key, t.counts[key]))
	}
	return total, strings.Join(lines, ", ")
}

// table is what was measured, in Markdown.
type table struct{ text strings.Builder }

func (t *table) add(measure, format string, args ...any) {
	fmt.Fprintf(&t.text, "| %s | %s |\n", measure, fmt.Sprintf(format, args...))
}

func (t *table) write(file string) {
	GinkgoHelper()
	head := fmt.Sprintf("\n_make bench-supervised, %s, %d CPUs, %s._\n\n| measure | here |\n| --- | --- |\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
	Expect(os.WriteFile(file, []byte(head+t.text.String()+"\n"), 0o600)).To(Succeed())
}

func median[T cmp.Ordered](samples []T) T {
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// countFull counts what the whole workflow costs, with one finding that a person
// lets be deferred.
func countFull(ctx context.Context, result *table) {
	GinkgoHelper()
	h := idleHub(ctx)
	h.settles()
	var requests tally
	stop := h.operate(func(p *process) { p.wrap = requests.wrap })
	c := agreeing()
	c.asks = []string{toReview}
	c.changes = []map[string]any{found(passed("It is fine."), deferred("readiness"))}
	run := h.casts(c)
	h.decides(run, true)
	h.ends(run, "accepted")
	turns := h.turns(run)
	stop()

	writes, each := requests.writes()
	result.add("full run: turns of agents", "%d", len(turns))
	result.add("full run: entries of its history", "%d", run.Status.History.Total)
	result.add("full run: writes to the API server, by all controllers and the gateway, Events left out", "%d", writes)
	result.add("full run: those writes", "%s", each)
	result.add("full run: requests to the Git server, definitions included; pushes among them", "%d; %d", len(h.git.Requests()), h.git.Count("git-receive-pack"))
	result.add("full run: requests to the forge; changes among them", "%d; %d", h.forge.Requests(), len(h.forge.Mutations()))
}

// until waits for the first event of a watch that is the one.
func until[T client.Object](ctx context.Context, w *world, list client.ObjectList, send func(), isOne func(T) bool) time.Duration {
	GinkgoHelper()
	watcher, err := admin.Watch(ctx, list, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	defer watcher.Stop()
	began := time.Now()
	send()
	for event := range watcher.ResultChan() {
		if object, isIt := event.Object.(T); isIt && isOne(object) {
			return time.Since(began)
		}
	}
	Fail("the watch ended")
	return 0
}

// timeResumes measures how long a request to resume takes to become the first step
// after it, beside an update of an object that nobody looks at.
func timeResumes(ctx context.Context, result *table) {
	GinkgoHelper()
	w := newWorld(ctx)
	w.operate()
	idle := &corev1.ConfigMap{ObjectMeta: w.meta("idle")}
	Expect(admin.Create(ctx, idle)).To(Succeed())
	var resumed, raw []time.Duration
	var ratios []float64
	for i := range resumesMeasured {
		run := w.publishes(fmt.Sprintf("notes-%d", i), "All is well.\n")
		w.answers(w.checkpoint(run), `{"proceed":false}`)
		took := until(ctx, w, &api.WorkflowRunList{}, func() { w.resumes(run) }, func(seen *api.WorkflowRun) bool {
			return seen.Name == run.Name && len(seen.Status.Executions) == 2
		})
		idle.Data = map[string]string{"n": strconv.Itoa(i)}
		trip := until(ctx, w, &corev1.ConfigMapList{}, func() { Expect(admin.Update(ctx, idle)).To(Succeed()) }, func(seen *corev1.ConfigMap) bool {
			return seen.Name == idle.Name && seen.ResourceVersion == idle.ResourceVersion
		})
		resumed, raw, ratios = append(resumed, took), append(raw, trip), append(ratios, float64(took)/float64(trip))
		w.reaches(run, api.RunCompleted)
	}
	result.add("from the request to resume to the first step, over a raw round trip (update and its event), median of pairs", "%.1f× (%s; raw %s)",
		median(ratios), milliseconds(median(resumed)), milliseconds(median(raw)))
}

// heap is what the process has in objects, garbage that was not collected included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peak is the most memory that something had, above what was there before it.
func peak(do func()) uint64 {
	runtime.GC()
	before, highest := heap(), uint64(0)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		for {
			highest = max(highest, heap())
			select {
			case <-ended:
				return
			case <-ticks.C:
			}
		}
	}()
	do()
	close(ended)
	<-watched
	return highest - min(before, highest)
}

// weighRepository opens a repository of 200 MiB that cannot be packed any smaller:
// as after a restart without its cache, and with it.
func weighRepository(ctx context.Context, result *table) {
	GinkgoHelper()
	server := gitserver.Start(GinkgoTB())
	repository, commit := commitLarge(server)
	remote := &workspace.Remote{URL: repository.URL, HTTP: server.Client.Transport}
	remote.Auth.Username, remote.Auth.Password = gitserver.Username, gitserver.Password

	var memory []uint64
	var fetched, cached, cloned []time.Duration
	open := func(cache *workspace.Cache) (took time.Duration) {
		GinkgoHelper()
		began := time.Now()
		base, err := cache.Open(ctx, workspace.Key{Scope: "team", Fingerprint: "large", Commit: commit}, remote)
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(base.Close()).To(Succeed()) }()
		objects := workspace.NewObjects(base)
		root, err := objects.CommitTree(commit)
		Expect(err).NotTo(HaveOccurred())
		_, err = objects.TreeAt(root)
		Expect(err).NotTo(HaveOccurred())
		return time.Since(began)
	}
	for range rebuildsMeasured {
		dir := GinkgoT().TempDir()
		cloned = append(cloned, clone(ctx, repository))
		for _, into := range []*[]time.Duration{&fetched, &cached} {
			// Each time another process, which has but the directory.
			cache, err := workspace.NewCache(dir, 1<<30, clock.RealClock{})
			Expect(err).NotTo(HaveOccurred())
			memory = append(memory, peak(func() { *into = append(*into, open(cache)) }))
		}
	}
	result.add("repository of 200 MiB: most memory while it is fetched and opened, above what was there", "%.1f MiB", float64(slices.Max(memory))/(1<<20))
	result.add("the same, fetched anew for a worktree after a restart, over what git takes to clone it from the same disk, medians", "%.1f× (%s; git %s)",
		float64(median(fetched))/float64(median(cloned)), milliseconds(median(fetched)), milliseconds(median(cloned)))
	result.add("the same with the cache", "%s", milliseconds(median(cached)))
}

// commitLarge makes the repository.
func commitLarge(server *gitserver.Server) (repository *gitserver.Repository, commit string) {
	GinkgoHelper()
	repository = server.Create(GinkgoTB(), "team/large")
	repository.Git("config", "core.compression", "0")
	files := map[string]gitserver.FileSpec{}
	for i := range largeRepository / largeFile {
		data := make([]byte, largeFile)
		_, _ = rand.Read(data)
		files[fmt.Sprintf("data/%02d.bin", i)] = gitserver.FileSpec{Content: string(data)}
	}
	return repository, repository.Commit("main", files)
}

// clone has the git program fetch what is in a repository.
func clone(ctx context.Context, repository *gitserver.Repository) time.Duration {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "git", "clone", "--quiet", "--bare", "--depth=1", "file://"+repository.Dir, GinkgoT().TempDir())
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	began := time.Now()
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return time.Since(began)
}

var _ = Describe("What supervised runs cost", Serial, Label("bench"), func() {
	It("is measured", func(ctx SpecContext) {
		file := os.Getenv(benchVariable)
		if file == "" {
			Skip("it is only measured when " + benchVariable + " names a file for the table")
		}
		var result table
		countFull(ctx, &result)
		timeResumes(ctx, &result)
		weighRepository(ctx, &result)
		result.write(file)
	}, NodeTimeout(30*time.Minute))
})
