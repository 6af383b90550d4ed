package v1alpha1_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	fullCommit   = "8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a"
	otherCommit  = "0000000000000000000000000000000000000001"
	bearerToken  = "Bearer 4f9c8a7b6d5e4f3a2b1c0d9e"
	secretAnswer = "4f9c8a7b6d5e4f3a2b1c0d9e"
)

// newSupervised is a run of a definition in Git.
func newSupervised(namespace, name string) *api.WorkflowRun {
	run := &api.WorkflowRun{}
	run.Namespace, run.Name = namespace, name
	run.Spec.Git = &api.GitSource{URL: "https://git.example.com/acme/workflows.git", Commit: fullCommit, Path: "adversarial/start.md"}
	run.Spec.Inputs = raw(`{"request":"add a health endpoint","limit":1}`)
	run.Spec.Credentials = []api.RunCredential{
		{Name: "project", SecretRef: api.LocalRef{Name: "acme-write"}}, {Name: "tracker", SecretRef: api.LocalRef{Name: "acme-issues"}},
	}
	return run
}

// writesRuns is the right to resume runs.
var writesRuns = rbacv1.PolicyRule{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"workflowruns"}, Verbs: []string{"get", "patch"}}

// newCheckpoint is the question of an activation of a supervised run.
func newCheckpoint(namespace string, run *api.WorkflowRun, activation, fingerprint string) *api.HumanTask {
	task := newTask(namespace, "t")
	task.Spec.Form = nil
	task.Spec.ResponseSchema = raw(`{"type":"object","additionalProperties":false,"required":["proceed","response"],` +
		`"properties":{"proceed":{"type":"boolean"},"response":{"type":"string","minLength":1}}}`)
	task.Spec.RunRef = &api.TaskRunRef{Name: run.Name, UID: string(run.UID), Activation: activation}
	task.Spec.Fingerprint = fingerprint
	return task
}

// reaches records a phase, as the operator does.
func reaches(ctx context.Context, run *api.WorkflowRun, phase api.RunPhase) {
	GinkgoHelper()
	run.Status.Phase = phase
	Expect(operator.Status().Update(ctx, run)).To(Succeed())
}

