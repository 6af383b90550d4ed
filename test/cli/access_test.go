package cli

import (
	"os"
	"os/exec"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/live"
)

var _ = Describe("the rights of whoever calls", func() {
	It("are those of the kubeconfig", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames, func(comp *api.Composition) { comp.Spec.Agent.ItemPolicy = api.ItemStaged })

		By("asking without a right to ConfigMaps")
		sent := w.as(bob, "turn", "send", "closing", "Rename the end.", "--name", "rename").gives(command.ExitOK)
		Expect(sent.stdout.String()).To(HavePrefix("It is called Finished now.\n\nchanged nodes: end-1\n\n"))
		Expect(sent.stderr.String()).To(ContainSubstring("axiom: warning: what the agent does is not shown: "))
		Expect(sent.stderr.String()).To(ContainSubstring("axiom: warning: the changes are not shown in full: what turns change is kept in ConfigMaps, which you may not read: "))
		Expect(w.as(bob, "turn", "diff", "rename").gives(command.ExitUsage).stdout.String()).To(BeEmpty())

		By("deciding without a right to the composition")
		w.told("accept-forbidden", w.as(bob, "turn", "accept", "rename").gives(command.ExitVerdict))
		refused := w.as(bob, "turn", "accept", "rename", "-o", "json").gives(command.ExitVerdict).value()
		Expect(refused).To(And(HaveKeyWithValue("turn", "rename"), HaveKeyWithValue("refused", HaveKeyWithValue("code", BeEquivalentTo(403)))))

		By("acting as somebody else")
		w.as(root, "turn", "accept", "rename", "--as", "alice", "--as-group", "editors").gives(command.ExitOK)
		Expect(w.turn("rename").Annotations).To(HaveKeyWithValue(api.AnnotationResolvedBy, "alice"))
		Expect(w.as(root, "turn", "undo", "rename", "--as", "bob", "--as-group", "askers").gives(command.ExitVerdict).stdout.String()).
			To(ContainSubstring("must be allowed to update composition closing"))
	})

	It("are refused without an answer where nothing may be seen", func(ctx SpecContext) {
		w := newWorld(ctx)
		nobody := newPerson("nobody", "nobodies")
		Expect(w.as(nobody, "turn", "watch", "any").gives(command.ExitUsage).stderr.String()).To(ContainSubstring(`User "nobody" cannot get resource "turns"`))
		Expect(w.as(nobody, "session", "logs", "any").gives(command.ExitUsage).stderr.String()).To(ContainSubstring(`cannot get resource "agentsessions"`))
		Expect(w.as(nobody, "template", "list").gives(command.ExitUsage).stderr.String()).To(ContainSubstring(`cannot list resource "sessiontemplates"`))
		Expect(w.as(nobody, "turn", "send", "any", "Hello?").gives(command.ExitVerdict).stdout.String()).To(ContainSubstring(`cannot create resource "turns"`))
	})
})

var _ = Describe("what is not there", func() {
	It("is told", func(ctx SpecContext) {
		w := newWorld(ctx)
		for _, verb := range []string{"watch", "diff", "accept", "reject", "undo", "interrupt", "export"} {
			Expect(w.as(alice, "turn", verb, "gone").gives(command.ExitUsage).stderr.String()).
				To(Equal("axiom: there is no turn gone in namespace " + w.namespace + "\n"))
		}
		Expect(w.as(alice, "session", "logs", "gone").gives(command.ExitUsage).stderr.String()).
			To(Equal("axiom: there is no session gone in namespace " + w.namespace + "\n"))
		Expect(w.as(alice, "template", "show", "gone").gives(command.ExitUsage).stderr.String()).
			To(Equal("axiom: there is no template gone, neither built in nor in namespace " + w.namespace + "\n"))
		w.told("send-nowhere", w.as(alice, "turn", "send", "gone", "Hello?").gives(command.ExitVerdict))
		w.told("send-blank", w.as(alice, "turn", "send", "gone", " ", "--name", "blank").gives(command.ExitVerdict))
	})

	It("may go while somebody looks", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", naps)
		w.as(alice, "turn", "send", "closing", "Anything?", "--name", "first", "--no-wait").gives(command.ExitOK)
		watched := &call{}
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			w.calls(ctx, watched, alice, "turn", "watch", "first")
		}()
		Eventually(func() api.TurnPhase { return w.turn("first").Status.State }).Should(Equal(api.TurnWorking))
		Expect(admin.Delete(ctx, &api.Turn{ObjectMeta: w.meta("first")})).To(Succeed())
		Eventually(done).Should(BeClosed())
		Expect(watched.gives(command.ExitUsage).stderr.String()).To(ContainSubstring("first"))
	})

	It("may be the cluster", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.as(alice, "turn", "watch", "any", "--context", "elsewhere").gives(command.ExitUsage).stderr.String()).
			To(ContainSubstring(`context "elsewhere" does not exist`))
	})
})

