package cli

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// run reads a run.
func (w *world) run(name string) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{}
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, run)).To(Succeed())
	return run
}

// credential stores what the Git server takes, for its host.
func (w *world) credential(name string, server *gitserver.Server) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: w.meta(name), StringData: map[string]string{"username": gitserver.Username, "password": gitserver.Password}}
	secret.Labels = map[string]string{api.LabelCredential: "true"}
	secret.Annotations = map[string]string{remotes.AnnotationHosts: strings.TrimPrefix(server.URL, "https://")}
	Expect(admin.Create(w.ctx, secret)).To(Succeed())
}

var _ = Describe("a run of a definition in Git", func() {
	It("supervised 04: is written with the full commit of a branch or tag", func(ctx SpecContext) {
		w := newWorld(ctx)
		server := gitserver.Start(GinkgoTB())
		w.git = server.Client.Transport
		repository := server.Create(GinkgoTB(), "workflows")
		first := repository.Commit("main", map[string]gitserver.FileSpec{"start.md": {Content: "one"}})
		repository.Git("tag", "-a", "-m", "v1", "v1", first)
		second := repository.Commit("main", map[string]gitserver.FileSpec{"start.md": {Content: "two"}})
		w.credential("workflows-read", server)
		create := func(name string, more ...string) []string {
			return append([]string{
				"run", "create", name, "--git", repository.URL, "--path", "start.md", "--credentials-secret", "workflows-read",
			}, more...)
		}

		By("looking a branch up")
		c := w.as(root, create("branch", "--ref", "main", "--input", "request=add it", "--input-json", `limit={"n":1}`, "--credential", "project=acme-write")...)
		Expect(c.gives(command.ExitOK).stdout.String()).To(Equal("created run branch of start.md at " + second + ", which is what main is at\n"))
		spec := w.run("branch").Spec
		Expect(*spec.Git).To(Equal(api.GitSource{
			URL: repository.URL, Commit: second, Path: "start.md", CredentialsRef: &api.LocalRef{Name: "workflows-read"},
		}))
		Expect(spec.Inputs.Raw).To(MatchJSON(`{"request":"add it","limit":{"n":1}}`))
		Expect(spec.Credentials).To(Equal([]api.RunCredential{{Name: "project", SecretRef: api.LocalRef{Name: "acme-write"}}}))
		Expect(spec.ResumePolicy).To(Equal(api.ResumeExplicit))

		By("looking a tag up that is an object of its own")
		Expect(w.as(root, create("tag", "--ref", "v1", "-o", "json")...).gives(command.ExitOK).value()).To(And(
			HaveKeyWithValue("run", "tag"), HaveKeyWithValue("commit", first), HaveKeyWithValue("ref", "v1"),
		))

		By("printing what would be created")
		manifest := w.as(root, create("dry", "--ref", "main", "--dry-run")...).gives(command.ExitOK).manifest()
		Expect(manifest).To(HaveKeyWithValue("kind", "WorkflowRun"))
		Expect(manifest).NotTo(HaveKey("status"))
		Expect(manifest["spec"]).To(HaveKeyWithValue("git", HaveKeyWithValue("commit", second)))
		Expect(admin.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "dry"}, &api.WorkflowRun{})).NotTo(Succeed())

		By("asking for what is not there")
		c = w.as(root, create("none", "--ref", "gone")...).gives(command.ExitUsage)
		Expect(c.stderr.String()).To(Equal("axiom: the repository has no branch and no tag gone\n"))
		By("not being allowed to read the Secret")
		c = w.as(alice, create("none", "--ref", "main")...).gives(command.ExitUsage)
		Expect(c.stderr.String()).To(And(ContainSubstring("read Secret"), ContainSubstring("--commit needs no look")))
		By("not giving a Secret")
		c = w.as(alice, "run", "create", "none", "--git", repository.URL, "--path", "start.md", "--ref", "main").gives(command.ExitUsage)
		Expect(c.stderr.String()).To(ContainSubstring("list refs of repository"))

		By("giving a commit, which asks the repository for nothing")
		before := len(server.Requests())
		w.as(alice, create("commit", "--commit", first)...).gives(command.ExitOK)
		Expect(w.run("commit").Spec.Git.Commit).To(Equal(first))
		for _, commit := range []string{first[:12], strings.ToUpper(first), "main"} {
			c = w.as(alice, create("denied", "--commit", commit)...).gives(command.ExitVerdict)
			Expect(c.stdout.String()).To(And(HavePrefix("refused: "), ContainSubstring("COMMIT_NOT_PINNED")))
		}
		Expect(server.Requests()).To(HaveLen(before))
		Expect(w.as(alice, create("branch", "--commit", second, "-o", "json")...).gives(command.ExitVerdict).value()).To(And(
			HaveKeyWithValue("run", "branch"), HaveKeyWithValue("refused", HaveKeyWithValue("reason", "AlreadyExists")),
		))
	})
})