var _ = Describe("A supervised run", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("supervised 04: is refused when", func(ctx SpecContext, change func(r *api.WorkflowRun), parts ...string) {
		run := newSupervised(ns, "r")
		change(run)
		Expect(alice.Create(ctx, run, client.DryRunAll)).To(beRefused(422, parts...))
		Expect(alice.Create(ctx, run)).To(beRefused(422, parts...))
	},
		Entry("it has another definition as well", func(r *api.WorkflowRun) { r.Spec.CompositionRef.Name = "c" }, "exactly one of `compositionRef` and `git`"),
		Entry("it has none", func(r *api.WorkflowRun) { r.Spec.Git = nil }, "exactly one of `compositionRef` and `git`"),
		Entry("a branch stands for the commit", func(r *api.WorkflowRun) { r.Spec.Git.Commit = "main" }, "spec.git.commit", "COMMIT_NOT_PINNED"),
		Entry("a tag stands for the commit", func(r *api.WorkflowRun) { r.Spec.Git.Commit = "refs/tags/v1" }, "spec.git.commit", "COMMIT_NOT_PINNED"),
		Entry("the commit is abbreviated", func(r *api.WorkflowRun) { r.Spec.Git.Commit = fullCommit[:39] }, "spec.git.commit", "COMMIT_NOT_PINNED"),
		Entry("the commit is in upper case", func(r *api.WorkflowRun) { r.Spec.Git.Commit = strings.ToUpper(fullCommit) }, "spec.git.commit", "COMMIT_NOT_PINNED"),
		Entry("the commit is followed by something", func(r *api.WorkflowRun) { r.Spec.Git.Commit = fullCommit + "\n" }, "spec.git.commit", "COMMIT_NOT_PINNED"),
		Entry("the repository is a directory", func(r *api.WorkflowRun) { r.Spec.Git.URL = "/srv/git" }, "spec.git.url", "LOCATOR_INVALID"),
		Entry("the path leads out", func(r *api.WorkflowRun) { r.Spec.Git.Path = "../start.md" }, "spec.git.path", "must be relative"),
		Entry("the path is absolute", func(r *api.WorkflowRun) { r.Spec.Git.Path = "/start.md" }, "spec.git.path", "must be relative"),
		Entry("the path is not normalized", func(r *api.WorkflowRun) { r.Spec.Git.Path = "./start.md" }, "spec.git.path", "must be relative"),
		Entry("the document is no Markdown", func(r *api.WorkflowRun) { r.Spec.Git.Path = "start.yaml" }, "spec.git.path", "end in .md"),
		Entry("the inputs are a list", func(r *api.WorkflowRun) { r.Spec.Inputs = raw(`[1]`) }, "spec.inputs", "must be of type object"),
		Entry("the inputs are one byte too large", func(r *api.WorkflowRun) {
			r.Spec.Inputs = raw(`{"a":"` + strings.Repeat("x", 64<<10-7) + `"}`)
		}, "spec.inputs", "has 65537 bytes of JSON, the limit is 65536"),
		Entry("two credentials share an alias", func(r *api.WorkflowRun) { r.Spec.Credentials[1].Name = "project" }, "spec.credentials[1]", "Duplicate value"),
		Entry("it wants to go on by itself", func(r *api.WorkflowRun) { r.Spec.ResumePolicy = api.ResumeAutomatic }, "spec.resumePolicy", "must be Explicit"),
		Entry("everything is wrong, by what comes first", func(r *api.WorkflowRun) {
			r.Spec.Git = &api.GitSource{URL: "ext::sh", Commit: "main", Path: "/"}
			r.Spec.ResumePolicy, r.Spec.Inputs = api.ResumeAutomatic, raw(`{"password":"`+secretAnswer+`"}`)
		}, "spec.git.url", "LOCATOR_INVALID"),
	)

	DescribeTable("supervised 51: keeps secrets out of its inputs", func(ctx SpecContext, inputs, pointer string) {
		run := newSupervised(ns, "r")
		run.Spec.Inputs = raw(inputs)
		err := alice.Create(ctx, run)
		Expect(err).To(beRefused(422, "spec.inputs", "SECRET_DETECTED", pointer))
		Expect(err).NotTo(MatchError(ContainSubstring(secretAnswer)))
	},
		Entry("in a text", `{"request":"send `+bearerToken+`"}`, "bearer-header at /request, line 1"),
		Entry("deep in an object", `{"a":[{"api_key":"`+secretAnswer+`"}]}`, "secret-field at /a/0/api_key"),
	)

	It("is taken with the largest inputs, either sort of id, and each sort of locator", func(ctx SpecContext) {
		for name, url := range map[string]string{
			"https": "https://git.example.com/a.git", "plain": "http://git.internal/a.git", "ssh": "ssh://git@git.example.com/a.git", "scp": "git@git.example.com:a.git",
		} {
			run := newSupervised(ns, name)
			run.Spec.Git.URL, run.Spec.Git.Commit = url, strings.Repeat("0", 64)
			run.Spec.Inputs = raw(`{"a":"` + strings.Repeat("x", 64<<10-8) + `"}`)
			create(ctx, alice, run)
			Expect(run.Spec.ResumePolicy).To(Equal(api.ResumeExplicit), "the policy it has by default is written down")
		}
	})

	It("supervised 05: may be applied again in every phase, and says what would change without a value", func(ctx SpecContext) {
		run := create(ctx, alice, newSupervised(ns, "r"))
		for _, phase := range []api.RunPhase{api.RunPending, api.RunRunning, api.RunSuspended, api.RunCompleted, api.RunFailed, api.RunCancelled} {
			reaches(ctx, run, phase)
			version := run.ResourceVersion

			By("applying it again when it is " + string(phase))
			again := newSupervised(ns, "r")
			again.ResourceVersion = version
			again.Spec.Credentials[0], again.Spec.Credentials[1] = again.Spec.Credentials[1], again.Spec.Credentials[0]
			again.Spec.Inputs = raw(`{"limit":1.0,"request":"add a health endpoint"}`)
			Expect(alice.Update(ctx, again, client.DryRunAll)).To(Succeed())
			Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"resumePolicy":"Explicit"}}`))).To(Succeed())
			Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"resumePolicy":null}}`))).To(Succeed())
			Expect(run.ResourceVersion).To(Equal(version), "nothing was written")

			By("changing it when it is " + string(phase))
			for patch, fields := range map[string]string{
				`{"git":{"commit":"` + otherCommit + `"},"inputs":{"limit":2}}`: "spec.git.commit, spec.inputs",
				`{"git":{"commit":"main","path":"/x","url":"u"}}`:               "spec.git.commit, spec.git.path, spec.git.url",
				`{"git":{"credentialsRef":{"name":"c"}}}`:                       "spec.git.credentialsRef",
				`{"inputs":{"limit":1.5}}`:                                      "spec.inputs",
				`{"inputs":{"token":"` + bearerToken + `"}}`:                    "spec.inputs",
				`{"inputs":null}`: "spec.inputs",
				`{"credentials":null,"resumePolicy":"Automatic"}`:                           "spec.credentials, spec.resumePolicy",
				`{"activeDeadline":"PT1H","compositionRef":{"name":"c"}}`:                   "spec.activeDeadline, spec.compositionRef",
				`{"git":null,"compositionRef":{"name":"c"}}`:                                "spec.compositionRef, spec.git",
				`{"resumeRequests":1,"cancel":true,"git":{"path":"adversarial/other.md"}}`:  "spec.git.path",
				`{"credentials":[{"name":"project","secretRef":{"name":"somebody-else"}}]}`: "spec.credentials",
			} {
				for _, as := range []person{alice, operator} {
					err := as.Patch(ctx, newSupervised(ns, "r"), mergePatch(`{"spec":%s}`, patch))
					Expect(err).To(beRefused(422, "denied the request: spec is immutable: "+fields))
					Expect(err).To(MatchError(HaveSuffix(fields)), "nothing but the fields")
				}
			}
		}
	})

	It("supervised 24: is resumed by numbers that only grow, and stays cancelled", func(ctx SpecContext) {
		run := newSupervised(ns, "r")
		run.Spec.ResumeRequests = 3
		create(ctx, alice, run)
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"resumeRequests":2}}`))).To(beRefused(422, "spec.resumeRequests", "must not shrink"))
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"resumeRequests":null}}`))).To(beRefused(422, "spec.resumeRequests", "must not shrink"))
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"resumeRequests":7}}`))).To(Succeed())
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"cancel":true}}`))).To(Succeed())
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"cancel":false}}`))).To(beRefused(422, "spec.cancel", "must stay true"))
	})

	It("supervised 23: says which user asked for the last resume", func(ctx SpecContext) {
		grant(ctx, "resumers-"+ns, writesRuns)
		dora := addPerson("dora", "resumers-"+ns)
		run := newSupervised(ns, "r")
		run.Spec.ResumeRequests = 1
		run.Annotations = map[string]string{api.AnnotationResumedBy: "mallory", "team": "a"}
		create(ctx, alice, run)
		Expect(run.Annotations).To(Equal(map[string]string{"team": "a", api.AnnotationRequestedBy: "alice"}), "being made is no resume")

		resume := func(as person, requests int, claim string) string {
			GinkgoHelper()
			Eventually(func() error {
				return as.Patch(ctx, run, mergePatch(`{"metadata":{"annotations":{%q:%q}},"spec":{"resumeRequests":%d}}`, api.AnnotationResumedBy, claim, requests))
			}).Should(Succeed())
			return run.Annotations[api.AnnotationResumedBy]
		}
		Expect(resume(dora, 2, "mallory")).To(Equal("dora"))
		Expect(resume(alice, 2, "mallory")).To(Equal("dora"), "nothing was asked for")
		Expect(resume(operator, 2, "mallory")).To(Equal("dora"))
		Expect(resume(alice, 5, "dora")).To(Equal("alice"))
		Expect(dora.Patch(ctx, run, mergePatch(`{"metadata":{"annotations":null}}`))).To(Succeed())
		Expect(run.Annotations).To(Equal(map[string]string{api.AnnotationResumedBy: "alice", api.AnnotationRequestedBy: "alice"}))
	})

	It("says which user made a run, and which one cancelled it", func(ctx SpecContext) {
		grant(ctx, "cancellers-"+ns, writesRuns)
		erin := addPerson("erin", "cancellers-"+ns)
		run := newSupervised(ns, "c")
		run.Annotations = map[string]string{api.AnnotationRequestedBy: "mallory", api.AnnotationCancelledBy: "mallory"}
		create(ctx, alice, run)
		Expect(run.Annotations).To(Equal(map[string]string{api.AnnotationRequestedBy: "alice"}))
		forge := mergePatch(`{"metadata":{"annotations":{%q:"mallory",%q:"mallory"}}}`, api.AnnotationRequestedBy, api.AnnotationCancelledBy)
		Eventually(func() error { return erin.Patch(ctx, run, forge) }).Should(Succeed())
		Expect(run.Annotations).To(Equal(map[string]string{api.AnnotationRequestedBy: "alice"}))
		Expect(erin.Patch(ctx, run, mergePatch(`{"spec":{"cancel":true}}`))).To(Succeed())
		Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"cancel":true}}`))).To(Succeed())
		Expect(run.Annotations).To(Equal(map[string]string{api.AnnotationRequestedBy: "alice", api.AnnotationCancelledBy: "erin"}))
	})

	It("ignores a cancel when it is over, and says so", func(ctx SpecContext) {
		run := create(ctx, alice, newSupervised(ns, "r"))
		reaches(ctx, run, api.RunCompleted)
		out := alice.run(ctx, "", "-n", ns, "patch", "wfr", "r", "--type=merge", "-p", `{"spec":{"cancel":true}}`)
		Expect(out).To(ContainSubstring("Warning: spec.cancel: the run is Completed, so there is nothing to cancel"))
		out = alice.run(ctx, "", "-n", ns, "patch", "wfr", "r", "--type=merge", "-p", `{"spec":{"cancel":true,"resumeRequests":1}}`)
		Expect(out).NotTo(ContainSubstring("Warning"))
	})
})

