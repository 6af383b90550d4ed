package controllers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/template"
)

const runUID = "uid-of-run-1"

// sessionOfRun is the session of an attempt of a run.
func sessionOfRun(name string) *api.AgentSession {
	session := &api.AgentSession{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: teamA, UID: "uid-of-session", Generation: 1, CreationTimestamp: metav1.NewTime(noon),
		Labels:          map[string]string{api.LabelRun: runUID},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "WorkflowRun", Name: "run-1", UID: runUID, Controller: new(true)}},
	}}
	session.Spec = api.AgentSessionSpec{TemplateRef: api.LocalRef{Name: template.General}, RunRef: &api.LocalRef{Name: "run-1"}}
	session.Status.Capabilities = []string{}
	return session
}

// promptOfRun is a turn that a run made for its session.
func promptOfRun(name string, session *api.AgentSession, repair int32, how ...func(*api.Turn)) *api.Turn {
	turn := message(name, "", how...)
	turn.Labels, turn.OwnerReferences = session.Labels, session.OwnerReferences
	turn.Spec = api.TurnSpec{
		SessionRef: &api.LocalRef{Name: session.Name},
		Prompt: &api.RunPrompt{
			RunRef: api.PromptRun{Name: "run-1", UID: runUID}, Activation: "work#1", Attempt: 1, Repair: repair,
			Message: api.ContentRef{Digest: content.Digest([]byte("Well?")), Size: 5},
		},
	}
	return turn
}

func TestAPromptOfARunFromQuestionToReply(t *testing.T) {
	session := sessionOfRun("s")
	turn := promptOfRun("t-0", session, 0)
	b := newBench(t, session, turn)
	b.settleDown()
	prompt := get(b, session).Status.Prompt
	if prompt == nil || prompt.ID != "t-0" || prompt.Ref != turn.Spec.Prompt.Message || prompt.State != api.PromptQueued {
		t.Fatalf("prompt is %+v", prompt)
	}
	if !exists(b, podOf(session)) {
		t.Fatal("the session has no pod")
	}
	b.delivers(session)
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnWorking || turn.Status.Deliveries != 1 {
		t.Errorf("turn is %s, delivered %d times", turn.Status.State, turn.Status.Deliveries)
	}
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, StopReason: "end_turn", Reply: "Fine."})
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnCompleted || turn.Status.Reply != "Fine." || turn.Status.Code != "" || turn.Status.FinishedAt == nil {
		t.Errorf("turn is %+v", turn.Status)
	}
	before := len(b.writes)
	b.pass()
	if len(b.writes) != before {
		t.Errorf("a turn that is over is written again: %q", b.writes[before:])
	}
}

