package actions

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func answer(text string) client.Patch {
	return merge(fmt.Sprintf(`{"status":{"answer":%s}}`, text))
}

var _ = Describe("A person who is asked", func() {
	It("finds the question in an inbox, and what runs wait for beside it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.compose("ask", question, "")
		run, task := w.run("ask-1", "ask"), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		w.reaches(run, api.RunWaiting)
		apply(w, &api.HumanTask{}, "metadata: {name: lunch}\nspec: {humanContext: {title: Lunch}, assignees: {users: [ada, bob]}}\n")
		inbox := func() [][]string {
			GinkgoHelper()
			out, err := ada.kubectl.Run(ctx, "", "-n", w.namespace, "get", "ht", "--field-selector", "status.phase=AwaitingInput")
			Expect(err).NotTo(HaveOccurred(), out)
			return table(out)
		}
		Expect(inbox()).To(ConsistOf(
			HaveExactElements("NAME", "TITLE", "PHASE", "RUN", "USERS", "GROUPS", "EXPIRES", "AFTER", "ANSWERED", "BY", "AGE"),
			HaveExactElements(task.Name, "Well?", "AwaitingInput", "ask-1", `["managers"]`, "P2D", Not(BeEmpty())),
			HaveExactElements("lunch", "Lunch", "AwaitingInput", `["ada","bob"]`, Not(BeEmpty())),
		))
		runs := func() [][]string {
			GinkgoHelper()
			out, err := ada.kubectl.Run(ctx, "", "-n", w.namespace, "get", "wfr")
			Expect(err).NotTo(HaveOccurred(), out)
			return table(out)
		}
		Expect(runs()).To(ConsistOf(
			HaveExactElements("NAME", "COMPOSITION", "PHASE", "NODE", "WAITS", "FOR", "OUTCOME", "COMMIT", "AGE"),
			HaveExactElements("ask-1", "ask", "Waiting", "ask", "HumanTask", Not(BeEmpty())),
		))

		By("answering from there")
		out, err := ada.kubectl.Run(ctx, "", "-n", w.namespace, "patch", "ht", task.Name, "--subresource=status", "--type=merge", "-p", `{"status":{"answer":{"ok":"true"}}}`)
		Expect(err).NotTo(HaveOccurred(), out)
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "ask#1")).To(MatchJSON(`{"ok":true}`))
		Expect(run.Status.History.Entries[1].By).To(Equal("ada"))
		Eventually(inbox).Should(HaveLen(2), "the answered one is no longer in it")
		Expect(runs()).To(ContainElement(HaveExactElements("ask-1", "ask", "Completed", "answered", Not(BeEmpty()))))
	})

	It("must be one of those who are asked", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.compose("ask", question, "")
		w.compose("nobody", strings.Replace(question, "assignees: {groups: [managers]}", "assignees: {}", 1), "")
		run, task := w.run("ask-1", "ask"), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		Expect(bob.Status().Patch(ctx, task, answer(`{"ok":true}`))).To(MatchError(ContainSubstring(`user "bob" is not among the assignees`)))
		Expect(ada.Status().Patch(ctx, task, answer(`{"ok":true}`))).To(Succeed())
		w.reaches(run, api.RunCompleted)

		By("asking nobody at all, which nobody can answer")
		run, task = w.run("nobody-1", "nobody"), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		for _, who := range []person{ada, bob, admin} {
			err := who.Status().Patch(ctx, task, answer(`{"ok":true}`))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}
	})

	It("may decline, or let the time pass", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.compose("ask", question, "")
		run, task := w.run("declined", "ask"), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		Expect(ada.Status().Patch(ctx, task, merge(`{"status":{"failure":{"reason":"Not my business"}}}`))).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("declined"))
		Expect(failureOf(run, "ask#1").Code).To(Equal("TASK_FAILED"))
		sees(w, task, func(g Gomega, task *api.HumanTask) { g.Expect(task.Status.Phase).To(Equal(api.TaskFailed)) })

		run, task = w.run("lapsed", "ask"), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		w.advance(48*time.Hour+time.Second, task)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("lapsed"))
		sees(w, task, func(g Gomega, task *api.HumanTask) {
			g.Expect(task.Status.Phase).To(Equal(api.TaskExpired))
			g.Expect(task.Status.Closed.Reason).To(Equal(api.CloseExpired))
		})
	})

	It("may be asked by another person, without any run", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		task := apply(w, &api.HumanTask{}, `
metadata: {name: lunch}
spec:
  humanContext: {title: "Lunch?"}
  responseSchema: {type: object, properties: {at: {type: string, enum: [noon, one]}}, required: [at], additionalProperties: false}
  assignees: {users: [ada]}
  expiresAfter: PT1H
`)
		Expect(ada.Status().Patch(ctx, task, answer(`{"at":"two"}`))).To(MatchError(ContainSubstring("at: enum")))
		Expect(ada.Status().Patch(ctx, task, answer(`{"at":"noon"}`))).To(Succeed())
		sees(w, task, func(g Gomega, task *api.HumanTask) {
			g.Expect(task.Status.Phase).To(Equal(api.TaskCompleted))
			g.Expect(task.Status.AnsweredBy.Username).To(Equal("ada"))
		})
		late := apply(w, &api.HumanTask{}, "metadata: {name: late}\nspec: {humanContext: {title: T}, expiresAfter: PT1H}\n")
		w.advance(time.Hour+time.Minute, late)
		sees(w, late, func(g Gomega, late *api.HumanTask) { g.Expect(late.Status.Phase).To(Equal(api.TaskExpired)) })
	})

	// What admission accepts the run can use, and what it refuses changes nothing.
	It("is told at once what the run could not use", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 12))
		accepted, refused := 0, 0
		for form, outputs := range map[string]string{
			"types":   `outputs: [{name: num, type: number, required: true}, {name: b, type: boolean}, {name: o, type: object}, {name: s}]`,
			"choices": `outputs: [{name: num, widget: select, required: true, options: [{value: "1"}, {value: "true"}, {value: "x"}]}, {name: b, type: boolean, defaultValue: true}]`,
			"strict":  `responseSchema: {type: object, properties: {num: {type: [integer, "null"]}, b: {type: boolean}}, required: [num], additionalProperties: false}`,
			"loose":   `inputs: {}`,
			"scalar":  `responseSchema: {type: [number, string, array]}`,
		} {
			w.compose(form, fmt.Sprintf(again, outputs), "")
			run := w.run(form, form)
			for round := 1; round <= 5; round++ {
				task := &api.HumanTask{}
				w.opens(run, fmt.Sprintf("ask#%d", round), 0, task)
				given := ""
				for {
					given = randomAnswer(random)
					err := ada.Status().Patch(ctx, task, client.RawPatch("application/json-patch+json", fmt.Appendf(nil, `[{"op":"add","path":"/status/answer","value":%s}]`, given)))
					if err == nil {
						break
					}
					refused++
					Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", given, err)
				}
				accepted++
				sees(w, run, func(g Gomega, run *api.WorkflowRun) {
					g.Expect(branchOf(run, fmt.Sprintf("ask#%d", round))).To(BeNil())
				})
				Expect(run.Status.Phase).NotTo(Equal(api.RunFailed), "%s was accepted: %s", given, show(failureOf(run, fmt.Sprintf("ask#%d", round))))
			}
			Expect(bob.Patch(ctx, run, merge(`{"spec":{"cancel":true}}`))).To(Succeed())
			w.reaches(run, api.RunCancelled)
			w.leavesNothing(run)
		}
		GinkgoWriter.Printf("%d answers accepted, %d refused\n", accepted, refused)
		Expect(refused).To(BeNumerically(">", 20))
	})
})

