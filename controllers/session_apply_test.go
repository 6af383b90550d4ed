package controllers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/token"
)

// sessionWithWork is one that wants a pod.
func sessionWithWork(name string, how ...func(*api.AgentSession)) (*api.AgentSession, *api.Turn) {
	session := agentOf(name)
	session.UID, session.Generation = types.UID("uid-of-"+session.Name), 1
	session.CreationTimestamp = metav1.NewTime(noon)
	session.Spec = api.AgentSessionSpec{TemplateRef: api.LocalRef{Name: api.TemplateWorkbench}, CompositionRef: &api.LocalRef{Name: name}}
	session.Status.Capabilities = []string{}
	session.Status.Prompt = &api.SessionPrompt{Sequence: 1, ID: "t-" + name, State: api.PromptQueued, QueuedAt: at(0)}
	for _, f := range how {
		f(session)
	}
	turn := message("t-"+name, name, inState(api.TurnWorking))
	session.Status.Prompt.TurnUID = string(turn.UID)
	return session, turn
}

func (b *bench) secretOf(session *api.AgentSession) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: attemptName(session), Namespace: teamA}}
}

// steps reconciles a session alone, and returns what it wrote.
func (b *bench) steps(session *api.AgentSession, passes int) []string {
	b.t.Helper()
	before := len(b.writes)
	for range passes {
		reconcileOne(b, b.sessions(), session)
	}
	return b.writes[before:]
}

// The order is what makes a crash harmless: nothing exists that status does not
// name or that a repetition does not take over.
func TestASessionStartsInOrder(t *testing.T) {
	session, turn := sessionWithWork("c")
	b := newBench(t, session, turn)
	want := []string{
		"create Secret c-agent-1", "create ConfigMap c-agent-journal-1", "update status AgentSession c-agent",
		"create NetworkPolicy c-agent", "create Pod c-agent-1", "update status AgentSession c-agent",
	}
	if diff := cmp.Diff(want, b.steps(session, 4)); diff != "" {
		t.Errorf("writes differ (-want +got):\n%s", diff)
	}
	get(b, session)
	secret := get(b, b.secretOf(session))
	if session.Status.TokenHash != token.Hash(string(secret.Data["token"])) {
		t.Error("the hash is not that of the Secret's token")
	}
	if secret.Immutable == nil || !*secret.Immutable || string(secret.Data["ca.crt"]) != "certificates" || !isOwnedBy(secret, session.UID) {
		t.Errorf("Secret is %+v", secret)
	}
	pod := get(b, podOf(session))
	if session.Status.PodUID != string(pod.UID) || session.Status.Phase != api.SessionStarting {
		t.Errorf("status is %+v", session.Status)
	}
}

func TestTheTokenIsInTheSecretAlone(t *testing.T) {
	session, turn := sessionWithWork("c")
	b := newBench(t, session, turn)
	b.steps(session, 4)
	secret := get(b, b.secretOf(get(b, session)))
	value := string(secret.Data["token"])
	for name, object := range map[string]client.Object{"session": session, "pod": get(b, podOf(session))} {
		if _, text := json2(t, object); strings.Contains(text, value) {
			t.Errorf("the %s has the token", name)
		}
	}
}

func TestAnAttemptIsTakenOver(t *testing.T) {
	for name, tc := range map[string]struct {
		passes int // of the controller that died without writing status
		lose   string
	}{
		"after its Secret": {0, "update status AgentSession c-agent"},
		"after its pod":    {1, "update status AgentSession c-agent"},
		"after its policy": {1, "create Pod c-agent-1"},
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c")
			b := newBench(t, session, turn)
			b.steps(session, tc.passes)
			dying := *b.sessions()
			lost := errors.New("lost")
			intercepted := interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					if _, isPod := object.(*corev1.Pod); isPod && strings.HasPrefix(tc.lose, "create Pod") {
						return lost
					}
					return c.Create(ctx, object, opts...)
				},
				SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
					return lost
				},
			})
			dying.Client, dying.Direct = intercepted, intercepted
			if _, err := dying.Reconcile(b.ctx, get(b, session)); err == nil {
				t.Fatal("nothing was lost")
			}
			b.steps(session, 4)
			get(b, session)
			secret := get(b, b.secretOf(session))
			if session.Status.Attempt != 1 || session.Status.TokenHash != token.Hash(string(secret.Data["token"])) || !exists(b, podOf(session)) {
				t.Errorf("status is %+v", session.Status)
			}
		})
	}
}

