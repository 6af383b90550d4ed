package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// at is noon, moved.
func at(d time.Duration) *metav1.Time { return timeOf(noon.Add(d)) }

// sessionCase is a session that is told in a few words: its first attempt began
// at noon, and is ready unless it is said to start.
type sessionCase struct {
	prompt     api.PromptState
	hasPod     bool
	isStarting bool
	how        func(*sessionState)
}

func (c sessionCase) state() sessionState {
	session := agentOf("c")
	session.UID = "uid-of-session"
	session.Spec.CompositionRef = &api.LocalRef{Name: "c"}
	state := sessionState{session: session, now: noon, withinLimit: true, turn: message("t-1", "c", inState(api.TurnWorking))}
	if c.prompt != "" {
		session.Status.Prompt = &api.SessionPrompt{Sequence: 1, ID: "t-1", TurnUID: "uid-of-t-1", State: c.prompt, QueuedAt: at(0)}
	}
	if c.hasPod || c.isStarting {
		session.Status.Attempt, session.Status.TokenHash, session.Status.StartedAt = 1, "sha256:x", at(0)
	}
	if c.hasPod {
		state.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c-agent-1", UID: "uid-of-pod"}}
		session.Status.PodUID = "uid-of-pod"
	}
	if !c.isStarting {
		session.Status.ReadyAttempt = session.Status.Attempt
	}
	if c.how != nil {
		c.how(&state)
	}
	return state
}

