package v1alpha1

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Members of a task's status that admission itself writes, with an answer.
const (
	memberAnsweredBy = "answeredBy"
	memberAnsweredAt = "answeredAt"
	memberPhase      = "phase"
	memberConditions = "conditions"
	memberGeneration = "observedGeneration"
)

// maxStampGroups is what the schema takes of a user's groups.
const maxStampGroups = 1000

// stamp sets who answered and when, whatever was sent, and leaves the rest of
// the object as it came.
func (h taskDoors) stamp(_ context.Context, raw admission.Request) admission.Response {
	change, err := h.read(raw)
	if err != nil || change.after == nil {
		// Without a status there is nothing to stamp; the validating door comes next
		// and reports both.
		return admission.Allowed("")
	}
	wanted := map[string]any{
		memberAnsweredBy: change.before[memberAnsweredBy],
		memberAnsweredAt: change.before[memberAnsweredAt],
	}
	if change.isFirstAnswer() && !change.byOperator {
		wanted = change.freshStamp()
		observed := change.observed(change.now)
		for _, name := range slices.Sorted(maps.Keys(observed)) {
			if !reflect.DeepEqual(change.before[name], change.after[name]) {
				// Once it is stamped, nobody could tell that it was sent.
				return refused(change.foreign(name))
			}
			wanted[name] = observed[name]
		}
	}
	var patches []jsonpatch.Operation
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		patches = append(patches, change.patchMember(name, wanted[name])...)
	}
	return admission.Patched("", patches...)
}

// patchMember gives a member of the status a value; nil removes it.
func (c taskChange) patchMember(name string, value any) []jsonpatch.Operation {
	sent, present := c.after[name]
	path := "/status/" + name
	switch {
	case value == nil && present:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", path, nil)}
	case value == nil || reflect.DeepEqual(sent, value):
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, value)}
}

// freshStamp is in the form of decoded JSON.
func (c taskChange) freshStamp() map[string]any {
	by := map[string]any{"username": c.user.Username}
	if c.user.UID != "" {
		by["uid"] = c.user.UID
	}
	if count := min(len(c.user.Groups), maxStampGroups); count > 0 {
		groups := make([]any, count)
		for i := range groups {
			groups[i] = c.user.Groups[i]
		}
		by["groups"] = groups
	}
	return map[string]any{memberAnsweredBy: by, memberAnsweredAt: c.now.UTC().Format(time.RFC3339)}
}

// observed is how an answered task stands, so that nobody has to come after to
// say it; in the form of decoded JSON.
func (c taskChange) observed(at time.Time) map[string]any {
	status := c.task.Status.DeepCopy()
	status.AnsweredBy = &api.Answerer{Username: c.user.Username}
	if c.after[memberFailure] != nil {
		status.Failure = &api.TaskFailure{}
	} else {
		status.Answer = &runtime.RawExtension{}
	}
	humantask.Observe(c.task, status, at)
	conditions, err := plainJSON(status.Conditions)
	if err != nil {
		return nil // the operator writes them later
	}
	return map[string]any{
		memberPhase: string(status.Phase), memberConditions: conditions, memberGeneration: status.ObservedGeneration,
	}
}

// plainJSON is a value as it would be read from JSON.
func plainJSON(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonvalue.Decode(data)
}

// validateStatus judges the status that will be stored.
func (h taskDoors) validateStatus(ctx context.Context, raw admission.Request) admission.Response {
	change, err := h.read(raw)
	if err != nil {
		return refused(apierrors.NewBadRequest(err.Error()))
	}
	if change.byOperator {
		err = change.judgeOperator()
	} else {
		err = change.judgePerson()
	}
	if err == nil && change.task.Spec.Fingerprint != "" && change.isFirstAnswer() {
		err = h.judgeCheckpoint(ctx, change)
	}
	if err != nil {
		return refused(err)
	}
	return admission.Allowed("")
}

// read takes the question from what is stored: a write of a status may carry
// another spec, which the API server drops only later.
func (h taskDoors) read(raw admission.Request) (taskChange, error) {
	change := taskChange{
		refusals:   refusals{Request: raw, name: raw.Name},
		task:       &api.HumanTask{},
		user:       raw.UserInfo,
		byOperator: raw.UserInfo.Username == h.operator,
		now:        h.clock.Now(),
	}
	if err := utiljson.Unmarshal(raw.OldObject.Raw, change.task); err != nil {
		return change, fmt.Errorf("decode stored HumanTask: %w", err)
	}
	stored, err := objectOf(raw.OldObject.Raw)
	if err != nil {
		return change, fmt.Errorf("decode stored HumanTask: %w", err)
	}
	change.spec, _ = stored["spec"].(map[string]any)
	change.before, _ = stored["status"].(map[string]any)
	if change.after, err = memberOf(raw.Object.Raw, "status"); err != nil {
		return change, fmt.Errorf("decode HumanTask: %w", err)
	}
	return change, nil
}