func TestAPodEndsBeforeItsTokenAndBothBeforeTheNext(t *testing.T) {
	session, turn := sessionWithWork("c")
	b := newBench(t, session, turn)
	b.steps(session, 4)
	b.delivers(session)
	note(b, podOf(session), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	want := []string{"delete Pod c-agent-1", "delete Secret c-agent-1", "update status AgentSession c-agent"}
	if diff := cmp.Diff(want, b.steps(session, 3)); diff != "" {
		t.Errorf("writes differ (-want +got):\n%s", diff)
	}
	get(b, session)
	if session.Status.TokenHash != "" || session.Status.PodUID != "" || session.Status.Prompt.State != api.PromptLost {
		t.Errorf("status is %+v", session.Status)
	}
	note(b, session, func(s *api.AgentSession) { requeuePrompt(s.Status.Prompt, noon) })
	b.steps(session, 4)
	if get(b, session).Status.Attempt != 2 || !exists(b, podOf(session)) {
		t.Errorf("status is %+v", session.Status)
	}
}

// A cache that is behind shows a session that may be idle no more.
func TestAnOldViewOfASessionDoesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(b *bench, session *api.AgentSession)
	}{
		"that was idle": {func(b *bench, session *api.AgentSession) {
			b.delivers(session)
			b.reports(session, api.PromptResult{Outcome: api.OutcomeCompleted})
			b.advance(time.Hour)
		}},
		"whose attempt had no pod yet": {func(b *bench, session *api.AgentSession) {
			note(b, session, func(s *api.AgentSession) { s.Status.PodUID = "" })
			if err := b.client.Delete(b.ctx, podOf(session)); err != nil {
				b.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c")
			b := newBench(t, session, turn)
			b.steps(session, 4)
			tc.play(b, session)
			old := get(b, session).DeepCopy()
			note(b, session, func(s *api.AgentSession) { s.Status.LastActivityAt = timeOf(b.clock.Now()) })
			before := len(b.writes)
			_, err := b.sessions().Reconcile(b.ctx, old)
			for _, write := range b.writes[before:] {
				if !strings.HasPrefix(write, "update status") {
					t.Errorf("wrote %q", write)
				}
			}
			if err != nil && !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
}

func TestAStrangerInTheWayEndsTheStart(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: teamA} }
	for name, object := range map[string]client.Object{
		"a Secret c-agent-1 exists and belongs to somebody else":      &corev1.Secret{ObjectMeta: meta("c-agent-1")},
		"a Pod c-agent-1 exists and belongs to somebody else":         &corev1.Pod{ObjectMeta: meta("c-agent-1")},
		"a NetworkPolicy c-agent exists and belongs to somebody else": &networkingv1.NetworkPolicy{ObjectMeta: meta("c-agent")},
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c")
			b := newBench(t, session, turn, object)
			b.steps(session, 5)
			get(b, session)
			if got := session.Status.Prompt.Result; got == nil || got.Detail != startFailurePrefix+name {
				t.Errorf("result is %+v", got)
			}
			if !exists(b, object) {
				t.Error("the stranger was deleted")
			}
		})
	}
}

