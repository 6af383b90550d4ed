package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/streamevent"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Events meet runs from two sides, so that none is missed. A run says what it
// waits for, and then looks at the stored events; an event is stored, and then
// the runs are looked for that said they wait for it. Whichever comes second
// sees the other. What runs said is remembered in memory alone: every run says
// it again when the operator starts.

// runEvents is what the controller of runs remembers of events. The zero value
// is ready.
type runEvents struct {
	// index of what runs wait for.
	index event.Index
	// keys that expressions gave over stored events.
	keys event.Keys
	// told is how much of each run's history the stored events were told of.
	told runSeen
}

// runSeen remembers of runs up to which entry of their history something was
// done. The zero value is ready.
type runSeen struct {
	mu  sync.Mutex
	seq map[types.UID]int64
}

func (s *runSeen) upTo(uid types.UID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq[uid]
}

func (s *runSeen) note(uid types.UID, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seq == nil {
		s.seq = map[types.UID]int64{}
	}
	s.seq[uid] = seq
}

func (s *runSeen) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seq, uid)
}

// fieldEventType is the field by which events are selected, in the cache and at
// the API server.
const fieldEventType = "spec.type"

// runOffer is what a waiting activation makes of the stored events.
type runOffer struct {
	// delivery of the first event that is meant, nil if none is.
	delivery *runDelivery
	// note is why the last event could not be matched, nil if there is nothing to
	// note.
	note *engine.Failure
	// tried are the events that could not be matched.
	tried []triedEvent
}

// triedEvent is an event of which it cannot be told whether it is meant.
type triedEvent struct {
	event   *api.StreamEvent
	failure *engine.Failure
	// isCorrelated: the event is about what the activation waits for.
	isCorrelated bool
}

// eventReceiver is an open activation that waits for an event.
type eventReceiver struct {
	engine.ParkedActivation
	event.Receiver
}

// receiversOf are the activations of a run that wait for events.
func receiversOf(state *runState) []eventReceiver {
	var receivers []eventReceiver
	for _, parked := range engine.Parked(state.definition.engine, state.instance) {
		if parked.Kind != workflow.KindReceiveEvent {
			continue
		}
		node, _ := state.definition.engine.Workflow().Node(parked.Node)
		correlation, correlates := node.Correlation()
		receivers = append(receivers, eventReceiver{parked, event.Receiver{
			Type: node.EventType(), Correlates: correlates,
			EventKey: correlation.EventKey, SubscriptionKey: parked.SubscriptionKey,
		}})
	}
	return receivers
}

// offerEvents lets the waiting activations of a run look at the stored events,
// unless the run is ending anyway.
func (r *WorkflowRunReconciler) offerEvents(ctx context.Context, state *runState, isEnding bool) error {
	receivers := receiversOf(state)
	if isEnding || len(receivers) == 0 {
		return nil
	}
	waits := make([]event.Receiver, len(receivers))
	for i := range receivers {
		waits[i] = receivers[i].Receiver
	}
	// First this, then the look: see above.
	r.events.index.Put(state.run.Namespace, state.run.Name, waits)

	state.offers = map[string]runOffer{}
	for _, receiver := range receivers {
		candidates, err := r.candidates(ctx, state, receiver)
		if err != nil {
			return err
		}
		if len(candidates) == 0 {
			continue
		}
		// Matches see the context, also what of it is kept outside.
		if err := r.hydrateOnce(ctx, state); err != nil {
			return err
		}
		offer, err := makeOffer(ctx, state, receiver, candidates)
		if err != nil {
			return err
		}
		state.offers[receiver.Activation] = offer
	}
	return nil
}

// hydrateOnce puts the values that are kept outside back into the instance.
func (r *WorkflowRunReconciler) hydrateOnce(ctx context.Context, state *runState) error {
	if state.isHydrated {
		return nil
	}
	err := r.hydrate(ctx, state.run, &state.instance)
	state.isHydrated = err == nil
	return err
}

// candidate is a stored event that an activation may be waiting for.
type candidate struct {
	event *api.StreamEvent
	// keyErr is set if it cannot be told what the event is about.
	keyErr error
}