func TestDecideSession(t *testing.T) {
	const queued, delivered, lost, done = api.PromptQueued, api.PromptDelivered, api.PromptLost, api.PromptDone
	after := func(d time.Duration) func(*sessionState) { return func(s *sessionState) { s.now = noon.Add(d) } }
	both := func(changes ...func(*sessionState)) func(*sessionState) {
		return func(s *sessionState) {
			for _, f := range changes {
				f(s)
			}
		}
	}
	ends := func(phase corev1.PodPhase) func(*sessionState) {
		return func(s *sessionState) { s.pod.Status.Phase = phase }
	}
	failedStartsBefore := func(n int32) func(*sessionState) { return func(s *sessionState) { s.session.Status.FailedStarts = n } }
	cancelled := func(s *sessionState) {
		s.session.Status.Prompt.Cancel, s.session.Status.Prompt.CancelledAt = true, at(0)
	}
	heartbeat := func(s *sessionState) { s.session.Status.LastHeartbeatAt = at(0) }
	stopped := func(s *sessionState) { s.session.Spec.Stopped = true }
	suspended := func(s *sessionState) { s.session.Spec.Suspended = true }
	leaving := func(s *sessionState) { s.leaving = &corev1.Pod{} }
	over := func(s *sessionState) { s.turn.Status.State = api.TurnFailed }
	gone := func(s *sessionState) { s.turn = nil }
	impossible := func(s *sessionState) { s.impossible = "no template" }
	never := func(s *sessionState) { s.session.Spec.IdleTimeout = &metav1.Duration{} }

	// restarted is an operator that has listened for two minutes only.
	restarted := func(s *sessionState) { s.since = s.now.Add(-2 * time.Minute) }

	for name, tc := range map[string]struct {
		given   sessionCase
		move    sessionMove
		again   time.Duration
		failure string
		prompt  api.PromptState
	}{
		// Without a pod.
		"no work":                                 {given: sessionCase{}, move: moveNone},
		"work":                                    {given: sessionCase{prompt: queued}, move: moveAttempt, prompt: queued},
		"work, but no slot":                       {given: sessionCase{prompt: queued, how: func(s *sessionState) { s.withinLimit = false }}, move: moveNone, prompt: queued},
		"work, but no template":                   {given: sessionCase{prompt: queued, how: impossible}, move: moveGiveUp, failure: "no template", prompt: queued},
		"work after two failed starts":            {given: sessionCase{prompt: queued, how: failedStartsBefore(2)}, move: moveAttempt, prompt: queued},
		"work after three failed starts":          {given: sessionCase{prompt: queued, how: failedStartsBefore(3)}, move: moveGiveUp, prompt: queued},
		"work of a stopped session":               {given: sessionCase{prompt: queued, how: stopped}, move: moveNone, prompt: queued},
		"work of a suspended session":             {given: sessionCase{prompt: queued, how: suspended}, move: moveNone, prompt: queued},
		"work while the last pod is there":        {given: sessionCase{prompt: queued, how: leaving}, move: moveNone, prompt: queued},
		"lost work waits for its turn":            {given: sessionCase{prompt: lost}, move: moveNone, prompt: lost},
		"work that is done":                       {given: sessionCase{prompt: done}, move: moveNone, prompt: done},
		"work of a turn that is over":             {given: sessionCase{prompt: queued, how: over}, move: moveNone, prompt: done},
		"work of a turn that is gone":             {given: sessionCase{prompt: queued, how: gone}, move: moveNone, prompt: done},
		"lost work of a turn that is gone":        {given: sessionCase{prompt: lost, how: gone}, move: moveNone, prompt: done},
		"work of another turn of that name":       {given: sessionCase{prompt: queued, how: func(s *sessionState) { s.turn.UID = "another" }}, move: moveNone, prompt: done},
		"cancelled work that never reached a pod": {given: sessionCase{prompt: queued, how: cancelled}, move: moveNone, prompt: queued},

		// An attempt without a pod.
		"an attempt that needs its pod":         {given: sessionCase{prompt: queued, isStarting: true}, move: moveCreatePod, prompt: queued},
		"an attempt that nobody needs any more": {given: sessionCase{prompt: done, isStarting: true}, move: moveEnd, prompt: done},
		"an attempt without a template":         {given: sessionCase{prompt: queued, isStarting: true, how: impossible}, move: moveEnd, failure: "no template", prompt: queued},
		"an attempt whose pod was there":        {given: sessionCase{prompt: delivered, isStarting: true, how: func(s *sessionState) { s.session.Status.PodUID = "uid-of-pod" }}, move: moveEnd, failure: "the agent pod was deleted", prompt: delivered},
		"an attempt that gets no pod in time":   {given: sessionCase{prompt: queued, isStarting: true, how: after(5 * time.Minute)}, move: moveEnd, failure: "the agent was not ready within 5m0s", prompt: queued},

		"an attempt of a suspended session": {given: sessionCase{prompt: queued, isStarting: true, how: suspended}, move: moveEnd, prompt: queued},

		// An attempt with a pod.
		"a pod of a suspended session":              {given: sessionCase{prompt: delivered, hasPod: true, how: suspended}, move: moveEnd, prompt: delivered},
		"a pod that starts":                         {given: sessionCase{prompt: queued, hasPod: true, isStarting: true}, move: moveNone, again: 5 * time.Minute, prompt: queued},
		"a pod that starts for a while":             {given: sessionCase{prompt: queued, hasPod: true, isStarting: true, how: after(4 * time.Minute)}, move: moveNone, again: time.Minute, prompt: queued},
		"a pod that does not come up":               {given: sessionCase{prompt: queued, hasPod: true, isStarting: true, how: after(5 * time.Minute)}, move: moveEnd, failure: "the agent was not ready within 5m0s", prompt: queued},
		"a pod that fails":                          {given: sessionCase{prompt: delivered, hasPod: true, how: ends(corev1.PodFailed)}, move: moveEnd, failure: "the agent pod ended", prompt: delivered},
		"a pod that ends well":                      {given: sessionCase{prompt: delivered, hasPod: true, how: ends(corev1.PodSucceeded)}, move: moveEnd, failure: "the agent pod ended", prompt: delivered},
		"a pod that is being deleted":               {given: sessionCase{prompt: delivered, hasPod: true, how: func(s *sessionState) { s.pod.DeletionTimestamp = at(0) }}, move: moveEnd, failure: "the agent pod was deleted", prompt: delivered},
		"an agent that works":                       {given: sessionCase{prompt: delivered, hasPod: true}, move: moveNone, prompt: delivered},
		"an agent that works all day":               {given: sessionCase{prompt: delivered, hasPod: true, how: after(24 * time.Hour)}, move: moveNone, prompt: delivered},
		"an agent that was asked to stop":           {given: sessionCase{prompt: delivered, hasPod: true, how: cancelled}, move: moveNone, again: time.Minute, prompt: delivered},
		"an agent that does not stop":               {given: sessionCase{prompt: delivered, hasPod: true, how: both(cancelled, after(time.Minute))}, move: moveEnd, failure: "the agent did not stop within 1m0s of being asked to", prompt: delivered},
		"a runner that is alive":                    {given: sessionCase{prompt: delivered, hasPod: true, how: both(heartbeat, after(4*time.Minute))}, move: moveNone, again: time.Minute, prompt: delivered},
		"a runner that fell silent":                 {given: sessionCase{prompt: delivered, hasPod: true, how: both(heartbeat, after(5*time.Minute))}, move: moveEnd, failure: "the agent's runner was silent for 5m0s", prompt: delivered},
		"events are signs of life as well":          {given: sessionCase{prompt: delivered, hasPod: true, how: both(heartbeat, after(5*time.Minute), func(s *sessionState) { s.session.Status.LastActivityAt = at(3 * time.Minute) })}, move: moveNone, again: 3 * time.Minute, prompt: delivered},
		"silence is counted from the prompt":        {given: sessionCase{prompt: queued, hasPod: true, how: both(heartbeat, after(time.Hour), func(s *sessionState) { s.session.Status.Prompt.QueuedAt = at(time.Hour) })}, move: moveNone, again: 5 * time.Minute, prompt: queued},
		"the sooner of two ends":                    {given: sessionCase{prompt: delivered, hasPod: true, how: both(heartbeat, cancelled)}, move: moveNone, again: time.Minute, prompt: delivered},
		"a stopped session":                         {given: sessionCase{prompt: delivered, hasPod: true, how: stopped}, move: moveEnd, prompt: delivered},
		"an idle agent":                             {given: sessionCase{prompt: done, hasPod: true}, move: moveNone, again: 30 * time.Minute, prompt: done},
		"an agent that was idle for long":           {given: sessionCase{prompt: done, hasPod: true, how: after(30 * time.Minute)}, move: moveEnd, prompt: done},
		"an agent that did something since":         {given: sessionCase{prompt: done, hasPod: true, how: both(after(30*time.Minute), func(s *sessionState) { s.session.Status.LastActivityAt = at(10 * time.Minute) })}, move: moveNone, again: 10 * time.Minute, prompt: done},
		"an idle agent that shall stay":             {given: sessionCase{prompt: done, hasPod: true, how: both(never, after(24*time.Hour))}, move: moveNone, prompt: done},
		"an agent whose turn is over":               {given: sessionCase{prompt: delivered, hasPod: true, how: over}, move: moveNone, again: time.Minute, prompt: delivered},
		"a start that an operator missed":           {given: sessionCase{prompt: queued, hasPod: true, isStarting: true, how: both(after(time.Hour), restarted)}, move: moveNone, again: 3 * time.Minute, prompt: queued},
		"a silence that an operator missed":         {given: sessionCase{prompt: delivered, hasPod: true, how: both(heartbeat, after(time.Hour), restarted)}, move: moveNone, again: 3 * time.Minute, prompt: delivered},
		"an answer that an operator missed":         {given: sessionCase{prompt: delivered, hasPod: true, how: both(cancelled, after(time.Hour), func(s *sessionState) { s.since = s.now })}, move: moveNone, again: time.Minute, prompt: delivered},
		"idling does not depend on who listens":     {given: sessionCase{prompt: done, hasPod: true, how: both(after(30*time.Minute), restarted)}, move: moveEnd, prompt: done},
		"a ready agent that may be fetching":        {given: sessionCase{prompt: queued, hasPod: true, how: gone}, move: moveNone, again: time.Minute, prompt: queued},
		"a starting agent that cannot have fetched": {given: sessionCase{prompt: queued, hasPod: true, isStarting: true, how: gone}, move: moveNone, again: 5 * time.Minute, prompt: done},
	} {
		t.Run(name, func(t *testing.T) {
			state := tc.given.state()
			move, again := decideSession(state, workbenchOptions())
			if move != tc.move || again != tc.again {
				t.Errorf("move %d, again in %s; want %d, %s", move, again, tc.move, tc.again)
			}
			if got := state.session.Status.LastFailure; got != tc.failure {
				t.Errorf("failure %q, want %q", got, tc.failure)
			}
			if prompt := state.session.Status.Prompt; prompt != nil && prompt.State != tc.prompt {
				t.Errorf("prompt is %s, want %s", prompt.State, tc.prompt)
			}
		})
	}
}

