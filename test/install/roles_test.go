package install

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	looks   = []string{"get", "list", "watch"}
	changes = []string{"create", "update", "patch", "delete"}
	answers = []string{"update", "patch"}

	drafts = []string{"compositions", "turns", "agentsessions", "sessiontemplates", "actiontypes", "tools"}
	work   = []string{"workflowruns", "streamevents", "humantasks"}
	// nobody's: what is written to them belongs to the operator.
	results = []string{"workflowruns/status", "turns/status", "compositions/status", "agentsessions/status"}
)

// right is a verb on a resource.
type right struct{ verb, resource string }

func rights(verbs, resources []string) (all []right) {
	for _, verb := range verbs {
		for _, resource := range resources {
			all = append(all, right{verb, resource})
		}
	}
	return all
}

var _ = DescribeTable("people may do what their role says and no more",
	func(ctx context.Context, role string, may []right) {
		apply(ctx, inRepository("config", "default"))
		person := "who-is-" + role
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: person, Namespace: "team-a"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: person}},
		})).To(Succeed())
		// The authorizer sees a binding with some delay.
		Eventually(allowed).WithArguments(ctx, person, "team-a", may[0]).Should(BeTrue())
		all := slices.Concat(rights(slices.Concat(looks, changes), slices.Concat(drafts, work)), rights(answers, append(slices.Clone(results), "humantasks/status")))
		for _, r := range all {
			Expect(allowed(ctx, person, "team-a", r)).To(Equal(slices.Contains(may, r)), "%s: %s %s", role, r.verb, r.resource)
			Expect(allowed(ctx, person, "team-b", r)).To(BeFalse(), "%s elsewhere: %s %s", role, r.verb, r.resource)
		}
		for _, resource := range []string{"secrets", "pods"} {
			Expect(allowed(ctx, person, "team-a", right{"get", resource})).To(BeFalse(), "%s: %s", role, resource)
		}
	},
	Entry("viewer", "axiom-viewer", rights(looks, slices.Concat(drafts, work))),
	Entry("composer", "axiom-composer", slices.Concat(rights(looks, slices.Concat(drafts, work)), rights(changes, drafts))),
	Entry("operator", "axiom-operator", slices.Concat(rights(looks, slices.Concat(drafts, work)), rights(changes, work))),
	Entry("answerer", "axiom-task-answerer", slices.Concat(rights(looks, []string{"humantasks"}), rights(answers, []string{"humantasks/status"}))),
)

func allowed(ctx context.Context, person, namespace string, r right) bool {
	GinkgoHelper()
	what := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: r.verb, Resource: r.resource, Group: "axiom.apitomy.io"}
	if r.resource == "secrets" || r.resource == "pods" {
		what.Group = ""
	}
	if base, sub, isSub := strings.Cut(r.resource, "/"); isSub {
		what.Resource, what.Subresource = base, sub
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: person, ResourceAttributes: what}}
	Expect(admin.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

var _ = It("the role that sums up is made of all of them, and so are the built-in ones", func(ctx context.Context) {
	apply(ctx, inRepository("config", "default"))
	sums := map[string][]string{}
	for _, name := range []string{"axiom-viewer", "axiom-composer", "axiom-operator", "axiom-task-answerer"} {
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: name}, role)).To(Succeed())
		for label := range role.Labels {
			sums[label] = append(sums[label], name)
		}
	}
	Expect(sums).To(Equal(map[string][]string{
		"rbac.authorization.k8s.io/aggregate-to-view":  {"axiom-viewer"},
		"rbac.authorization.k8s.io/aggregate-to-edit":  {"axiom-composer", "axiom-operator", "axiom-task-answerer"},
		"rbac.authorization.k8s.io/aggregate-to-admin": {"axiom-composer", "axiom-operator", "axiom-task-answerer"},
		"axiom.apitomy.io/aggregate-to-editor":         {"axiom-viewer", "axiom-composer", "axiom-operator", "axiom-task-answerer"},
	}))
	editor := &rbacv1.ClusterRole{}
	Expect(admin.Get(ctx, types.NamespacedName{Name: "axiom-editor"}, editor)).To(Succeed())
	Expect(editor.AggregationRule.ClusterRoleSelectors).To(Equal([]metav1.LabelSelector{{
		MatchLabels: map[string]string{"axiom.apitomy.io/aggregate-to-editor": "true"},
	}}))
})
