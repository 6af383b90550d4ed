package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/edit"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const patience = 30 * time.Second

// world is a namespace with everybody in it but the operator. Its pods must be
// restricted.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakePassiveClock
	traffic   *traffic
}

// newWorld makes a namespace whose clock stands still until it is advanced. It
// lasts as long as the spec, wherever it is made.
func newWorld() *world {
	GinkgoHelper()
	ctx, end := context.WithCancel(context.Background())
	DeferCleanup(end)
	w, err := makeWorld(ctx)
	Expect(err).NotTo(HaveOccurred())
	return w
}

func makeWorld(ctx context.Context) (*world, error) {
	ns := testenv.Namespace("turns")
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if err := admin.Create(ctx, ns); err != nil {
		return nil, err
	}
	return &world{
		ctx: ctx, namespace: ns.Name, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)), traffic: &traffic{},
	}, nil
}

// operate starts the operator for the world and stops it with the spec, or when
// the returned function is called.
func (w *world) operate() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- process{clock: w.clock, traffic: w.traffic}.start(ctx, env.Operator, w.namespace) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(stop)
	return stop
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// compose has alice create a composition with the blank workflow.
func (w *world) compose(name string, how ...func(*api.Composition)) *api.Composition {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	comp.Spec.Workflow = rawOf(workflow.Blank(name))
	for _, f := range how {
		f(comp)
	}
	Expect(alice.Create(w.ctx, comp)).To(Succeed())
	return comp
}

// asks has bob create a turn.
func (w *world) asks(name string, comp *api.Composition, how ...func(*api.Turn)) *api.Turn {
	GinkgoHelper()
	turn := w.turn(name, comp)
	for _, f := range how {
		f(turn)
	}
	Expect(bob.Create(w.ctx, turn)).To(Succeed())
	return turn
}

func (w *world) turn(name string, comp *api.Composition) *api.Turn {
	turn := &api.Turn{ObjectMeta: w.meta(name)}
	turn.Spec = api.TurnSpec{CompositionRef: &api.LocalRef{Name: comp.Name}, Message: "Wait an hour before closing."}
	return turn
}

// fresh reads an object again.
func fresh[T client.Object](w *world, object T) T {
	GinkgoHelper()
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// sees waits until an object is as it should be.
func sees[T client.Object](w *world, object T, check func(g Gomega, object T)) T {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		check(g, object)
	}).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
	return object
}

// reaches waits until the turn is in a state.
func (w *world) reaches(turn *api.Turn, state api.TurnPhase) *api.Turn {
	GinkgoHelper()
	return sees(w, turn, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.State).To(Equal(state), "%s", show(turn.Status)) })
}

// rests waits until nobody works on the composition and the turn that waits is
// the named one.
func (w *world) rests(comp *api.Composition, pending string) {
	GinkgoHelper()
	sees(w, comp, func(g Gomega, comp *api.Composition) {
		g.Expect(comp.Status.TurnState).To(Equal(api.TurnStateIdle), "%s", show(comp.Status))
		g.Expect(comp.Status.CurrentTurn).To(BeEmpty())
		g.Expect(comp.Status.Claim).To(BeNil())
		g.Expect(comp.Status.PendingTurn).To(Equal(pending))
		g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation))
	})
}

// edits has somebody rename a node of the workflow.
func (w *world) edits(who person, comp *api.Composition, node, name string) {
	GinkgoHelper()
	w.changes(who, comp, func(comp *api.Composition) { rename(comp, node, name) })
}

func rename(comp *api.Composition, node, name string) {
	GinkgoHelper()
	result, rejection := changeset.Apply(documentOf(comp), []any{renameTo(node, name)})
	Expect(rejection).To(BeNil())
	comp.Spec.Workflow = rawOf(result)
}

// changes has somebody change a composition, whoever writes at the same time.
func (w *world) changes(who person, comp *api.Composition, how func(*api.Composition)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := &api.Composition{ObjectMeta: w.meta(comp.Name)}
		if err := who.Get(w.ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		how(now)
		// Whoever edits by hand sends what was read, the base revision with it.
		return who.Update(w.ctx, now)
	})).To(Succeed())
}

// decides has bob set a turn's resolution.
func (w *world) decides(turn *api.Turn, resolution api.Resolution) error {
	return w.resolves(bob, turn, resolution)
}

