package runs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("Runs that wait", func() {
	It("cost no request and no look", func(ctx SpecContext) {
		w := newWorld(ctx)
		var requests atomic.Int64
		w.operate(process{before: func(req *http.Request) {
			if req.URL.Query().Get("watch") == "" {
				requests.Add(1)
			}
		}})
		w.compose("release", approval, "")
		w.compose("pause", pause, "")
		for i := range 10 {
			asking := w.run(fmt.Sprintf("release-%d", i), "release", inputs(`{"ref":"r"}`))
			resting := w.run(fmt.Sprintf("pause-%d", i), "pause", explicitly)
			w.opens(asking, "approve#1", &api.HumanTask{})
			w.opens(resting, "rest#1", nil)
		}
		By("letting what is on its way arrive")
		idle := func() []float64 {
			return []float64{float64(requests.Load()), reconciles("workflowrun"), reconciles("humantask")}
		}
		var before []float64
		Eventually(func() bool {
			last := before
			before = idle()
			return fmt.Sprint(last) == fmt.Sprint(before)
		}).WithTimeout(patience).WithPolling(300 * time.Millisecond).Should(BeTrue())
		Consistently(idle).WithTimeout(2 * time.Second).Should(Equal(before))
	})
})

// reconciles are how often a controller has had a look, over all operators of
// the suite.
func reconciles(controller string) float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	count := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == controller {
					count += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return count
}

// tally counts requests by resource.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

// count notes what was created.
func (t *tally) count(req *http.Request, code int) { t.note(req, code == http.StatusCreated) }

// countForbidden notes what might not be created.
func (t *tally) countForbidden(req *http.Request, code int) {
	t.note(req, code == http.StatusForbidden)
}

func (t *tally) note(req *http.Request, counts bool) {
	if !counts || req.Method != http.MethodPost {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	parts := strings.Split(req.URL.Path, "/")
	t.counts[parts[len(parts)-1]]++
}

func (t *tally) of(resource string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[resource]
}
