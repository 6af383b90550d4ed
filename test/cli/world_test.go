package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/live"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A world is a namespace in which pods run.
type world struct {
	ctx       context.Context
	namespace string
	// git carries the program's requests to repositories; nil: as anybody's.
	git http.RoundTripper
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	ns := testenv.Namespace("cli")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	node := &kubelet.Kubelet{Client: admin, Namespace: ns.Name, Programs: programs, Log: GinkgoWriter}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return &world{ctx: ctx, namespace: ns.Name}
}

// sample creates the composition of the samples, with its playbook.
func (w *world) sample() {
	GinkgoHelper()
	for _, name := range []string{"playbook.yaml", "composition.yaml"} {
		out, err := root.Run(w.ctx, "", "create", "-n", w.namespace, "-f", filepath.Join(testenv.Root(), "config", "samples", "cve-triage", name))
		Expect(err).NotTo(HaveOccurred(), out)
	}
	w.settles("cve-triage")
}

// compose creates a composition with the blank workflow, whose agent plays a book.
func (w *world) compose(name, playbook string, how ...func(*api.Composition)) {
	GinkgoHelper()
	w.keeps(name, playbook)
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	blank, err := json.Marshal(workflow.Blank(name))
	Expect(err).NotTo(HaveOccurred())
	comp.Spec.Workflow = &runtime.RawExtension{Raw: blank}
	comp.Spec.Agent.Runtime.PlaybookRef = &api.KeyRef{Name: name, Key: "playbook.yaml"}
	for _, f := range how {
		f(comp)
	}
	Expect(admin.Create(w.ctx, comp)).To(Succeed())
	w.settles(name)
}

// keeps stores a playbook.
func (w *world) keeps(name, playbook string) {
	GinkgoHelper()
	Expect(admin.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: w.meta(name), Data: map[string]string{"playbook.yaml": playbook}})).To(Succeed())
}

// settles waits until the operator has seen the draft as it is.
func (w *world) settles(name string) *api.Composition {
	GinkgoHelper()
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(comp), comp)).To(Succeed())
		g.Expect(comp.Status.ObservedGeneration).To(Equal(comp.Generation))
		g.Expect(comp.Status.Snapshot).NotTo(BeEmpty())
	}).Should(Succeed())
	return comp
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// A call is one call of the program.
type call struct {
	stdout, stderr bytes.Buffer
	code           int
	stdin          string
}

// as has somebody call the program.
func (w *world) as(who *testenv.KubeCtl, args ...string) *call {
	GinkgoHelper()
	return w.calls(w.ctx, &call{}, who, args...)
}

// says is a call with something on standard input.
func (w *world) says(who *testenv.KubeCtl, stdin string, args ...string) *call {
	GinkgoHelper()
	return w.calls(w.ctx, &call{stdin: stdin}, who, args...)
}

func (w *world) calls(ctx context.Context, c *call, who *testenv.KubeCtl, args ...string) *call {
	GinkgoHelper()
	args = append(args, "--kubeconfig", who.Kubeconfig(), "-n", w.namespace)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c.code = cli.Run(ctx, command.Environment{
		Program: "axiom", Stdin: strings.NewReader(c.stdin), Stdout: &c.stdout, Stderr: &c.stderr,
		Getenv: func(string) string { return "" }, Version: command.Version{Version: "v0"},
	}, args, live.Commands(live.Options{Clock: clock.RealClock{}, Git: w.git}))
	GinkgoWriter.Printf("$ axiom %s\n%s%sexit code %d\n", strings.Join(args, " "), c.stdout.String(), c.stderr.String(), c.code)
	return c
}

// gives expects an exit code.
func (c *call) gives(code int) *call {
	GinkgoHelper()
	Expect(c.code).To(Equal(code), "%s%s", c.stdout.String(), c.stderr.String())
	return c
}

// value is what the call printed as JSON.
func (c *call) value() map[string]any {
	GinkgoHelper()
	object := map[string]any{}
	Expect(json.Unmarshal(c.stdout.Bytes(), &object)).To(Succeed(), "%s%s", c.stdout.String(), c.stderr.String())
	return object
}

// manifest is what the call printed as YAML.
func (c *call) manifest() map[string]any {
	GinkgoHelper()
	object := map[string]any{}
	Expect(yaml.UnmarshalStrict(c.stdout.Bytes(), &object)).To(Succeed())
	return object
}

// told compares both outputs with a file. What depends on the namespace is left out.
func (w *world) told(name string, c *call) {
	GinkgoHelper()
	got := "-- stdout --\n" + c.stdout.String() + "-- stderr --\n" + c.stderr.String()
	got = strings.ReplaceAll(got, w.namespace, "NAMESPACE")
	path := filepath.Join("testdata", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		Expect(os.WriteFile(path, []byte(got), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(got).To(Equal(string(want)))
}

// turn reads a turn.
func (w *world) turn(name string) *api.Turn {
	GinkgoHelper()
	turn := &api.Turn{}
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, turn)).To(Succeed())
	return turn
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
