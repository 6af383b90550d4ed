package supervised

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

var _ = Describe("Whatever happens to the operator, a supervised run", Label("crash"), func() {
	It("supervised 15, supervised 37: asks once, claims once, writes all of a fragment or nothing, and publishes once", func(ctx SpecContext) {
		explores(ctx, scenario(newWorld, true, publishesOnce), crash.Sampled(12), crash.Faults()...)
	}, NodeTimeout(time.Hour))

	It("supervised 14: takes every step once while two managers carry it", func(ctx SpecContext) {
		explores(ctx, scenario(newWorld, true, publishesOnce), 1, crash.Twins)
	}, NodeTimeout(10*time.Minute))
})

func explores(ctx context.Context, s crash.Scenario, every int, kinds ...crash.Kind) {
	GinkgoHelper()
	s.Kinds, s.Every = kinds, every
	out, err := crash.Explore(ctx, s)
	Expect(err).NotTo(HaveOccurred())
	Expect(out.Report()).To(BeEmpty())
	Expect(out.Struck).To(BeNumerically(">", out.Plays*3/4))
	AddReportEntry("explored", out.Plays)
}

// publishesOnce is a run that asks, is answered before it is resumed, and pushes.
func publishesOnce(w *world) {
	run := w.publishes("notes", "All is well.\n")
	w.answers(w.checkpoint(run), `{"proceed":true}`)
	before := activations(run)
	w.resumes(run)
	w.reaches(run, api.RunCompleted)
	Expect(activations(run)[:len(before)]).To(Equal(before))
	Expect(w.project.Git("rev-list", "--count", "main..agent/notes")).To(Equal("1"))
	Expect(w.project.Git("ls-tree", "-r", "--name-only", "agent/notes")).To(Equal("README.md\nnotes/today.md"))
	Expect(w.project.Git("show", "agent/notes:notes/today.md")).To(Equal("All is well."))
	Expect(string(run.Status.Outputs.Raw)).To(ContainSubstring(w.project.Head("agent/notes")))
}

// scenario makes worlds, or hubs, and tells their story while faults strike their
// operators. Where an operator is not alone, agents run on a node of the world.
func scenario[W interface{ self() *world }](make func(ctx context.Context) W, isAlone bool, tell func(w W)) crash.Scenario {
	var worlds sync.Map // namespace to W
	worldOf := func(namespace string) W {
		found, _ := worlds.Load(namespace)
		return found.(W)
	}
	s := crash.Scenario{
		Config: env.Operator,
		World: func(ctx context.Context) (string, error) {
			var w W
			if err := InterceptGomegaFailure(func() { w = make(ctx) }); err != nil {
				return "", err
			}
			worlds.Store(w.self().namespace, w)
			return w.self().namespace, nil
		},
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return process{w: worldOf(namespace).self(), isAlone: isAlone}.run(ctx, cfg)
		},
		Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
			w := worldOf(namespace)
			w.self().ctx = ctx
			return nil, InterceptGomegaFailure(func() { tell(w) })
		},
		Ending:    remains,
		Normalize: isSettled,
		Counts:    func(resource string) bool { return resource != "configmaps" }, // a request that was never committed may be evaluated anew
		Log:       func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	}
	if !isAlone {
		s.Others = func(ctx context.Context, namespace string) error {
			return worldOf(namespace).self().node(GinkgoT().TempDir()).Run(ctx)
		}
	}
	return s
}

// isSettled leaves out of a run by how many executions it came to its end, and
// whether an effect was performed or found done; and where its world's Git server is.
func isSettled(object map[string]any) {
	status, _ := object["status"].(map[string]any)
	if object["type"] != "*v1alpha1.WorkflowRun" || status == nil {
		return
	}
	delete(object, "spec")
	delete(status, "executions")
	delete(status, "outputs")
	forgetSizes(status)
	instance, _ := status["instance"].(map[string]any)
	values, _ := instance["context"].(map[string]any)
	pushed, _ := values["push"].(map[string]any)
	delete(pushed, "decision")
	history, _ := status["history"].(map[string]any)
	entries, _ := history["entries"].([]any)
	for _, entry := range entries {
		told, _ := entry.(map[string]any)
		delete(told, "receipt")
		delete(told, "input")
		delete(told, "output")
	}
}

// forgetSizes leaves out how large packs are: a commit names its parent, which is
// another one in each world, and ids are not equally well compressed.
func forgetSizes(status map[string]any) {
	held, _ := status["workspace"].(map[string]any)
	delete(held, "bytes")
	packs, _ := held["packs"].([]any)
	for _, pack := range packs {
		kept, _ := pack.(map[string]any)
		parts, _ := kept["parts"].([]any)
		for _, part := range parts {
			ref, _ := part.(map[string]any)
			delete(ref, "size")
		}
	}
}

// remains are the objects that people and the run made, but for retained values.
func remains(ctx context.Context, namespace string) ([]client.Object, error) {
	var objects []client.Object
	var errs []error
	for _, list := range []client.ObjectList{&api.WorkflowRunList{}, &api.HumanTaskList{}, &api.TurnList{}, &api.AgentSessionList{}} {
		errs = append(errs, admin.List(ctx, list, client.InNamespace(namespace)))
		_ = apimeta.EachListItem(list, func(object runtime.Object) error {
			objects = append(objects, object.(client.Object))
			return nil
		})
	}
	return objects, errors.Join(errs...)
}
