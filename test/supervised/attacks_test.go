package supervised

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// A lure is a place that is not meant to learn the run's credentials.
type lure struct {
	server     *gitserver.Server
	repository *gitserver.Repository
}

func (w *world) lures() lure {
	GinkgoHelper()
	server := gitserver.Start(GinkgoTB())
	repository := server.Create(GinkgoTB(), "team/app")
	repository.Commit("main", map[string]gitserver.FileSpec{"README.md": {Content: "# Lure\n"}})
	return lure{server, repository}
}

// allows a host of repositories beside the one there is.
func (w *world) allows(server *gitserver.Server, more string) {
	GinkgoHelper()
	host, err := url.Parse(server.URL)
	Expect(err).NotTo(HaveOccurred())
	w.lists("git", "- {host: \""+host.Host+"\""+more+"}\n")
}

// lists more of what the world's operator may talk to.
func (w *world) lists(kind, entry string) {
	GinkgoHelper()
	list := &corev1.ConfigMap{ObjectMeta: w.meta("axiom-remotes")}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(list), list)).To(Succeed())
	list.Data[kind] += entry
	Expect(admin.Update(w.ctx, list)).To(Succeed())
}

// opens a run about a repository with credentials of its own.
func (w *world) opens(repository, secret string) *api.WorkflowRun {
	GinkgoHelper()
	return w.starts("notes", w.defines(publishing), map[string]any{"repository": repository, "text": ""}, func(run *api.WorkflowRun) {
		run.Spec.Credentials[0].SecretRef.Name = secret
	})
}

// keeps a Secret like the world's, with another label or for another host.
func (w *world) keeps(name string, change func(*corev1.Secret)) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: w.meta("git")}
	Expect(admin.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: secret.Labels, Annotations: secret.Annotations}
	change(secret)
	Expect(admin.Create(w.ctx, secret)).To(Succeed())
}

// told are the requests about the project that came with credentials.
func (w *world) told() []gitserver.Request {
	return slices.DeleteFunc(w.git.Requests(), func(r gitserver.Request) bool { return r.Repository != "team/app" || !r.Authorized })
}

var _ = Describe("Credentials of a supervised run", func() {
	DescribeTable("supervised 50: do not leave for",
		func(ctx SpecContext, prepare func(w *world, l lure) (repository, secret string), failure string) {
			w := newWorld(ctx)
			w.project.Commit("main", map[string]gitserver.FileSpec{"README.md": {Content: "# App\n"}})
			l := w.lures()
			repository, secret := prepare(w, l)
			w.operate()
			Expect(w.fails(w.opens(repository, secret))).To(Equal(failure))
			Expect(l.server.Requests()).To(BeEmpty())
			Expect(w.told()).To(BeEmpty())
		},
		Entry("a host that is not listed", func(_ *world, l lure) (string, string) {
			return l.repository.URL, "git"
		}, "open#1 REMOTE_NOT_ALLOWED"),
		Entry("a private address", func(w *world, l lure) (string, string) {
			w.allows(l.server, "")
			w.keeps("lured", func(s *corev1.Secret) {
				s.Annotations["axiom.apitomy.io/hosts"] = strings.TrimPrefix(l.server.URL, "https://")
			})
			return l.repository.URL, "lured"
		}, "open#1 REMOTE_NOT_ALLOWED"),
		Entry("a host that the Secret does not name", func(w *world, l lure) (string, string) {
			w.allows(l.server, ", private: true")
			return l.repository.URL, "git"
		}, "open#1 CREDENTIALS_REFUSED"),
		Entry("a locator with credentials of its own", func(w *world, _ lure) (string, string) {
			return "https://ada:pw@" + w.project.URL[len("https://"):], "git"
		}, "open#1 LOCATOR_INVALID"),
		Entry("a Secret without the label", func(w *world, _ lure) (string, string) {
			w.keeps("bare", func(s *corev1.Secret) { s.Labels = nil })
			return w.project.URL, "bare"
		}, "open#1 CREDENTIALS_REFUSED"),
		Entry("a Secret for another host", func(w *world, _ lure) (string, string) {
			w.keeps("other", func(s *corev1.Secret) { s.Annotations["axiom.apitomy.io/hosts"] = "git.example.com" })
			return w.project.URL, "other"
		}, "open#1 CREDENTIALS_REFUSED"),
	)

	It("supervised 50: do not follow a redirect", func(ctx SpecContext) {
		w := newWorld(ctx)
		l := w.lures()
		w.allows(l.server, ", private: true")
		w.git.Answer(func(answer http.ResponseWriter, request *http.Request) bool {
			isMeant := strings.HasPrefix(request.URL.Path, "/team/app")
			if isMeant {
				http.Redirect(answer, request, l.server.URL+request.URL.RequestURI(), http.StatusTemporaryRedirect)
			}
			return isMeant
		})
		w.operate()
		run := w.opens(w.project.URL, "git")
		sees(w, run, func(g Gomega, run *api.WorkflowRun) {
			g.Expect(run.Status.Intents).To(HaveLen(1))
			g.Expect(run.Status.Intents[0].Reason).To(Equal(string(effect.ReasonServer)))
		})
		Expect(l.server.Requests()).To(BeEmpty())
	})
})
