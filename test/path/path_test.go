package path

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

// withOperator runs the operator while the story is told.
func withOperator(ctx context.Context, s story) []client.Object {
	GinkgoHelper()
	runCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- runOperator(runCtx, rest.CopyConfig(env.Operator), s.namespace) }()
	objects, err := s.walk(ctx)
	stop()
	Expect(err).NotTo(HaveOccurred())
	Expect(<-ended).To(Succeed())
	return objects
}

func newWorld(ctx context.Context) string {
	GinkgoHelper()
	namespace, err := makeWorld(ctx)
	Expect(err).NotTo(HaveOccurred())
	return namespace
}

// slowly makes the agent hang before it looks at anything, so that a test can
// reach it while it has done nothing yet.
func slowly(playbook string) string {
	return strings.Replace(playbook, "      steps:\n      - think:", "      steps:\n      - sleep: 5s\n      - think:", 1)
}

// tolerant lets the agent go on when its accepted proposal is answered as stale:
// the answer to the first sending was lost with the gateway, and a set that is
// sent twice is stale the second time.
func tolerant(playbook string) string {
	return strings.Replace(playbook, `expect: "^APPLIED"`+"\n          capture: {rev: 'New revision: (\\S+)'}", `expect: "^(APPLIED|REJECTED .stale)"`, 1)
}

var _ = Describe("the main path", func() {
	It("leads from a draft over a turn to a completed run", func(ctx SpecContext) {
		s := story{namespace: newWorld(ctx)}
		objects := withOperator(ctx, s)

		turn, run, comp := pick[*api.Turn](objects), pick[*api.WorkflowRun](objects), pick[*api.Composition](objects)
		Expect(turn.Status.Diff).To(Equal("added nodes: approve\nedges changed"))
		Expect(turn.Status.RejectedProposals).To(BeEquivalentTo(1))
		Expect(turn.Annotations).To(HaveKeyWithValue(api.AnnotationResolvedBy, "alice"))
		Expect(comp.Status.Items[0].LastAuthor).To(Equal(api.AuthorAI))
		Expect(run.Status.Outcome).To(Equal("patch"))
		var told []string
		for _, entry := range run.Status.History.Entries {
			told = append(told, entry.Activation+" "+entry.Outcome+" "+entry.By)
		}
		Expect(told).To(Equal([]string{"start-1#1 Completed ", "assess#1 Completed ", "approve#1 Completed alice", "patch#1 Completed "}))
		Expect(run.Status.History.Entries[2].Output.Raw).To(MatchJSON(`{"approved": true, "note": "done"}`))
	})

	It("delivers the prompt again when the agent's pod is killed before it changed anything", func(ctx SpecContext) {
		s := story{namespace: newWorld(ctx), playbook: slowly, whileWorking: func(ctx context.Context, s story) error {
			session := &api.AgentSession{}
			err := s.until(ctx, session, compositionName+"-agent", func() bool {
				return session.Status.Prompt != nil && session.Status.Prompt.State == api.PromptDelivered
			})
			if err == nil {
				Expect(s.node.Kill(compositionName + "-agent-1")).To(BeTrue())
			}
			return err
		}}
		objects := withOperator(ctx, s)

		Expect(pick[*api.Turn](objects).Status.Restarts).To(BeEquivalentTo(1))
		Expect(pick[*api.AgentSession](objects).Status.Attempt).To(BeEquivalentTo(2))
		Expect(pick[*api.WorkflowRun](objects).Status.Outcome).To(Equal("patch"))
	})

	It("ends the same, with one effect each, whatever happens to the operator", func(ctx SpecContext) {
		outcome, err := crash.Explore(ctx, crash.Scenario{
			Config: env.Operator,
			World:  makeWorld,
			Start:  runOperator,
			Others: func(ctx context.Context, namespace string) error { return nodeOf(namespace).Run(ctx) },
			Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
				return nil, story{namespace: namespace, playbook: tolerant}.acts(ctx)
			},
			Ending:    ending,
			Kinds:     crash.Faults(),
			Every:     crash.Sampled(9),
			Normalize: forgetChance,
			Log:       func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
		})
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Println(outcome.Report())
		Expect(outcome.Mismatches).To(BeEmpty(), "see the log for each")
		Expect(outcome.Writes).To(BeNumerically(">", 25), "the path should have been explored")
		// A process may come by with fewer writes than the undisturbed one; few do.
		Expect(outcome.Struck).To(BeNumerically(">=", outcome.Plays*3/4))
		AddReportEntry(fmt.Sprintf("%d writes, %d plays, struck in %d", outcome.Writes, outcome.Plays, outcome.Struck))
	}, SpecTimeout(crashTimeout))
})

// forgetChance takes away what depends on when a process was stopped, and on
// nothing that anybody decides on.
func forgetChance(object map[string]any) {
	if data, _ := object["data"].(map[string]any); data["token"] != nil {
		data["token"] = "<token>"
	}
	status, _ := object["status"].(map[string]any)
	// An answer that was lost is asked for again, and refused.
	delete(status, "rejectedProposals")
	delete(status, "usage")
	delete(status, "journal")
	if prompt, _ := status["prompt"].(map[string]any); prompt != nil {
		if result, _ := prompt["result"].(map[string]any); result != nil {
			delete(result, "usage")
		}
	}
}

func pick[T client.Object](objects []client.Object) T {
	GinkgoHelper()
	for _, object := range objects {
		if found, is := object.(T); is {
			return found
		}
	}
	Fail("no such object in the ending")
	panic("unreachable")
}
