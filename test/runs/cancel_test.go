package runs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("Cancelling", func() {
	It("ends a run at whichever of its writes it comes", func(ctx SpecContext) {
		w := newWorld(ctx)
		var at atomic.Pointer[moment]
		w.operate(process{before: func(req *http.Request) {
			if m := at.Load(); m != nil && req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/events") {
				m.pass()
			}
		}})
		w.compose("both", both, work)
		cancelled := 0
		for write := 1; ; write++ {
			name := fmt.Sprintf("both-%d", write)
			// The operator's goroutine acts: it has an object of its own.
			m := &moment{left: write, act: func() { w.cancels(&api.WorkflowRun{ObjectMeta: w.meta(name)}) }}
			run := w.run(name, "both")
			at.Store(m)
			pod := &corev1.Pod{}
			Eventually(func() bool { // the run gets its result, unless it ends before
				if w.fresh(run).Status.FinishedAt != nil {
					return true
				}
				open := branchOf(run, "work#1")
				if open == nil || open.Child == nil || admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: open.Child.Name}, pod) != nil {
					return false
				}
				return client.IgnoreAlreadyExists(w.reports(pod, `{"exitCode":0}`)) == nil
			}).WithTimeout(patience).Should(BeTrue())
			Eventually(func() bool {
				return w.fresh(run).Status.FinishedAt != nil || branchOf(run, "work#1") == nil && branchOf(run, "ask#1") != nil && w.hasTask(run, "ask#1")
			}).WithTimeout(patience).Should(BeTrue())
			isOver := m.cancelIfLate()
			w.reaches(run, api.RunCancelled)
			w.leavesNothing(run)
			at.Store(nil)
			if isOver {
				break
			}
			cancelled++
		}
		Expect(cancelled).To(BeNumerically(">=", 6), "writes at which a run was cancelled")
	})
})

// moment acts once so many requests have been about to be sent.
type moment struct {
	mu   sync.Mutex
	left int
	act  func()
}

func (m *moment) pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left == 0 {
		m.act()
	}
}

// cancelIfLate acts if there were not so many requests, and tells so.
func (m *moment) cancelIfLate() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left <= 0 {
		return false
	}
	m.left = 0
	m.act()
	return true
}
