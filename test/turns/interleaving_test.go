package turns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// walkSteps are those of one walk.
const walkSteps = 100

var _ = Describe("Any order of edits, agent's writes, turns, decisions, undos, lost pods and restarts", func() {
	It("lets one turn work at a time, repeats a stale one once, overwrites nobody's edit and names who wrote what", func() {
		reached, marks := map[api.TurnPhase]int{}, map[string]int{}
		for seed := range uint64(4) {
			k := newWalk(seed)
			By(fmt.Sprintf("walk %d", seed))
			for range walkSteps {
				k.step()
				if k.dice.IntN(4) > 0 {
					k.rest()
				}
			}
			k.settle()
			k.checkTurns(reached)
			k.checkDrafts(marks)
			k.stop()
		}
		AddReportEntry("last states", reached)
		AddReportEntry("changes by the last mark", marks)
		// Walks in which little happens show nothing.
		Expect(len(reached)).To(BeNumerically(">=", 5))
		Expect(marks["accept"] + marks["undo"] + marks["item"]).To(BeNumerically(">=", 8))
	})
})

// walk is what everybody does to one composition, in an order that the dice
// decide and while the operator works. Nobody waits for anybody.
type walk struct {
	*world
	dice  *rand.Rand
	comp  *api.Composition
	stop  func()
	words int
	asked []string
	seen  record
}

// record is all that was ever visible of turns and drafts, in order.
type record struct {
	mu     sync.Mutex
	turns  []watch.Event
	drafts []*api.Composition
}

func newWalk(seed uint64) *walk {
	GinkgoHelper()
	k := &walk{world: newWorld(), dice: rand.New(rand.NewPCG(seed, 0))}
	k.follow(&api.TurnList{}, func(event watch.Event) { k.seen.turns = append(k.seen.turns, event) })
	k.follow(&api.CompositionList{}, func(event watch.Event) {
		if draft, isDraft := event.Object.(*api.Composition); isDraft {
			k.seen.drafts = append(k.seen.drafts, draft)
		}
	})
	k.comp = k.compose("triage", withTools("a", "0", "b", "0"), func(comp *api.Composition) {
		comp.Spec.RevisionHistoryLimit = 200
		if seed%2 == 0 {
			comp.Spec.Agent.ItemPolicy = api.ItemStaged
		}
	})
	k.stop = k.operate()
	return k
}

func (k *walk) follow(list client.ObjectList, note func(watch.Event)) {
	GinkgoHelper()
	events, err := admin.Watch(k.ctx, list, inNamespace(k.world))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			k.seen.mu.Lock()
			note(event)
			k.seen.mu.Unlock()
		}
	}()
}

// word is new each time.
func (k *walk) word(who string) string {
	k.words++
	return fmt.Sprintf("%s %d", who, k.words)
}

// step does one thing, which may well be refused.
func (k *walk) step() {
	GinkgoHelper()
	do := k.agent
	switch k.dice.IntN(24) {
	case 0, 1:
		do = k.ask
	case 2:
		do = k.edit
	case 3, 4, 5, 6:
		do = k.decide
	case 7, 8, 9:
		do = k.undo
	case 10:
		do = k.breakSomething
	}
	err := do()
	if refusal := apierrors.APIStatus(nil); errors.As(err, &refusal) {
		Expect(refusal.Status().Code).To(And(BeNumerically(">=", 400), BeNumerically("<", 500)), "%v", err)
	}
}

func (k *walk) ask() error {
	k.asked = append(k.asked, fmt.Sprintf("t-%d", len(k.asked)))
	return bob.Create(k.ctx, k.turn(k.asked[len(k.asked)-1], k.comp))
}

// one is any turn that somebody asked for, or its repetition.
func (k *walk) one() *api.Turn {
	name := "none"
	if len(k.asked) > 0 {
		name = k.asked[max(0, len(k.asked)-1-k.dice.IntN(2))] + []string{"", "", "-retry"}[k.dice.IntN(3)]
	}
	return &api.Turn{ObjectMeta: k.meta(name)}
}

func (k *walk) edit() error {
	comp := &api.Composition{}
	if err := alice.Get(k.ctx, client.ObjectKeyFromObject(k.comp), comp); err != nil {
		return err
	}
	if node := []string{"", "start-1", "end-1"}[k.dice.IntN(3)]; node != "" {
		rename(comp, node, k.word("alice"))
	} else if i := k.dice.IntN(3); i < len(comp.Spec.Tools) {
		comp.Spec.Tools[i].ScriptTemplate = k.word("alice")
	} else {
		comp.Spec.Tools = append(comp.Spec.Tools, *toolOf("n", k.word("alice")))
	}
	return alice.Update(k.ctx, comp)
}