// candidates are the stored events of the receiver's type that are not too old,
// were not consumed, and are about the right thing, in the order of arrival.
func (r *WorkflowRunReconciler) candidates(ctx context.Context, state *runState, receiver eventReceiver) ([]candidate, error) {
	if strings.TrimSpace(receiver.Type) == "" {
		return nil, nil
	}
	stored, err := r.storedEvents(ctx, state, receiver)
	if err != nil {
		return nil, err
	}
	streamevent.Sort(stored)
	var found []candidate
	for i := range stored {
		e := &stored[i]
		arrived := e.CreationTimestamp.Time
		if arrived.Before(receiver.Since) || state.instance.HasConsumed(receiver.Node, streamevent.Identity(e), arrived) {
			continue
		}
		key, err := r.keyOf(ctx, e, receiver.Receiver)
		if errors.Is(err, expression.ErrInterrupted) {
			return nil, err
		}
		if err != nil || key == event.ShortKey(receiver.SubscriptionKey) {
			found = append(found, candidate{event: e, keyErr: err})
		}
	}
	return found, nil
}

// storedEvents of the type that the receiver waits for, to look at and not to
// change. A timeout cannot be taken back, so before one the API server is asked
// for events that the cache has not seen.
func (r *WorkflowRunReconciler) storedEvents(ctx context.Context, state *runState, receiver eventReceiver) ([]api.StreamEvent, error) {
	ofType := []client.ListOption{client.InNamespace(state.run.Namespace), client.MatchingFields{fieldEventType: receiver.Type}}
	var list api.StreamEventList
	if err := r.Client.List(ctx, &list, append(ofType, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	if deadlineDelivery(receiver.Deadline, state.now) == nil {
		return list.Items, nil
	}
	seen := make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		seen[list.Items[i].UID] = true
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(api.GroupVersion.WithKind("StreamEventList"))
	if err := r.Live.List(ctx, live, ofType...); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	for i := range live.Items {
		if seen[live.Items[i].UID] {
			continue
		}
		var missed api.StreamEvent
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(&live.Items[i]), &missed)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read event %s: %w", live.Items[i].Name, err)
		}
		if err == nil {
			list.Items = append(list.Items, missed)
		}
	}
	return list.Items, nil
}

// keyOf is what an event is about, in the short form; of a receiver that does
// not correlate it is the receiver's own key.
func (r *WorkflowRunReconciler) keyOf(ctx context.Context, e *api.StreamEvent, receiver event.Receiver) (string, error) {
	if !receiver.Correlates {
		return event.ShortKey(receiver.SubscriptionKey), nil
	}
	return r.events.keys.Of(string(e.UID), receiver.EventKey, func() (string, error) {
		object, err := streamevent.Map(e)
		if err != nil {
			return "", err
		}
		return event.Key(ctx, r.Expressions, receiver.EventKey, object)
	})
}

// makeOffer tries events in turn until one is taken.
func makeOffer(ctx context.Context, state *runState, receiver eventReceiver, candidates []candidate) (runOffer, error) {
	var offer runOffer
	for _, c := range candidates {
		if c.keyErr != nil {
			offer.tried = append(offer.tried, triedEvent{event: c.event, failure: keyFailure(receiver, c.keyErr)})
			continue
		}
		e, err := engineEvent(c.event)
		if err != nil {
			return offer, err
		}
		address := engine.Address{Activation: receiver.Activation}
		step := engine.Deliver(ctx, state.definition.engine, state.instance, address, e, state.now)
		switch {
		case step.Reason == engine.ReasonInterrupted:
			return offer, fmt.Errorf("match event %s: %w", c.event.Name, context.Cause(ctx))
		case step.Applied:
			offer.delivery = &runDelivery{at: e.Arrived, outcome: outcomeDeliver, event: e}
			return offer, nil
		case step.Reason == engine.ReasonMatchError:
			offer.tried = append(offer.tried, triedEvent{
				event: c.event, failure: lastErrorOf(step.Instance, receiver.Activation), isCorrelated: receiver.Correlates,
			})
		}
	}
	offer.note = offer.noteFor(state.run, receiver.Activation)
	return offer, nil
}

// noteFor is the failure that the activation itself tells of. Where an event
// could be for anybody who waits for its type, only those tell of it whom the
// event names, which are few: a bad event must not cost a write for each run
// that waits.
func (o runOffer) noteFor(run *api.WorkflowRun, activation string) *engine.Failure {
	for _, t := range slices.Backward(o.tried) {
		listed := func(d api.EventDelivery) bool {
			return d.Outcome == api.DeliveryError && d.UID == string(run.UID) && d.Activation == activation
		}
		if t.isCorrelated || slices.ContainsFunc(t.event.Status.Deliveries, listed) {
			return t.failure
		}
	}
	return nil
}

// keyFailure is what the engine says of an event whose key cannot be told.
func keyFailure(receiver eventReceiver, err error) *engine.Failure {
	return &engine.Failure{
		Code: engine.CodeExpressionError, Node: receiver.Node, Activation: receiver.Activation,
		Field: "eventKey", Expression: truncate(receiver.EventKey, maxRunExpression), Message: truncate(err.Error(), maxFailureMessage),
	}
}