func (w *world) resolves(who person, turn *api.Turn, resolution api.Resolution) error {
	patch := fmt.Sprintf(`{"spec":{"resolution":%q}}`, resolution)
	return who.Patch(w.ctx, turn, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func inNamespace(w *world) client.ListOption { return client.InNamespace(w.namespace) }

// renameTo is an operation of a change set.
func renameTo(node, name string) map[string]any {
	return map[string]any{"op": "updateNode", "id": node, "patch": map[string]any{"name": name}}
}

// session is the agent's session of a composition.
func (w *world) session(comp *api.Composition) *api.AgentSession {
	return &api.AgentSession{ObjectMeta: w.meta(comp.Name + "-agent")}
}

// pod waits for the pod of the session's attempt.
func (w *world) pod(session *api.AgentSession, attempt int32) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: w.meta(fmt.Sprintf("%s-%d", session.Name, attempt))}
	sees(w, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Attempt).To(Equal(attempt), "%s", show(session.Status))
		g.Expect(session.Status.PodUID).NotTo(BeEmpty(), "%s", show(session.Status))
	})
	return fresh(w, pod)
}

// notes plays the gateway: it changes a session's status, and tries again when
// somebody else was faster.
func (w *world) notes(session *api.AgentSession, how func(*api.AgentSessionStatus)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := gateway.Get(w.ctx, client.ObjectKeyFromObject(session), session); err != nil {
			return err
		}
		how(&session.Status)
		return gateway.Status().Update(w.ctx, session)
	})).To(Succeed())
}

// takes plays the runner of a pod: its agent is ready, and has the prompt.
func (w *world) takes(session *api.AgentSession) {
	GinkgoHelper()
	sees(w, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.TokenHash).NotTo(BeEmpty(), "%s", show(session.Status))
		g.Expect(session.Status.PodUID).NotTo(BeEmpty())
		g.Expect(session.Status.Prompt).NotTo(BeNil())
		g.Expect(session.Status.Prompt.State).To(Equal(api.PromptQueued))
	})
	w.notes(session, w.deliver)
}

func (w *world) deliver(status *api.AgentSessionStatus) {
	now := metav1.NewTime(w.clock.Now())
	status.ReadyAttempt, status.LastActivityAt = status.Attempt, &now
	status.Prompt.State, status.Prompt.Attempt = api.PromptDelivered, status.Attempt
}

// ends plays the runner: the prompt has its result.
func (w *world) ends(session *api.AgentSession, result api.PromptResult) {
	GinkgoHelper()
	w.notes(session, func(status *api.AgentSessionStatus) {
		now := metav1.NewTime(w.clock.Now())
		status.Prompt.State, status.Prompt.Result, status.LastActivityAt = api.PromptDone, &result, &now
	})
}

// proposes plays the gateway: a change set of the agent enters the turn, which
// admission checks.
func (w *world) proposes(turn *api.Turn, ops ...any) {
	GinkgoHelper()
	Expect(w.tryPropose(turn, ops...)).To(Succeed())
}

func (w *world) tryPropose(turn *api.Turn, ops ...any) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := gateway.Get(w.ctx, client.ObjectKeyFromObject(turn), turn); err != nil {
			return err
		}
		working, err := turns.Working(w.ctx, content.Store{Client: gateway}, turn)
		if err != nil {
			return err
		}
		set := map[string]any{
			"id": fmt.Sprintf("cs-%d", len(turn.Status.ChangeSets)+1), "baseRevision": turn.Status.WorkingRevision,
			"author": api.AuthorWorkbench, "summary": "", "ops": ops,
		}
		_, revision, rejection := changeset.ApplyChecked(working, set)
		if rejection != nil {
			return fmt.Errorf("rejected: %s", rejection)
		}
		turn.Status.ChangeSets = append(turn.Status.ChangeSets, api.AcceptedChangeSet{
			ID: set["id"].(string), Ops: int32(len(ops)), Revision: revision, Content: rawOf(set),
		})
		turn.Status.WorkingRevision = revision
		return gateway.Status().Update(w.ctx, turn)
	})
}

// upserts plays the gateway: the agent writes an item, or removes it if there
// is no value.
func (w *world) upserts(turn *api.Turn, item turns.Item, value any) {
	GinkgoHelper()
	w.writes(turn, item, value, nil)
}

