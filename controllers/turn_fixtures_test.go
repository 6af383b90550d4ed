package controllers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const teamA = "team-a"

// noon is when the tests' clocks stand.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func workbenchScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, api.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// bench is an API server in memory with the workbench's reconcilers on it. The
// fake keeps no generations: whoever changes a spec raises them.
type bench struct {
	t        *testing.T
	ctx      context.Context
	clock    *clocktesting.FakePassiveClock
	client   client.Client
	recorder *events.FakeRecorder
	writes   []string
	// options of sessions, workbenchOptions when nil.
	options *SessionOptions
}

// newBench stores the objects.
func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{
		t: t, ctx: t.Context(), clock: clocktesting.NewFakePassiveClock(noon), recorder: events.NewFakeRecorder(100),
	}
	inner := fake.NewClientBuilder().WithScheme(workbenchScheme()).
		WithStatusSubresource(&api.Composition{}, &api.Turn{}, &api.AgentSession{}, &corev1.Pod{}).
		WithObjects(objects...).Build()
	b.client = interceptor.NewClient(inner, b.recording())
	return b
}

// recording notes each write as "verb kind name".
func (b *bench) recording() interceptor.Funcs {
	note := func(verb string, object client.Object) {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*")
		b.writes = append(b.writes, verb+" "+kind[strings.LastIndex(kind, ".")+1:]+" "+object.GetName())
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			note("create", object)
			if object.GetUID() == "" {
				object.SetUID(types.UID("uid-of-" + object.GetName()))
				object.SetGeneration(1)
				object.SetCreationTimestamp(metav1.NewTime(b.clock.Now()))
			}
			return c.Create(ctx, object, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			note("update", object)
			return c.Update(ctx, object, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			note("patch", object)
			if err := c.Patch(ctx, object, patch, opts...); err != nil {
				return err
			}
			if _, isComp := object.(*api.Composition); !isComp {
				return nil
			}
			object.SetGeneration(object.GetGeneration() + 1)
			return c.Update(ctx, object)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			note("delete", object)
			return c.Delete(ctx, object, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			note("update "+sub, object)
			if turn, isTurn := object.(*api.Turn); isTurn {
				b.judgeMove(c, turn)
			}
			return c.SubResource(sub).Update(ctx, object, opts...)
		},
	}
}

// judgeMove fails the test when a turn moves as no turn may.
func (b *bench) judgeMove(c client.Client, turn *api.Turn) {
	b.t.Helper()
	stored := &api.Turn{}
	if err := c.Get(b.ctx, client.ObjectKeyFromObject(turn), stored); err != nil || stored.ResourceVersion != turn.ResourceVersion {
		return // which is refused anyway
	}
	if !turns.CanMove(stored.Status.State, turn.Status.State) {
		b.t.Errorf("turn %s moves from %q to %q", turn.Name, stored.Status.State, turn.Status.State)
	}
}

func (b *bench) compositions() *CompositionReconciler {
	return &CompositionReconciler{Client: b.client, Live: b.client, Clock: b.clock, Expressions: expression.NewCache()}
}

func (b *bench) turns() *TurnReconciler {
	return &TurnReconciler{
		Client: b.client, Direct: b.client, Clock: b.clock, Recorder: b.recorder, Expressions: expression.NewCache(),
	}
}

func (b *bench) sessions() *AgentSessionReconciler {
	options := workbenchOptions()
	if b.options != nil {
		options = *b.options
	}
	return &AgentSessionReconciler{Client: b.client, Direct: b.client, Clock: b.clock, Options: options}
}

func workbenchOptions() SessionOptions {
	return SessionOptions{
		OperatorImage:   "example.invalid/operator:test",
		DefaultRuntime:  api.RuntimeSpec{Image: "example.invalid/agent:test", Command: []string{"agent", "--acp"}},
		PullPolicy:      corev1.PullIfNotPresent,
		MaxPerNamespace: 3,
		StartTimeout:    5 * time.Minute,
		Random:          rand.Reader,
		Gateway: GatewayOptions{
			URL: "https://gateway.example.invalid/api/v1", CA: func() []byte { return []byte("certificates") },
			Namespace: "axiom-system", PodLabels: map[string]string{"app": "gateway"}, Port: 8443,
		},
	}
}

// get reads an object anew.
func get[T client.Object](b *bench, object T) T {
	b.t.Helper()
	if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(object), object); err != nil {
		b.t.Fatalf("read %s: %v", object.GetName(), err)
	}
	return object
}

// exists tells whether an object is there.
func exists(b *bench, object client.Object) bool {
	b.t.Helper()
	err := b.client.Get(b.ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatalf("read %s: %v", object.GetName(), err)
	}
	return err == nil
}

// settleDown reconciles all that there is until nobody writes any more.
func (b *bench) settleDown() {
	b.t.Helper()
	for range 20 {
		before := len(b.writes)
		b.pass()
		if len(b.writes) == before {
			return
		}
	}
	b.t.Fatalf("still writing after 20 passes: %q", b.writes[max(0, len(b.writes)-10):])
}

// pass reconciles every object once.
func (b *bench) pass() {
	b.t.Helper()
	comps, found, sessions := &api.CompositionList{}, &api.TurnList{}, &api.AgentSessionList{}
	for _, list := range []client.ObjectList{comps, found, sessions} {
		if err := b.client.List(b.ctx, list); err != nil {
			b.t.Fatal(err)
		}
	}
	for i := range comps.Items {
		reconcileOne(b, b.compositions(), &comps.Items[i])
	}
	for i := range found.Items {
		reconcileOne(b, b.turns(), &found.Items[i])
	}
	for i := range sessions.Items {
		reconcileOne(b, b.sessions(), &sessions.Items[i])
	}
}

// reconcileOne gives the stored object to its reconciler.
func reconcileOne[T client.Object](b *bench, r reconcile.ObjectReconciler[T], object T) time.Duration {
	b.t.Helper()
	if !exists(b, object) {
		return 0
	}
	result, err := r.Reconcile(b.ctx, object)
	if err != nil {
		b.t.Fatalf("reconcile %s: %v", object.GetName(), err)
	}
	return result.RequeueAfter
}

// change updates an object's main part and raises its generation, as the API
// server does.
func change[T client.Object](b *bench, object T, how func(T)) {
	b.t.Helper()
	get(b, object)
	how(object)
	object.SetGeneration(object.GetGeneration() + 1)
	if err := b.client.Update(b.ctx, object); err != nil {
		b.t.Fatal(err)
	}
}

// note updates an object's status.
func note[T client.Object](b *bench, object T, how func(T)) {
	b.t.Helper()
	get(b, object)
	how(object)
	if err := b.client.Status().Update(b.ctx, object); err != nil {
		b.t.Fatal(err)
	}
}

// draft is a composition with the blank workflow.
func draft(name string, how ...func(*api.Composition)) *api.Composition {
	comp := &api.Composition{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: teamA, UID: types.UID("uid-of-" + name), Generation: 1}}
	comp.Spec.Workflow = rawOf(workflow.Blank(name))
	comp.Spec.RevisionHistoryLimit = 20
	for _, f := range how {
		f(comp)
	}
	return comp
}