func (k *walk) decide() error {
	choice := []api.Resolution{api.ResolutionAccepted, api.ResolutionAccepted, api.ResolutionAccepted, api.ResolutionRejected, api.ResolutionStale}[k.dice.IntN(5)]
	return k.decides(k.one(), choice)
}

func (k *walk) undo() error { return k.undoes(bob, k.one()) }

// breakSomething deletes a turn, loses the agent's pod, or restarts the operator.
func (k *walk) breakSomething() error {
	switch k.dice.IntN(4) {
	case 0:
		return admin.Delete(k.ctx, k.one())
	case 1:
		return admin.DeleteAllOf(k.ctx, &corev1.Pod{}, client.InNamespace(k.namespace), client.GracePeriodSeconds(0))
	}
	k.stop()
	k.stop = k.operate()
	return nil
}

// rest lets the operator catch up, as far as anybody can tell.
func (k *walk) rest() {
	GinkgoHelper()
	last := -1
	Eventually(func() bool {
		k.seen.mu.Lock()
		defer k.seen.mu.Unlock()
		before := last
		last = len(k.seen.turns) + len(k.seen.drafts)
		return last == before
	}).WithPolling(70 * time.Millisecond).Should(BeTrue())
}

// agent plays the runner and the gateway one move on, if anything was asked of them.
func (k *walk) agent() error {
	if k.isIdle() {
		return []func() error{k.ask, k.decide, k.decide, k.undo}[k.dice.IntN(4)]()
	}
	return k.move(func(session *api.AgentSession, turn *api.Turn) error {
		item := toolItem([]string{"a", "b", "n"}[k.dice.IntN(3)])
		switch k.dice.IntN(10) {
		case 0, 1, 2:
			return k.tryPropose(turn, renameTo("end-1", k.word("agent")))
		case 3, 4:
			return tried(func(g Gomega) { k.tryWrite(g, turn, item, toolOf(item.Name, k.word("agent")), nil) })
		case 5:
			dies := 1 + k.dice.IntN(2)
			return tried(func(g Gomega) {
				k.tryWrite(g, turn, item, toolOf(item.Name, k.word("agent")), func(step int) bool { return step == dies })
			})
		case 6:
			return k.end(session, api.OutcomeFailed)
		}
		return k.end(session, api.OutcomeCompleted)
	})
}

// isIdle tells whether the agent has nothing to do.
func (k *walk) isIdle() bool {
	session := k.session(k.comp)
	err := gateway.Get(k.ctx, client.ObjectKeyFromObject(session), session)
	return err != nil || session.Status.Prompt == nil || session.Status.Prompt.State == api.PromptDone
}

func (k *walk) move(work func(session *api.AgentSession, turn *api.Turn) error) error {
	session := k.session(k.comp)
	if err := gateway.Get(k.ctx, client.ObjectKeyFromObject(session), session); err != nil {
		return err
	}
	status := &session.Status
	switch {
	case status.Prompt == nil || status.Prompt.State == api.PromptDone || status.TokenHash == "" || status.PodUID == "":
		return nil
	case status.Prompt.State == api.PromptDelivered:
		return work(session, k.turn(status.Prompt.ID, k.comp))
	}
	k.deliver(status)
	return gateway.Status().Update(k.ctx, session)
}

func (k *walk) end(session *api.AgentSession, outcome api.PromptOutcome) error {
	session.Status.Prompt.State, session.Status.Prompt.Result = api.PromptDone, &api.PromptResult{Outcome: outcome}
	return gateway.Status().Update(k.ctx, session)
}

// settle has the agent finish, and waits until nobody has anything to do.
func (k *walk) settle() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k.move(func(session *api.AgentSession, _ *api.Turn) error { return k.end(session, api.OutcomeCompleted) })).
			To(Or(Succeed(), Satisfy(apierrors.IsConflict), Satisfy(apierrors.IsNotFound)))
		list := &api.TurnList{}
		g.Expect(admin.List(k.ctx, list, inNamespace(k.world))).To(Succeed())
		for i := range list.Items {
			g.Expect(turns.IsOver(list.Items[i].Status.State)).To(BeTrue(), "%s", show(list.Items[i]))
		}
		comp := fresh(k.world, k.comp)
		g.Expect(comp.Status.TurnState).To(Equal(api.TurnStateIdle))
		g.Expect(comp.Status.Claim).To(BeNil())
		g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation))
		k.seen.mu.Lock()
		defer k.seen.mu.Unlock()
		g.Expect(k.seen.drafts[len(k.seen.drafts)-1].ResourceVersion).To(Equal(comp.ResourceVersion), "all was seen")
	}).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
}

