package live

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

// hospital is an installation, well at first.
type hospital struct {
	t        *testing.T
	objects  map[string]client.Object
	lists    error
	admits   error
	forbids  []string
	isServed func(name string) bool
	serving  error
}

func authority(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: noon.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func homeMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "axiom-system", Name: name, Labels: map[string]string{managerLabel: managerValue}}
}

func newHospital(t *testing.T) *hospital {
	t.Helper()
	renewed := metav1.NewMicroTime(noon.Add(-5 * time.Second))
	bundle := admissionv1.WebhookClientConfig{CABundle: authority(t, noon.Add(300*24*time.Hour))}
	return &hospital{
		t: t, isServed: func(string) bool { return true },
		admits: apierrors.NewInvalid(schema.GroupKind{Kind: "HumanTask"}, "axiom-doctor-x", nil),
		objects: map[string]client.Object{
			"deployment": &appsv1.Deployment{
				ObjectMeta: homeMeta("axiom-controller-manager"), Status: appsv1.DeploymentStatus{ReadyReplicas: 2},
				Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "axiom:v1"}}}}},
			},
			"lease": &coordinationv1.Lease{
				ObjectMeta: homeMeta(leaseName), Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod-1"), RenewTime: &renewed, LeaseDurationSeconds: ptr.To[int32](15)},
			},
			"service": &corev1.Service{ObjectMeta: homeMeta("axiom-gateway"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "gateway"}}}},
			"slice": &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Namespace: "axiom-system", Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "axiom-gateway"}},
				Endpoints:  []discoveryv1.Endpoint{{}, {Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
			},
			"policy": &networkingv1.NetworkPolicy{
				ObjectMeta: homeMeta("axiom-controller-manager"), Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{managerLabel: managerValue}}},
			},
			"namespace": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}},
			"class":     &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}},
			"changing": &admissionv1.MutatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "turn.axiom.apitomy.io", ClientConfig: bundle}, {Name: "other.example.com"}},
			},
			"judging": &admissionv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "humantask.axiom.apitomy.io", ClientConfig: bundle}},
			},
		},
	}
}

