package turns

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
)

const (
	failed    = "The AI turn ended with an error: "
	discarded = " Workflow changes from this turn were discarded; action type and tool changes were kept (use Undo AI turn to revert them)."
)

var _ = Describe("A turn", func() {
	var (
		w       *world
		comp    *api.Composition
		session *api.AgentSession
	)

	BeforeEach(func() {
		w = newWorld()
		comp = w.compose("triage")
		session = w.session(comp)
	})

	It("workbench 8: works once it is created, and its prompt starts with the context and ends with the message", func() {
		w.operate()
		turn := w.asks("t-1", comp, func(turn *api.Turn) {
			turn.Spec.Message = "  Keep\n\nme  "
			turn.Spec.Selection = &api.Selection{Nodes: []string{"end-1"}}
		})
		w.reaches(turn, api.TurnWorking)
		fresh(w, comp)
		Expect(comp.Status.TurnState).To(Equal(api.TurnStateWorking))
		Expect(comp.Status.CurrentTurn).To(Equal("t-1"))
		Expect(comp.Status.LastTurnStartedAt.Time).To(BeTemporally("==", w.clock.Now()))
		Expect(comp.Status.LastTurnGeneration).To(Equal(comp.Generation))
		Expect(comp.Status.Claim).To(HaveValue(Equal(api.Claim{
			Turn: "t-1", UID: string(turn.UID), BaseRevision: comp.Status.WorkflowRevision, BaseDigest: turn.Status.Base.Digest,
		})))
		Expect(turn.Status.BaseRevision).To(Equal(comp.Status.WorkflowRevision))
		Expect(turn.Status.WorkingRevision).To(Equal(comp.Status.WorkflowRevision))
		Expect(isTrue(turn.Status.Conditions, "Started")).To(BeTrue())
		Expect(turn.Annotations).To(HaveKeyWithValue(api.AnnotationRequestedBy, "bob"))
		w.hasPrompt(session, turn)
		Expect(session.Status.Prompt.Ref).To(Equal(*turn.Status.Prompt))
		Expect(w.told(turn)).To(Equal("[Workbench context]\nWorkflow content revision: " + turn.Status.BaseRevision +
			"\nThe user is looking at: nodes [end-1] edges []\n[End of workbench context]\n\n  Keep\n\nme  "))
		w.hears(comp, "TurnStarted", "turn t-1 started")
	})

	It("workbench 9: is refused while another works, and without a message", func() {
		w.operate()
		w.reaches(w.asks("t-1", comp), api.TurnWorking)
		err := bob.Create(w.ctx, w.turn("t-2", comp))
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("An AI turn is already running: t-1")))
		blank := w.turn("t-3", comp)
		blank.Spec.Message = " \n"
		err = bob.Create(w.ctx, blank)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("spec.message")))
	})

	It("workbench 9: is the only one of two at once that works", func() {
		w.rests0(comp)
		first, second := w.asks("t-1", comp), w.asks("t-2", comp)
		w.operate()
		states := map[api.TurnPhase]*api.Turn{}
		for _, turn := range []*api.Turn{first, second} {
			sees(w, turn, func(g Gomega, turn *api.Turn) {
				g.Expect(turn.Status.State).To(BeElementOf(api.TurnWorking, api.TurnRefused))
			})
			states[turn.Status.State] = turn
		}
		Expect(states).To(HaveLen(2))
		Expect(states[api.TurnRefused].Status.Detail).To(Equal("An AI turn is already running: " + states[api.TurnWorking].Name))
		Expect(fresh(w, comp).Status.CurrentTurn).To(Equal(states[api.TurnWorking].Name))
		w.hears(comp, "TurnRefused", "turn "+states[api.TurnRefused].Name+" was refused")
	})

	It("workbench 11: combines chained proposals and leaves the draft alone", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		w.works(turn, session, "First", "Second")
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, "t-1")
		var combined changeset.ChangeSet
		Expect(json.Unmarshal(turn.Status.ChangeSet.Raw, &combined)).To(Succeed())
		Expect(combined).To(Equal(changeset.ChangeSet{
			ID: "t-1", BaseRevision: turn.Status.BaseRevision, Author: "agent:axiom-workbench", Summary: "AI turn: 2 workflow change(s)",
			Ops: []any{renameTo("end-1", "First"), renameTo("end-1", "Second")},
		}))
		Expect(turn.Status.Diff).To(Equal("changed nodes: end-1"))
		Expect(turn.Status.Reply).To(Equal("Done."))
		Expect(nodeName(comp, "end-1")).To(Equal("End"))
		Expect(comp.Generation).To(Equal(int64(1)))
		_, revision, rejection := changeset.ApplyChecked(documentOf(comp), map[string]any{"baseRevision": combined.BaseRevision, "ops": combined.Ops})
		Expect(rejection).To(BeNil())
		Expect(turn.Status.ResultRevision).To(Equal(revision))
		w.hears(comp, "ChangeSetReady", "turn t-1 waits for a resolution")
	})

	It("keeps a large change set outside of its status", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		name := strings.Repeat("long ", 2000)
		w.works(turn, session, name)
		w.reaches(turn, api.TurnAwaitingResolution)
		Expect(turn.Status.ChangeSet).To(BeNil())
		Expect(turn.Status.ChangeSetRef).NotTo(BeNil())
		Expect(w.decides(turn, api.ResolutionAccepted)).To(Succeed())
		w.reaches(turn, api.TurnApplied)
		Expect(nodeName(fresh(w, comp), "end-1")).To(Equal(name))
	})

	It("completes when there is nothing to resolve", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		w.works(turn, session)
		w.reaches(turn, api.TurnCompleted)
		w.rests(comp, "")
		Expect(isTrue(turn.Status.Conditions, "Ready")).To(BeTrue())
		Expect(isTrue(turn.Status.Conditions, "AgentDone")).To(BeTrue())
	})

	It("fails with its agent, and says what became of the changes", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		w.proposes(turn, renameTo("end-1", "Lost"))
		w.ends(session, api.PromptResult{Outcome: api.OutcomeFailed, Detail: "The agent stopped: refusal"})
		w.reaches(turn, api.TurnFailed)
		w.rests(comp, "")
		Expect(turn.Status.Notices).To(Equal([]string{failed + "The agent stopped: refusal" + discarded}))
		Expect(turn.Status.Detail).To(Equal("The agent stopped: refusal"))
		Expect(turn.Status.ChangeSet).To(BeNil())
		Expect(nodeName(comp, "end-1")).To(Equal("End"))
		w.hears(comp, "TurnFailed", "turn t-1 failed")
		w.hears(comp, "AgentNotice", failed+"The agent stopped: refusal"+discarded)
	})

	It("keeps what was accepted when it is interrupted", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		w.proposes(turn, renameTo("end-1", "Kept"))
		Expect(bob.Patch(w.ctx, turn, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"interrupt":true}}`)))).To(Succeed())
		sees(w, session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.Prompt.Cancel).To(BeTrue()) })
		w.ends(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
		w.reaches(turn, api.TurnAwaitingResolution)
		w.rests(comp, "t-1")
	})

	It("fails when an agent ignores the interrupt, which costs it its pod", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.takes(session)
		pod := w.pod(session, 1)
		Expect(bob.Patch(w.ctx, turn, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"interrupt":true}}`)))).To(Succeed())
		sees(w, session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.Prompt.Cancel).To(BeTrue()) })
		w.advance(time.Minute, session)
		w.reaches(turn, api.TurnFailed)
		w.rests(comp, "")
		Expect(turn.Status.Detail).To(Equal("The agent did not stop when it was interrupted"))
		Eventually(func() bool { return w.isGone(pod) }).WithTimeout(patience).Should(BeTrue())
	})

	It("fails when its agent does not come up in five minutes", func() {
		w.operate()
		turn := w.asks("t-1", comp)
		w.reaches(turn, api.TurnWorking)
		w.pod(session, 1)
		w.advance(5*time.Minute, turn)
		w.reaches(turn, api.TurnFailed)
		w.rests(comp, "")
		Expect(turn.Status.Detail).To(HavePrefix("Could not start the workbench agent: the agent was not ready within 5m0s"))
	})

	It("workbench 54: tells its agent of a first turn without a workflow", func() {
		empty := w.compose("empty", func(comp *api.Composition) { comp.Spec.Workflow = nil })
		w.operate()
		turn := w.asks("t-1", empty)
		w.reaches(turn, api.TurnWorking)
		Expect(w.told(turn)).To(Equal("[Workbench context]\nNo workflow yet.\n[End of workbench context]\n\n" + turn.Spec.Message))
	})

	It("workbench 54: tells its agent what people edited meanwhile, and nothing of the rest", func() {
		w.changes(alice, comp, withTools("find-logs", "0"))

		w.operate()
		first := w.asks("t-1", comp)
		w.works(first, session)
		w.reaches(first, api.TurnCompleted)
		w.rests(comp, "")
		w.edits(alice, comp, "start-1", "Begin")
		w.rests(fresh(w, comp), "")
		second := w.asks("t-2", comp)
		w.reaches(second, api.TurnWorking)
		Expect(w.told(second)).To(Equal("[Workbench context]\nWorkflow content revision: " + second.Status.BaseRevision +
			"\n- workflow 'triage': edited by the user\n  changed nodes: start-1\n[End of workbench context]\n\n" + second.Spec.Message))
		Expect(second.Status.Number).To(Equal(int64(2)))
	})

	It("may be the second in one session, on the same pod", func() {
		w.operate()
		first := w.asks("t-1", comp)
		w.works(first, session)
		w.rests(comp, "")
		second := w.asks("t-2", comp)
		w.works(second, session, "Second")
		w.reaches(second, api.TurnAwaitingResolution)
		fresh(w, session)
		Expect(session.Status.Attempt).To(Equal(int32(1)))
		Expect(session.Status.Prompt.Sequence).To(Equal(int64(2)))
	})

	Describe("whose pod is lost", func() {
		var turn *api.Turn

		BeforeEach(func() {
			w.operate()
			turn = w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
		})

		It("is given to another pod if the agent had not taken it", func() {
			w.loses(w.pod(session, 1))
			w.pod(session, 2)
			Expect(session.Status.Prompt).To(HaveValue(And(HaveField("State", api.PromptQueued), HaveField("Restarts", int32(0)))))
			w.works(turn, session, "Done")
			w.reaches(turn, api.TurnAwaitingResolution)
			Expect(turn.Status.Restarts).To(BeZero())
		})

		It("is given to another pod once if the agent had done nothing", func() {
			for attempt := int32(1); attempt <= 2; attempt++ {
				w.takes(session)
				w.loses(w.pod(session, attempt))
				if attempt == 1 {
					w.pod(session, 2)
					sees(w, turn, func(g Gomega, turn *api.Turn) { g.Expect(turn.Status.Restarts).To(Equal(int32(1))) })
					Expect(turn.Status.State).To(Equal(api.TurnWorking))
				}
			}
			w.reaches(turn, api.TurnFailed)
			w.rests(comp, "")
			Expect(turn.Status.Detail).To(Equal("The agent pod was lost"))
		})

		It("fails if the agent had changed something", func() {
			w.takes(session)
			w.proposes(turn, renameTo("end-1", "Lost"))
			w.loses(w.pod(session, 1))
			w.reaches(turn, api.TurnFailed)
			w.rests(comp, "")
			Expect(turn.Status.Detail).To(Equal("The agent pod was lost"))
			Expect(turn.Status.Notices).To(Equal([]string{failed + "The agent pod was lost" + discarded}))
		})

		It("leaves a session that recovers", func() {
			w.takes(session)
			w.proposes(turn, renameTo("end-1", "Lost"))
			w.loses(w.pod(session, 1))
			w.rests(comp, "")
			next := w.asks("t-2", comp)
			w.works(next, session, "Found")
			w.reaches(next, api.TurnAwaitingResolution)
			Expect(fresh(w, session).Status.Attempt).To(Equal(int32(2)))
		})
	})

	Describe("that is deleted while it works", func() {
		It("workbench 28: frees the composition and stops the agent", func() {
			w.operate()
			turn := w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
			w.takes(session)
			Expect(bob.Delete(w.ctx, turn)).To(Succeed())
			w.rests(comp, "")
			sees(w, session, func(g Gomega, session *api.AgentSession) { g.Expect(session.Status.Prompt.Cancel).To(BeTrue()) })

			// The next one waits for the agent to be free.
			next := w.asks("t-2", comp)
			w.reaches(next, api.TurnWorking)
			w.ends(session, api.PromptResult{Outcome: api.OutcomeInterrupted})
			w.works(next, session, "Next")
			w.reaches(next, api.TurnAwaitingResolution)
		})

		It("has nothing in common with a later one of its name", func() {
			w.operate()
			turn := w.asks("t-1", comp)
			w.reaches(turn, api.TurnWorking)
			w.takes(session)
			w.ends(session, api.PromptResult{Outcome: api.OutcomeCompleted, Reply: "of the former"})
			w.reaches(turn, api.TurnCompleted)
			Expect(bob.Delete(w.ctx, turn)).To(Succeed())
			w.rests(comp, "")
			again := w.asks("t-1", comp)
			w.reaches(again, api.TurnWorking)
			w.hasPrompt(session, again)
			Expect(session.Status.Prompt).To(HaveValue(And(HaveField("Sequence", int64(2)), HaveField("State", api.PromptQueued))))
		})
	})

	It("workbench 28: goes with its composition, and so does all that it made", func() {
		w.rests0(comp)
		refused := w.asks("t-0", comp)
		turn := w.asks("t-1", comp)
		w.operate()
		for _, t := range []*api.Turn{refused, turn} {
			sees(w, t, func(g Gomega, t *api.Turn) {
				g.Expect(t.Status.State).To(BeElementOf(api.TurnWorking, api.TurnRefused))
			})
		}
		w.pod(session, 1)
		working := turn
		if turn.Status.State == api.TurnRefused {
			working = refused
		}
		w.works(working, session, strings.Repeat("long ", 2000))
		w.reaches(working, api.TurnAwaitingResolution)
		w.rests(comp, working.Name)

		// There is no garbage collector here; what it would do follows from who owns what.
		owned := map[types.UID]bool{comp.UID: true}
		var rest []string
		for range 5 {
			rest = nil
			for _, object := range w.everything() {
				isOwned := false
				for _, owner := range object.OwnerReferences {
					isOwned = isOwned || owned[owner.UID]
				}
				if isOwned {
					owned[object.UID] = true
				} else if object.UID != comp.UID {
					rest = append(rest, fmt.Sprintf("%s %s", object.Kind, object.Name))
				}
			}
		}
		Expect(rest).To(BeEmpty(), "objects that would be left")
		Expect(len(owned)).To(BeNumerically(">=", 10))
	})
})

