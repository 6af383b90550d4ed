package controllers

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// triggeredBy is a composition with triggers of the type "merged".
func triggeredBy(names ...string) *api.Composition {
	comp := &api.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "review", UID: "comp-uid", Generation: 3}}
	for _, name := range names {
		comp.Spec.Triggers = append(comp.Spec.Triggers, api.Trigger{Name: name, EventType: "merged"})
	}
	comp.Annotations = map[string]string{api.AnnotationTriggersSince: streamevent.NextTriggersSince(nil, comp, runTestNow)}
	return comp
}

func TestTriggersDue(t *testing.T) {
	t.Parallel()
	seen := func(e *api.StreamEvent, uid string) *api.StreamEvent {
		e.Status.Triggers = []api.EventTrigger{{UID: uid, Trigger: "a", Outcome: api.TriggerNotMatched}}
		return e
	}
	for name, tc := range map[string]struct {
		event  *api.StreamEvent
		change func(*api.Composition)
		want   []string
	}{
		"all that are active":                {retained("merged", time.Second), func(*api.Composition) {}, []string{"a", "b"}},
		"also in the second they became so":  {retained("merged", 0), func(*api.Composition) {}, []string{"a", "b"}},
		"none for what came before":          {retained("merged", -time.Second), func(*api.Composition) {}, nil},
		"none for another type":              {retained("closed", 0), func(*api.Composition) {}, nil},
		"none that is suspended":             {retained("merged", 0), func(comp *api.Composition) { comp.Spec.Triggers[0].Suspend = true }, []string{"b"}},
		"none that admission did not note":   {retained("merged", 0), func(comp *api.Composition) { comp.Annotations = nil }, nil},
		"none with a note that is no note":   {retained("merged", 0), func(comp *api.Composition) { comp.Annotations[api.AnnotationTriggersSince] = "[" }, nil},
		"none that has seen it":              {seen(retained("merged", 0), "comp-uid"), func(*api.Composition) {}, []string{"b"}},
		"that of another composition saw it": {seen(retained("merged", 0), "other"), func(*api.Composition) {}, []string{"a", "b"}},
		"none of a composition that goes": {retained("merged", 0), func(comp *api.Composition) {
			comp.DeletionTimestamp = new(metav1.NewTime(runTestNow))
		}, nil},
	} {
		comp := triggeredBy("a", "b")
		tc.change(comp)
		var got []string
		for _, due := range triggersDue(comp, tc.event) {
			got = append(got, due.trigger.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestNamesOfTriggeredRuns(t *testing.T) {
	t.Parallel()
	e := retained("merged", 0)
	name := func(comp, uid, trigger, key string) string {
		due := dueTrigger{comp: triggeredBy(trigger)}
		due.comp.Name, due.comp.UID = comp, "uid"
		if uid != "" {
			due.comp.UID = "other-uid"
		}
		due.trigger = due.comp.Spec.Triggers[0]
		return triggeredRunName(due, e, key)
	}
	names := map[string]bool{}
	for _, n := range []string{
		name("review", "", "a", ""), name("review", "", "b", ""), name("review", "2", "a", ""),
		name("review", "", "a", "k"), name("review", "", "a", "l"), name("review", "", "a", "gh/e"),
		name(strings.Repeat("long.", 10), "", strings.Repeat("t", 63), ""),
	} {
		if names[n] {
			t.Errorf("%s is given twice", n)
		}
		names[n] = true
		if faults := validation.IsDNS1123Subdomain(n); len(faults) > 0 || len(n) > 63 {
			t.Errorf("%s is no name: %v", n, faults)
		}
	}
	twin := retained("merged", time.Hour)
	twin.Name = "twin"
	due := dueTrigger{comp: triggeredBy("a"), trigger: triggeredBy("a").Spec.Triggers[0]}
	if triggeredRunName(due, e, "") != triggeredRunName(due, twin, "") {
		t.Error("equal events start two runs")
	}
}

func TestLastTriggersForgetsWhatDidNotMatchFirst(t *testing.T) {
	t.Parallel()
	var list []api.EventTrigger
	for i := range maxEventTriggers + 3 {
		outcome := api.TriggerStarted
		if i%500 == 0 {
			outcome = api.TriggerNotMatched
		}
		list = append(list, api.EventTrigger{Trigger: strconv.Itoa(i), Outcome: outcome})
	}
	kept := lastTriggers(list)
	if len(kept) != maxEventTriggers || kept[0].Trigger != "1" || kept[len(kept)-1].Trigger != strconv.Itoa(maxEventTriggers+2) {
		t.Errorf("kept %d, from %s to %s", len(kept), kept[0].Trigger, kept[len(kept)-1].Trigger)
	}
	if got := lastTriggers(kept); len(got) != len(kept) {
		t.Errorf("a list within its bounds is cut to %d", len(got))
	}
}

func TestTriggerStatus(t *testing.T) {
	t.Parallel()
	failures := func(generation int64) map[string][]api.TriggerFailure {
		return map[string][]api.TriggerFailure{"b": {{Event: "e", Message: "inputs.x: no such key", Generation: generation, At: metav1.NewTime(runTestNow)}}}
	}
	for name, tc := range map[string]struct {
		failures map[string][]api.TriggerFailure
		change   func(*api.Composition)
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		"all well":                       {nil, func(*api.Composition) {}, metav1.ConditionTrue, api.ReasonListening, ""},
		"a failure":                      {failures(3), func(*api.Composition) {}, metav1.ConditionFalse, api.ReasonTriggerFailed, "trigger b, event e: inputs.x: no such key"},
		"a failure before the last edit": {failures(2), func(*api.Composition) {}, metav1.ConditionTrue, api.ReasonListening, ""},
		"no note": {
			failures(3), func(comp *api.Composition) { comp.Annotations = nil }, metav1.ConditionFalse, api.ReasonNotAdmitted,
			"admission did not note since when trigger a is active",
		},
		"a suspended trigger needs no note": {nil, func(comp *api.Composition) {
			comp.Annotations, comp.Spec.Triggers = nil, comp.Spec.Triggers[:1]
			comp.Spec.Triggers[0].Suspend = true
		}, metav1.ConditionTrue, api.ReasonListening, ""},
	} {
		comp := triggeredBy("a", "b")
		tc.change(comp)
		setTriggerStatus(comp, tc.failures)
		got := apimeta.FindStatusCondition(comp.Status.Conditions, api.ConditionTriggersReady)
		if got.Status != tc.status || got.Reason != tc.reason || got.Message != tc.message {
			t.Errorf("%s: got %+v", name, got)
		}
		if len(comp.Status.Triggers) != len(comp.Spec.Triggers) {
			t.Errorf("%s: got %d triggers", name, len(comp.Status.Triggers))
		}
	}
	comp := triggeredBy("a")
	setTriggerStatus(comp, nil)
	comp.Spec.Triggers = nil
	setTriggerStatus(comp, nil)
	if len(comp.Status.Conditions) != 0 || comp.Status.Triggers != nil {
		t.Errorf("without triggers there is a status: %+v", comp.Status)
	}
}
