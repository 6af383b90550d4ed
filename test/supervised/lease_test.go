package supervised

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
)

// roundTripper looks at requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

var _ = Describe("An operator that leads no more", func() {
	It("supervised 14: sends nothing to a remote, however it stands in its own eyes", func(ctx SpecContext) {
		w := newWorld(ctx)
		lease := &coordinationv1.Lease{ObjectMeta: w.meta("leader"), Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("this"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
		}}
		Expect(admin.Create(ctx, lease)).To(Succeed())
		var looks atomic.Int32
		w.operate(func(p *process) {
			p.leadership = controllers.Leadership{Lease: client.ObjectKeyFromObject(lease), Identity: "this"}
			p.wrap = func(base http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					if strings.HasSuffix(req.URL.Path, "/leases/leader") {
						looks.Add(1)
					}
					return base.RoundTrip(req)
				})
			}
		})
		run := w.publishes("notes", "All is well.\n")
		w.answers(w.checkpoint(run), `{"proceed":true}`)
		lease.Spec.HolderIdentity = new("another")
		Expect(admin.Update(ctx, lease)).To(Succeed())
		before := looks.Load()
		w.resumes(run)
		Eventually(looks.Load).Should(BeNumerically(">", before+3))
		Expect(w.git.Count("git-receive-pack")).To(BeZero())
		Expect(w.project.Head("agent/notes")).To(BeEmpty())

		lease.Spec.HolderIdentity = new("this")
		Expect(admin.Update(ctx, lease)).To(Succeed())
		w.reaches(run, api.RunCompleted)
		Expect(w.git.Count("git-receive-pack")).To(Equal(1))
	})
})