var _ = Describe("a run", func() {
	It("is resumed, read and cancelled", func(ctx SpecContext) {
		w := newWorld(ctx)
		run := &api.WorkflowRun{ObjectMeta: w.meta("later")}
		run.Spec.CompositionRef.Name, run.Spec.ResumePolicy = "not-there-yet", api.ResumeExplicit
		Expect(admin.Create(ctx, run)).To(Succeed())

		By("asking for resumes")
		Expect(w.as(alice, "resume", "later").gives(command.ExitOK).stdout.String()).To(Equal("asked for resume 1 of run later, which is Pending\n"))
		Expect(w.as(alice, "resume", "later", "-o", "json").gives(command.ExitOK).value()).To(And(
			HaveKeyWithValue("resumeRequests", BeEquivalentTo(2)), HaveKeyWithValue("done", true), HaveKeyWithValue("notices", BeEmpty()),
		))
		Expect(w.run("later").Annotations).To(HaveKeyWithValue(api.AnnotationResumedBy, "alice"))
		c := w.as(bob, "resume", "later").gives(command.ExitVerdict)
		Expect(c.stdout.String()).To(HavePrefix("refused: "))

		By("reading it")
		Expect(w.as(bob, "run", "show", "later").gives(command.ExitOK).stdout.String()).To(Equal("later  Pending\n  of composition not-there-yet\n"))
		Expect(w.as(bob, "run", "show", "gone").gives(command.ExitUsage).stderr.String()).To(ContainSubstring("there is no run gone"))

		By("following it, which is yet to begin")
		Expect(w.as(alice, "run", "watch", "later", "--timeout", "10ms").gives(5).stdout.String()).To(ContainSubstring("\npeople\n  asked    "))
		Expect(w.as(alice, "run", "graph", "later").gives(command.ExitUsage).stderr.String()).To(ContainSubstring("has not begun"))

		By("cancelling it")
		Expect(w.as(alice, "run", "cancel", "later").gives(command.ExitOK).stdout.String()).To(Equal("asked for run later, which is Pending, to be cancelled\n"))
		Eventually(func() api.RunPhase { return w.run("later").Status.Phase }).Should(Equal(api.RunCancelled))
		Expect(w.as(alice, "run", "watch", "later").gives(3).stdout.String()).To(ContainSubstring("  cancelled  alice\n"))
		c = w.as(alice, "run", "cancel", "later").gives(command.ExitVerdict)
		Expect(c.stdout.String()).To(Equal("run later is Cancelled: there is nothing to cancel\n"))
		Expect(w.as(alice, "resume", "later").gives(command.ExitVerdict).stdout.String()).To(ContainSubstring("there is nothing to resume"))
	})

	It("shows each activation with its values", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", "turns: []")
		run := &api.WorkflowRun{ObjectMeta: w.meta("now")}
		run.Spec.CompositionRef.Name = "closing"
		Expect(admin.Create(ctx, run)).To(Succeed())
		Eventually(func() api.RunPhase { return w.run("now").Status.Phase }).Should(Equal(api.RunCompleted))
		history := w.run("now").Status.History.Entries
		Expect(history).NotTo(BeEmpty())

		By("following and explaining it")
		c := w.as(alice, "run", "watch", "now").gives(command.ExitOK)
		Expect(c.stderr.String()).To(Equal("run now: Completed\n"))
		Expect(c.stdout.String()).To(HavePrefix("run now: Completed"))
		told := w.as(alice, "run", "explain", "now", "-o", "json").gives(command.ExitOK).value()
		Expect(told["deeds"]).To(ContainElement(And(HaveKeyWithValue("what", "asked"), HaveKeyWithValue("by", Not(BeEmpty())))))
		Expect(told).To(And(HaveKeyWithValue("waitsFor", BeEmpty()), HaveKeyWithValue("next", BeEmpty())))
		drawn := w.as(alice, "run", "graph", "now", "-o", "json").gives(command.ExitOK).value()
		Expect(drawn["nodes"]).To(HaveEach(HaveKeyWithValue("state", "done")))

		By("showing it")
		shown := w.as(alice, "run", "show", "now", "-o", "json").gives(command.ExitOK).value()
		Expect(shown["history"]).To(HaveLen(len(history)))
		Expect(shown).To(And(HaveKeyWithValue("phase", "Completed"), HaveKeyWithValue("composition", "closing"), HaveKeyWithValue("open", BeEmpty())))
		one := w.as(alice, "run", "show", "now", "--activation", history[0].Activation, "-o", "json").gives(command.ExitOK).value()
		Expect(one["entries"]).To(ConsistOf(HaveKeyWithValue("activation", history[0].Activation)))
		Expect(w.as(alice, "run", "show", "now", "--activation", history[0].Activation).gives(command.ExitOK).stdout.String()).
			To(HavePrefix(history[0].Activation + "  of run now\n"))
		Expect(w.as(alice, "run", "show", "now", "--activation", "gone#1").gives(command.ExitUsage).stderr.String()).
			To(Equal("axiom: run now has no activation gone#1\n"))
	})
})

