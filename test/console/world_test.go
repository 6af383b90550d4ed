package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"

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
)

// A world is a namespace in which pods run.
type world struct {
	ctx       context.Context
	namespace string
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	ns := testenv.Namespace("console")
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

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// sample creates the composition of the samples, whose agent plays a book.
func (w *world) sample() {
	GinkgoHelper()
	for _, file := range []string{"playbook.yaml", "composition.yaml"} {
		data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "cve-triage", file))
		Expect(err).NotTo(HaveOccurred())
		object := client.Object(&api.Composition{})
		if file == "playbook.yaml" {
			object = &corev1.ConfigMap{}
		}
		Expect(yaml.UnmarshalStrict(data, object)).To(Succeed())
		object.SetNamespace(w.namespace)
		Expect(admin.Create(w.ctx, object)).To(Succeed())
	}
	w.settles("cve-triage")
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

// sends asks the agent of a composition, and waits until it is done.
func (w *world) sends(name, message string) {
	GinkgoHelper()
	turn := &api.Turn{ObjectMeta: w.meta(name)}
	turn.Spec.CompositionRef, turn.Spec.Message = &api.LocalRef{Name: "cve-triage"}, message
	Expect(admin.Create(w.ctx, turn)).To(Succeed())
	Eventually(func() api.TurnPhase { return w.turn(name).Status.State }).Should(Equal(api.TurnAwaitingResolution))
}

func (w *world) turn(name string) *api.Turn {
	GinkgoHelper()
	turn := &api.Turn{}
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, turn)).To(Succeed())
	return turn
}

func (w *world) task(name string) *api.HumanTask {
	GinkgoHelper()
	task := &api.HumanTask{}
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, task)).To(Succeed())
	return task
}

// asks creates a question to people.
func (w *world) asks(name string, spec api.HumanTaskSpec) {
	GinkgoHelper()
	task := &api.HumanTask{ObjectMeta: w.meta(name), Spec: spec}
	Expect(admin.Create(w.ctx, task)).To(Succeed())
}

// starts runs a workflow that is written as YAML.
func (w *world) starts(name, workflow, inputs string) {
	GinkgoHelper()
	data, err := yaml.YAMLToJSON([]byte(workflow))
	Expect(err).NotTo(HaveOccurred())
	comp := &api.Composition{ObjectMeta: w.meta(name)}
	comp.Spec.Goal = "Roll a release out once somebody has looked at it."
	comp.Spec.Workflow = &runtime.RawExtension{Raw: data}
	Expect(admin.Create(w.ctx, comp)).To(Succeed())
	w.settles(name)
	run := &api.WorkflowRun{ObjectMeta: w.meta(name)}
	run.Spec.CompositionRef.Name = name
	run.Spec.Inputs = &runtime.RawExtension{Raw: []byte(inputs)}
	Expect(admin.Create(w.ctx, run)).To(Succeed())
}

func (w *world) run(name string) *api.WorkflowRun {
	GinkgoHelper()
	run := &api.WorkflowRun{}
	Expect(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, run)).To(Succeed())
	return run
}