func TestARefusedPodEndsTheStart(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, refusal := range map[string]error{
		"by a policy": apierrors.NewForbidden(pods, "c-agent-1", errors.New("violates PodSecurity")),
		"as invalid":  apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "c-agent-1", nil),
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c")
			b := newBench(t, session, turn)
			r := b.sessions()
			r.Direct = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					if _, isPod := object.(*corev1.Pod); isPod {
						return refusal
					}
					return c.Create(ctx, object, opts...)
				},
			})
			for range 5 {
				if _, err := r.Reconcile(b.ctx, get(b, session)); err != nil {
					t.Fatal(err)
				}
			}
			get(b, session)
			if got, want := session.Status.Prompt.Result, startFailurePrefix+"create agent pod: "+refusal.Error(); got == nil || got.Detail != want {
				t.Errorf("result is %+v, want %q", got, want)
			}
			if session.Status.Phase != api.SessionFailed || session.Status.TokenHash != "" || exists(b, b.secretOf(session)) {
				t.Errorf("status is %+v", session.Status)
			}
		})
	}
}

func TestAFourthSessionWaits(t *testing.T) {
	var objects []client.Object
	var sessions []*api.AgentSession
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		session, turn := sessionWithWork(name, func(s *api.AgentSession) {
			s.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Minute))
		})
		objects, sessions = append(objects, session, turn), append(sessions, session)
	}
	b := newBench(t, objects...)
	count := func() string {
		var names strings.Builder
		for _, session := range sessions {
			if get(b, session).Status.TokenHash != "" {
				names.WriteString(session.Name[:1])
			}
		}
		return names.String()
	}
	// The youngest looks first, and still waits for its turn.
	for _, session := range slices.Backward(sessions) {
		b.steps(session, 4)
	}
	if got := count(); got != "abc" {
		t.Fatalf("sessions %q have a pod, want the oldest three", got)
	}
	got := briefs(get(b, sessions[3]).Status.Conditions)["WithinLimit"]
	if got.Status != "False" || got.Reason != "SessionLimit" {
		t.Errorf("condition is %+v", got)
	}
	change(b, sessions[1], func(s *api.AgentSession) { s.Spec.Stopped = true })
	b.steps(sessions[1], 2)
	b.steps(sessions[4], 4)
	b.steps(sessions[3], 4)
	if got := count(); got != "acd" {
		t.Errorf("sessions %q have a pod after one was stopped, want the fourth to follow", got)
	}
	if got := briefs(get(b, sessions[3]).Status.Conditions)["WithinLimit"].Status; got != "True" {
		t.Errorf("condition is %q", got)
	}
}

func TestWhoMayBeWaitingIsWoken(t *testing.T) {
	waiting, _ := sessionWithWork("a")
	busy, _ := sessionWithWork("b", func(s *api.AgentSession) { s.Status.TokenHash = "sha256:x" })
	idle, _ := sessionWithWork("c", func(s *api.AgentSession) { s.Status.Prompt.State = api.PromptDone })
	b := newBench(t, waiting, busy, idle)
	got := b.sessions().waitingBeside(b.ctx, busy)
	if len(got) != 1 || got[0].Name != "a-agent" {
		t.Errorf("woken are %v, want a-agent", got)
	}
	if got := b.sessions().waitingBeside(b.ctx, waiting); len(got) != 0 {
		t.Errorf("woken are %v by themselves", got)
	}
}

// A turn that waits until the agent has left another turn's prompt must hear of
// it, although the session names the other turn.
func TestASessionWakesTheTurnsOfItsComposition(t *testing.T) {
	session, former := sessionWithWork("c")
	next := message("t-next", "c", inState(api.TurnWorking))
	pending := message("t-pending", "c", inState(api.TurnPending))
	other := message("t-other", "d", inState(api.TurnWorking))
	former.Status.State = api.TurnFailed
	b := newBench(t, session, former, next, pending, other)
	got := b.turns().workingTurnsOf(b.ctx, session)
	if len(got) != 1 || got[0].Name != "t-next" {
		t.Errorf("woken are %v, want t-next", got)
	}
}

func TestThePolicyFollowsTheSettings(t *testing.T) {
	session, turn := sessionWithWork("c")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "c-agent", Namespace: teamA}}
	b := newBench(t, session, turn)
	b.steps(session, 4)
	if got := len(get(b, policy).Spec.Egress); got != 2 {
		t.Fatalf("%d ways out, want gateway and DNS", got)
	}
	b.loses(session)
	change(b, session, func(s *api.AgentSession) { s.Spec.Egress = []api.EgressRule{{CIDR: "203.0.113.0/24", Port: 443}} })
	b.steps(session, 6)
	if got := len(get(b, policy).Spec.Egress); got != 3 {
		t.Errorf("%d ways out after a third was allowed", got)
	}
}