// rests0 waits until the composition exists for a fresh operator; nobody
// observes it before.
func (w *world) rests0(comp *api.Composition) {
	GinkgoHelper()
	Expect(fresh(w, comp).Status.TurnState).To(BeEmpty())
}

func (w *world) isGone(object client.Object) bool {
	GinkgoHelper()
	err := admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	// There is no kubelet that would end what a grace period is given to.
	return err != nil || !object.GetDeletionTimestamp().IsZero()
}

// everything is all objects of the world that belong to somebody.
func (w *world) everything() []metav1.PartialObjectMetadata {
	GinkgoHelper()
	var all []metav1.PartialObjectMetadata
	for _, list := range []client.ObjectList{
		&api.CompositionList{}, &api.TurnList{}, &api.AgentSessionList{}, &corev1.PodList{}, &corev1.SecretList{},
		&corev1.ConfigMapList{}, &appsv1.ControllerRevisionList{}, &networkingv1.NetworkPolicyList{},
	} {
		kinds, _, err := env.Scheme.ObjectKinds(list)
		Expect(err).NotTo(HaveOccurred())
		metas := &metav1.PartialObjectMetadataList{}
		metas.SetGroupVersionKind(kinds[0])
		Expect(admin.List(w.ctx, metas, client.InNamespace(w.namespace))).To(Succeed())
		for _, item := range metas.Items {
			item.Kind = kinds[0].Kind
			if item.Name != "kube-root-ca.crt" {
				all = append(all, item)
			}
		}
	}
	return all
}
