//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/giteaserver"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const (
	root       = "../../"
	cast       = root + "hack/demo/supervised/"
	workBranch = "agent/adversarial-implementation"
	runName    = "add-health"
	consent    = `{"status":{"answer":{"proceed":true,"response":"Go ahead","rationale":"I have read it"}}}`
)

// afterKill is how long a run may take to its next question when the operator was killed: the
// kubelet's patience, the lease, and the minute in which a forge may list late.
const afterKill = 6 * time.Minute

var _ = Describe("a supervised run", Ordered, func() {
	var hub *forge

	BeforeAll(settle)

	BeforeAll(func(ctx SpecContext) {
		hub = openForge(ctx)
		administrator.do(ctx, "apply", "-f", cast+"alice.yaml", "-f", cast+"agents.yaml")
		for _, agent := range []string{"planner", "implementor"} {
			administrator.do(ctx, "create", "configmap", agent+"-playbook", "--from-file=playbook.yaml="+cast+agent+".yaml")
		}
	})

	It("plans until the plan passes, and asks before it touches anything", func(ctx SpecContext) {
		alice.axiom(ctx, "run", "create", runName, "--git", hub.workflows, "--ref", "main", "--path", "start.md",
			"--input", "request=Add a health endpoint.", "--input", "repository="+hub.app, "--input", "tracker="+strings.TrimSuffix(hub.app, ".git"),
			"--credential", "project=forge")
		task := openQuestion(ctx, "authorize the implementation")
		Expect(task.Spec.HumanContext.Description).To(ContainSubstring("up to five rounds of implementation"))

		run := supervisedRun(ctx)
		Expect(output(run, "Planning[1]/verdict#1")).To(ContainSubstring(`"passed":false`))
		Expect(output(run, "Planning[2]/verdict#1")).To(ContainSubstring(`"passed":true`))
		Expect(hub.get(ctx, "/branches")).To(HaveLen(1), "nothing was authorized yet")
		Eventually(func(g Gomega) { g.Expect(agentPods(ctx)).To(BeEmpty(), "of a run that waits for a person") }).Should(Succeed())
		claims := &corev1.PersistentVolumeClaimList{}
		Expect(cluster.List(ctx, claims, client.InNamespace(namespace))).To(Succeed())
		Expect(claims.Items).To(HaveLen(len(run.Status.Sessions)))
		Expect(claims.Items).To(HaveEach(HaveField("Status.Phase", corev1.ClaimBound)))
	})

	It("carries out what was authorized once, although the operator is killed", func(ctx SpecContext) {
		answer(ctx, openQuestion(ctx, "authorize the implementation"))
		Expect(supervisedRun(ctx).Status.Phase).To(Equal(api.RunSuspended), "an answer starts nothing")
		alice.do(ctx, "patch", "wfr", runName, "--type=merge", "-p", `{"spec":{"resumeRequests":1}}`)
		operator := administrator.do(ctx, "-n", "axiom-system", "get", "pod", "-l", "control-plane=controller-manager", "-o", "jsonpath={.items[0].metadata.name}")
		Eventually(func(g Gomega) { g.Expect(hub.get(ctx, "/branches")).To(HaveLen(2)) }).Should(Succeed())
		out, err := testenv.Command(ctx, root+"hack/cluster/crash", "axiom-system", operator)
		Expect(err).NotTo(HaveOccurred(), out)

		Eventually(func(g Gomega) {
			run := supervisedRun(ctx)
			g.Expect(run.Status.Phase).To(Equal(api.RunSuspended), "%v", run.Status.Conditions)
			g.Expect(run.Status.ObservedResumeRequests).To(BeEquivalentTo(1))
		}).WithTimeout(afterKill).Should(Succeed())
		openQuestion(ctx, "resolve the pull-request review")
		run := supervisedRun(ctx)
		var reasons []api.ExecutionReason
		for _, execution := range run.Status.Executions {
			reasons = append(reasons, execution.Reason)
		}
		Expect(reasons).To(Equal([]api.ExecutionReason{api.ExecutionStarted, api.ExecutionResumed, api.ExecutionRecovered}))
		Expect(output(run, "Implementation[1]/observe[1]/evaluate#1")).To(ContainSubstring(`"path":"routes.go"`))
		Expect(hub.get(ctx, "/pulls?state=all")).To(HaveExactElements(And(
			HaveKeyWithValue("draft", true), HaveKeyWithValue("state", "open"),
			HaveKeyWithValue("head", HaveKeyWithValue("ref", workBranch)),
		)))
		Expect(hub.get(ctx, "/commits?sha="+url.QueryEscape(workBranch))).To(HaveLen(2), "the one of main, and the one of the run")
		Expect(hub.get(ctx, "/pulls/1/files")).To(HaveExactElements(
			HaveKeyWithValue("filename", "health.go"), HaveKeyWithValue("filename", "health_test.go"), HaveKeyWithValue("filename", "routes.go"),
		))
		Expect(hub.issues(ctx)).To(BeEmpty(), "nobody let the finding pass yet")
	})

	It("files what a person let be deferred", func(ctx SpecContext) {
		answer(ctx, openQuestion(ctx, "resolve the pull-request review"))
		alice.axiom(ctx, "resume", runName)
		openQuestion(ctx, "accept the result")
		Expect(hub.issues(ctx)).To(HaveExactElements(And(HaveKeyWithValue("title", "Tell readiness from health"), HaveKeyWithValue("state", "open"))))
	})

	It("ends as a person says, and leaves the pull request to people", func(ctx SpecContext) {
		answer(ctx, openQuestion(ctx, "accept the result"))
		alice.axiom(ctx, "resume", runName)
		Eventually(func(g Gomega) {
			run := supervisedRun(ctx)
			g.Expect(run.Status.Phase).To(Equal(api.RunCompleted), "%v", run.Status.Conditions)
			g.Expect(run.Status.Outcome).To(Equal("accepted"))
		}).Should(Succeed())
		Expect(hub.get(ctx, "/pulls?state=open")).To(HaveLen(1))
		Expect(alice.axiom(ctx, "run", "show", runName)).To(MatchRegexp(`accept\[1\]/ask#1 .* by alice`))
		Eventually(func(g Gomega) { g.Expect(agentPods(ctx)).To(BeEmpty()) }).Should(Succeed())
	})
})