var _ = Describe("A checkpoint", func() {
	const fingerprint, activation = "sha256:f", "Planning[2]/checkpoint[1]/ask#1"

	var (
		ns   string
		run  *api.WorkflowRun
		task *api.HumanTask
	)
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		run = create(ctx, alice, newSupervised(ns, "r"))
		run.Status.Phase = api.RunSuspended
		run.Status.Intents = []api.RunIntent{{
			Activation: activation, Action: "human-task", Request: api.ContentRef{Digest: "sha256:" + strings.Repeat("0", 64)}, At: metav1.NewTime(now.Now()),
			Task: "t", Fingerprint: fingerprint,
		}}
		Expect(operator.Status().Update(ctx, run)).To(Succeed())
		task = newCheckpoint(ns, run, activation, fingerprint)
		create(ctx, operator, task)
	})

	answer := func(ctx context.Context, status string) error {
		return bob.Status().Patch(ctx, task.DeepCopy(), mergePatch(`{"status":%s}`, status))
	}
	const consent = `{"answer":{"proceed":true,"response":"Go ahead"}}`

	It("is made by the operator alone", func(ctx SpecContext) {
		forged := newTask(ns, "forged")
		forged.Spec.Fingerprint = fingerprint
		Expect(alice.Create(ctx, forged)).To(beRefused(403, "spec.fingerprint: only the operator may set it"))
		Expect(alice.Patch(ctx, task, mergePatch(`{"spec":{"fingerprint":"sha256:g"}}`))).To(beRefused(422, "spec"))
	})

	It("supervised 23: is answered by an authenticated user, once", func(ctx SpecContext) {
		Expect(answer(ctx, `{"answer":{"proceed":true,"response":"Go ahead"},"answeredBy":{"username":"mallory"}}`)).To(Succeed())
		reload(ctx, task)
		Expect(task.Status.AnsweredBy.Username).To(Equal("bob"))
		Expect(answer(ctx, `{"answer":{"proceed":false,"response":"Stop"}}`)).To(beRefused(409, "already answered by bob"))

		By("again with the same answer, whatever became of the run")
		reaches(ctx, run, api.RunCompleted)
		Expect(answer(ctx, consent)).To(Succeed())
	})

	It("can be given up", func(ctx SpecContext) {
		Expect(answer(ctx, `{"failure":{"reason":"no time"}}`)).To(Succeed())
	})

	DescribeTable("supervised 22: takes no answer when", func(ctx SpecContext, change func(ctx context.Context), reason string) {
		change(ctx)
		for _, status := range []string{consent, `{"failure":{"reason":"Go ahead"}}`} {
			err := answer(ctx, status)
			Expect(err).To(beRefused(409, reason))
			Expect(err).NotTo(MatchError(ContainSubstring("Go ahead")))
		}
		Expect(reload(ctx, task).Status.Answer).To(BeNil())
	},
		Entry("the run is over", func(ctx context.Context) { reaches(ctx, run, api.RunFailed) }, "run r is Failed"),
		Entry("somebody cancelled the run", func(ctx context.Context) {
			Expect(alice.Patch(ctx, run, mergePatch(`{"spec":{"cancel":true}}`))).To(Succeed())
		}, "run r is being cancelled"),
		Entry("the run winds down", func(ctx context.Context) {
			run.Status.Conditions = []metav1.Condition{{
				Type: api.ConditionCancelling, Status: metav1.ConditionTrue, Reason: "Cancelled", LastTransitionTime: metav1.NewTime(now.Now()),
			}}
			reaches(ctx, run, api.RunRunning)
		}, "run r is being cancelled"),
		Entry("the activation is closed", func(ctx context.Context) {
			run.Status.Intents = nil
			reaches(ctx, run, api.RunRunning)
		}, "run r does not wait for this answer"),
		Entry("another task asks now", func(ctx context.Context) {
			run.Status.Intents[0].Task = "u"
			reaches(ctx, run, api.RunSuspended)
		}, "run r does not wait for this answer"),
		Entry("another question is asked", func(ctx context.Context) {
			run.Status.Intents[0].Fingerprint = "sha256:g"
			reaches(ctx, run, api.RunSuspended)
		}, "run r does not wait for this answer"),
		Entry("another activation asks", func(ctx context.Context) {
			run.Status.Intents[0].Activation = "Planning[3]/checkpoint[1]/ask#1"
			reaches(ctx, run, api.RunSuspended)
		}, "run r does not wait for this answer"),
		Entry("the run is gone", func(ctx context.Context) { Expect(alice.Delete(ctx, run)).To(Succeed()) }, "the run that asks is gone"),
		Entry("the run is on its way out", func(ctx context.Context) {
			Expect(operator.Patch(ctx, run, mergePatch(`{"metadata":{"finalizers":["axiom.apitomy.io/test"]}}`))).To(Succeed())
			Expect(alice.Delete(ctx, run)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(operator.Patch(ctx, run, mergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
			})
		}, "run r is being deleted"),
		Entry("another run has taken the name", func(ctx context.Context) {
			Expect(alice.Delete(ctx, run)).To(Succeed())
			status := run.Status
			run = create(ctx, alice, newSupervised(ns, "r"))
			run.Status = status
			Expect(operator.Status().Update(ctx, run)).To(Succeed())
		}, "the run that asks is gone"),
	)

	DescribeTable("supervised 22: takes no answer that is not to the question", func(ctx SpecContext, code int, status string, parts ...string) {
		err := answer(ctx, status)
		Expect(err).To(beRefused(code, parts...))
		Expect(err).NotTo(MatchError(ContainSubstring("sesame")))
		Expect(reload(ctx, task).Status.Answer).To(BeNil())
	},
		Entry("an undeclared member", 422, `{"answer":{"proceed":true,"response":"x","more":"sesame"}}`, "additionalProperties"),
		Entry("a missing member", 422, `{"answer":{"proceed":true}}`, "response"),
		Entry("a member of null", 422, `{"answer":{"proceed":true,"response":null,"x":"sesame"}}`, "response"),
		Entry("an empty member", 422, `{"answer":{"proceed":true,"response":""}}`, "response: minLength"),
		Entry("the wrong type", 422, `{"answer":{"proceed":"sesame","response":"x"}}`, "proceed: type"),
		Entry("another field of the status", 403, `{"answer":{"proceed":true,"response":"x"},"phase":"Failed","workers":"sesame"}`, "status.phase: only `answer` and `failure`"),
	)

	It("supervised 51: takes no answer with a secret in it", func(ctx SpecContext) {
		for status, parts := range map[string][]string{
			`{"answer":{"proceed":true,"response":"use ` + bearerToken + `"}}`: {"status.answer", "SECRET_DETECTED", "bearer-header at /response"},
			`{"failure":{"reason":"` + bearerToken + ` is refused"}}`:          {"status.failure", "SECRET_DETECTED", "bearer-header at /reason"},
		} {
			err := answer(ctx, status)
			Expect(err).To(beRefused(422, parts...))
			Expect(err).NotTo(MatchError(ContainSubstring(secretAnswer)))
		}
		Expect(answer(ctx, consent)).To(Succeed(), "the refusals changed nothing")
	})
})
