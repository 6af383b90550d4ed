package streamevent

import (
	"encoding/json"
	"errors"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// errNoObject says that something is to be a JSON object and is none.
var errNoObject = errors.New("must be an object")

// Inputs of a trigger as they are written, nil without any.
func Inputs(t api.Trigger) (map[string]any, error) {
	if t.Inputs == nil {
		return nil, nil
	}
	value, err := jsonvalue.Decode(t.Inputs.Raw)
	if err != nil {
		return nil, err
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, errNoObject
	}
	return object, nil
}

// TriggersSince tells by name since when the triggers of a composition are
// active, as admission noted it. Those that it did not note are missing.
func TriggersSince(comp *api.Composition) map[string]time.Time {
	since := map[string]time.Time{}
	if err := json.Unmarshal([]byte(comp.Annotations[api.AnnotationTriggersSince]), &since); err != nil {
		return map[string]time.Time{}
	}
	return since
}

// NextTriggersSince is the note of admission for a composition that is about to
// be stored; empty without active triggers. A trigger that was active for the
// event type stays so since then, whatever else of it is edited; before is nil
// on creation.
func NextTriggersSince(before, after *api.Composition, now time.Time) string {
	next := map[string]time.Time{}
	for _, t := range after.Spec.Triggers {
		if t.Suspend {
			continue
		}
		next[t.Name] = now.UTC().Truncate(time.Second)
		if earlier, wasActive := activeSince(before, t); wasActive {
			next[t.Name] = earlier
		}
	}
	if len(next) == 0 {
		return ""
	}
	text, err := json.Marshal(next)
	if err != nil {
		return "" // a time of this millennium can be written
	}
	return string(text)
}

// activeSince tells since when a trigger was active before it was edited. A
// note on a trigger that was suspended counts for nothing.
func activeSince(before *api.Composition, edited api.Trigger) (since time.Time, wasActive bool) {
	if before == nil {
		return since, false
	}
	for _, t := range before.Spec.Triggers {
		if t.Name == edited.Name && t.EventType == edited.EventType && !t.Suspend {
			since, wasActive = TriggersSince(before)[t.Name]
		}
	}
	return since, wasActive
}
