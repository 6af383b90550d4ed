package actions

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
)

// posts has the pod's wrapper tell the gateway a result, and wants an answer.
func (w *world) posts(pod *corev1.Pod, result string, want int) {
	GinkgoHelper()
	Expect(w.answers(pod, w.tokenOf(pod), result)).To(Equal(want))
}

func (w *world) tokenOf(pod *corev1.Pod) string {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(pod), secret)).To(Succeed())
	return string(secret.Data["token"])
}

func (w *world) answers(pod *corev1.Pod, token, result string) int {
	GinkgoHelper()
	pool := x509.NewCertPool()
	Expect(pool.AppendCertsFromPEM(keeper.CA())).To(BeTrue())
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	url := fmt.Sprintf("https://%s/api/v1/attempts/%s/%s/result", w.address, w.namespace, pod.Name)
	var code int
	Eventually(func(g Gomega) { // the gateway may be on its way up
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, url, bytes.NewBufferString(result))
		g.Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Axiom-Session-Token", token)
		answer, err := web.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.Copy(io.Discard, answer.Body)
		code = answer.StatusCode
	}).Should(Succeed())
	return code
}

const good = `{"exitCode":0,"outputs":{"score":7}}`

var _ = Describe("The result of an attempt", func() {
	// starts opens the only attempt of a run.
	starts := func(w *world) (*api.WorkflowRun, *corev1.Pod) {
		GinkgoHelper()
		w.grants()
		w.compose("job", once, work)
		run, pod := w.run("job-1", "job", inputs(`{"ref":"r"}`)), &corev1.Pod{}
		w.opens(run, "work#1", 1, pod)
		return run, pod
	}

	It("counts once, although the answer was lost and it is posted again", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		run, pod := starts(w)
		token := w.tokenOf(pod)
		Expect(w.answers(pod, token, good)).To(Equal(204)) // which nobody hears
		Expect(w.answers(pod, token, `{"outputs":{"score":7.0},"exitCode":0}`)).To(BeElementOf(204, 401), "401 once the attempt is closed")
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"score":7}`))
		w.leavesNothing(run)
		Expect(w.answers(pod, token, good)).To(Equal(401), "the token goes with the attempt")
	})

	It("stays what it was when another one is posted", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run, pod := starts(w)
		By("holding the operator's controllers back, but not its gateway")
		stop()
		w.operate(func(p *process) { p.wrap = idle })
		w.posts(pod, good, 204)
		w.posts(pod, `{"exitCode":1}`, 409)
		w.posts(pod, good, 204)
		Expect(w.answers(pod, "somebody-elses", good)).To(Equal(401))
		_ = run
	})

	It("is not lost with the pod that is gone before it is read", func(ctx SpecContext) {
		w := newWorld(ctx)
		stop := w.operate()
		run, pod := starts(w)
		stop()
		quit := w.operate(func(p *process) { p.wrap = idle })
		w.posts(pod, good, 204)
		quit()
		By("losing the pod while nobody looks")
		w.becomes(pod, kubelet.Ends(0))
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		w.operate()
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("done"))
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"score":7}`))
		w.leavesNothing(run)
	})

	It("of a former attempt is dropped", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.grants()
		w.compose("job", job, work)
		run, first, second := w.run("job-1", "job", inputs(`{"ref":"r"}`)), &corev1.Pod{}, &corev1.Pod{}
		w.opens(run, "work#1", 1, first)
		w.becomes(first, kubelet.Evicted("low on memory"))
		sees(w, run, func(g Gomega, run *api.WorkflowRun) { g.Expect(branchOf(run, "work#1").Attempt).To(Equal(int32(2))) })
		By("storing it as a gateway would that was slow")
		late := &corev1.ConfigMap{ObjectMeta: w.meta(first.Name), Data: map[string]string{"result.json": good}}
		late.Labels, late.OwnerReferences = map[string]string{api.LabelRun: string(run.UID)}, first.OwnerReferences
		Expect(admin.Create(ctx, late)).To(Succeed())
		Eventually(func() bool { return w.isGone(late) }).Should(BeTrue())
		w.advance(time.Minute+time.Second, run)
		w.opens(run, "work#1", 2, second)
		w.posts(second, `{"exitCode":0,"outputs":{"score":2}}`, 204)
		w.reaches(run, api.RunCompleted)
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"score":2}`))
	})

	DescribeTable("fails the attempt with",
		func(ctx SpecContext, result, code, message string) {
			w := newWorld(ctx)
			w.operate()
			run, pod := starts(w)
			w.posts(pod, result, 204)
			w.reaches(run, api.RunCompleted)
			Expect(failureOf(run, "work#1").Code).To(Equal(code))
			Expect(failureOf(run, "work#1").Message).To(Equal(message))
			w.leavesNothing(run)
		},
		Entry("its exit code", `{"exitCode":3}`, "EXIT_CODE", "the script ended with exit code 3"),
		Entry("a signal", `{"exitCode":137}`, "EXIT_CODE", "the script ended with exit code 137 (SIGKILL)"),
		Entry("outputs that break the contract", `{"exitCode":0,"outputs":{"score":"high"}}`, "OUTPUT_CONTRACT", "score: type number"),
		Entry("outputs that are too large", `{"exitCode":0,"error":{"code":"RESULT_TOO_LARGE","message":"the outputs are larger than 262144 bytes"}}`,
			"RESULT_TOO_LARGE", "the outputs are larger than 262144 bytes"),
		Entry("outputs that are none", `{"exitCode":0,"error":{"code":"INVALID_RESULT","message":"the outputs are no JSON object"}}`,
			"INVALID_RESULT", "the outputs are no JSON object"),
	)
})

// deafTo gives an operator whose cache never shows anything of a resource. What it
// reads live it sees.
func deafTo(resource, kind string) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("watch") == "true" && strings.HasSuffix(req.URL.Path, "/"+resource) {
				return nothingYet(req, kind), nil
			}
			return base.RoundTrip(req)
		})
	}
}

// idle is an operator that never hears of a run, while its gateway serves.
func idle(base http.RoundTripper) http.RoundTripper {
	return deafTo("workflowruns", `"kind":"WorkflowRun","apiVersion":"axiom.apitomy.io/v1alpha1"`)(base)
}

// nothingYet is the answer to a watch of what does not exist, and never will.
func nothingYet(req *http.Request, kind string) *http.Response {
	body, write := io.Pipe()
	context.AfterFunc(req.Context(), func() { _ = write.CloseWithError(req.Context().Err()) })
	go func() {
		_, _ = io.WriteString(write, `{"type":"BOOKMARK","object":{`+kind+`,"metadata":{"resourceVersion":"1",`+
			`"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1,
	}
}

var _ = Describe("The start of an attempt", func() {
	It("makes one pod, although the cache never shows it", func(ctx SpecContext) {
		w := newWorld(ctx)
		var created atomic.Int32
		w.operate(func(p *process) {
			p.wrap = func(base http.RoundTripper) http.RoundTripper {
				deaf := deafTo("pods", `"kind":"Pod","apiVersion":"v1"`)(base)
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					answer, err := deaf.RoundTrip(req)
					if err == nil && req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/pods") && answer.StatusCode == http.StatusCreated {
						created.Add(1)
					}
					return answer, err
				})
			}
		})
		w.grants()
		w.compose("job", once, work)
		run, pod := w.run("job-1", "job", inputs(`{"ref":"r"}`)), &corev1.Pod{}
		w.opens(run, "work#1", 1, pod)
		for range 5 {
			w.advance(time.Second, run)
		}
		w.posts(pod, good, 204)
		w.reaches(run, api.RunCompleted)
		Expect(created.Load()).To(Equal(int32(1)))
		Expect(outputOf(run, "work#1")).To(MatchJSON(`{"score":7}`))
	})

	It("fails where somebody else has the pod's name, and leaves theirs alone", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.grants()
		w.compose("job", once, work)
		run := w.run("job-1", "job", inputs(`{"ref":"r"}`))
		foreign := &corev1.Pod{ObjectMeta: w.meta(attemptName(run, "work#1", 1))}
		foreign.Spec = restrictedSpec()
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		w.operate()
		w.reaches(run, api.RunCompleted)
		Expect(failureOf(run, "work#1").Code).To(Equal("NAME_TAKEN"))
		w.leavesNothing(run)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.DeletionTimestamp).To(BeNil())
	})

	DescribeTable("is refused before anything is made",
		func(ctx SpecContext, prepare func(*world), given, actionTypes, code, message string) {
			w := newWorld(ctx)
			w.operate()
			prepare(w)
			w.compose("job", once, actionTypes)
			run := w.run("job-1", "job", inputs(given))
			w.reaches(run, api.RunCompleted)
			Expect(failureOf(run, "work#1").Code).To(Equal(code))
			Expect(failureOf(run, "work#1").Message).To(ContainSubstring(message))
			pods := &corev1.PodList{}
			Expect(admin.List(ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
			Expect(pods.Items).To(BeEmpty())
			w.leavesNothing(run)
		},
		Entry("for a Secret that does not exist", func(*world) {}, `{"ref":"r"}`, work,
			"SECRET_UNUSABLE", `secret "db" does not exist or lacks the label axiom.apitomy.io/credential=true`),
		Entry("for a Secret without the label", func(w *world) { w.grants(func(s *corev1.Secret) { s.Labels = nil }) }, `{"ref":"r"}`, work,
			"SECRET_UNUSABLE", `secret "db" does not exist or lacks the label axiom.apitomy.io/credential=true`),
		Entry("for a Secret without the key", func(w *world) {
			w.grants(func(s *corev1.Secret) { s.StringData = map[string]string{"user": "u"} })
		}, `{"ref":"r"}`, work, "SECRET_UNUSABLE", `secret "db" has no key "password"`),
		Entry("for an input that is missing", func(w *world) { w.grants() }, `{}`, work, "INPUT_CONTRACT", "ref: required"),
		Entry("for an input of another type", func(w *world) { w.grants() }, `{"ref":["r"]}`, work, "INPUT_CONTRACT", "ref: type string"),
		Entry("for an action type that nobody knows", func(*world) {}, `{"ref":"r"}`, "", "UNKNOWN_ACTION_TYPE", `there is no action type "work"`),
		Entry("for an action type with errors", func(*world) {}, `{"ref":"r"}`, "[{name: work, mode: script}]", "INVALID_ACTION_TYPE", "MISSING_SCRIPT"),
	)

	It("waits until a webhook that blocks it lets it through", func(ctx SpecContext) {
		w := newWorld(ctx)
		By("having a webhook refuse pods and everything of the operator's kinds")
		fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
		url := "https://127.0.0.1:1/nobody"
		blocker := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "blocker-"}}
		blocker.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
			Name: "blocker.example.invalid", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"", "axiom.apitomy.io"}, APIVersions: []string{"*"}, Resources: []string{"pods", "humantasks", "humantasks/status", "workflowruns/status"},
				},
			}},
		}}
		w.grants()
		w.compose("job", once, work)
		run, pod := w.run("job-1", "job", inputs(`{"ref":"r"}`)), &corev1.Pod{}
		Expect(admin.Create(ctx, blocker)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, blocker))).To(Succeed()) })
		var refused atomic.Int32
		w.operate(func(p *process) {
			p.wrap = func(base http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					answer, err := base.RoundTrip(req)
					if err == nil && req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/job-1/status") && answer.StatusCode >= 400 {
						refused.Add(1)
					}
					return answer, err
				})
			}
		})
		Eventually(refused.Load).Should(BeNumerically(">=", 2))
		Expect(admin.Delete(ctx, blocker)).To(Succeed())
		w.opens(run, "work#1", 1, pod)
		w.posts(pod, good, 204)
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.History.Total).To(Equal(int64(3)))
		w.leavesNothing(run)
	})
})