// message is a turn of a composition.
func message(name, composition string, how ...func(*api.Turn)) *api.Turn {
	turn := &api.Turn{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: teamA, UID: types.UID("uid-of-" + name), Generation: 1,
		CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{api.AnnotationRequestedBy: "rita"},
	}}
	turn.Spec = api.TurnSpec{CompositionRef: &api.LocalRef{Name: composition}, Message: "Do it."}
	for _, f := range how {
		f(turn)
	}
	return turn
}

func inState(state api.TurnPhase) func(*api.Turn) {
	return func(turn *api.Turn) { turn.Status.State = state }
}

func rawOf(value any) *runtime.RawExtension {
	data, err := json.Marshal(value)
	utilruntime.Must(err)
	return &runtime.RawExtension{Raw: data}
}

// rename is a change set's operation on a blank workflow.
func rename(node, name string) map[string]any {
	return map[string]any{"op": "updateNode", "id": node, "patch": map[string]any{"name": name}}
}

// proposes plays the gateway: the agent's change set enters the turn.
func (b *bench) proposes(turn *api.Turn, ops ...any) {
	b.t.Helper()
	get(b, turn)
	store := content.Store{Client: b.client}
	data, err := store.Get(b.ctx, turn.Namespace, turn.Status.Base.Digest)
	if err != nil {
		b.t.Fatal(err)
	}
	doc, err := jsonvalue.Decode(data)
	if err != nil {
		b.t.Fatal(err)
	}
	working := doc.(map[string]any)
	for _, accepted := range turn.Status.ChangeSets {
		value, _ := jsonvalue.Decode(accepted.Content.Raw)
		working, _ = changeset.Apply(working, value.(map[string]any)["ops"])
	}
	set := map[string]any{
		"id": fmt.Sprintf("cs-%d", len(turn.Status.ChangeSets)+1), "baseRevision": turn.Status.WorkingRevision,
		"author": api.AuthorWorkbench, "summary": "", "ops": ops,
	}
	_, revision, rejection := changeset.ApplyChecked(working, set)
	if rejection != nil {
		b.t.Fatal(rejection)
	}
	turn.Status.ChangeSets = append(turn.Status.ChangeSets, api.AcceptedChangeSet{
		ID: set["id"].(string), Ops: int32(len(ops)), Revision: revision, Content: rawOf(set),
	})
	turn.Status.WorkingRevision = revision
	if err := b.client.Status().Update(b.ctx, turn); err != nil {
		b.t.Fatal(err)
	}
}

// agentOf is the session of a composition.
func agentOf(composition string) *api.AgentSession {
	return &api.AgentSession{ObjectMeta: metav1.ObjectMeta{Name: composition + "-agent", Namespace: teamA}}
}

// podOf is the session's live pod.
func podOf(session *api.AgentSession) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: attemptName(session), Namespace: session.Namespace}}
}

// delivers plays the gateway: the agent is ready and has the prompt.
func (b *bench) delivers(session *api.AgentSession) {
	b.t.Helper()
	note(b, session, func(s *api.AgentSession) {
		s.Status.ReadyAttempt = s.Status.Attempt
		s.Status.Prompt.State, s.Status.Prompt.Attempt = api.PromptDelivered, s.Status.Attempt
		s.Status.LastActivityAt = timeOf(b.clock.Now())
	})
}

// reports plays the gateway: the prompt has its result.
func (b *bench) reports(session *api.AgentSession, result api.PromptResult) {
	b.t.Helper()
	note(b, session, func(s *api.AgentSession) {
		s.Status.Prompt.State, s.Status.Prompt.Result = api.PromptDone, &result
	})
}

// loses takes the session's pod away.
func (b *bench) loses(session *api.AgentSession) {
	b.t.Helper()
	if err := b.client.Delete(b.ctx, podOf(get(b, session))); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) advance(d time.Duration) {
	b.clock.SetTime(b.clock.Now().Add(d))
}

// revisionOf is the content revision of a workflow.
func revisionOf(t *testing.T, doc map[string]any) string {
	t.Helper()
	revision, err := changeset.Revision(doc)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// json2 is a value as a JSON tree and as text.
func json2(t *testing.T, value any) (any, string) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := jsonvalue.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return tree, string(data)
}