func TestSessionPhasesAndConditions(t *testing.T) {
	const queued, delivered, done = api.PromptQueued, api.PromptDelivered, api.PromptDone
	failedWith := func(n int32) func(*sessionState) {
		return func(s *sessionState) { s.session.Status.FailedStarts, s.session.Status.LastFailure = n, "why" }
	}
	had := func(s *sessionState) { s.session.Status.Attempt, s.session.Status.ReadyAttempt = 2, 2 }
	for name, tc := range map[string]struct {
		given sessionCase
		want  []brief
	}{
		"Pending": {
			given: sessionCase{prompt: queued},
			want:  []brief{{"Ready", "Unknown", "Pending", ""}, {"PodReady", "False", "Pending", ""}, {"WithinLimit", "True", "SlotFree", ""}},
		},
		"Pending without a slot": {
			given: sessionCase{prompt: queued, how: func(s *sessionState) { s.withinLimit = false }},
			want:  []brief{{"WithinLimit", "False", "SessionLimit", "other sessions of the namespace use all slots"}},
		},
		"Starting": {
			given: sessionCase{prompt: queued, hasPod: true, isStarting: true, how: func(s *sessionState) {
				s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}}}
			}},
			want: []brief{{"Ready", "Unknown", "Starting", ""}, {"PodReady", "False", "Starting", "container agent: ErrImagePull: no such image"}},
		},
		"Ready":     {given: sessionCase{prompt: done, hasPod: true}, want: []brief{{"Ready", "True", "Ready", ""}, {"PodReady", "True", "Ready", ""}}},
		"Working":   {given: sessionCase{prompt: delivered, hasPod: true}, want: []brief{{"Ready", "True", "Working", ""}, {"PodReady", "True", "Working", ""}}},
		"Suspended": {given: sessionCase{prompt: done, how: had}, want: []brief{{"Ready", "True", "Suspended", ""}, {"PodReady", "False", "Suspended", ""}}},
		"Failed":    {given: sessionCase{prompt: done, how: failedWith(3)}, want: []brief{{"Ready", "False", "Failed", "why"}}},
		"Stopped":   {given: sessionCase{how: func(s *sessionState) { s.session.Spec.Stopped = true }}, want: []brief{{"Ready", "False", "Stopped", ""}}},
		// The next pod is on its way, though there was one before.
		"Pending again": {given: sessionCase{prompt: queued, how: had}, want: []brief{{"Ready", "Unknown", "Pending", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			state := tc.given.state()
			setSessionStatus(state)
			if got := string(state.session.Status.Phase); got != strings.Fields(name)[0] {
				t.Errorf("phase %s", got)
			}
			got := briefs(state.session.Status.Conditions)
			if len(got) != 3 {
				t.Errorf("%d conditions, want 3", len(got))
			}
			for _, want := range tc.want {
				if diff := cmp.Diff(want, got[want.Type]); diff != "" {
					t.Errorf("condition differs (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff([]string{"composition"}, state.session.Status.Capabilities); diff != "" {
				t.Errorf("capabilities differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCapabilitiesAreAlwaysPresent(t *testing.T) {
	state := sessionCase{}.state()
	state.session.Spec.CompositionRef = nil
	setSessionStatus(state)
	if got := state.session.Status.Capabilities; got == nil || len(got) != 0 {
		t.Errorf("capabilities %#v, want an empty list", got)
	}
}

func TestWhatEndsIsToldWithinTheAPI(t *testing.T) {
	state := sessionCase{prompt: api.PromptDelivered, hasPod: true, how: func(s *sessionState) {
		s.pod.Status.Phase, s.pod.Status.Reason, s.pod.Status.Message = corev1.PodFailed, "Evicted", strings.Repeat("x", 10000)
	}}.state()
	if move, _ := decideSession(state, workbenchOptions()); move != moveEnd {
		t.Fatalf("move %d", move)
	}
	got := state.session.Status.LastFailure
	if !strings.HasPrefix(got, "the agent pod ended: Evicted: xxx") || len(got) > maxDetail {
		t.Errorf("failure of %d bytes: %.60q", len(got), got)
	}
}

func TestWithdrawPrompt(t *testing.T) {
	for name, tc := range map[string]struct {
		given   sessionCase
		changed bool
		state   api.PromptState
		cancel  bool
	}{
		"no prompt":                   {sessionCase{}, false, "", false},
		"one that is done":            {sessionCase{prompt: api.PromptDone, hasPod: true}, false, api.PromptDone, false},
		"one that waits for a pod":    {sessionCase{prompt: api.PromptQueued}, true, api.PromptDone, true},
		"one that waits for an agent": {sessionCase{prompt: api.PromptQueued, hasPod: true, isStarting: true}, true, api.PromptDone, true},
		"one that a runner may have":  {sessionCase{prompt: api.PromptQueued, hasPod: true}, true, api.PromptQueued, true},
		"one that the agent has":      {sessionCase{prompt: api.PromptDelivered, hasPod: true}, true, api.PromptDelivered, true},
		"one that was lost":           {sessionCase{prompt: api.PromptLost}, true, api.PromptDone, true},
	} {
		t.Run(name, func(t *testing.T) {
			session := tc.given.state().session
			if changed := withdrawPrompt(session, noon.Add(time.Minute)); changed != tc.changed {
				t.Errorf("changed %t, want %t", changed, tc.changed)
			}
			prompt := session.Status.Prompt
			if prompt == nil {
				return
			}
			if prompt.State != tc.state || prompt.Cancel != tc.cancel {
				t.Errorf("prompt is %s, cancelled %t", prompt.State, prompt.Cancel)
			}
			// A second time changes nothing, so that the time of the first stands.
			before := *prompt
			if withdrawPrompt(session, noon.Add(time.Hour)) {
				t.Error("it was taken back twice")
			}
			if diff := cmp.Diff(before, *prompt); diff != "" {
				t.Errorf("prompt differs the second time (-first +second):\n%s", diff)
			}
		})
	}
}

func TestFailedStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		given sessionCase
		want  int32
	}{
		"an agent that never was ready":       {sessionCase{prompt: api.PromptQueued, hasPod: true, isStarting: true}, 2},
		"an agent that never took the prompt": {sessionCase{prompt: api.PromptQueued, hasPod: true}, 2},
		"an agent that worked":                {sessionCase{prompt: api.PromptDelivered, hasPod: true}, 0},
		"an agent that was idle":              {sessionCase{prompt: api.PromptDone, hasPod: true}, 0},
		"a start that was stopped":            {sessionCase{prompt: api.PromptQueued, hasPod: true, isStarting: true, how: func(s *sessionState) { s.session.Spec.Stopped = true }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			session := tc.given.state().session
			session.Status.FailedStarts = 1
			if got := failedStarts(session); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