// caching is a client that shows objects of a type as they were.
func caching[T client.ObjectList](b *bench, old T) client.Client {
	return interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if into, isIt := list.(T); isIt {
				reflect.ValueOf(into).Elem().Set(reflect.ValueOf(old).Elem())
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func TestASlotIsNotGivenTwice(t *testing.T) {
	younger, turn := sessionWithWork("a", func(s *api.AgentSession) { s.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour)) })
	older, turn2 := sessionWithWork("b", func(s *api.AgentSession) { s.Status.Prompt.State = api.PromptDone })
	b := newBench(t, younger, turn, older, turn2)
	options := workbenchOptions()
	options.MaxPerNamespace = 1
	b.options = &options
	before := &api.AgentSessionList{}
	if err := b.client.List(b.ctx, before); err != nil {
		t.Fatal(err)
	}
	b.steps(younger, 4) // it has the slot, but the cache does not show it yet
	note(b, older, func(s *api.AgentSession) { s.Status.Prompt.State = api.PromptQueued })
	r := b.sessions()
	r.Client = caching(b, before)
	if _, err := r.Reconcile(b.ctx, get(b, older)); err != nil {
		t.Fatal(err)
	}
	if get(b, older); older.Status.TokenHash != "" {
		t.Error("two sessions have the only slot")
	}
}

func TestATurnThatTheCacheMissesIsNotGone(t *testing.T) {
	for name, cached := range map[string]func(key client.ObjectKey, object client.Object) error{
		"nothing": func(key client.ObjectKey, _ client.Object) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "turns"}, key.Name)
		},
		"a former turn of its name": func(key client.ObjectKey, object client.Object) error {
			message(key.Name, "c", inState(api.TurnFailed), func(turn *api.Turn) { turn.UID = "former" }).DeepCopyInto(object.(*api.Turn))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			session, turn := sessionWithWork("c")
			b := newBench(t, session, turn)
			b.steps(session, 4)
			b.delivers(session)
			r := b.sessions()
			r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					if _, isTurn := object.(*api.Turn); isTurn {
						return cached(key, object)
					}
					return c.Get(ctx, key, object, opts...)
				},
			})
			if _, err := r.Reconcile(b.ctx, get(b, session)); err != nil {
				t.Fatal(err)
			}
			if prompt := get(b, session).Status.Prompt; prompt.Cancel {
				t.Error("its prompt was taken back")
			}
		})
	}
}

func TestTheRunnerKnowsWhatIsSecret(t *testing.T) {
	model := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "model", Namespace: teamA, Labels: map[string]string{api.LabelCredential: "true"}},
		Data:       map[string][]byte{"VENDOR": []byte("abcdefgh"), "API": []byte("12345678")},
	}
	session, turn := sessionWithWork("c", func(s *api.AgentSession) {
		s.Spec.ModelSecretRef = &api.LocalRef{Name: "model"}
		s.Spec.Runtime.Env = []api.EnvVar{{Name: "MINE", SecretKeyRef: &api.KeyRef{Name: "model", Key: "API"}}, {Name: "PLAIN", Value: "x"}}
	})
	b := newBench(t, session, turn, model)
	b.steps(session, 4)
	pod := get(b, podOf(get(b, session)))
	i := slices.IndexFunc(pod.Spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "AXIOM_SECRET_ENV" })
	if i < 0 || pod.Spec.Containers[0].Env[i].Value != "MINE,API,VENDOR" {
		t.Errorf("environment is %+v", pod.Spec.Containers[0].Env)
	}
	if _, text := json2(t, pod); strings.Contains(text, "abcdefgh") || strings.Contains(text, "12345678") {
		t.Error("the pod has a secret value")
	}
}
