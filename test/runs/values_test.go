package runs

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A status", func() {
	It("stays below its limit with a hundred branches of large inputs", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		const branches = 99 // one more would pass the limit of moves in a step
		w.compose("wide", wide(branches), "")
		values := []string{fmt.Sprintf(`"text":%q`, strings.Repeat("t", 3900))}
		for i := range 60 {
			values = append(values, fmt.Sprintf(`"k%d":%q`, i, strings.Repeat("v", 4000)))
		}
		run := w.run("wide-1", "wide", inputs("{"+strings.Join(values, ",")+"}"))
		answer := fmt.Sprintf(`{"text":%q}`, strings.Repeat("a", 3900))
		for i := range branches {
			task := &api.HumanTask{}
			w.opens(run, fmt.Sprintf("ask%d#1", i), task)
			w.answer(task, answer)
			if i%20 == 0 {
				Expect(len(show(run.Status))).To(BeNumerically("<", 5<<20/4), "its size, as YAML")
			}
		}
		w.reaches(run, api.RunCompleted)
		Expect(w.history(run)).To(HaveLen(branches + 3))
	})
})

// wide asks many people at once.
func wide(branches int) string {
	var nodes, edges strings.Builder
	for i := range branches {
		fmt.Fprintf(&nodes, "- {id: ask%d, type: human-task, name: Ask, config: {inputs: {V: context.text}}}\n", i)
		fmt.Fprintf(&edges, "- {id: out%d, source: start, target: ask%d, priority: %d}\n- {id: in%d, source: ask%d, target: join}\n", i, i, i, i, i)
	}
	return "id: wide\nname: Wide\nnodes:\n- {id: start, type: start, name: Start}\n" + nodes.String() +
		"- {id: join, type: wait, name: Join, config: {duration: PT0S}}\n- {id: done, type: end, name: Done}\nedges:\n" + edges.String() +
		"- {id: last, source: join, target: done}\n"
}

var _ = Describe("What is kept outside of the status", func() {
	// runs a loop whose context has a large value.
	begun := func(ctx SpecContext) (w *world, run *api.WorkflowRun, task *api.HumanTask) {
		w = newWorld(ctx)
		w.operate(process{})
		w.compose("loop", loop, "")
		run = w.run("loop-1", "loop", inputs(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 5000))))
		task = &api.HumanTask{}
		w.opens(run, "ask#1", task)
		return w, run, task
	}
	valueOf := func(w *world, run *api.WorkflowRun) *corev1.ConfigMap {
		value := &corev1.ConfigMap{ObjectMeta: w.meta(run.Status.Instance.ContextRefs["text"].ConfigMap)}
		Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(value), value)).To(Succeed())
		return value
	}
	stalls := func(w *world, run *api.WorkflowRun) {
		Eventually(func() string { return reasonOf(w.fresh(run), api.ConditionStalled) }).WithTimeout(patience).Should(Equal(api.ReasonValueLost))
		Expect(run.Status.FinishedAt).To(BeNil())
	}

	It("stalls the run when it is lost, until it is back", func(ctx SpecContext) {
		w, run, task := begun(ctx)
		value := valueOf(w, run)
		Expect(admin.Delete(ctx, value)).To(Succeed())
		w.answer(task, `{"count":0}`)
		stalls(w, run)
		value.ResourceVersion, value.UID = "", ""
		Expect(admin.Create(ctx, value)).To(Succeed())
		Expect(w.touch(run)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(reasonOf(run, api.ConditionStalled)).To(Equal(api.ReasonNotStalled))
	})

	It("stalls the run when it is damaged, which can still be cancelled", func(ctx SpecContext) {
		w, run, task := begun(ctx)
		value := valueOf(w, run)
		Expect(admin.Delete(ctx, value)).To(Succeed())
		value.ResourceVersion, value.UID, value.BinaryData = "", "", map[string][]byte{"content": []byte(`"forged"`)}
		Expect(admin.Create(ctx, value)).To(Succeed())
		w.answer(task, `{"count":0}`)
		stalls(w, run)
		w.cancels(run)
		w.reaches(run, api.RunCancelled)
	})

	It("does not hold the run up when it is a page of its history", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate(process{})
		w.compose("loop", loop, "")
		run := w.run("loop-1", "loop", inputs(`{"text":"t"}`))
		task := &api.HumanTask{}
		i := 1
		for ; run.Status.History.Page == ""; i++ {
			w.opens(run, fmt.Sprintf("ask#%d", i), task)
			w.answer(task, `{"count":1}`)
			w.closes(run, fmt.Sprintf("ask#%d", i))
			task = &api.HumanTask{}
		}
		page := &corev1.ConfigMap{ObjectMeta: w.meta(run.Status.History.Page)}
		Expect(admin.Delete(ctx, page)).To(Succeed())
		next := fmt.Sprintf("ask#%d", i)
		w.opens(run, next, task)
		w.answer(task, `{"count":2}`)
		w.closes(run, next)
		w.cancels(run)
		w.reaches(run, api.RunCancelled)
	})
})
