package engine_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

func exit(phase engine.Phase) engine.Failure {
	return engine.Failure{Phase: phase, Code: "EXIT_CODE", Message: "exit code 3"}
}

func TestFailureWithoutErrorEdgeEndsTheRun(t *testing.T) {
	for _, kind := range []string{act, ask, comp} {
		s := tell(t, single(kind, false), "{}")
		s.after(time.Minute).fail("x#1", exit(""))
		s.wantFailure(engine.PhaseExecution, "EXIT_CODE", "x#1")
		s.wantHistory("s#1 Completed", "x#1 Failed")
		s.wantContext("{}")
		e := s.entry("x#1")
		want := &engine.Failure{Phase: "EXECUTION", Code: "EXIT_CODE", Node: "x", Activation: "x#1", Message: "exit code 3"}
		if diff := cmp.Diff(want, e.Error); diff != "" || e.CompletedOn != noon.Add(time.Minute) {
			t.Errorf("entry completed on %v, error (-want +got):\n%s", e.CompletedOn, diff)
		}
	}
}

func TestErrorEdge(t *testing.T) {
	for _, kind := range []string{act, ask, comp} {
		s := tell(t, single(kind, true), "{error: old, kept: 1}")
		s.fail("x#1", exit(engine.PhaseExecution))
		s.wantStatus(engine.StatusCompleted)
		s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
		s.wantContext(`{kept: 1, error: {phase: EXECUTION, code: EXIT_CODE, node: x, activation: "x#1", message: exit code 3}}`)
		if e := s.entry("lost#1"); e.Edge != "x-lost" || s.def.Outcome(s.last) != "lost" {
			t.Errorf("entry = %+v", e)
		}
	}
}

// The failure of a component may have happened deep inside the call.
func TestFailureKeepsTheInnerActivation(t *testing.T) {
	s := tell(t, single(comp, true), "{}")
	s.fail("x#1", engine.Failure{Code: "CONFLICT", Node: "push", Activation: "x[1]/push#2", Message: "m"})
	s.wantContext(`{error: {phase: EXECUTION, code: CONFLICT, node: push, activation: "x[1]/push#2", message: m}}`)
}

func TestErrorEdgeLeavesSiblingsAlone(t *testing.T) {
	s := tell(t, flow("s "+from+"\na "+act+"\nb "+act+"\nfix "+act+"\nm "+zero+"\nj "+act+"\ne end {}",
		"s a {}\ns b {}\na m {}\na fix {isError: true}\nfix m {}\nm j {}\nb j {}\nj e {}"), "{}")
	s.fail("a#1", exit(engine.PhaseExecution))
	s.wantOpen("b#1", "fix#1")
	if got := s.branch("fix#1").Branch; got != "root.0" {
		t.Errorf("handler is on branch %s", got)
	}
}

func TestFailureClosesSiblings(t *testing.T) {
	s := tell(t, flow(forkNodes, forkEdges), "{}")
	s.fail("a#1", exit(engine.PhaseExecution))
	s.wantHistory("s#1 Completed", "a#1 Failed", "b#1 Cancelled", "c#1 Cancelled")
	if len(s.last.Opened) != 0 || s.entry("b#1").Error != nil {
		t.Errorf("opened %v, sibling %+v", s.last.Opened, s.entry("b#1"))
	}
}

func TestErrorThatDoesNotFit(t *testing.T) {
	s := tell(t, single(act, true), "{a: "+strings.Repeat("x", engine.MaxContextBytes-20)+"}")
	s.fail("x#1", exit(engine.PhaseExecution))
	s.wantFailure(engine.PhaseErrorHandler, engine.CodeContextTooLarge, "x#1")
	s.wantHistory("s#1 Completed", "x#1 Failed")
	if e := s.entry("x#1"); e.Error.Code != "EXIT_CODE" {
		t.Errorf("entry has error %+v, want the first one", e.Error)
	}
	if _, told := s.in.Context["error"]; told {
		t.Error("error was merged")
	}
}