// writes is an upsert that ends early if interrupted says so: after the intent,
// then after the draft was written.
func (w *world) writes(turn *api.Turn, item turns.Item, value any, interrupted func(step int) bool) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		w.tryWrite(g, turn, item, value, interrupted)
	}).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
}

func (w *world) tryWrite(g Gomega, turn *api.Turn, item turns.Item, value any, interrupted func(step int) bool) {
	ends := func(step int) bool { return interrupted != nil && interrupted(step) }
	comp := &api.Composition{ObjectMeta: w.meta(turn.Spec.CompositionRef.Name)}
	g.Expect(gateway.Get(w.ctx, client.ObjectKeyFromObject(comp), comp)).To(Succeed())
	g.Expect(gateway.Get(w.ctx, client.ObjectKeyFromObject(turn), turn)).To(Succeed())
	g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation), "what is replaced has its snapshot")
	write := turns.Write{Item: item, Live: w.live(g, turn, comp, item), Staged: turn.Status.ItemPolicy == api.ItemStaged}
	if value != nil {
		write.After = w.keeps(g, turn, item, value)
	}
	g.Expect(turns.Intend(&turn.Status, write)).To(Succeed())
	g.Expect(gateway.Status().Update(w.ctx, turn)).To(Succeed())
	if write.Staged || ends(1) {
		return
	}
	g.Expect(edit.Write(w.ctx, gateway, comp, turns.Edits{
		Mark: turns.MarkItem(turn, comp.Generation), By: turn.Annotations[api.AnnotationRequestedBy], Items: []turns.Edit{{Item: item, Value: value}},
	})).To(Succeed())
	if ends(2) {
		return
	}
	w.confirms(g, turn, item)
}

func (w *world) confirms(g Gomega, turn *api.Turn, item turns.Item) {
	g.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := gateway.Get(w.ctx, client.ObjectKeyFromObject(turn), turn); err != nil {
			return err
		}
		turns.Confirm(&turn.Status, item)
		return gateway.Status().Update(w.ctx, turn)
	})).To(Succeed())
}

// live stores what the draft has of an item for the turn, nil for nothing.
func (w *world) live(g Gomega, turn *api.Turn, comp *api.Composition, item turns.Item) *api.ItemContent {
	live, err := turns.Live(comp, item)
	g.Expect(err).NotTo(HaveOccurred())
	if live == nil {
		return nil
	}
	ref, err := content.Store{Client: gateway}.Put(w.ctx, turn, live.Data)
	g.Expect(err).NotTo(HaveOccurred())
	return &api.ItemContent{Revision: live.Revision, Digest: ref.Digest}
}

func (w *world) keeps(g Gomega, turn *api.Turn, item turns.Item, value any) *api.ItemContent {
	found, err := turns.ContentOf(item.Type, value)
	g.Expect(err).NotTo(HaveOccurred())
	ref, err := content.Store{Client: gateway}.Put(w.ctx, turn, found.Data)
	g.Expect(err).NotTo(HaveOccurred())
	return &api.ItemContent{Revision: found.Revision, Digest: ref.Digest}
}

func toolItem(name string) turns.Item { return turns.Item{Type: api.ItemTool, Name: name} }

// toolOf is a tool whose script tells it from others.
func toolOf(name, script string) *api.NamedTool {
	return &api.NamedTool{Name: name, ToolSpec: api.ToolSpec{Description: "A tool", ScriptTemplate: script}}
}

// scripts are a draft's tools in short.
func scripts(comp *api.Composition) string {
	var found []string
	for _, tool := range comp.Spec.Tools {
		found = append(found, tool.Name+"="+tool.ScriptTemplate)
	}
	return strings.Join(found, " ")
}

// withTools gives a draft tools, as names and scripts.
func withTools(pairs ...string) func(*api.Composition) {
	return func(comp *api.Composition) {
		for i := 0; i < len(pairs); i += 2 {
			comp.Spec.Tools = append(comp.Spec.Tools, *toolOf(pairs[i], pairs[i+1]))
		}
	}
}

