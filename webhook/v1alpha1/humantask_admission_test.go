package v1alpha1_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var _ = Describe("A human task", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	Describe("at creation", func() {
		DescribeTable("is refused when", func(ctx SpecContext, change func(t *api.HumanTask), code int, parts ...string) {
			task := newTask(ns, "t")
			change(task)
			Expect(alice.Create(ctx, task, client.DryRunAll)).To(beRefused(code, parts...))
			Expect(alice.Create(ctx, task)).To(beRefused(code, parts...))
		},
			Entry("somebody claims that a run asks", func(t *api.HumanTask) {
				t.Spec.RunRef = &api.TaskRunRef{Name: "r", UID: "u", Activation: "a#1"}
			}, 403, "spec.runRef", "only the operator"),
			Entry("the title is blank", func(t *api.HumanTask) { t.Spec.HumanContext.Title = " " },
				422, "spec.humanContext.title", "must not be blank"),
			Entry("a reference is no web address", func(t *api.HumanTask) {
				t.Spec.HumanContext.References = []api.LabelledURL{{Label: "ok", URL: "https://example.com/x"}, {Label: "bad", URL: "javascript:alert(1)"}}
			}, 422, "spec.humanContext.references[1].url", "http or https"),
			Entry("two fields share a name", func(t *api.HumanTask) {
				t.Spec.Form.Fields = append(t.Spec.Form.Fields, api.FormField{Name: "approved"})
			}, 422, "spec.form.fields[2].name", "Duplicate value", "approved"),
			Entry("a field has a blank name", func(t *api.HumanTask) { t.Spec.Form.Fields[0].Name = " " },
				422, "spec.form.fields[0].name", "must not be blank"),
			Entry("the schema leads outside", func(t *api.HumanTask) {
				t.Spec.Form, t.Spec.ResponseSchema = nil, raw(`{"$ref":"https://example.com/schema.json"}`)
			}, 422, "spec.responseSchema", "refers to nothing outside itself"),
			Entry("the duration is none", func(t *api.HumanTask) { t.Spec.ExpiresAfter = "2d" }, 422, "spec.expiresAfter", "ISO 8601"),
			Entry("the duration is no time", func(t *api.HumanTask) { t.Spec.ExpiresAfter = "PT0S" }, 422, "spec.expiresAfter", "must be positive"),
		)

		It("may come from a run if the operator makes it", func(ctx SpecContext) {
			task := newTask(ns, "t")
			task.Spec.RunRef = &api.TaskRunRef{Name: "r", UID: "u", Activation: "a#1"}
			create(ctx, operator, task)
		})
	})

	It("stands as an open one from the moment it is made", func(ctx SpecContext) {
		task := create(ctx, alice, newTask(ns, "t"))
		reload(ctx, task)
		Expect(task.Status.Phase).To(Equal(api.TaskAwaitingInput))
		Expect(task.Status.ObservedGeneration).To(Equal(task.Generation))
		Expect(apimeta.FindStatusCondition(task.Status.Conditions, api.ConditionReady).Reason).To(Equal(string(api.TaskAwaitingInput)))
		Expect(bob.run(ctx, "", "-n", ns, "get", "ht", "--field-selector=status.phase=AwaitingInput")).To(ContainSubstring("AwaitingInput"))
	})

	It("asks the same question for ever, also where the schema does not look", func(ctx SpecContext) {
		task := newTask(ns, "t")
		task.Spec.Form, task.Spec.ResponseSchema = nil, raw(`{"type":"object"}`)
		create(ctx, alice, task)
		for _, as := range []person{alice, operator} {
			By("another keyword, which a comparison in the schema does not notice")
			Expect(as.Patch(ctx, task, jsonPatch(`[{"op":"replace","path":"/spec/responseSchema","value":{"minLength":3}}]`))).
				To(beRefused(422, "spec.responseSchema: Forbidden: must not change"))
			Expect(as.Patch(ctx, task, mergePatch(`{"spec":{"assignees":{"users":["x"]}}}`))).To(beRefused(422, "spec"))
			Expect(as.Patch(ctx, task, mergePatch(`{"metadata":{"labels":{"as":%q}}}`, as.name[:5]))).To(Succeed())
		}
	})

	Describe("an answer", func() {
		It("is kept as sent and stamped with who gave it and when", func(ctx SpecContext) {
			task := create(ctx, alice, newTask(ns, "t"))
			out := bob.run(ctx, "", "-n", ns, "patch", "ht", "t", "--subresource=status", "--type=merge",
				"-p", `{"status":{"answer":{"approved":"true","n":9007199254740993,"f":0.25,"x":{"y":["z",1]}},"answeredBy":{"username":"mallory"},"answeredAt":"2001-01-01T00:00:00Z"}}`)
			Expect(out).To(ContainSubstring("patched"))
			reload(ctx, task)
			Expect(string(task.Status.Answer.Raw)).To(Equal(`{"approved":"true","f":0.25,"n":9007199254740993,"x":{"y":["z",1]}}`))
			Expect(task.Status.AnsweredBy).To(Equal(&api.Answerer{Username: "bob", Groups: []string{"writers", "system:authenticated"}}))
			Expect(task.Status.AnsweredAt.Time).To(BeTemporally("==", now.Now()))

			By("saying how it stands now, which nobody has to come after to say")
			Expect(task.Status.Phase).To(Equal(api.TaskCompleted))
			Expect(task.Status.ObservedGeneration).To(Equal(task.Generation))
			ready := apimeta.FindStatusCondition(task.Status.Conditions, api.ConditionReady)
			Expect(ready.Status).To(Equal(metav1.ConditionTrue))
			Expect(ready.Message).To(Equal("answered by bob"))
			Expect(ready.LastTransitionTime.Time).To(BeTemporally("==", now.Now()))

			By("a second one")
			out = alice.fail(ctx, "", "-n", ns, "patch", "ht", "t", "--subresource=status", "--type=merge", "-p", `{"status":{"answer":{"approved":false}}}`)
			Expect(out).To(ContainSubstring("already answered by bob at " + now.Now().UTC().Format(time.RFC3339)))
			Expect(out).To(ContainSubstring("(Conflict)"))
			By("a failure instead")
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"failure":{"reason":"no"}}}`))).To(beRefused(409, "already answered by bob"))
			By("taking it back")
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":null}}`))).To(beRefused(409, "already answered by bob"))
			By("another integer beyond the doubles")
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":{"n":9007199254740992}}}`))).To(beRefused(409))
			By("the same again")
			Expect(alice.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":{"approved":"true"}}}`))).To(Succeed())
			Expect(task.Status.AnsweredBy.Username).To(Equal("bob"))
		})

		It("can be that it cannot be done", func(ctx SpecContext) {
			task := create(ctx, alice, newTask(ns, "t"))
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"failure":{"reason":" "}}}`))).To(beRefused(422, "status.failure.reason", "must not be blank"))
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"failure":{"reason":"wrong ref"}}}`))).To(Succeed())
			Expect(task.Status.AnsweredBy.Username).To(Equal("bob"))
			Expect(carol.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":{"approved":true}}}`))).To(beRefused(409, "already failed by bob"))
		})

		It("is one of the two", func(ctx SpecContext) {
			task := create(ctx, alice, newTask(ns, "t"))
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"failure":{"reason":"x"},"answer":{"approved":true}}}`))).
				To(beRefused(422, "exactly one of `answer` and `failure`"))
			Expect(bob.Status().Patch(ctx, task, jsonPatch(`[{"op":"add","path":"/status","value":{"answer":null}}]`))).
				To(Or(Succeed(), beRefused(422)))
			Expect(reload(ctx, task).Status.AnsweredBy).To(BeNil())
		})

		It("must suit the question, and what is wrong never shows what was sent", func(ctx SpecContext) {
			create(ctx, alice, newTask(ns, "t"))
			out := bob.fail(ctx, "", "-n", ns, "patch", "ht", "t", "--subresource=status", "--type=merge",
				"-p", `{"status":{"answer":{"approved":"secret-value"}}}`)
			Expect(out).To(ContainSubstring("approved: type"))
			Expect(out).NotTo(ContainSubstring("secret-value"))
			out = bob.fail(ctx, "", "-n", ns, "patch", "ht", "t", "--subresource=status", "--type=merge", "--dry-run=server",
				"-p", `{"status":{"answer":{"note":"secret-value"}}}`)
			Expect(out).To(ContainSubstring("approved: required"))
			Expect(out).NotTo(ContainSubstring("secret-value"))
		})

		It("lists at most twenty faults", func(ctx SpecContext) {
			task := newTask(ns, "t")
			task.Spec.Form.Fields = nil
			for i := range 25 {
				task.Spec.Form.Fields = append(task.Spec.Form.Fields, api.FormField{Name: fmt.Sprintf("f%02d", i), Required: true})
			}
			create(ctx, alice, task)
			err := bob.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":{}}}`))
			Expect(err).To(beRefused(422, "f00: required", "f19: required", "5 more"))
			Expect(err.Error()).NotTo(ContainSubstring("f20"))
		})

		It("has a limit", func(ctx SpecContext) {
			task := create(ctx, alice, newTask(ns, "t"))
			Expect(bob.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":{"approved":true,"x":%q}}}`, strings.Repeat("x", 64<<10)))).
				To(beRefused(422, "status.answer", "65560", "65536"))
		})

		It("is all that people write", func(ctx SpecContext) {
			task := create(ctx, alice, newTask(ns, "t"))
			for patch, member := range map[string]string{
				`{"status":{"phase":"Completed"}}`:                                                                                                   "status.phase",
				`{"status":{"answer":{"approved":true},"phase":"Completed"}}`:                                                                        "status.phase",
				`{"status":{"answer":{"approved":true},"observedGeneration":7}}`:                                                                     "status.observedGeneration",
				`{"status":{"closed":{"reason":"Expired","at":"2026-01-01T00:00:00Z"}}}`:                                                             "status.closed",
				`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"A","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`: "status.conditions",
			} {
				Expect(alice.Status().Patch(ctx, task, mergePatch("%s", patch))).To(beRefused(403, member), patch)
			}
			By("a stamp alone is dropped")
			Expect(alice.Status().Patch(ctx, task, mergePatch(`{"status":{"answeredBy":{"username":"mallory"}}}`))).To(Succeed())
			Expect(reload(ctx, task).Status.AnsweredBy).To(BeNil())
		})

		It("attack: is judged by the stored question, not by the one that comes along", func(ctx SpecContext) {
			task := newTask(ns, "t")
			task.Spec.Assignees = &api.Assignees{Users: []string{"alice"}}
			create(ctx, alice, task)
			forged := task.DeepCopy()
			forged.Spec.Assignees, forged.Spec.Form = nil, nil
			forged.Status.Answer = raw(`{"anything":1}`)
			Expect(bob.Status().Update(ctx, forged)).To(beRefused(403, `user "bob" is not among the assignees`))
		})

		DescribeTable("comes from those who are asked", func(ctx SpecContext, assignees *api.Assignees, want map[string]bool) {
			for i, as := range []person{alice, bob, carol} {
				task := newTask(ns, fmt.Sprintf("t%d", i))
				task.Spec.Assignees = assignees
				create(ctx, alice, task)
				err := as.Status().Patch(ctx, task, mergePatch(`{"status":{"answer":{"approved":true}}}`))
				if want[as.name] {
					Expect(err).NotTo(HaveOccurred(), as.name)
					continue
				}
				Expect(err).To(beRefused(403, fmt.Sprintf("user %q is not among the assignees", as.name)))
			}
		},
			Entry("nobody said who", nil, map[string]bool{"alice": true, "bob": true, "carol": true}),
			Entry("a user", &api.Assignees{Users: []string{"bob"}}, map[string]bool{"bob": true}),
			Entry("a group", &api.Assignees{Groups: []string{"reviewers"}}, map[string]bool{"carol": true}),
			Entry("either", &api.Assignees{Users: []string{"alice"}, Groups: []string{"reviewers"}}, map[string]bool{"alice": true, "carol": true}),
			Entry("nobody", &api.Assignees{}, map[string]bool{}),
		)

		It("comes in time", func(ctx SpecContext) {
			task := newTask(ns, "t")
			task.Spec.ExpiresAfter = "PT1H"
			create(ctx, alice, task)
			answer := mergePatch(`{"status":{"answer":{"approved":true}}}`)
			DeferCleanup(now.SetTime, now.Now())
			now.SetTime(task.CreationTimestamp.Add(time.Hour))
			Expect(bob.Status().Patch(ctx, task, answer)).To(beRefused(409, "the task has expired", task.CreationTimestamp.Add(time.Hour).UTC().Format(time.RFC3339)))
			now.SetTime(task.CreationTimestamp.Add(time.Hour - time.Second))
			Expect(bob.Status().Patch(ctx, task, answer)).To(Succeed())
		})

		It("comes while the task is open", func(ctx SpecContext) {
			answer := mergePatch(`{"status":{"answer":{"approved":true}}}`)
			task := create(ctx, alice, newTask(ns, "closed"))
			Expect(operator.Status().Patch(ctx, task, mergePatch(`{"status":{"phase":"Cancelled","closed":{"reason":"Cancelled","at":"2026-01-01T00:00:00Z"}}}`))).To(Succeed())
			Expect(bob.Status().Patch(ctx, task, answer)).To(beRefused(409, "the task is closed: Cancelled"))

			task = newTask(ns, "going")
			task.Finalizers = []string{"axiom.apitomy.io/test"}
			create(ctx, alice, task)
			Expect(alice.Delete(ctx, task)).To(Succeed())
			Expect(bob.Status().Patch(ctx, task, answer)).To(beRefused(409, "the task is being deleted"))
			Expect(operator.Patch(ctx, task, mergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		})
	})

	Describe("the operator", func() {
		It("writes all but what people and admission write", func(ctx SpecContext) {
			task := create(ctx, alice, newTask(ns, "t"))
			Expect(operator.Status().Patch(ctx, task, mergePatch(`{"status":{"phase":"AwaitingInput","observedGeneration":1}}`))).To(Succeed())
			for patch, member := range map[string]string{
				`{"status":{"answer":{"approved":true}}}`: "status.answer",
				`{"status":{"failure":{"reason":"x"}}}`:   "status.failure",
			} {
				Expect(operator.Status().Patch(ctx, task, mergePatch("%s", patch))).To(beRefused(403, member))
			}
			By("forging a stamp")
			Expect(operator.Status().Patch(ctx, task, mergePatch(`{"status":{"answeredBy":{"username":"x"}}}`))).To(Succeed())
			Expect(reload(ctx, task).Status.AnsweredBy).To(BeNil())
		})

		It("closes a task once, and none that was answered", func(ctx SpecContext) {
			closed := mergePatch(`{"status":{"closed":{"reason":"Expired","at":"2026-01-01T00:00:00Z"}}}`)
			task := create(ctx, alice, newTask(ns, "t"))
			Expect(operator.Status().Patch(ctx, task, closed)).To(Succeed())
			Expect(operator.Status().Patch(ctx, task, closed)).To(Succeed(), "the same again")
			Expect(operator.Status().Patch(ctx, task, mergePatch(`{"status":{"closed":{"reason":"Cancelled"}}}`))).To(beRefused(409, "already closed: Expired"))
			Expect(operator.Status().Patch(ctx, task, mergePatch(`{"status":{"closed":null}}`))).To(beRefused(409, "already closed: Expired"))

			answered := create(ctx, alice, newTask(ns, "answered"))
			Expect(bob.Status().Patch(ctx, answered, mergePatch(`{"status":{"answer":{"approved":true}}}`))).To(Succeed())
			Expect(operator.Status().Patch(ctx, answered, closed)).To(beRefused(409, "already answered by bob"))
			By("writing the rest with the typed answer along")
			answered.Status.Phase = api.TaskCompleted
			Expect(operator.Status().Update(ctx, answered)).To(Succeed())
			Expect(answered.Status.AnsweredBy.Username).To(Equal("bob"))
		})
	})

	It("attack: has one answer at most, by who is stamped, for ever, whoever patches what", func(ctx SpecContext) {
		seed := uint64(GinkgoRandomSeed())
		for round := range 12 {
			task := newTask(ns, fmt.Sprintf("t%d", round))
			task.Spec.Form = nil
			create(ctx, alice, task)
			rng := rand.New(rand.NewPCG(seed, uint64(round)))
			if round%2 == 0 {
				patchAtOnce(ctx, task, rng)
			}
			watchPatches(ctx, task, rng)
		}
	})
})