func (h *hospital) examine() diagnosis {
	objects := []client.Object{}
	for _, object := range h.objects {
		objects = append(objects, object)
	}
	away := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			switch o := o.(type) {
			case *authorizationv1.SelfSubjectAccessReview:
				asked := o.Spec.ResourceAttributes
				o.Status.Allowed = asked.Namespace == "ns" && !slices.Contains(h.forbids, asked.Resource+"/"+asked.Subresource)
				return nil
			case *api.HumanTask:
				if !slices.Contains(options, client.CreateOption(client.DryRunAll)) {
					h.t.Error("a task is created for good")
				}
				return h.admits
			}
			return c.Create(ctx, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if h.lists != nil {
				return h.lists
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	served := func() (*metav1.APIResourceList, error) {
		list := &metav1.APIResourceList{}
		for _, name := range slices.Concat(resources, statuses) {
			if h.isServed(name) {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
		}
		return list, h.serving
	}
	c := &cluster{WithWatch: away, namespace: "ns", served: served}
	return (&doctor{cluster: c, clock: clocktesting.NewFakePassiveClock(noon), home: "axiom-system"}).examine(h.t.Context())
}

func TestSoundInstallation(t *testing.T) {
	found := newHospital(t).examine()
	p := &command.Page{}
	found.Tell(p)
	const want = `✓ api           axiom.apitomy.io/v1alpha1 is served with 9 kinds
✓ admission     an object that is not valid is refused
✓ certificate   the webhooks trust a certificate until 2027-02-28T12:00:00Z
✓ operator      2 of 2 replicas of axiom:v1 are ready
✓ leader        pod-1 leads
✓ gateway       Service axiom-system/axiom-gateway has 1 endpoint
✓ network       NetworkPolicy axiom-system/axiom-controller-manager guards the operator; whether the cluster enforces it cannot be seen
✓ rights        in namespace ns you may edit, ask, run and answer
✓ pod security  namespace ns lets only restricted pods in
✓ storage       homes of agents come from storage class fast
`
	if diff := cmp.Diff(want, p.String()); diff != "" || !found.Healthy {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

func TestWhatADoctorFinds(t *testing.T) {
	unreachable := apierrors.NewInternalError(errors.New(`failed calling webhook "humantask.axiom.apitomy.io": connection refused`))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: api.GroupVersion.Group, Resource: "humantasks"}, "", nil)
	for name, tc := range map[string]struct {
		harm                   func(h *hospital)
		check, status, message string
	}{
		"no API": {func(h *hospital) { h.serving = apierrors.NewNotFound(schema.GroupResource{}, "") }, "api", isBroken, "the cluster does not serve axiom.apitomy.io/v1alpha1"},
		"an old API": {
			func(h *hospital) {
				h.isServed = func(name string) bool { return name != "turns" && name != "tools/status" }
			}, "api", isBroken, "lacks turns, tools/status",
		},
		"no webhooks":          {func(h *hospital) { h.admits = nil }, "admission", isBroken, "not in force"},
		"unreachable webhooks": {func(h *hospital) { h.admits = unreachable }, "admission", isBroken, "connection refused"},
		"no right to try":      {func(h *hospital) { h.admits = forbidden }, "admission", isHidden, "humantasks"},
		"no configuration": {
			func(h *hospital) { delete(h.objects, "changing"); delete(h.objects, "judging") }, "certificate", isBroken, "there are no webhooks",
		},
		"no bundle": {func(h *hospital) {
			h.objects["judging"] = &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "tool.axiom.apitomy.io"}}}
		}, "certificate", isBroken, "webhook tool.axiom.apitomy.io trusts nobody"},
		"an old bundle": {func(h *hospital) {
			h.objects["changing"].(*admissionv1.MutatingWebhookConfiguration).Webhooks[0].ClientConfig.CABundle = authority(h.t, noon)
		}, "certificate", isBroken, "webhook turn.axiom.apitomy.io trusts expired at 2026-05-04T12:00:00Z"},
		"a bundle at its end": {func(h *hospital) {
			h.objects["changing"].(*admissionv1.MutatingWebhookConfiguration).Webhooks[0].ClientConfig.CABundle = authority(h.t, noon.Add(24*time.Hour))
		}, "certificate", isDoubted, "expires at 2026-05-05T12:00:00Z"},
		"no operator":     {func(h *hospital) { delete(h.objects, "deployment") }, "operator", isBroken, "no operator in namespace axiom-system"},
		"a dead operator": {func(h *hospital) { h.objects["deployment"].(*appsv1.Deployment).Status.ReadyReplicas = 0 }, "operator", isBroken, "no replica of axiom:v1"},
		"half an operator": {
			func(h *hospital) { h.objects["deployment"].(*appsv1.Deployment).Status.ReadyReplicas = 1 }, "operator", isDoubted, "1 of 2 replicas",
		},
		"no lease":     {func(h *hospital) { delete(h.objects, "lease") }, "leader", isDoubted, "nobody has led yet"},
		"a free lease": {func(h *hospital) { h.objects["lease"].(*coordinationv1.Lease).Spec.HolderIdentity = nil }, "leader", isBroken, "nobody leads"},
		"a late leader": {func(h *hospital) {
			h.objects["lease"].(*coordinationv1.Lease).Spec.LeaseDurationSeconds = ptr.To[int32](2)
		}, "leader", isBroken, "not renewed its lead for 5s"},
		"no gateway":   {func(h *hospital) { delete(h.objects, "service") }, "gateway", isBroken, "has the port gateway"},
		"no endpoints": {func(h *hospital) { delete(h.objects, "slice") }, "gateway", isBroken, "leads nowhere"},
		"no policy":    {func(h *hospital) { delete(h.objects, "policy") }, "network", isDoubted, "guards the operator"},
		"few rights": {
			func(h *hospital) { h.forbids = []string{"humantasks/status", "configmaps/"} }, "rights", isDoubted, "you may not patch humantasks/status, get configmaps",
		},
		"lax pods":      {func(h *hospital) { h.objects["namespace"].SetLabels(nil) }, "pod security", isDoubted, "does not ask pods to be restricted"},
		"no namespace":  {func(h *hospital) { delete(h.objects, "namespace") }, "pod security", isBroken, "there is no namespace ns"},
		"no storage":    {func(h *hospital) { h.objects["class"].SetAnnotations(nil) }, "storage", isDoubted, "no default storage class"},
		"hidden things": {func(h *hospital) { h.lists = forbidden }, "operator", isHidden, "forbidden"},
		"no cluster":    {func(h *hospital) { h.lists = errors.New("connection reset") }, "gateway", isBroken, "connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHospital(t)
			tc.harm(h)
			result := h.examine()
			at := slices.IndexFunc(result.Checks, func(f finding) bool { return f.Check == tc.check })
			found := result.Checks[at]
			if found.Status != tc.status || !strings.Contains(found.Message, tc.message) || found.Todo == "" {
				t.Errorf("found %+v", found)
			}
			if wants := !slices.ContainsFunc(result.Checks, func(f finding) bool { return f.Status == isBroken }); result.Healthy != wants {
				t.Errorf("healthy is %t", result.Healthy)
			}
			p := &command.Page{}
			result.Tell(p)
			if !strings.Contains(p.String(), "→ "+found.Todo+"\n") {
				t.Errorf("it does not say what to do\n%s", p)
			}
		})
	}
}
