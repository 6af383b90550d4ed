package controllers

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// promptSession is a session of role Prompt whose template has a home of a size.
func promptSession(how ...func(*api.AgentSession)) (*api.AgentSession, *api.SessionTemplate) {
	session := sessionOfRun("s")
	session.Spec.Role, session.Spec.TemplateRef.Name = api.RolePrompt, "planner"
	for _, f := range how {
		f(session)
	}
	size := resource.MustParse("2Gi")
	planner := &api.SessionTemplate{ObjectMeta: metav1.ObjectMeta{Name: "planner", Namespace: teamA}}
	planner.Spec = api.SessionTemplateSpec{Role: api.RolePrompt, SystemPrompt: "Plan.", HomeSize: &size}
	planner.Spec.Runtime.Env = []api.EnvVar{{Name: envHome, Value: "/elsewhere"}, {Name: "MODEL", Value: "m"}}
	return session, planner
}

func homeOf(session *api.AgentSession) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: session.Name + "-home", Namespace: teamA}}
}

func TestAnAgentOfRolePromptHasAHomeAndNothingElse(t *testing.T) {
	session, planner := promptSession()
	b := newBench(t, session, planner, promptOfRun("t-0", session, 0))
	b.settleDown()
	claim := get(b, homeOf(session))
	if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "2Gi" || !metav1.IsControlledBy(claim, session) {
		t.Errorf("claim of %s, owned by %v", size.String(), claim.OwnerReferences)
	}
	pod := get(b, podOf(get(b, session)))
	agent := pod.Spec.Containers[0]
	var env []string
	for _, variable := range agent.Env {
		env = append(env, variable.Name)
		if variable.Name == envHome && variable.Value != homePath {
			t.Errorf("the home is %s", variable.Value)
		}
	}
	slices.Sort(env)
	want := []string{"AXIOM_API_URL", "AXIOM_CA_FILE", "AXIOM_SESSION_ATTEMPT", "AXIOM_SESSION_ID", "AXIOM_SESSION_TOKEN", "HOME", "MODEL"}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod has a token of the API server")
	}
	writable := map[string]bool{}
	for _, mount := range agent.VolumeMounts {
		writable[mount.MountPath] = !mount.ReadOnly
	}
	if diff := cmp.Diff(map[string]bool{"/tmp": true, homePath: true, workPath: false, toolsPath: false, trustPath: false}, writable); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func TestAStrangersClaimIsNobodysHome(t *testing.T) {
	session, planner := promptSession()
	stranger := homeOf(session)
	b := newBench(t, session, planner, promptOfRun("t-0", session, 0), stranger)
	b.settleDown()
	got := get(b, session).Status.Prompt.Result
	if got == nil || got.Detail != startFailurePrefix+"a PersistentVolumeClaim s-home exists and belongs to somebody else" {
		t.Errorf("result is %+v", got)
	}
}