// opensTask waits for the question of a run.
func (w *world) opensTask(run string) string {
	GinkgoHelper()
	name := ""
	Eventually(func(g Gomega) {
		list := &api.HumanTaskList{}
		g.Expect(admin.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		for _, task := range list.Items {
			if ref := task.Spec.RunRef; ref != nil && ref.Name == run && task.Status.AnsweredBy == nil {
				name = task.Name
			}
		}
		g.Expect(name).NotTo(BeEmpty())
	}).Should(Succeed())
	return name
}

// A page is the console that somebody started, in a browser that was let in.
type page struct {
	ctx    context.Context
	link   string
	origin string
	client *http.Client
	// ends stops the program and returns its exit code.
	ends func() int
}

// serves has somebody start the console. The browser is not let in yet.
func (w *world) serves(who *testenv.KubeCtl, args ...string) *page {
	GinkgoHelper()
	running, stop := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	args = append([]string{"console", "--kubeconfig", who.Kubeconfig(), "-n", w.namespace}, args...)
	go func() {
		defer GinkgoRecover()
		code := cli.Run(running, command.Environment{
			Program: "axiom", Stdin: strings.NewReader(""), Stdout: writer, Stderr: GinkgoWriter,
			Getenv: func(string) string { return "" }, Version: command.Version{Version: "v0"},
		}, args, live.Commands(live.Options{Clock: clock.RealClock{}}))
		_ = writer.Close()
		ended <- code
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	address, err := url.Parse(strings.TrimSpace(line))
	Expect(err).NotTo(HaveOccurred())
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	p := &page{ctx: w.ctx, link: address.String(), origin: address.Scheme + "://" + address.Host, client: &http.Client{Jar: jar}}
	isOver, code := false, 0
	p.ends = func() int {
		if !isOver {
			isOver = true
			stop()
			code = <-ended
		}
		return code
	}
	DeferCleanup(func() { Expect(p.ends()).To(Equal(command.ExitOK)) })
	return p
}

// opens has somebody start the console and follow its link.
func (w *world) opens(who *testenv.KubeCtl) *page {
	GinkgoHelper()
	p := w.serves(who)
	response := p.sends(p.request(http.MethodGet, "", nil, p.link))
	Expect(response.StatusCode).To(Equal(http.StatusOK))
	return p
}

// request is one of the page; an absolute link wins over the path.
func (p *page) request(method, path string, body []byte, link ...string) *http.Request {
	GinkgoHelper()
	target := p.origin + path
	if len(link) > 0 {
		target = link[0]
	}
	request, err := http.NewRequestWithContext(p.ctx, method, target, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Origin", p.origin)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return request
}

// An answer is what came back, with its body.
type answer struct {
	*http.Response
	text string
}

func (p *page) sends(request *http.Request) answer {
	GinkgoHelper()
	response, err := p.client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{response, string(data)}
}

// gets reads JSON of the page.
func (p *page) gets(path string) any {
	GinkgoHelper()
	return p.sends(p.request(http.MethodGet, "/api/"+path, nil)).gives(http.StatusOK)
}

// posts writes JSON as the page does.
func (p *page) posts(path, body string) answer {
	GinkgoHelper()
	return p.sends(p.request(http.MethodPost, "/api/"+path, []byte(body)))
}

// gives expects a status and returns the JSON of the body.
func (a answer) gives(status int) any {
	GinkgoHelper()
	Expect(a.StatusCode).To(Equal(status), a.text)
	var value any
	Expect(json.Unmarshal([]byte(a.text), &value)).To(Succeed(), a.text)
	return value
}

// release asks a person, waits for nothing else, and asks again where the answer is no.
const release = `
id: release
name: Release
nodes:
- {id: start-1, type: start, name: Start, config: {inputs: [{name: ref, required: true}]}}
- id: approve
  type: human-task
  name: Approve
  config:
    title: "'Release ' + context.ref"
    description: Look at the risk, then say whether this goes out.
    inputs: {Change: context.ref}
    outputs:
    - {name: approved, type: boolean, required: true, label: Goes out}
    - {name: window, widget: select, label: When, options: [{label: Now, value: now}, {label: Tonight, value: night}]}
    - {name: note, widget: textarea, label: Note, description: "For those who come after you"}
- id: confirm
  type: human-task
  name: Confirm
  config:
    title: "'Confirm ' + context.ref"
    outputs: [{name: sure, type: boolean, required: true}]
- {id: done, type: end, name: Done, config: {outcome: released}}
- {id: refused, type: end, name: Refused, config: {outcome: refused}}
edges:
- {id: e1, source: start-1, target: approve}
- {id: e2, source: approve, target: confirm, condition: context.approved == true, priority: 0, isDefault: false}
- {id: e3, source: approve, target: refused, isDefault: true, priority: 1}
- {id: e4, source: confirm, target: approve, condition: context.sure == false, priority: 0, isDefault: false, label: think again}
- {id: e5, source: confirm, target: done, isDefault: true, priority: 1}
`
