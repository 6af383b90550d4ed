package controllers

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// Decisions of receipts.
const (
	decisionPerformed = "performed"
	decisionAdopted   = "adopted"
	decisionUncertain = "uncertain"
)

const (
	// uncertainFor is how long nothing must be seen of a create that may have
	// happened before it is taken not to have.
	uncertainFor = time.Minute
	// Between them lies the time until an effect is observed again.
	firstRetry, lastRetry = 2 * time.Second, time.Minute
	// maxObservations bounds how often one pass performs and observes again.
	maxObservations = 3
)

// A served activation is done, or failed, or has to be looked at again.
type served struct {
	outputs map[string]any
	failure *engine.Failure
	// by is the user who answered.
	by string
	// receipt of what was done.
	receipt map[string]any
	// after is when to look again; zero with none of the others: something will tell.
	after time.Duration
	// isOver tells that outputs or failure count.
	isOver bool
}

func completed(outputs, receipt map[string]any) served {
	return served{isOver: true, outputs: outputs, receipt: receipt}
}

func failedWith(code, message string) served {
	return served{isOver: true, failure: &engine.Failure{Phase: engine.PhaseExecution, Code: code, Message: message}}
}

// serveEffect observes an effect outside and does what follows.
func (r *SupervisedRunReconciler) serveEffect(ctx context.Context, p *supervisedPass, intent *api.RunIntent, request *actionRequest) (served, error) {
	wish, err := r.effectOf(ctx, p, request)
	if err != nil {
		return r.missed(ctx, p, intent, err)
	}
	for range maxObservations {
		observed, err := observeEffect(ctx, wish)
		if err != nil {
			return r.missed(ctx, p, intent, err)
		}
		switch observed.Verdict {
		case effect.Compatible:
			return r.settled(p, intent, request, observed), nil
		case effect.Conflict:
			return failedWith(effect.CodeConflict, observed.Message), nil
		case effect.Ambiguous:
			return failedWith(effect.CodeAmbiguous, observed.Message), nil
		case effect.Unavailable:
			return r.unavailable(ctx, p, intent, observed.Reason, observed.RetryAfter)
		case effect.Absent:
		}
		wait, err := r.perform(ctx, p, intent, wish, observed)
		if err != nil || wait > 0 {
			return served{after: wait}, err
		}
	}
	return served{after: firstRetry}, nil
}

func observeEffect(ctx context.Context, wish effect.Effect) (effect.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	return wish.Observe(ctx)
}

// perform sends the one change for an absence, or says how long to wait first. A
// create is marked before it leaves: should nobody learn what became of it, its
// absence has to last before it counts.
func (r *SupervisedRunReconciler) perform(ctx context.Context, p *supervisedPass, intent *api.RunIntent, wish effect.Effect, absent effect.Observation) (time.Duration, error) {
	now := metav1.NewTime(r.Clock.Now()).Rfc3339Copy()
	if wish.IsCreate(absent) {
		if wait, err := r.mark(ctx, p, intent, absent, now); err != nil || wait > 0 {
			return wait, err
		}
	}
	if err := r.mayMutate(ctx, p); err != nil {
		return 0, err
	}
	r.performed.note(p.run.UID, intent.Activation, absent)
	// What was sent is settled by observing again, also when the run is cancelled
	// meanwhile.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), mutationTimeout)
	defer cancel()
	if err := wish.Perform(sending, absent); err != nil {
		return firstRetry, nil
	}
	return 0, nil
}

// mark notes that a create is about to leave. One that may have left before has to
// be missing for a while first.
func (r *SupervisedRunReconciler) mark(ctx context.Context, p *supervisedPass, intent *api.RunIntent, absent effect.Observation, now metav1.Time) (time.Duration, error) {
	if intent.Marked != nil {
		if wait, err := r.isStillUncertain(ctx, p, intent, now); err != nil || wait > 0 {
			return wait, err
		}
	}
	intent.Marked, intent.AbsentSince, intent.Reason = &now, nil, ""
	if err := r.keepObservation(ctx, p, intent, absent); err != nil {
		return 0, err
	}
	return 0, r.commit(ctx, p)
}

// keepObservation retains what a create starts from.
func (r *SupervisedRunReconciler) keepObservation(ctx context.Context, p *supervisedPass, intent *api.RunIntent, absent effect.Observation) error {
	data, err := encodeRunValue(map[string]any{"preState": absent.PreState, "observations": absent.Observed})
	if err != nil {
		return err
	}
	ref, err := r.store().contents().Put(ctx, p.run, data)
	if err != nil {
		return err
	}
	intent.Observed = &ref
	return nil
}

// mutationTimeout is what a change that was sent has to be answered.
const mutationTimeout = 30 * time.Second

func (r *SupervisedRunReconciler) isStillUncertain(ctx context.Context, p *supervisedPass, intent *api.RunIntent, now metav1.Time) (time.Duration, error) {
	if intent.AbsentSince == nil {
		intent.AbsentSince, intent.Reason = &now, string(effect.ReasonUncertain)
		if err := r.commit(ctx, p); err != nil {
			return 0, err
		}
	}
	left := uncertainFor - now.Sub(intent.AbsentSince.Time)
	return min(max(left, 0), firstRetry), nil
}

