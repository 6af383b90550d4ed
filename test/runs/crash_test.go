package runs

import (
	"context"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

var _ = Describe("Whatever happens to the operator, a run", Label("crash"), func() {
	DescribeTable("comes to the same end, with one effect each",
		func(ctx SpecContext, tell func(w *world)) {
			out, err := crash.Explore(ctx, scenario(tell))
			Expect(err).NotTo(HaveOccurred())
			Expect(out.Report()).To(BeEmpty())
			Expect(out.Struck).To(BeNumerically(">", out.Plays*3/4))
			AddReportEntry("explored", out.Plays)
		},
		Entry("when it tries a script twice and asks a person", NodeTimeout(time.Hour), retriesAndAsks),
		Entry("when it is cancelled in the midst of two branches", NodeTimeout(time.Hour), isCancelled),
		Entry("when it waits for a time, for a resume request, and to be deleted", NodeTimeout(time.Hour), waitsAndResumes),
	)
})

// scenario tells a story of a namespace while faults strike its operator.
func scenario(tell func(w *world)) crash.Scenario {
	var worlds sync.Map // namespace to *world
	worldOf := func(namespace string) *world {
		found, _ := worlds.Load(namespace)
		return found.(*world)
	}
	return crash.Scenario{
		Config: env.Operator,
		World: func(ctx context.Context) (string, error) {
			w, err := makeWorld(ctx)
			if err != nil {
				return "", err
			}
			worlds.Store(w.namespace, w)
			return w.namespace, nil
		},
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return process{clock: worldOf(namespace).clock}.start(ctx, cfg, namespace)
		},
		Play: func(ctx context.Context, namespace string) ([]client.Object, error) {
			w := worldOf(namespace)
			w.ctx = ctx
			return nil, InterceptGomegaFailure(func() { tell(w) })
		},
		Ending: remains,
		Kinds:  crash.Faults(),
		Every:  crash.Sampled(6),
		Log:    func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	}
}

// remains are all objects that a run or the operator made.
func remains(ctx context.Context, namespace string) ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&api.WorkflowRunList{}, &api.HumanTaskList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
		&networkingv1.NetworkPolicyList{},
	} {
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		_ = apimeta.EachListItem(list, func(object runtime.Object) error {
			objects = append(objects, object.(client.Object))
			return nil
		})
	}
	return objects, nil
}

func retriesAndAsks(w *world) {
	w.compose("both", both, work)
	run := w.run("both-1", "both")
	pod := &corev1.Pod{}
	w.attempts(run, "work#1", 1, pod)
	Expect(w.reports(pod, `{"exitCode":2}`)).To(Succeed())
	w.awaits(run, "work#1", 2)
	w.advance(time.Minute, run)
	w.attempts(run, "work#1", 2, pod)
	Expect(w.reports(pod, `{"exitCode":0,"outputs":{"done":true}}`)).To(Succeed())
	w.closes(run, "work#1")
	task := &api.HumanTask{}
	w.opens(run, "ask#1", task)
	w.answer(task, `{"ok":true}`)
	w.reaches(run, api.RunCompleted)
	w.leavesNothing(run)
}

func isCancelled(w *world) {
	w.compose("both", both, work)
	run := w.run("both-1", "both")
	w.opens(run, "ask#1", &api.HumanTask{})
	w.attempts(run, "work#1", 1, &corev1.Pod{})
	w.cancels(run)
	w.reaches(run, api.RunCancelled)
	w.leavesNothing(run)
}

func waitsAndResumes(w *world) {
	w.compose("release", approval, "")
	run := w.run("release-1", "release", inputs(`{"ref":"`+strings.Repeat("r", 5000)+`"}`), explicitly)
	task := &api.HumanTask{}
	w.opens(run, "approve#1", task)
	w.reaches(run, api.RunSuspended)
	w.answer(task, `{"approved":true}`)
	w.saysWaiting(run, "approve#1; answered: approve#1")
	w.resumes(run, 1)
	w.reaches(run, api.RunCompleted)

	w.compose("pause", pause, "")
	short := w.run("pause-1", "pause", func(run *api.WorkflowRun) { run.Spec.TTLSecondsAfterFinished = new(int32(3600)) })
	w.opens(short, "rest#1", nil)
	w.advance(9*time.Hour, short)
	w.reaches(short, api.RunCompleted)
	w.advance(2*time.Hour, short)
	Eventually(w.isGone(short)).WithTimeout(patience).Should(BeTrue())
}
