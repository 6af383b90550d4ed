package engine_test

import (
	"testing"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
)

func TestWait(t *testing.T) {
	for duration, due := range map[string]time.Duration{"PT1H": time.Hour, "PT0S": 0, "-PT1H": -time.Hour, "PT0.000000001S": 1} {
		s := tell(t, single("wait {duration: "+duration+"}", false), "{}")
		if got := s.branch("x#1").Deadline; got != noon.Add(due) {
			t.Errorf("%s: deadline %v", duration, got)
		}
		s.now = noon.Add(due - 1)
		s.timeOut("x#1")
		s.wantReason(engine.ReasonNotDue)
		s.now = noon.Add(due)
		s.timeOut("x#1")
		s.wantStatus(engine.StatusCompleted)
		s.wantHistory("s#1 Completed", "x#1 Completed", "e#1 Completed")
	}
}

// limited is a run of one node x whose timeout edge leads to the end late.
func limited(kind string) string {
	return flow("s "+from+"\nx "+kind+"\ne end {}\nlate end {outcome: late}\nlost end {outcome: lost}",
		"s x {}\nx e {condition: 'false'}\nx late {isTimeout: true}\nx lost {isError: true}")
}

func TestReceiveEventTimesOut(t *testing.T) {
	s := tell(t, limited("receive-event {eventType: t, timeout: PT1H}"), "{}")
	s.after(time.Hour - 1).timeOut("x#1")
	s.wantReason(engine.ReasonNotDue)
	s.after(1).timeOut("x#1")
	s.wantStatus(engine.StatusCompleted)
	s.wantHistory("s#1 Completed", "x#1 TimedOut", "late#1 Completed")
	s.wantContext("{}")
	if e := s.entry("x#1"); e.Output != nil || e.Error != nil {
		t.Errorf("entry = %+v", e)
	}
}

// The task is the clock of a human task, so the engine has none.
func TestHumanTaskTimesOut(t *testing.T) {
	s := tell(t, limited("human-task {description: D, outputs: [], timeout: P2D}"), "{}")
	if got := s.branch("x#1").Deadline; !got.IsZero() {
		t.Errorf("deadline %v, want none", got)
	}
	s.timeOut("x#1")
	s.wantHistory("s#1 Completed", "x#1 TimedOut", "late#1 Completed")

	s = tell(t, single("human-task {description: D, outputs: [], timeout: P2D}", false), "{}")
	s.timeOut("x#1")
	s.wantFailure(engine.PhaseExecution, engine.CodeTaskExpired, "x#1")

	s = tell(t, single("human-task {description: D, outputs: [], timeout: P2D}", true), "{}")
	s.timeOut("x#1")
	s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
}

func TestAttemptTimesOut(t *testing.T) {
	s := tell(t, single("action {actionType: a, inputs: {}, outputs: [], timeout: PT1M, retry: {maxAttempts: 2}}", false), "{}")
	s.after(time.Minute - 1).timeOut("x#1")
	s.wantReason(engine.ReasonNotDue)
	s.after(1).timeOut("x#1")
	b := s.branch("x#1")
	if b.Attempt != 2 || b.LastError.Code != engine.CodeAttemptTimeout || b.Deadline != s.now.Add(10*time.Second+time.Minute) {
		t.Errorf("branch = %+v", b)
	}
	s.timeOut("x#1")
	s.wantReason(engine.ReasonNotDue)
	s.after(70 * time.Second).timeOut("x#1")
	s.wantFailure(engine.PhaseExecution, engine.CodeAttemptTimeout, "x#1")
	if got := s.entry("x#1").Attempts; got != 2 {
		t.Errorf("%d attempts", got)
	}
}

func TestNoTimeout(t *testing.T) {
	for _, kind := range []string{act, ask, comp, hear} {
		s := tell(t, single(kind, false), "{}")
		s.after(1000 * time.Hour).timeOut("x#1")
		s.wantReason(engine.ReasonNoTimeout)
	}
}