// mayMutate re-reads run and lease before something leaves that cannot be taken
// back: who no longer leads may not have learned of it yet.
func (r *SupervisedRunReconciler) mayMutate(ctx context.Context, p *supervisedPass) error {
	isLive, err := isFresh(ctx, r.Live, p.run)
	if err != nil {
		return err
	}
	isLeading, err := r.Options.Leadership.isHeld(ctx, r.Live, r.Clock.Now())
	if err != nil {
		return err
	}
	if !isLive || !isLeading || ctx.Err() != nil {
		return errSuperseded
	}
	return nil
}

// settled is the receipt of an effect that is there.
func (r *SupervisedRunReconciler) settled(p *supervisedPass, intent *api.RunIntent, request *actionRequest, observed effect.Observation) served {
	decision := decisionAdopted
	absent, isOwn := r.performed.take(p.run.UID, intent.Activation)
	if isOwn {
		decision = decisionPerformed
	}
	outputs := outputsOf(request, observed.Result, decision)
	receipt := map[string]any{"decision": decision}
	if observed.Observed != nil {
		receipt["observations"] = observed.Observed
	}
	if absent.PreState != nil {
		receipt["preState"] = absent.PreState
	}
	noteRemote(p, request, outputs)
	return completed(outputs, receipt)
}

// outputsOf has what an upsert found under the one name of its output, and how it
// came about.
func outputsOf(request *actionRequest, result map[string]any, decision string) map[string]any {
	name := upsertOutputs[request.Action]
	if name == "" {
		return maps.Clone(result)
	}
	object, isNamed := result[name].(map[string]any)
	if !isNamed {
		object = result
	}
	object = maps.Clone(object)
	object["decision"] = decision
	return map[string]any{name: object}
}

// missed tells failures for good from what may be tried again.
func (r *SupervisedRunReconciler) missed(ctx context.Context, p *supervisedPass, intent *api.RunIntent, err error) (served, error) {
	if failure := failureOf(err); failure != nil {
		return failedWith(failure.Code, failure.Message), nil //nolint:nilerr // the failure is the result
	}
	if reason, after, isUnavailable := workspace.Unavailable(err); isUnavailable {
		return r.unavailable(ctx, p, intent, reason, after)
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return r.unavailable(ctx, p, intent, effect.ReasonNetwork, 0)
	}
	return served{}, err
}

// unavailable waits and tries again until the activation's time is up. Only a new
// reason is written.
func (r *SupervisedRunReconciler) unavailable(ctx context.Context, p *supervisedPass, intent *api.RunIntent, reason effect.Reason, after time.Duration) (served, error) {
	if intent.Deadline != nil && !r.Clock.Now().Before(intent.Deadline.Time) {
		return failedWith(effect.CodeUnavailable, "the effect was not observed in time: "+string(reason)), nil
	}
	wait := max(after, backoff(r.performed.missed(p.run.UID, intent.Activation)))
	if intent.Reason != string(reason) {
		intent.Reason = string(reason)
		intent.Attempts++
		if err := r.commit(ctx, p); err != nil {
			return served{}, err
		}
	}
	if intent.Deadline != nil {
		wait = min(wait, max(intent.Deadline.Sub(r.Clock.Now()), soon))
	}
	return served{after: wait}, nil
}

// backoff doubles from the first retry to the last, with jitter.
func backoff(missed int) time.Duration {
	wait := min(firstRetry<<min(missed, 8), lastRetry)
	return wait - time.Duration(rand.Int64N(int64(wait/4))) //nolint:gosec // jitter is no secret
}

// supervisedPerformed remembers what this process performed, for its receipt, and
// how often it missed. What it forgets is found to be there, and adopted. The zero
// value is ready.
type supervisedPerformed struct {
	mu    sync.Mutex
	known map[performedKey]performedEffect
}

type performedKey struct {
	uid        types.UID
	activation string
}

type performedEffect struct {
	absent effect.Observation
	isSent bool
	missed int
}

func (s *supervisedPerformed) change(key performedKey, change func(*performedEffect)) performedEffect {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[performedKey]performedEffect{}
	}
	known := s.known[key]
	change(&known)
	s.known[key] = known
	return known
}

func (s *supervisedPerformed) note(uid types.UID, activation string, absent effect.Observation) {
	s.change(performedKey{uid, activation}, func(e *performedEffect) { e.absent, e.isSent = absent, true })
}

func (s *supervisedPerformed) missed(uid types.UID, activation string) int {
	return s.change(performedKey{uid, activation}, func(e *performedEffect) { e.missed++ }).missed - 1
}

func (s *supervisedPerformed) isSent(uid types.UID, activation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[performedKey{uid, activation}].isSent
}

func (s *supervisedPerformed) take(uid types.UID, activation string) (effect.Observation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[performedKey{uid, activation}]
	delete(s.known, performedKey{uid, activation})
	return known.absent, known.isSent
}

// errSuperseded says that a pass was overtaken: the run is not what it was.
var errSuperseded = errors.New("the run changed meanwhile")

func isSuperseded(err error) bool { return errors.Is(err, errSuperseded) }