// What the runner and the session say becomes the code that the run fails with.
func TestWhyAPromptOfARunFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		result       api.PromptResult
		after        time.Duration
		cancel       bool
		interrupt    bool
		state        api.TurnPhase
		code, detail string
	}{
		"a tool":                       {result: api.PromptResult{Outcome: api.OutcomeFailed, Detail: "AGENT_TOOL_DENIED: The agent asked for Write"}, state: api.TurnFailed, code: codeAgentDenied, detail: "The agent asked for Write"},
		"a refusal":                    {result: api.PromptResult{Outcome: api.OutcomeFailed, StopReason: "refusal", Detail: "The agent stopped: refusal"}, state: api.TurnFailed, code: codeAgentError, detail: "The agent stopped: refusal"},
		"a breakdown":                  {result: api.PromptResult{Outcome: api.OutcomeFailed}, state: api.TurnFailed, code: codeAgentError, detail: detailSessionEnded},
		"an end of its own":            {result: api.PromptResult{Outcome: api.OutcomeInterrupted, StopReason: "cancelled"}, state: api.TurnFailed, code: codeAgentError, detail: "The agent stopped: cancelled"},
		"its time, as the runner says": {result: api.PromptResult{Outcome: api.OutcomeFailed, Detail: "The turn took longer than 30m0s"}, after: 30 * time.Minute, state: api.TurnFailed, code: codeAgentTimeout, detail: detailTimedOut},
		"its time, as the turn says":   {result: api.PromptResult{Outcome: api.OutcomeInterrupted, StopReason: "cancelled"}, cancel: true, state: api.TurnFailed, code: codeAgentTimeout, detail: detailTimedOut},
		"no start":                     {result: api.PromptResult{Outcome: api.OutcomeFailed, Detail: startFailurePrefix + "no image"}, state: api.TurnFailed, code: codeAgentLost, detail: "The agent could not be started: no image"},
		"three lost pods":              {result: api.PromptResult{Outcome: api.OutcomeFailed, Detail: detailPodLost}, state: api.TurnFailed, code: codeAgentLost, detail: detailPodLost},
		"somebody who stopped it":      {result: api.PromptResult{Outcome: api.OutcomeInterrupted, StopReason: "cancelled"}, cancel: true, interrupt: true, state: api.TurnCancelled, detail: detailAskedToStop},
		"a reply that is lost": {
			result: api.PromptResult{Outcome: api.OutcomeCompleted, ReplyRef: &api.ContentRef{Digest: content.Digest([]byte("lost"))}},
			state:  api.TurnFailed, code: codeAgentLost, detail: "The reply is lost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := sessionOfRun("s")
			turn := promptOfRun("t-0", session, 0)
			b := newBench(t, session, turn)
			b.settleDown()
			b.delivers(session)
			b.settleDown()
			b.advance(tc.after)
			if tc.interrupt {
				change(b, turn, func(turn *api.Turn) { turn.Spec.Interrupt = true })
			}
			note(b, session, func(s *api.AgentSession) { s.Status.Prompt.Cancel = tc.cancel })
			b.reports(session, tc.result)
			b.settleDown()
			get(b, turn)
			if turn.Status.State != tc.state || turn.Status.Code != tc.code || turn.Status.Detail != tc.detail {
				t.Errorf("turn is %s, %q: %q, want %s, %q: %q", turn.Status.State, turn.Status.Code, turn.Status.Detail, tc.state, tc.code, tc.detail)
			}
		})
	}
}

func TestALostPromptOfARunIsDeliveredThreeTimes(t *testing.T) {
	session := sessionOfRun("s")
	turn := promptOfRun("t-0", session, 0)
	b := newBench(t, session, turn)
	for n := int32(1); n <= 3; n++ {
		b.settleDown()
		b.delivers(session)
		b.settleDown()
		if get(b, turn); turn.Status.State != api.TurnWorking || turn.Status.Deliveries != n {
			t.Fatalf("the turn is %s, delivered %d times, want %d", turn.Status.State, turn.Status.Deliveries, n)
		}
		b.loses(session)
	}
	b.settleDown()
	if get(b, turn); turn.Status.State != api.TurnFailed || turn.Status.Code != codeAgentLost || turn.Status.Deliveries != 3 {
		t.Errorf("turn is %s, %q, delivered %d times", turn.Status.State, turn.Status.Code, turn.Status.Deliveries)
	}
}

func TestAPromptOfARunEndsWithItsSession(t *testing.T) {
	for name, tc := range map[string]struct {
		happens      func(b *bench, session *api.AgentSession)
		state        api.TurnPhase
		code, detail string
	}{
		"stopped": {func(b *bench, session *api.AgentSession) {
			change(b, session, func(s *api.AgentSession) { s.Spec.Stopped = true })
		}, api.TurnCancelled, "", detailSessionStopped},
		"gone": {func(b *bench, session *api.AgentSession) {
			if err := b.client.Delete(b.ctx, get(b, session)); err != nil {
				b.t.Fatal(err)
			}
		}, api.TurnFailed, codeAgentLost, detailSessionGone},
		"replaced by another run's": {func(b *bench, session *api.AgentSession) {
			change(b, session, func(s *api.AgentSession) { s.OwnerReferences[0].UID = "another" })
		}, api.TurnFailed, codeAgentLost, detailSessionGone},
	} {
		t.Run(name, func(t *testing.T) {
			session := sessionOfRun("s")
			turn := promptOfRun("t-0", session, 0)
			b := newBench(t, session, turn)
			b.settleDown()
			b.delivers(session)
			tc.happens(b, session)
			b.settleDown()
			if get(b, turn); turn.Status.State != tc.state || turn.Status.Code != tc.code || turn.Status.Detail != tc.detail {
				t.Errorf("turn is %s, %q: %q", turn.Status.State, turn.Status.Code, turn.Status.Detail)
			}
			if tc.state == api.TurnCancelled && (exists(b, podOf(session)) || get(b, session).Status.TokenHash != "") {
				t.Error("pod or token is left")
			}
		})
	}
}