// checkTurns holds the record against the rules of turns.
func (k *walk) checkTurns(reached map[api.TurnPhase]int) {
	GinkgoHelper()
	k.seen.mu.Lock()
	defer k.seen.mu.Unlock()
	states, working := map[types.UID]api.TurnPhase{}, map[types.UID]string{}
	for _, event := range k.seen.turns {
		turn, isTurn := event.Object.(*api.Turn)
		Expect(isTurn).To(BeTrue(), "%v", event)
		if state := turn.Status.State; state != "" {
			before, known := states[turn.UID]
			Expect(!known || turns.CanMove(before, state)).To(BeTrue(), "%s went from %s to %s", turn.Name, before, state)
			states[turn.UID] = state
		}
		delete(working, turn.UID)
		if turn.Status.State == api.TurnWorking && turn.DeletionTimestamp.IsZero() && event.Type != watch.Deleted {
			working[turn.UID] = turn.Name
		}
		Expect(len(working)).To(BeNumerically("<=", 1), "%v work at once", working)
		Expect(turn.Name).NotTo(HaveSuffix("-retry-retry"))
		isRetry := turn.Spec.RetryOf != ""
		Expect(isRetry).To(Equal(strings.HasSuffix(turn.Name, "-retry")), turn.Name)
	}
	for _, state := range states {
		reached[state]++
	}
}

// checkDrafts holds each change of the draft against whoever made it.
func (k *walk) checkDrafts(marks map[string]int) {
	GinkgoHelper()
	k.seen.mu.Lock()
	defer k.seen.mu.Unlock()
	authors := map[int64]string{}
	before := k.seen.drafts[0]
	for _, after := range k.seen.drafts[1:] {
		if after.Generation != before.Generation {
			authors[after.Generation] = k.checkChange(before, after)
			kind, _, _ := strings.Cut(after.Annotations[api.AnnotationWrite], "/")
			marks[kind]++
		}
		before = after
	}
	for _, line := range k.history(k.comp) {
		if author, changed := authors[line.generation]; changed {
			Expect(line.author).To(HavePrefix(author), "%v", line)
		}
	}
}

// checkChange tells whose a change is, by its mark, and checks that the operator
// replaced nothing but what it knew.
func (k *walk) checkChange(before, after *api.Composition) (author string) {
	GinkgoHelper()
	mark := after.Annotations[api.AnnotationWrite]
	if mark == before.Annotations[api.AnnotationWrite] {
		return "user"
	}
	kind, _, _ := strings.Cut(mark, "/")
	turn := k.marked(mark)
	for _, item := range []turns.Item{{Type: api.ItemWorkflow, Name: "triage"}, toolItem("a"), toolItem("b"), toolItem("n")} {
		was, is := liveOf(before, item), liveOf(after, item)
		if was == is || kind == "item" {
			continue
		}
		old, new := turn.Status.BaseRevision, turn.Status.ResultRevision
		if write := turns.FindWrite(&turn.Status, item); item.Type != api.ItemWorkflow && write != nil {
			old, new = turns.RevisionOf(write.Before), turns.RevisionOf(write.After)
		}
		if kind == "undo" {
			old, new = new, old
		}
		Expect([]string{was, is}).To(Equal([]string{old, new}), "%s of %s: %s", kind, turn.Name, item)
	}
	if kind == "undo" {
		return "user"
	}
	return "ai " + turn.Name
}

func liveOf(comp *api.Composition, item turns.Item) string {
	GinkgoHelper()
	revision, err := turns.LiveRevision(comp, item)
	Expect(err).NotTo(HaveOccurred())
	return revision
}

// marked is the turn of a mark, as it was before it was undone, which drops its result.
func (k *walk) marked(mark string) *api.Turn {
	GinkgoHelper()
	var found *api.Turn
	for _, event := range k.seen.turns {
		turn := event.Object.(*api.Turn)
		if turns.MarkedBy(mark, turn) && (found == nil || turn.Status.State != api.TurnUndone) {
			found = turn
		}
	}
	Expect(found).NotTo(BeNil(), mark)
	return found
}

var errGaveUp = errors.New("gave up")

// tried does what may fail, and tells how.
func tried(do func(g Gomega)) (failure error) {
	defer func() {
		if r := recover(); r != nil && r != errGaveUp { //nolint:errorlint // the very value
			panic(r)
		}
	}()
	do(NewGomega(func(message string, _ ...int) {
		failure = errors.New(message)
		panic(errGaveUp)
	}))
	return nil
}
