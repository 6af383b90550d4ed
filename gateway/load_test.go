package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// proposer is a session under load, with what it was told.
type proposer struct {
	world *world
	name  string
	turn  *api.Turn
	// applied are the answers that said so, by the id of the set.
	mu      sync.Mutex
	applied map[string][]string
	slowed  *atomic.Int32
}

func (w *world) proposer(name string, slowed *atomic.Int32) *proposer {
	GinkgoHelper()
	comp := w.composition(name, blank())
	w.session(name+"-agent", name)
	return &proposer{world: w, name: name, turn: w.turn(comp, name+"-1"), applied: map[string][]string{}, slowed: slowed}
}

// ask asks until the gateway does not say that it should come again.
func (p *proposer) ask(method, path string, body any) reply {
	GinkgoHelper()
	for {
		got := p.world.call(method, p.world.path("/compositions/{ns}/"+p.name+"/agent"+path), tokenOf(p.world, p.name+"-agent"), body)
		if got.status != http.StatusTooManyRequests && got.status != http.StatusServiceUnavailable {
			return got
		}
		p.slowed.Add(1)
		Expect(got.header.Get("Retry-After")).To(Equal("1"))
		p.world.clock.Step(time.Second)
	}
}

// propose sends one set several times at once.
func (p *proposer) propose(set map[string]any, copies int) {
	GinkgoHelper()
	var sent sync.WaitGroup
	for range copies {
		sent.Go(func() {
			defer GinkgoRecover()
			got := into[openapi.ProposalResult](p.ask("POST", "/workflow/changesets", set))
			if !got.Applied {
				Expect(got.Error.Code).To(Equal(openapi.RejectionCodeStale))
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			id := set["id"].(string)
			p.applied[id] = append(p.applied[id], got.ContentRevision)
		})
	}
	sent.Wait()
}

// chain proposes sets, each on what became of those before, every other one
// twice, and at last the first again.
func (p *proposer) chain(sets int) {
	GinkgoHelper()
	base := revisionOf(blank())
	for i := range sets {
		p.propose(changeSet(fmt.Sprintf("cs-%d", i), base, fmt.Sprintf("%s %d", p.name, i)), 1+i%2)
		base = into[openapi.AgentComposition](p.ask("GET", "/composition", nil)).WorkflowRevision
	}
	p.propose(changeSet("cs-0", revisionOf(blank()), p.name+" 0"), 1)
}

// check holds what the turn recorded against what the session was told.
func (p *proposer) check(sets int) {
	GinkgoHelper()
	turn := reload(p.world, p.turn)
	Expect(turn.Status.ChangeSets).To(HaveLen(sets))
	for i, accepted := range turn.Status.ChangeSets {
		id := fmt.Sprintf("cs-%d", i)
		Expect(accepted.ID).To(Equal(id))
		told := p.applied[id]
		Expect(len(told)).To(BeNumerically("<=", 1), "%s was applied twice", id)
		for _, revision := range told {
			Expect(accepted.Revision).To(Equal(revision))
		}
	}
	working, err := turns.Working(p.world.ctx, content.Store{Client: k8s}, turn)
	Expect(err).NotTo(HaveOccurred())
	Expect(changeset.Revision(working)).To(Equal(turn.Status.WorkingRevision))
	Expect(working["name"]).To(Equal(fmt.Sprintf("%s %d", p.name, sets-1)))
}

// heap is what is in use once the garbage is gone.
func heap() uint64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// every tells for one call in so many that it is its turn.
type every struct {
	n     int32
	calls atomic.Int32
}

func (e *every) isDue() bool { return e.calls.Add(1)%e.n == 0 }

var _ = Describe("Fifty sessions at once", func() {
	It("lose no change set, apply none twice, and leave nothing behind in memory", func(ctx context.Context) {
		const (
			sessions = 50
			sets     = 5
			// kept is what the heap may grow by: caches of clients and expressions,
			// connections, limiters.
			kept = 24 << 20
		)
		unsent, unanswered, lost := every{n: 11}, every{n: 7}, errors.New("connection lost")
		w := newWorld(ctx, interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if unsent.isDue() {
				return lost
			}
			err := c.SubResource(sub).Update(ctx, o, opts...)
			if err == nil && unanswered.isDue() {
				return lost
			}
			return err
		}})
		w.server.LimitCallers(2, 4)
		var slowed atomic.Int32
		proposers := make([]*proposer, sessions)
		for i := range proposers {
			proposers[i] = w.proposer(fmt.Sprintf("load-%d", i), &slowed)
		}
		before := heap()

		var working sync.WaitGroup
		for _, p := range proposers {
			working.Go(func() {
				defer GinkgoRecover()
				p.chain(sets)
			})
		}
		working.Wait()

		grown := int64(heap()) - int64(before)
		AddReportEntry("load", fmt.Sprintf("%d requests were asked to come again; the heap grew by %d KiB", slowed.Load(), grown>>10))
		Expect(grown).To(BeNumerically("<", kept))
		Expect(slowed.Load()).To(BeNumerically(">", sessions), "nobody was asked to come again")
		told := 0
		for _, p := range proposers {
			p.check(sets)
			told += len(p.applied)
		}
		Expect(told).To(BeNumerically(">", sessions*sets/2), "too few answers to judge by")
	}, NodeTimeout(2*time.Minute))
})