// maxRunExpression is what a failure repeats of an expression.
const maxRunExpression = 1024

func lastErrorOf(in engine.Instance, activation string) *engine.Failure {
	for i := range in.ActiveBranches {
		if in.ActiveBranches[i].Activation == activation {
			return in.ActiveBranches[i].LastError
		}
	}
	return nil
}

func engineEvent(e *api.StreamEvent) (engine.Event, error) {
	object, err := streamevent.Map(e)
	return engine.Event{Map: object, Arrived: e.CreationTimestamp.UTC()}, err
}

// eventDelivery is the first event that is meant for an activation, else the
// end of its time.
func eventDelivery(state *runState, parked engine.ParkedActivation) *runDelivery {
	if found := state.offers[parked.Activation].delivery; found != nil {
		return found
	}
	return deadlineDelivery(parked.Deadline, state.now)
}

// leaveNotes says at open activations why events could not be matched.
func (p *runPlan) leaveNotes(instance engine.Instance, offers map[string]runOffer) {
	branches := slices.Clone(instance.ActiveBranches)
	changed := false
	for i := range branches {
		note := offers[branches[i].Activation].note
		if note == nil || branches[i].LastError != nil && *branches[i].LastError == *note {
			continue
		}
		branches[i].LastError = note
		changed = true
	}
	if changed {
		instance.ActiveBranches = branches
		p.instance = &instance
	}
}

// eventReceipts are the deliveries that the stored events should tell of and that
// this process has not passed on. It tells, too, whether all events were found.
func (r *WorkflowRunReconciler) eventReceipts(ctx context.Context, state *runState, committed *api.WorkflowRun) (due []eventReceipt, areAll bool, err error) {
	due, areAll, err = r.completedReceipts(ctx, committed)
	if err != nil {
		return nil, false, err
	}
	for activation, offer := range state.offers {
		entered := enteredOn(state.instance, activation)
		for _, t := range offer.tried {
			due = append(due, eventReceipt{t.event, api.EventDelivery{
				Run: committed.Name, UID: string(committed.UID), Activation: activation, Outcome: api.DeliveryError,
				Message: truncate(t.failure.Field+": "+t.failure.Message, maxMessage), At: metav1.NewTime(latest(entered, &t.event.CreationTimestamp)).Rfc3339Copy(),
			}})
		}
	}
	return slices.DeleteFunc(due, eventReceipt.isGiven), areAll, nil
}

// completedReceipts are those of events that completed an activation.
func (r *WorkflowRunReconciler) completedReceipts(ctx context.Context, committed *api.WorkflowRun) (due []eventReceipt, areAll bool, err error) {
	areAll = true
	told := r.events.told.upTo(committed.UID)
	for i := range committed.Status.History.Entries {
		entry := &committed.Status.History.Entries[i]
		if entry.Seq <= told || entry.Type != string(workflow.KindReceiveEvent) || entry.Outcome != string(engine.OutcomeCompleted) {
			continue
		}
		e, err := r.consumedEvent(ctx, committed, entry)
		if err != nil {
			return nil, false, err
		}
		if e == nil {
			areAll = false
			continue
		}
		due = append(due, eventReceipt{e, api.EventDelivery{
			Run: committed.Name, UID: string(committed.UID), Activation: entry.Activation, Outcome: api.DeliveryCompleted,
			At: metav1.NewTime(runMoment(entry.CompletedOn)).Rfc3339Copy(),
		}})
	}
	return due, areAll, nil
}

// enteredOn is when an activation began to wait.
func enteredOn(in engine.Instance, activation string) time.Time {
	for i := range in.ActiveBranches {
		if in.ActiveBranches[i].Activation == activation {
			return in.ActiveBranches[i].EnteredOn
		}
	}
	return time.Time{}
}

// fieldEventID is the field by which the cache finds the event of an id.
const fieldEventID = "spec.id"

// consumedEvent is the stored event that completed an activation, nil if it is
// gone. Of several with one identity it is the first.
func (r *WorkflowRunReconciler) consumedEvent(ctx context.Context, run *api.WorkflowRun, entry *api.HistoryEntry) (*api.StreamEvent, error) {
	if run.Status.Instance == nil || entry.By == "" {
		return nil, nil //nolint:nilnil // nothing is known of it
	}
	var list api.StreamEventList
	err := r.Client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingFields{fieldEventID: entry.By}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	streamevent.Sort(list.Items)
	consumed := run.Status.Instance.Consumed[entry.Node].IDs
	for i := range list.Items {
		if slices.Contains(consumed, streamevent.Identity(&list.Items[i])) {
			return &list.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // its time was over
}