var _ = Describe("a human task", func() {
	It("is answered once, by whoever may", func(ctx SpecContext) {
		w := newWorld(ctx)
		ask := func(name string) {
			GinkgoHelper()
			task := &api.HumanTask{ObjectMeta: w.meta(name)}
			task.Spec.HumanContext.Title = "Go on?"
			task.Spec.ResponseSchema = &runtime.RawExtension{Raw: []byte(`{"type":"object","required":["proceed"],"properties":{"proceed":{"type":"boolean"}}}`)}
			Expect(admin.Create(ctx, task)).To(Succeed())
		}
		task := func(name string) api.HumanTaskStatus {
			GinkgoHelper()
			task := &api.HumanTask{}
			Expect(admin.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, task)).To(Succeed())
			return task.Status
		}
		ask("go-on")
		ask("give-up")

		By("what waits")
		waiting := w.as(alice, "inbox", "--mine").gives(command.ExitOK).stdout.String()
		Expect(waiting).To(And(ContainSubstring("Go on?\n  waits for "), ContainSubstring("\n  axiom answer go-on -n "+w.namespace+"\n")))
		Expect(w.as(bob, "inbox", "-A", "-o", "json").gives(command.ExitOK).value()["tasks"]).To(ContainElements(
			HaveKeyWithValue("task", "give-up"), HaveKeyWithValue("command", "axiom answer go-on -n "+w.namespace),
		))
		By("asking without a terminal")
		w.as(alice, "answer", "go-on").gives(command.ExitUsage)

		By("an answer that does not fit")
		c := w.as(alice, "answer", "go-on", "--field", "proceed=sesame").gives(command.ExitVerdict)
		Expect(c.stdout.String()).To(And(HavePrefix("refused: the answer is not accepted: proceed: type"), Not(ContainSubstring("sesame"))))
		By("somebody who may not")
		w.as(bob, "answer", "go-on", "--field-json", "proceed=true").gives(command.ExitVerdict)

		By("an answer with a member of null")
		c = w.as(alice, "answer", "go-on", "--field-json", "proceed=true", "--field-json", "note=null").gives(command.ExitOK)
		Expect(c.stdout.String()).To(Equal("answered task go-on as alice\n"))
		Expect(task("go-on").Answer.Raw).To(MatchJSON(`{"proceed":true,"note":null}`))
		Expect(task("go-on").AnsweredBy.Username).To(Equal("alice"))

		By("another answer")
		refused := w.as(root, "answer", "go-on", "--answer", `{"proceed":false}`, "-o", "json").gives(command.ExitVerdict).value()
		Expect(refused).To(And(HaveKeyWithValue("task", "go-on"), HaveKeyWithValue("refused", HaveKeyWithValue("code", BeEquivalentTo(409)))))

		By("a failure, asked for at a terminal")
		Expect(w.as(alice, "inbox", "-o", "yaml").gives(command.ExitOK).manifest()["tasks"]).To(ConsistOf(HaveKeyWithValue("task", "give-up")))
		given := w.as(alice, "answer", "give-up", "--failure", "no time", "-o", "json").gives(command.ExitOK).value()
		Expect(given).To(Equal(map[string]any{"task": "give-up", "run": "", "phase": "Failed", "answeredBy": "alice", "resume": false}))
		Expect(task("give-up").Failure.Reason).To(Equal("no time"))
		Expect(w.as(alice, "answer", "gone", "--failure", "x").gives(command.ExitUsage).stderr.String()).To(ContainSubstring("there is no task gone"))
	})
})
