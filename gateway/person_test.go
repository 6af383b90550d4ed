package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// person makes somebody with rights in the world's namespace, and returns the
// token that the cluster knows them by.
func (w *world) person(name string, rules ...rbacv1.PolicyRule) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: meta(w, name)}
	Expect(k8s.Create(w.ctx, account)).To(Succeed())
	role := &rbacv1.Role{ObjectMeta: meta(w, name), Rules: rules}
	Expect(k8s.Create(w.ctx, role)).To(Succeed())
	Expect(k8s.Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta(w, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: name}},
	})).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(w.ctx, account, request)).To(Succeed())
	// Roles reach the API server's authorizer with some delay.
	for _, rule := range rules {
		Eventually(func(g Gomega) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: w.username(name),
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: w.namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
				},
			}}
			g.Expect(k8s.Create(w.ctx, review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(BeTrue())
		}).Should(Succeed())
	}
	return request.Status.Token
}

func (w *world) username(person string) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", w.namespace, person)
}

// allow is a right over objects of the operator's kinds.
func allow(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{resource}, Verbs: verbs}
}

// as sends a request with a bearer token.
func (w *world) as(bearer, method, path string, body any) reply {
	GinkgoHelper()
	w.clock.Step(time.Second)
	other := *w
	other.headers = map[string]string{"Authorization": "Bearer " + bearer}
	return other.call(method, w.path(path), "", body)
}

const badBearer = "Missing or invalid bearer token"

var _ = Describe("People", func() {
	var w *world
	var token string

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx, interceptor.Funcs{})
		w.session("triage-agent", "triage")
		token = w.person("alice", allow("streamevents", "get", "list"), allow("tools", "get", "list"))
		w.event("e1", "push", "gh", "r1", nil)
	}, NodeTimeout(time.Minute))

	It("are who the cluster says they are", func(ctx context.Context) {
		w.ctx = ctx
		for _, path := range []string{"/stream/events", "/stream/events/e1", "/library/tools"} {
			Expect(w.as(token, "GET", path+"?namespace={ns}", nil).status).To(Equal(http.StatusOK), path)
			for _, bad := range []string{"nonsense", token + "x", "Bearer " + token} {
				expectProblem(w.as(bad, "GET", path+"?namespace={ns}", nil), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badBearer)
			}
			By("somebody who is neither a person nor a session")
			expectProblem(w.call("GET", w.path(path+"?namespace={ns}"), "", nil), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
		}
	}, NodeTimeout(time.Minute))

	It("may do here what they may do in the cluster", func(ctx context.Context) {
		w.ctx = ctx
		expectProblem(w.as(token, "GET", "/library/action-types?namespace={ns}", nil), http.StatusForbidden, openapi.ProblemCodeForbidden,
			w.username("alice")+" may not list actiontypes in namespace "+w.namespace)
		expectProblem(w.as(token, "GET", "/library/secrets?namespace={ns}", nil), http.StatusForbidden, openapi.ProblemCodeForbidden, "may not list secrets")
		expectProblem(w.as(token, "GET", "/stream/events?namespace=default", nil), http.StatusForbidden, openapi.ProblemCodeForbidden, "in namespace default")
		got := w.as(token, "POST", "/expressions/evaluate?namespace={ns}", `{"expression":"event.ref","scope":"correlation-event-key","eventId":"e1"}`)
		Expect(into[openapi.EvaluationResult](got).ValueJSON).To(Equal(`"r1"`))
	}, NodeTimeout(time.Minute))

	It("lose what is taken from them at once", func(ctx context.Context) {
		w.ctx = ctx
		Expect(w.as(token, "GET", "/library/tools?namespace={ns}", nil).status).To(Equal(http.StatusOK))
		Expect(k8s.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: meta(w, "alice")})).To(Succeed())
		Eventually(func() int { return w.as(token, "GET", "/library/tools?namespace={ns}", nil).status }).Should(Equal(http.StatusForbidden))
		Expect(k8s.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: meta(w, "alice")})).To(Succeed())
		Eventually(func() int { return w.as(token, "GET", "/library/tools?namespace={ns}", nil).status }).
			WithTimeout(30 * time.Second).Should(Equal(http.StatusUnauthorized))
	}, NodeTimeout(time.Minute))

	It("say which namespace they mean", func(ctx context.Context) {
		w.ctx = ctx
		for _, query := range []string{"", "?namespace=", "?namespace=..", "?namespace=a%2Fb", "?namespace=%00"} {
			expectProblem(w.as(token, "GET", "/library/tools"+query, nil), http.StatusBadRequest, openapi.ProblemCodeInvalid, "namespace must name")
		}
		By("a session has its own, whatever it says")
		w.clock.Step(time.Second)
		got := w.call("GET", "/api/v1/library/tools?namespace=default", tokenOf(w, "triage-agent"), nil)
		Expect(got.status).To(Equal(http.StatusOK))
	}, NodeTimeout(time.Minute))

	It("cannot use the routes of agents and runners", func(ctx context.Context) {
		w.ctx = ctx
		for _, r := range append(append([]route{}, compositionRoutes...), sessionRoutes...) {
			expectProblem(w.as(token, r.method, r.path, r.body), http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, badToken)
		}
	}, NodeTimeout(time.Minute))

	It("are asked to wait when they are too fast", func(ctx context.Context) {
		w.ctx = ctx
		other := *w
		other.headers = map[string]string{"Authorization": "bearer " + token}
		var last reply
		for range 41 {
			last = other.call("GET", w.path("/library/tools?namespace={ns}"), "", nil)
		}
		expectProblem(last, http.StatusTooManyRequests, openapi.ProblemCodeRateLimited, "Too many requests")
	}, NodeTimeout(time.Minute))
})

// event stores an event from outside.
func (w *world) event(name, kind, source, ref string, payload any) {
	GinkgoHelper()
	event := &api.StreamEvent{ObjectMeta: meta(w, name)}
	event.Spec = api.StreamEventSpec{ID: "id-of-" + name, Type: kind, EventSourceID: source, Ref: ref, Source: "github"}
	if payload != nil {
		event.Spec.Payload = raw(payload)
	}
	Expect(k8s.Create(w.ctx, event)).To(Succeed())
}