// undoes has somebody ask for a turn's undo.
func (w *world) undoes(who person, turn *api.Turn) error {
	return who.Patch(w.ctx, turn, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"undo":true}}`)))
}

// works plays an agent that makes one change per name to the end node, and is
// done.
func (w *world) works(turn *api.Turn, session *api.AgentSession, names ...string) {
	GinkgoHelper()
	w.reaches(turn, api.TurnWorking)
	w.hasPrompt(session, turn)
	if fresh(w, session).Status.Prompt.State == api.PromptQueued {
		w.takes(session)
	}
	for _, name := range names {
		w.proposes(turn, renameTo("end-1", name))
	}
	w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "Done."})
}

// hasPrompt waits until the session's prompt is the turn's.
func (w *world) hasPrompt(session *api.AgentSession, turn *api.Turn) {
	GinkgoHelper()
	sees(w, session, func(g Gomega, session *api.AgentSession) {
		g.Expect(session.Status.Prompt).NotTo(BeNil())
		g.Expect(session.Status.Prompt.TurnUID).To(Equal(string(turn.UID)))
	})
}

// fails plays the kubelet: the pod's agent has ended with an exit code.
func (w *world) fails(pod *corev1.Pod) {
	GinkgoHelper()
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "agent", Image: "i", ImageID: "i",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"}},
	}}
	Expect(admin.Status().Update(w.ctx, pod)).To(Succeed())
}

// told is what the turn's agent gets to read.
func (w *world) told(turn *api.Turn) string {
	GinkgoHelper()
	text, err := content.Store{Client: gateway}.Get(w.ctx, w.namespace, turn.Status.Prompt.Digest)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// loses plays the node: the pod is gone.
func (w *world) loses(pod *corev1.Pod) {
	GinkgoHelper()
	Expect(admin.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
}

// advance moves the clock on and makes the operator look at the objects.
func (w *world) advance(d time.Duration, objects ...client.Object) {
	GinkgoHelper()
	w.clock.SetTime(w.clock.Now().Add(d))
	for _, object := range objects {
		w.touch(object)
	}
}

var touches int

func (w *world) touch(object client.Object) {
	GinkgoHelper()
	touches++
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"test/looked-at":"%d"}}}`, touches)
	Expect(admin.Patch(w.ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// entry is a line of a composition's history: who wrote what a generation has.
type entry struct {
	generation int64
	item       string
	author     string
}

// history is what each snapshot has that is new in it.
func (w *world) history(comp *api.Composition) []entry {
	GinkgoHelper()
	list := &appsv1.ControllerRevisionList{}
	Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{api.LabelComposition: comp.Name})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var entries []entry
	for _, object := range list.Items {
		var data struct {
			Generation int64
			Items      []struct {
				Type, Name, Author, Username, Turn string
				Generation                         int64
			}
		}
		Expect(json.Unmarshal(object.Data.Raw, &data)).To(Succeed())
		for _, item := range data.Items {
			if item.Generation == data.Generation {
				entries = append(entries, entry{
					data.Generation, item.Type + "/" + item.Name, strings.Join(strings.Fields(item.Author+" "+item.Turn+" "+item.Username), " "),
				})
			}
		}
	}
	return entries
}

// hears waits for an Event on the composition.
func (w *world) hears(comp *api.Composition, reason, note string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		var heard []string
		for _, event := range list.Items {
			if event.Regarding.Kind == "Composition" && event.Regarding.Name == comp.Name {
				heard = append(heard, event.Reason+": "+event.Note)
			}
		}
		g.Expect(heard).To(ContainElement(reason + ": " + note))
	}).WithTimeout(patience).Should(Succeed())
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return apimeta.IsStatusConditionTrue(conditions, kind)
}

func reasonOf(conditions []metav1.Condition, kind string) string {
	if found := apimeta.FindStatusCondition(conditions, kind); found != nil {
		return found.Reason
	}
	return ""
}

func documentOf(comp *api.Composition) map[string]any {
	GinkgoHelper()
	doc, err := turns.Document(comp.Spec.Workflow)
	Expect(err).NotTo(HaveOccurred())
	return doc
}

// nodeName is what a node of the draft is called.
func nodeName(comp *api.Composition, id string) string {
	GinkgoHelper()
	for _, node := range documentOf(comp)["nodes"].([]any) {
		if node := node.(map[string]any); node["id"] == id {
			return node["name"].(string)
		}
	}
	return ""
}

func rawOf(value any) *runtime.RawExtension {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return &runtime.RawExtension{Raw: data}
}

func show(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
