package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// retentionNow is two hours after the run of tests was created.
var retentionNow = runTestNow.Add(2 * time.Hour)

// retained is an event of a type that arrived so long after the run.
func retained(eventType string, after time.Duration) *api.StreamEvent {
	e := &api.StreamEvent{ObjectMeta: metav1.ObjectMeta{Name: "e", CreationTimestamp: metav1.NewTime(runTestNow.Add(after))}}
	e.Spec = api.StreamEventSpec{ID: "e", EventSourceID: "gh", Type: eventType}
	e.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionTrue}}
	return e
}

func receiverNode(lookback any) workflow.Node {
	config := map[string]any{"eventType": "merged"}
	if lookback != nil {
		config["lookback"] = lookback
	}
	doc := workflow.Document{"nodes": []any{map[string]any{"id": "merged", "type": "receive-event", "config": config}}}
	node, _ := workflow.Read(doc).Node("merged")
	return node
}

func TestWhichEventsARunHolds(t *testing.T) {
	t.Parallel()
	waitsSince := func(after time.Duration) func(*api.WorkflowRun) {
		return func(run *api.WorkflowRun) {
			run.Status.Instance = &api.RunInstance{ActiveBranches: []api.ActiveBranch{{
				Node: "merged", Since: runTestNow.Add(after).Format(time.RFC3339),
			}}}
		}
	}
	consumed := func(of api.ConsumedEvents) func(*api.WorkflowRun) {
		return func(run *api.WorkflowRun) {
			run.Status.Instance = &api.RunInstance{Consumed: map[string]api.ConsumedEvents{"merged": of}}
		}
	}
	none := func(*api.WorkflowRun) {}
	for name, tc := range map[string]struct {
		event    *api.StreamEvent
		lookback any
		change   func(*api.WorkflowRun)
		want     bool
	}{
		"one that a visit to come could take":         {retained("merged", time.Minute), nil, none, true},
		"one of the second in which it was made":      {retained("merged", 0), nil, none, true},
		"none from before it was made":                {retained("merged", -time.Second), nil, none, false},
		"none of another type":                        {retained("closed", time.Minute), nil, none, false},
		"none where only the wait counts":             {retained("merged", time.Minute), "none", none, false},
		"one that the wait counts":                    {retained("merged", time.Minute), "none", waitsSince(time.Minute), true},
		"none that the wait does not count":           {retained("merged", time.Minute), "none", waitsSince(time.Hour), false},
		"one within its reach":                        {retained("merged", time.Hour), "PT1H", none, true},
		"none beyond its reach":                       {retained("merged", time.Hour-time.Second), "PT1H", none, false},
		"one beyond its reach that it waits for":      {retained("merged", time.Minute), "PT1H", waitsSince(0), true},
		"none that it had":                            {retained("merged", time.Minute), nil, consumed(api.ConsumedEvents{IDs: []string{"gh/e"}}), false},
		"none that it forgot":                         {retained("merged", time.Minute), nil, consumed(api.ConsumedEvents{Floor: runTestNow.Add(time.Hour).Format(time.RFC3339)}), false},
		"one of the second that it does not remember": {retained("merged", time.Hour), nil, consumed(api.ConsumedEvents{Floor: runTestNow.Add(time.Hour).Format(time.RFC3339)}), true},
	} {
		holder := eventHolder{run: testRun(tc.change), receivers: []workflow.Node{receiverNode(tc.lookback)}}
		if got := holder.mayTake(tc.event, retentionNow); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	unknown := eventHolder{run: testRun(), isUnknown: true}
	if !unknown.mayTake(retained("closed", 0), retentionNow) || unknown.mayTake(retained("closed", -time.Second), retentionNow) {
		t.Error("a run of which nothing is known holds what came after it, and nothing else")
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	holder := eventHolder{run: testRun(), receivers: []workflow.Node{receiverNode(nil)}}
	unseen := retained("closed", 0)
	unseen.Status.Conditions = nil
	going := retained("closed", 0)
	going.DeletionTimestamp = new(metav1.NewTime(runTestNow))
	rule := EventRetention{After: time.Hour, Limit: 5 * time.Hour}
	for name, tc := range map[string]struct {
		event   *api.StreamEvent
		holders []eventHolder
		now     time.Duration
		expired bool
		again   time.Duration
	}{
		"young":                        {retained("closed", 0), nil, 30 * time.Minute, false, 30 * time.Minute},
		"almost old":                   {retained("closed", 0), nil, time.Hour - time.Second, false, retentionPause},
		"old":                          {retained("closed", 0), nil, time.Hour, true, 0},
		"old and held":                 {retained("merged", 0), []eventHolder{holder}, 2 * time.Hour, false, retentionRecheck},
		"held, its limit near":         {retained("merged", 0), []eventHolder{holder}, 5*time.Hour - 10*time.Minute, false, 10 * time.Minute},
		"held beyond its limit":        {retained("merged", 0), []eventHolder{holder}, 5 * time.Hour, true, 0},
		"old and not seen by triggers": {unseen, nil, 2 * time.Hour, false, retentionRecheck},
		"not seen for too long":        {unseen, nil, 5 * time.Hour, true, 0},
		"on its way out":               {going, nil, 2 * time.Hour, false, 0},
	} {
		view := retentionView{rule: rule, now: runTestNow.Add(tc.now), holders: tc.holders}
		expired, again := view.judge([]api.StreamEvent{*tc.event})
		if (len(expired) == 1) != tc.expired || again != tc.again {
			t.Errorf("%s: got %d expired, again in %v; want %t, %v", name, len(expired), again, tc.expired, tc.again)
		}
	}
}