func newTask(namespace, name string) *api.HumanTask {
	t := &api.HumanTask{}
	t.Namespace, t.Name = namespace, name
	t.Spec.HumanContext.Title = "Release r-17"
	t.Spec.Form = &api.TaskForm{Fields: []api.FormField{{Name: "approved", Type: "boolean", Required: true}, {Name: "note"}}}
	return t
}

// randomStatusPatch may answer, fail, forge, close or clear; mark tells who sent
// it.
func randomStatusPatch(rng *rand.Rand, mark string) client.Patch {
	members := []string{
		fmt.Sprintf(`"answer":{"by":%q,"n":%d}`, mark, rng.IntN(3)), `"answer":null`, `"answer":{}`, `"answer":[]`,
		fmt.Sprintf(`"failure":{"reason":%q}`, mark), `"failure":null`, `"failure":{"reason":""}`,
		`"answeredBy":{"username":"mallory"}`, `"answeredBy":null`, `"answeredAt":"2001-01-01T00:00:00Z"`, `"answeredAt":null`,
		`"phase":"Completed"`, `"closed":{"reason":"Cancelled","at":"2026-01-01T00:00:00Z"}`, `"observedGeneration":3`,
	}
	var chosen []string
	for range 1 + rng.IntN(3) {
		chosen = append(chosen, members[rng.IntN(len(members))])
	}
	return mergePatch(`{"status":{%s}}`, strings.Join(chosen, ","))
}