// forge is one that runs beside the cluster, with the workflow and the repository to change.
type forge struct {
	server *giteaserver.Server
	// workflows and app are the URLs of its repositories.
	workflows, app string
}

// openForge starts it, and has the operator talk to it and nothing else.
func openForge(ctx context.Context) *forge {
	GinkgoHelper()
	address := os.Getenv("E2E_HOST")
	Expect(address).NotTo(BeEmpty(), "E2E_HOST must be the address at which pods find this machine")
	server := giteaserver.StartOn(GinkgoTB(), root, address)
	documents, err := filepath.Glob(root + "config/samples/adversarial-implementation/*.md")
	Expect(err).NotTo(HaveOccurred())
	flows := GinkgoT().TempDir()
	Expect(documents).NotTo(BeEmpty())
	for _, document := range documents {
		text, err := os.ReadFile(document)
		Expect(err).NotTo(HaveOccurred())
		writeFile(filepath.Join(flows, filepath.Base(document)), string(text))
	}
	f := &forge{server: server, workflows: server.Push(GinkgoTB(), "workflows", flows), app: server.Push(GinkgoTB(), "app", cast+"app")}
	f.allow(ctx)
	return f
}

// allow has the operator talk to the forge, until the end of the suite.
func (f *forge) allow(ctx context.Context) {
	GinkgoHelper()
	host := strings.TrimPrefix(f.server.URL, "http://")
	text, err := os.ReadFile(cast + "remotes.yaml")
	Expect(err).NotTo(HaveOccurred())
	allowed := filepath.Join(GinkgoT().TempDir(), "remotes.yaml")
	writeFile(allowed, strings.ReplaceAll(string(text), "HOST", host))
	administrator.do(ctx, "-n", "axiom-system", "apply", "-f", allowed)
	DeferCleanup(func(ctx SpecContext) { administrator.do(ctx, "-n", "axiom-system", "delete", "-f", allowed) })
	Expect(cluster.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "forge", Labels: map[string]string{api.LabelCredential: "true"},
			Annotations: map[string]string{"axiom.apitomy.io/hosts": host},
		},
		StringData: map[string]string{"username": giteaserver.User, "password": f.server.Token, "token": f.server.Token},
	})).To(Succeed())
}

// get reads a list of the repository that is changed.
func (f *forge) get(ctx context.Context, path string) []any {
	GinkgoHelper()
	value, err := f.server.Call(ctx, http.MethodGet, "/repos/"+giteaserver.User+"/app"+path, nil)
	Expect(err).NotTo(HaveOccurred())
	list, isList := value.([]any)
	Expect(isList).To(BeTrue(), "%v", value)
	return list
}

// issues are those that are no pull requests.
func (f *forge) issues(ctx context.Context) []any {
	GinkgoHelper()
	return f.get(ctx, "/issues?state=all&type=issues")
}

func supervisedRun(ctx context.Context) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{}
	Expect(cluster.Get(ctx, key(runName), run)).To(Succeed())
	return run
}

// output is what an activation of the run gave, as compact JSON.
func output(run *api.WorkflowRun, activation string) string {
	GinkgoHelper()
	for _, entry := range run.Status.History.Entries {
		if entry.Activation != activation || entry.Output == nil {
			continue
		}
		data, err := json.Marshal(entry.Output)
		Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	Fail("the history has no output of " + activation)
	return ""
}

// openQuestion waits until the run is suspended at a gate.
func openQuestion(ctx context.Context, purpose string) *api.HumanTask {
	GinkgoHelper()
	task := &api.HumanTask{}
	Eventually(func(g Gomega) {
		run := supervisedRun(ctx)
		g.Expect(run.Status.Phase).To(Equal(api.RunSuspended), "%v", run.Status.Conditions)
		g.Expect(run.Status.Intents).To(HaveLen(1))
		g.Expect(cluster.Get(ctx, key(run.Status.Intents[0].Task), task)).To(Succeed())
		g.Expect(task.Spec.HumanContext.Title).To(Equal(purpose))
	}).Should(Succeed())
	return task
}

// answer is a person's consent.
func answer(ctx context.Context, task *api.HumanTask) {
	GinkgoHelper()
	alice.do(ctx, "patch", "ht", task.Name, "--subresource=status", "--type=merge", "-p", consent)
}

// axiom is a command of ours that must succeed.
func (p person) axiom(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := testenv.Command(ctx, root+"bin/linux/axiom", append([]string{"--namespace", namespace, "--as", p.name}, args...)...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// agentPods are those of the run's sessions.
func agentPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(cluster.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{api.LabelComponent: api.ComponentAgent})).To(Succeed())
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !strings.HasPrefix(pod.Labels[api.LabelSession], runName+"-") })
}