var _ = Describe("A suspended run", func() {
	suspended := func(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit }

	It("does not keep an attempt from timing out", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.grants()
		w.compose("job", strings.Replace(once, "    retry:", "    timeout: PT10M\n    retry:", 1), work)
		run, pod := w.run("job-1", "job", inputs(`{"ref":"r"}`), suspended), &corev1.Pod{}
		w.opens(run, "work#1", 1, pod)
		w.advance(10*time.Minute, run)
		w.reaches(run, api.RunCompleted)
		Expect(failureOf(run, "work#1").Code).To(Equal("ATTEMPT_TIMEOUT"))
		Expect(run.Status.ObservedResumeRequests).To(BeZero())
		w.leavesNothing(run)
	})

	It("holds the expiry of a task until somebody asks for the resume", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.operate()
		w.compose("ask", strings.NewReplacer("timeout: P2D", "timeout: PT1H").Replace(question), "")
		run, task := w.run("ask-1", "ask", suspended), &api.HumanTask{}
		w.opens(run, "ask#1", 0, task)
		w.advance(2*time.Hour, task, run)
		sees(w, task, func(g Gomega, task *api.HumanTask) { g.Expect(task.Status.Phase).To(Equal(api.TaskExpired)) })
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(run.Status.Phase).To(Equal(api.RunSuspended))
			g.Expect(branchOf(run, "ask#1")).NotTo(BeNil())
		})
		By("refusing an answer that comes after it")
		Expect(ada.Status().Patch(ctx, task, merge(`{"status":{"answer":{"ok":true}}}`))).To(MatchError(ContainSubstring("the task is closed: Expired")))
		Expect(bob.Patch(ctx, run, merge(`{"spec":{"resumeRequests":1}}`))).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(run.Status.Outcome).To(Equal("lapsed"))
	})
})

// question asks the managers, and goes on when nobody answers.
const question = `
id: question
name: Question
nodes:
- {id: start, type: start, name: Start}
- {id: ask, type: human-task, name: Ask, config: {title: "'Well?'", description: Decide., outputs: [{name: ok, type: boolean, required: true}], assignees: {groups: [managers]}, timeout: P2D}}
- {id: done, type: end, name: Done, config: {outcome: answered}}
- {id: lapsed, type: end, name: Lapsed, config: {outcome: lapsed}}
- {id: declined, type: end, name: Declined, config: {outcome: declined}}
edges:
- {id: e1, source: start, target: ask}
- {id: e2, source: ask, target: done}
- {id: e3, source: ask, target: lapsed, isTimeout: true}
- {id: e4, source: ask, target: declined, isError: true}
`