func TestEdgeFailuresTakeNoErrorEdge(t *testing.T) {
	doc := flow("s "+from+"\nx "+act+"\ne end {}\nlost end {}", "s x {}\nx e {condition: context.go == 1}\nx lost {isError: true}")
	s := tell(t, doc, "{}")
	s.complete("x#1", "{}")
	s.wantFailure(engine.PhaseEdgeCondition, engine.CodeExpressionError, "x#1")
	s.wantHistory("s#1 Completed", "x#1 Completed")

	s = tell(t, doc, "{go: 2}")
	s.complete("x#1", "{}")
	s.wantFailure(engine.PhaseEdgeSelection, engine.CodeNoMatchingEdge, "x#1")
}

func TestLongTextsOfFailuresAreCut(t *testing.T) {
	s := tell(t, single(act, true), "{}")
	s.fail("x#1", engine.Failure{Code: "EXIT_CODE", Message: "a" + strings.Repeat("é", 10_000), Expression: strings.Repeat("x", 10_000)})
	message := s.entry("x#1").Error.Message
	if len(message) > 2100 || !utf8.ValidString(message) || !strings.HasSuffix(message, "…") {
		t.Errorf("message has %d bytes and ends with %q", len(message), message[len(message)-5:])
	}
	if got := len(s.entry("x#1").Error.Expression); got > 2100 {
		t.Errorf("expression has %d bytes", got)
	}
}

func retried(retry string) string {
	return "action {actionType: a, outputs: [{name: o, required: true}], inputs: {i: context.i}, timeout: PT1M, retry: " + retry + "}"
}

func TestRetry(t *testing.T) {
	s := tell(t, single(retried("{maxAttempts: 4, backoff: {initial: PT10S, factor: 3, max: PT50S}}"), true), "{i: 1}")
	b := s.branch("x#1")
	if b.Attempt != 1 || !b.NotBefore.IsZero() || b.Deadline != noon.Add(time.Minute) || b.LastError != nil {
		t.Errorf("first attempt = %+v", b)
	}
	s.in.ActiveBranches[0].Child = &engine.Child{Kind: "Pod", Name: "p"}
	for i, delay := range []time.Duration{10 * time.Second, 30 * time.Second, 50 * time.Second} {
		s.after(time.Second)
		phase := []engine.Phase{engine.PhaseExecution, engine.PhaseResultValidation, engine.PhaseOutputValidation}[i]
		s.fail("x#1", exit(phase))
		b := s.branch("x#1")
		want := engine.ActiveBranch{
			Branch: "root", Node: "x", Activation: "x#1", Edge: "s-x", EnteredOn: noon, Input: engine.Values{"i": int64(1)},
			Attempt: i + 2, NotBefore: s.now.Add(delay), Deadline: s.now.Add(delay + time.Minute),
			LastError: &engine.Failure{Phase: phase, Code: "EXIT_CODE", Node: "x", Activation: "x#1", Message: "exit code 3"},
		}
		if diff := cmp.Diff(want, b); diff != "" {
			t.Errorf("attempt %d (-want +got):\n%s", i+2, diff)
		}
		if len(s.last.Opened) != 0 || len(s.last.Closed) != 0 {
			t.Errorf("a retry opened %v and closed %v", s.last.Opened, s.last.Closed)
		}
	}
	s.fail("x#1", exit(engine.PhaseExecution))
	s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
	if got := s.entry("x#1").Attempts; got != 4 {
		t.Errorf("%d attempts in history", got)
	}
}