// again asks the same thing for ever.
const again = `
id: again
name: Again
nodes:
- {id: start, type: start, name: Start}
- {id: ask, type: human-task, name: Ask, config: {description: D., %s}}
- {id: breathe, type: wait, name: Breathe, config: {duration: PT0S}}
- {id: done, type: end, name: Done}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: ask, target: breathe}
- {id: e3, source: breathe, target: ask, isDefault: true}
- {id: e4, source: breathe, target: done, condition: "false"}
`

// randomAnswer is JSON that may or may not suit a question.
func randomAnswer(random *rand.Rand) string {
	pool := []any{
		nil, "", " ", "1", "1.0", "1e2", "true", "TRUE", "x", "{}", `{"a":1}`, "[1]", "9007199254740993", 1, 1.5, true, false,
		[]any{},
		[]any{1},
		map[string]any{},
		map[string]any{"a": nil},
	}
	pick := func() any { return pool[random.IntN(len(pool))] }
	given := pool[1+random.IntN(len(pool)-1)] // null is no answer at all
	if random.IntN(6) > 0 {
		object := map[string]any{}
		for name, seldom := range map[string]int{"num": 2, "b": 2, "o": 5, "s": 5, "extra": 5} {
			if random.IntN(seldom) == 0 || name == "num" {
				object[name] = pick()
			}
		}
		given = object
	}
	text, err := json.Marshal(given)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