// A pod that will not go keeps its session from being suspended, and the next pod
// from starting beside it in the same home.
func TestAHomeHasOnePodAtATime(t *testing.T) {
	session, planner := promptSession()
	turn := promptOfRun("t-0", session, 0)
	b := newBench(t, session, planner, turn)
	b.settleDown()
	b.delivers(session)
	pod := podOf(get(b, session))
	change(b, pod, func(p *corev1.Pod) { p.Finalizers = []string{"example.invalid/keep"} })
	change(b, session, func(s *api.AgentSession) { s.Spec.Suspended = true })
	for step := range 4 {
		b.steps(session, 1)
		if get(b, session); session.Status.Phase == api.SessionSuspended || session.Status.TokenHash != "" {
			t.Errorf("after step %d the session is %s with hash %q while its pod is there", step, session.Status.Phase, session.Status.TokenHash)
		}
	}
	b.settleDown()
	if exists(b, b.secretOf(session)) {
		t.Error("the token of the pod is still good")
	}

	change(b, session, func(s *api.AgentSession) { s.Spec.Suspended = false })
	b.settleDown()
	if get(b, session); session.Status.Attempt != 1 || session.Status.Prompt.State != api.PromptQueued {
		t.Errorf("attempt %d with a prompt that is %s", session.Status.Attempt, session.Status.Prompt.State)
	}
	change(b, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	b.settleDown()
	if get(b, session); session.Status.Attempt != 2 || !exists(b, podOf(session)) {
		t.Errorf("attempt %d", session.Status.Attempt)
	}
}

func TestASuspendedSessionWakesForTheNextPrompt(t *testing.T) {
	session, planner := promptSession()
	first := promptOfRun("t-0", session, 0)
	b := newBench(t, session, planner, first)
	b.settleDown()
	b.delivers(session)
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "Fine."})
	change(b, session, func(s *api.AgentSession) { s.Spec.Suspended = true })
	b.settleDown()
	if get(b, session); session.Status.Phase != api.SessionSuspended || exists(b, podOf(session)) || session.Status.FailedStarts != 0 {
		t.Fatalf("the session is %s after %d failed starts", session.Status.Phase, session.Status.FailedStarts)
	}
	if err := b.client.Create(b.ctx, promptOfRun("t-1", session, 1)); err != nil {
		t.Fatal(err)
	}
	b.settleDown()
	if get(b, session); session.Spec.Suspended || session.Status.Attempt != 2 || session.Status.Prompt.ID != "t-1" {
		t.Errorf("attempt %d, suspended %t, prompt %+v", session.Status.Attempt, session.Spec.Suspended, session.Status.Prompt)
	}
	if !exists(b, homeOf(session)) {
		t.Error("the home is gone")
	}
}

func TestTurnsOfASupervisedRunWaitForEachOther(t *testing.T) {
	session, planner := promptSession()
	first, second := promptOfRun("t-0", session, 0), promptOfRun("t-1", session, 1)
	b := newBench(t, session, planner, first, second)
	b.settleDown()
	b.delivers(session)
	b.settleDown()
	if prompt := get(b, session).Status.Prompt; prompt.ID != "t-0" || prompt.Cancel {
		t.Fatalf("prompt is %+v", prompt)
	}
	b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "Fine."})
	b.settleDown()
	if prompt := get(b, session).Status.Prompt; prompt.ID != "t-1" || get(b, first).Status.State != api.TurnCompleted {
		t.Errorf("prompt is %+v, the first turn %s", prompt, first.Status.State)
	}
}

func TestAPromptThatTheOperatorFailedSaysWhy(t *testing.T) {
	for _, code := range []string{api.CodeSessionRefused, api.CodeSecretDetected} {
		session, planner := promptSession()
		turn := promptOfRun("t-0", session, 0)
		b := newBench(t, session, planner, turn)
		b.settleDown()
		b.reports(session, api.PromptResult{Outcome: api.OutcomeFailed, Code: code, Detail: "so it is"})
		// It is not a matter of time, even when that is over as well.
		b.advance(defaultTurnTimeout)
		b.settleDown()
		if get(b, turn); turn.Status.State != api.TurnFailed || turn.Status.Code != code || turn.Status.Detail != "so it is" {
			t.Errorf("turn is %+v", turn.Status)
		}
	}
}

func TestAPromptHasItsRunsDeadline(t *testing.T) {
	session, planner := promptSession()
	deadline := metav1.NewTime(noon.Add(10 * time.Second))
	turn := promptOfRun("t-0", session, 0)
	turn.Spec.Prompt.Deadline = &deadline
	b := newBench(t, session, planner, turn)
	b.settleDown()
	b.delivers(session)
	if again := reconcileOne(b, b.turns(), get(b, turn)); again != 10*time.Second {
		t.Errorf("looks again after %s", again)
	}
	b.advance(10 * time.Second)
	b.settleDown()
	if prompt := get(b, session).Status.Prompt; !prompt.Cancel {
		t.Errorf("prompt is %+v", prompt)
	}
	b.reports(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
	b.settleDown()
	if get(b, turn); turn.Status.Code != codeAgentTimeout {
		t.Errorf("turn is %+v", turn.Status)
	}
}