func TestRetryOfBadResults(t *testing.T) {
	s := tell(t, single(retried("{}"), false), "{i: 1}")
	s.complete("x#1", "{}")
	if b := s.branch("x#1"); b.Attempt != 2 || b.LastError.Code != engine.CodeMissingOutput {
		t.Errorf("branch = %+v", b)
	}
	s.do(func(in engine.Instance) engine.Step {
		return engine.Complete(t.Context(), s.def, in, engine.Address{Activation: "x#1", Attempt: 2}, nil, "", s.now)
	})
	if b := s.branch("x#1"); b.Attempt != 3 || b.LastError.Code != engine.CodeInvalidResult {
		t.Errorf("branch = %+v", b)
	}
	s.complete("x#1", "{o: 1}")
	s.wantStatus(engine.StatusCompleted)
	if e := s.entry("x#1"); e.Attempts != 3 || e.Error != nil {
		t.Errorf("entry = %+v", e)
	}
}

func TestFailuresThatAreNotRetried(t *testing.T) {
	for _, phase := range []engine.Phase{
		engine.PhaseInputResolution, engine.PhaseExecutorLookup, engine.PhaseOutputMapping,
	} {
		s := tell(t, single(retried("{}"), false), "{i: 1}")
		s.fail("x#1", exit(phase))
		s.wantFailure(phase, "EXIT_CODE", "x#1")
	}
	s := tell(t, single(retried("{}"), false), "{i: 1}")
	s.complete("x#1", "{o: "+strings.Repeat("x", engine.MaxContextBytes)+"}")
	s.wantFailure(engine.PhaseOutputMapping, engine.CodeContextTooLarge, "x#1")
	s = tell(t, single(retried("{maxAttempts: 1}"), false), "{i: 1}")
	s.fail("x#1", exit(engine.PhaseExecution))
	s.wantFailure(engine.PhaseExecution, "EXIT_CODE", "x#1")
}

func TestAbort(t *testing.T) {
	s := tell(t, flow(forkNodes, forkEdges), "{}")
	f := engine.Failure{Phase: engine.PhaseExecution, Code: "DEADLINE_EXCEEDED", Message: "too late"}
	s.after(time.Hour).do(func(in engine.Instance) engine.Step { return engine.Abort(in, f, s.now) })
	s.wantFailure(engine.PhaseExecution, "DEADLINE_EXCEEDED", "")
	s.wantHistory("s#1 Completed", "a#1 Cancelled", "b#1 Cancelled", "c#1 Cancelled")
	s.do(func(in engine.Instance) engine.Step { return engine.Abort(in, f, s.now) })
	s.wantReason(engine.ReasonTerminal)
}

func TestCancel(t *testing.T) {
	s := tell(t, flow(forkNodes, forkEdges), "{}")
	s.complete("b#1", "{}")
	s.do(func(in engine.Instance) engine.Step { return engine.Cancel(in, "no longer needed", s.now) })
	s.wantStatus(engine.StatusCancelled)
	s.wantHistory("s#1 Completed", "b#1 Completed", "a#1 Cancelled", "c#1 Cancelled")
	if e := s.entry("a#1"); e.Error == nil || e.Error.Message != "no longer needed" || e.Name != "" {
		t.Errorf("entry = %+v", e)
	}
	if len(s.in.JoinArrivals) != 0 {
		t.Errorf("arrivals = %v", s.in.JoinArrivals)
	}
	described := s.def.Describe(s.last.Closed)
	if described[0].Name != "The a" || described[0].Type != "action" || s.last.Closed[0].Name != "" {
		t.Errorf("Describe() = %+v", described[0])
	}
	s.do(func(in engine.Instance) engine.Step { return engine.Cancel(in, "", s.now) })
	s.wantReason(engine.ReasonTerminal)
}

func TestCancelWithoutReason(t *testing.T) {
	s := tell(t, flow(forkNodes, forkEdges), "{}")
	s.do(func(in engine.Instance) engine.Step { return engine.Cancel(in, "", s.now) })
	s.wantStatus(engine.StatusCancelled)
	if e := s.entry("a#1"); e.Outcome != engine.OutcomeCancelled || e.Error != nil {
		t.Errorf("entry = %+v", e)
	}
}
