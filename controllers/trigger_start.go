package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// An event starts one run for each trigger that it is meant for, and no second
// one: not after a crash, since the run's name is made from trigger and event;
// not after the run was deleted, since the event says that it started it; and
// not by way of an old view of either, since both are read from the API server
// before a run is created.

// applyTriggers shows an event to the triggers that have not seen it, and adds
// to its status what they made of it. With an error, those that it kept from
// their work are missing.
func (r *StreamEventReconciler) applyTriggers(ctx context.Context, e *api.StreamEvent, status *api.StreamEventStatus) error {
	due, err := r.dueTriggers(ctx, e)
	if err != nil || len(due) == 0 {
		return err
	}
	object, err := streamevent.Map(e)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range due {
		result, err := r.apply(ctx, t, e, object)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("apply trigger %s of %s: %w", t.trigger.Name, t.comp.Name, err))
		case result != nil:
			status.Triggers = append(status.Triggers, *result)
		}
	}
	status.Triggers = lastTriggers(status.Triggers)
	return errors.Join(errs...)
}

// maxEventTriggers is how many triggers an event can tell of.
const maxEventTriggers = 1000

// lastTriggers keeps a list within its bounds. What did not match may be
// forgotten first: it would not match again.
func lastTriggers(list []api.EventTrigger) []api.EventTrigger {
	surplus := len(list) - maxEventTriggers
	if surplus <= 0 {
		return list
	}
	kept := list[:0:0]
	for _, t := range list {
		if surplus > 0 && t.Outcome == api.TriggerNotMatched {
			surplus--
			continue
		}
		kept = append(kept, t)
	}
	return kept[max(0, len(kept)-maxEventTriggers):]
}

// apply shows the event to one trigger. There is no result if the trigger went
// away meanwhile.
func (r *StreamEventReconciler) apply(ctx context.Context, t dueTrigger, e *api.StreamEvent, object map[string]any) (*api.EventTrigger, error) {
	result := &api.EventTrigger{
		UID: string(t.comp.UID), Composition: t.comp.Name, Trigger: t.trigger.Name, Generation: t.comp.Generation,
		At: metav1.NewTime(r.Clock.Now()).Rfc3339Copy(),
	}
	fail := func(reason error) (*api.EventTrigger, error) {
		result.Outcome, result.Message = api.TriggerFailed, truncate(reason.Error(), maxMessage)
		return result, nil
	}
	rule, err := ruleOf(t.trigger)
	if err != nil {
		return fail(err)
	}
	start, err := rule.Apply(ctx, r.Expressions, object)
	if faulty, isFaulty := errors.AsType[*event.RuleError](err); isFaulty {
		return fail(faulty)
	}
	if err != nil {
		return nil, err
	}
	if start == nil {
		result.Outcome = api.TriggerNotMatched
		return result, nil
	}
	run, err := triggeredRun(t, e, start)
	if err != nil {
		return fail(err)
	}
	result.Run = run.Name
	result.Outcome, err = r.start(ctx, t.comp, e, run)
	if refusal, isRefused := errors.AsType[*startError](err); isRefused {
		result.Run = ""
		return fail(refusal)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// startError is why a run can never be started.
type startError struct{ reason string }

// Error implements error.
func (e *startError) Error() string { return e.reason }

// start creates a run unless an event of the same key did before.
func (r *StreamEventReconciler) start(ctx context.Context, comp *api.Composition, e *api.StreamEvent, run *api.WorkflowRun) (api.TriggerOutcome, error) {
	isRepeated, err := r.isStartedByAnother(ctx, e, run)
	if err != nil || isRepeated {
		return api.TriggerDuplicate, err
	}
	err = r.Client.Create(ctx, run)
	switch {
	case err == nil:
		return api.TriggerStarted, nil
	case apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err):
		return "", &startError{fmt.Sprintf("the API server refused the run: %v", err)}
	case !apierrors.IsAlreadyExists(err):
		return "", fmt.Errorf("create run %s: %w", run.Name, err)
	}
	stored := &api.WorkflowRun{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(run), stored); err != nil {
		return "", fmt.Errorf("read run %s: %w", run.Name, err)
	}
	switch {
	case !metav1.IsControlledBy(stored, comp):
		return "", &startError{fmt.Sprintf("NAME_TAKEN: run %s exists and is not of this composition", run.Name)}
	case stored.Annotations[api.AnnotationEvent] != e.Name:
		return api.TriggerDuplicate, nil
	}
	return api.TriggerStarted, nil
}

// fieldStartedRun is the field by which the cache finds the events that started
// a run.
const fieldStartedRun = "status.triggers.run"

// isStartedByAnother tells whether another event says that it started the run,
// which may be gone by now.
func (r *StreamEventReconciler) isStartedByAnother(ctx context.Context, e *api.StreamEvent, run *api.WorkflowRun) (bool, error) {
	var list api.StreamEventList
	err := r.Client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingFields{fieldStartedRun: run.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("list events: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].UID != e.UID {
			return true, nil
		}
	}
	return false, nil
}

// ruleOf reads a trigger. Admission refuses those that cannot be read.
func ruleOf(t api.Trigger) (event.Rule, error) {
	rule := event.Rule{Filter: t.Filter, DedupeKey: t.DedupeKey}
	if t.Inputs == nil {
		return rule, nil
	}
	var err error
	if rule.Inputs, err = streamevent.Inputs(t); err != nil {
		return rule, fmt.Errorf("inputs: %w", err)
	}
	return rule, nil
}

// triggeredRun is the run that a trigger starts for an event.
func triggeredRun(t dueTrigger, e *api.StreamEvent, start *event.Start) (*api.WorkflowRun, error) {
	inputs, err := json.Marshal(start.Inputs)
	if err != nil {
		return nil, fmt.Errorf("encode inputs: %w", err)
	}
	run := &api.WorkflowRun{
		ObjectMeta: metav1.ObjectMeta{
			Name:      triggeredRunName(t, e, start.Key),
			Namespace: e.Namespace,
			Labels:    map[string]string{api.LabelComposition: t.comp.Name},
			Annotations: map[string]string{
				api.AnnotationTrigger: t.trigger.Name, api.AnnotationEvent: e.Name,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t.comp, api.GroupVersion.WithKind(compositionKind))},
		},
		Spec: api.WorkflowRunSpec{
			CompositionRef:          api.CompositionSource{Name: t.comp.Name},
			Inputs:                  &runtime.RawExtension{Raw: inputs},
			ResumePolicy:            t.trigger.Run.ResumePolicy,
			ActiveDeadline:          t.trigger.Run.ActiveDeadline,
			TTLSecondsAfterFinished: t.trigger.Run.TTLSecondsAfterFinished,
		},
	}
	return run, nil
}

// triggeredRunName is the same for all events that are to start one run between
// them, and for no other.
func triggeredRunName(t dueTrigger, e *api.StreamEvent, key string) string {
	what := "key/" + key
	if key == "" {
		what = "event/" + streamevent.Identity(e)
	}
	sum := sha256.Sum256([]byte(string(t.comp.UID) + "/" + t.trigger.Name + "/" + what))
	prefix := t.comp.Name + "-" + t.trigger.Name
	return strings.TrimRight(prefix[:min(len(prefix), runNamePart)], "-.") + "-" + hex.EncodeToString(sum[:runNameBytes])
}