var _ = Describe("the program", func() {
	It("is a plugin of kubectl", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.compose("closing", renames)
		shell := func(args ...string) (string, int) {
			cmd := exec.CommandContext(ctx, alice.Binary(), append([]string{"axiom"}, args...)...)
			cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+alice.Kubeconfig())
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				Expect(err).NotTo(HaveOccurred())
			}
			return string(out), cmd.ProcessState.ExitCode()
		}
		out, code := shell("turn", "send", "closing", "Rename the end.", "--name", "rename", "-n", w.namespace)
		Expect(code).To(Equal(command.ExitOK), out)
		Expect(out).To(ContainSubstring("  kubectl axiom turn accept rename -n " + w.namespace))
		out, code = shell("turn", "reject", "rename", "-n", w.namespace, "-o", "json")
		Expect(code).To(Equal(command.ExitOK), out)
		Expect(out).To(ContainSubstring(`"state": "Rejected"`))
		out, code = shell("turn", "watch", "rename", "-n", w.namespace)
		Expect(code).To(Equal(command.ExitVerdict), out)
		out, code = shell("turn", "watch", "gone", "-n", w.namespace)
		Expect(code).To(Equal(command.ExitUsage), out)
	})
})

var _ = Describe("a shell", func() {
	It("completes names of what is there", func(ctx SpecContext) {
		w := newWorld(ctx)
		run := &api.WorkflowRun{ObjectMeta: w.meta("later")}
		run.Spec.CompositionRef.Name = "not-there-yet"
		Expect(admin.Create(ctx, run)).To(Succeed())
		task := &api.HumanTask{ObjectMeta: w.meta("ask")}
		task.Spec.HumanContext.Title = "Well?"
		Expect(admin.Create(ctx, task)).To(Succeed())
		completes := func(words ...string) string {
			c := &call{}
			args := slices.Concat([]string{"__complete", words[0], "--kubeconfig", alice.Kubeconfig(), "-n", w.namespace}, words[1:])
			c.code = cli.Run(ctx, command.Environment{
				Program: "axiom", Stdout: &c.stdout, Stderr: &c.stderr, Getenv: func(string) string { return "" },
			}, args, live.Commands(live.Options{Clock: clock.RealClock{}}))
			return c.gives(command.ExitOK).stdout.String()
		}
		Expect(completes("run", "explain", "la")).To(Equal("later\tPending\n:4\n"))
		Expect(completes("resume", "x")).To(Equal(":4\n"))
		Expect(completes("answer", "")).To(HaveSuffix("ask\tWell?\n:4\n"))
		Expect(completes("answer", "ask", "")).NotTo(ContainSubstring("ask\t"))
		Expect(completes("template", "show", "axiom-w")).To(Equal("axiom-workbench\tbuilt-in\n:4\n"))
		Expect(completes("inbox", "-o", "js")).To(HaveSuffix("json\nyaml\n:4\n"))
	})
})

var _ = Describe("an installation", func() {
	It("is checked with the rights of whoever asks", func(ctx SpecContext) {
		w := newWorld(ctx)
		statuses := func(c *call) map[string]any {
			found := map[string]any{}
			checks, _ := c.value()["checks"].([]any)
			for _, check := range checks {
				check, _ := check.(map[string]any)
				name, _ := check["check"].(string)
				found[name] = check["status"]
			}
			return found
		}
		// The operator of this suite is no Deployment of its cluster, and its certificate lasts for days.
		Expect(statuses(w.as(root, "doctor", "-o", "json").gives(command.ExitVerdict))).To(Equal(map[string]any{
			"api": "ok", "admission": "ok", "certificate": "warning", "operator": "failure", "leader": "warning", "gateway": "failure",
			"network": "warning", "rights": "ok", "pod security": "warning", "storage": "warning",
		}))
		Expect(statuses(w.as(bob, "doctor", "-o", "json"))).To(And(HaveKeyWithValue("operator", "unknown"), HaveKeyWithValue("rights", "warning")))
		tasks := w.as(root, "inbox", "-o", "json").gives(command.ExitOK).value()["tasks"]
		Expect(tasks).To(BeEmpty(), "a check left something")
	})
})
