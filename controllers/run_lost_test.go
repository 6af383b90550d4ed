package controllers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

func TestALostValueStallsTheRun(t *testing.T) {
	t.Parallel()
	state := startedState(t, waitingFlow)
	stalled := statusAfter(t, state, runPlan{lostValue: "value sha256:0 is lost"})
	got := conditionsOf(stalled)
	want := map[string]string{
		"Accepted": "True Pinned snapshot flow-7c9f", "Waiting": "True Multiple ask#1, work#1, rest#1",
		"Reconciling": "False ValueLost", "Stalled": "True ValueLost value sha256:0 is lost", "Ready": "False ValueLost value sha256:0 is lost",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if stalled.Phase != api.RunWaiting || stalled.FinishedAt != nil {
		t.Errorf("the run is %s, finished at %v; want that it waits", stalled.Phase, stalled.FinishedAt)
	}
	state.run.Status = *stalled
	if got := conditionsOf(statusAfter(t, state, runPlan{}))["Stalled"]; got != "False NotStalled" {
		t.Errorf("once the value is back: Stalled is %q", got)
	}
}

func TestWhatIsOutOfReachIsNotLost(t *testing.T) {
	t.Parallel()
	lost := &lostValueError{digest: "sha256:0", cause: content.ErrDamaged}
	for what, tc := range map[string]struct {
		err  error
		want bool
	}{
		"lost":         {fmt.Errorf("load context key: %w", lost), true},
		"out of reach": {errors.New("connection refused"), false},
		"there":        {nil, false},
	} {
		if got := isValueLost(tc.err); got != tc.want {
			t.Errorf("%s: got %t", what, got)
		}
	}
	if !errors.Is(lost, content.ErrDamaged) {
		t.Error("the cause is not told")
	}
}