// The agent that never comes up, and the one that never ends, are given up in
// the end.
func TestAPromptOfARunIsNotWaitedForForEver(t *testing.T) {
	t.Run("no pod becomes ready", func(t *testing.T) {
		session := sessionOfRun("s")
		turn := promptOfRun("t-0", session, 0)
		b := newBench(t, session, turn)
		b.settleDown()
		for range 8 {
			b.advance(time.Minute)
			b.settleDown()
		}
		if get(b, turn); turn.Status.State != api.TurnFailed || turn.Status.Code != codeAgentLost || !strings.HasPrefix(turn.Status.Detail, startFailureOfRun) {
			t.Errorf("turn is %s, %q: %q", turn.Status.State, turn.Status.Code, turn.Status.Detail)
		}
	})
	t.Run("the agent does not stop", func(t *testing.T) {
		session := sessionOfRun("s")
		turn := promptOfRun("t-0", session, 0)
		b := newBench(t, session, turn)
		b.settleDown()
		b.delivers(session)
		b.advance(31 * time.Minute)
		b.settleDown()
		if prompt := get(b, session).Status.Prompt; !prompt.Cancel {
			t.Fatalf("prompt is %+v", prompt)
		}
		b.advance(cancelTimeout)
		b.settleDown()
		if get(b, turn); turn.Status.State != api.TurnFailed || turn.Status.Code != codeAgentTimeout {
			t.Errorf("turn is %s, %q: %q", turn.Status.State, turn.Status.Code, turn.Status.Detail)
		}
		if exists(b, podOf(session)) && get(b, session).Status.Attempt == 1 {
			t.Error("its pod is left")
		}
	})
}

// The request to repair a reply follows the prompt in the same session, once
// that is over.
func TestPromptsOfARunFollowEachOther(t *testing.T) {
	session := sessionOfRun("s")
	first, second := promptOfRun("t-0", session, 0), promptOfRun("t-1", session, 1)
	b := newBench(t, session, first)
	b.settleDown()
	b.delivers(session)
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "x"})
	b.settleDown()
	if err := b.client.Create(b.ctx, second); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	prompt := get(b, session).Status.Prompt
	if prompt.ID != "t-1" || prompt.Sequence != 2 || prompt.State != api.PromptQueued || session.Status.Attempt != 1 {
		t.Errorf("prompt is %+v in pod %d", prompt, session.Status.Attempt)
	}
	if get(b, first); first.Status.State != api.TurnCompleted {
		t.Errorf("the first is %s", first.Status.State)
	}
}

func TestSessionsOfRunsTakeNobodysSlot(t *testing.T) {
	options := workbenchOptions()
	options.MaxPerNamespace = 1
	var objects []client.Object
	var sessions []*api.AgentSession
	for _, name := range []string{"a", "b", "c"} {
		session := sessionOfRun(name)
		session.UID = "uid-of-" + session.UID
		sessions = append(sessions, session)
		objects = append(objects, session, promptOfRun("t-"+name, session, 0))
	}
	comp, turn := draft("d"), message("t-d", "d")
	b := newBench(t, append(objects, comp, turn)...)
	b.options = &options
	b.settleDown()
	for _, session := range append(sessions, agentOf("d")) {
		if get(b, session).Status.TokenHash == "" {
			t.Errorf("session %s has no pod", session.Name)
		}
	}
}