// patchAtOnce lets people answer at the same time.
func patchAtOnce(ctx context.Context, task *api.HumanTask, rng *rand.Rand) {
	var racing sync.WaitGroup
	for _, as := range []person{alice, bob, carol} {
		patch := randomStatusPatch(rng, as.name)
		racing.Go(func() {
			_ = as.Status().Patch(ctx, newTask(task.Namespace, task.Name), patch) // most of them lose
		})
	}
	racing.Wait()
}

// watchPatches sends one patch after the other and looks at what each left.
func watchPatches(ctx context.Context, task *api.HumanTask, rng *rand.Rand) {
	GinkgoHelper()
	known := answerOf(ctx, task)
	for range 25 {
		as := []person{alice, bob, carol, admin, operator}[rng.IntN(5)]
		patch := randomStatusPatch(rng, as.name)
		text, err := patch.Data(task)
		Expect(err).NotTo(HaveOccurred())
		err = as.Status().Patch(ctx, newTask(task.Namespace, task.Name), patch)
		found := answerOf(ctx, task)
		if known.given() {
			Expect(found).To(Equal(known), "%s: %s: %v", as.name, text, err)
			continue
		}
		if found.given() {
			Expect(err).NotTo(HaveOccurred())
			Expect(as.name).NotTo(Equal(operator.name))
			Expect(found.by).To(HaveKeyWithValue("username", as.name), "%s: %s", as.name, text)
			Expect(found.at).To(Equal(now.Now().UTC().Format(time.RFC3339)))
			Expect(found.answer == nil).NotTo(Equal(found.failure == nil))
		} else {
			Expect(found.by).To(BeNil())
			Expect(found.at).To(BeNil())
		}
		known = found
	}
}

// givenAnswer is what a task holds of an answer, untyped.
type givenAnswer struct{ answer, failure, by, at any }

func (a givenAnswer) given() bool { return a.answer != nil || a.failure != nil }

func answerOf(ctx context.Context, task *api.HumanTask) givenAnswer {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(api.GroupVersion.WithKind("HumanTask"))
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(task), u)).To(Succeed())
	status, _, err := unstructured.NestedMap(u.Object, "status")
	Expect(err).NotTo(HaveOccurred())
	return givenAnswer{status["answer"], status["failure"], status["answeredBy"], status["answeredAt"]}
}
