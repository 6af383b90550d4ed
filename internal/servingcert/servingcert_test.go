package servingcert_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/apitomy/axiom-operator/internal/servingcert"
)

var (
	noon   = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	secret = types.NamespacedName{Namespace: "axiom-system", Name: "axiom-serving-cert"}
)

const day = 24 * time.Hour

// cluster is an API server in memory that counts writes.
type cluster struct {
	client.WithWatch
	clock  *clocktesting.FakeClock
	writes int
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{clock: clocktesting.NewFakeClock(noon)}
	c.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			c.writes++
			return inner.Create(ctx, object, opts...)
		},
		Update: func(ctx context.Context, inner client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			c.writes++
			return inner.Update(ctx, object, opts...)
		},
	})
	return c
}

func (c *cluster) keeper(names ...string) *servingcert.Keeper {
	return &servingcert.Keeper{
		Client: c, Secret: secret, DNSNames: names, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: c.clock,
	}
}

func ensure(t *testing.T, k *servingcert.Keeper) {
	t.Helper()
	if err := k.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// leaf is the certificate that a keeper serves.
func leaf(t *testing.T, k *servingcert.Keeper) *x509.Certificate {
	t.Helper()
	served, err := k.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// trusts tells whether who trusts the authority accepts what a keeper serves.
func trusts(t *testing.T, authority []byte, k *servingcert.Keeper, name string, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("there is no authority")
	}
	_, err := leaf(t, k).Verify(x509.VerifyOptions{
		Roots: roots, DNSName: name, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

func TestBeforeTheFirstLookThereIsNone(t *testing.T) {
	k := newCluster(t).keeper("a.svc")
	if _, err := k.GetCertificate(nil); !errors.Is(err, servingcert.ErrNotReady) || k.CA() != nil {
		t.Errorf("certificate error %v, authority %q", err, k.CA())
	}
}

func TestACertificateIsMadeAndServed(t *testing.T) {
	c := newCluster(t)
	k := c.keeper("a.svc", "b.svc")
	ensure(t, k)
	for _, name := range []string{"a.svc", "b.svc", "127.0.0.1"} {
		if err := trusts(t, k.CA(), k, name, noon); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if err := trusts(t, k.CA(), k, "c.svc", noon); err == nil {
		t.Error("it serves for any name")
	}
	if got := leaf(t, k); got.IsCA || !got.NotBefore.Before(noon) {
		t.Errorf("certificate is %+v", got)
	}
	stored := &corev1.Secret{}
	if err := c.Get(t.Context(), secret, stored); err != nil {
		t.Fatal(err)
	}
	if stored.Type != corev1.SecretTypeTLS || !bytes.Equal(stored.Data["ca.crt"], k.CA()) {
		t.Errorf("Secret is of type %s", stored.Type)
	}
	if _, err := tls.X509KeyPair(stored.Data["tls.crt"], stored.Data["tls.key"]); err != nil {
		t.Error(err)
	}
}

func TestAGoodCertificateIsLeftAlone(t *testing.T) {
	c := newCluster(t)
	first := c.keeper("a.svc", "b.svc")
	ensure(t, first)
	writes := c.writes
	c.clock.Step(200 * day)
	for name, k := range map[string]*servingcert.Keeper{
		"the same replica": first, "another replica": c.keeper("a.svc", "b.svc"), "one that needs fewer names": c.keeper("b.svc"),
	} {
		ensure(t, k)
		if leaf(t, k).SerialNumber.Cmp(leaf(t, first).SerialNumber) != 0 {
			t.Errorf("%s has another certificate", name)
		}
	}
	if c.writes != writes {
		t.Errorf("%d writes for nothing", c.writes-writes)
	}
}

func TestRenewal(t *testing.T) {
	for name, tc := range map[string]struct {
		after     time.Duration
		renewed   bool
		authority bool // that of before is kept
	}{
		"while much is left":                       {240 * day, false, true},
		"when a third is left":                     {244 * day, true, true},
		"when it has expired":                      {400 * day, true, true},
		"when the authority would not outlive it":  {9*365*day + day, true, false},
		"when the authority would just outlive it": {9*365*day - day, true, true},
		"when the authority has expired as well":   {11 * 365 * day, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			k := c.keeper("a.svc")
			ensure(t, k)
			before, authority := leaf(t, k), k.CA()
			c.clock.Step(tc.after)
			ensure(t, k)
			if renewed := leaf(t, k).SerialNumber.Cmp(before.SerialNumber) != 0; renewed != tc.renewed {
				t.Errorf("renewed %t, want %t", renewed, tc.renewed)
			}
			if kept := bytes.Equal(authority, k.CA()); kept != tc.authority {
				t.Errorf("authority kept %t, want %t", kept, tc.authority)
			}
			if err := trusts(t, k.CA(), k, "a.svc", c.clock.Now()); err != nil {
				t.Errorf("what is served is not trusted: %v", err)
			}
			// Its whole life, the authority is there to vouch for it.
			if err := trusts(t, k.CA(), k, "a.svc", leaf(t, k).NotAfter.Add(-time.Minute)); err != nil {
				t.Errorf("it outlives its authority: %v", err)
			}
		})
	}
}

func TestOtherNamesNeedAnotherCertificate(t *testing.T) {
	c := newCluster(t)
	first := c.keeper("a.svc")
	ensure(t, first)
	for name, k := range map[string]*servingcert.Keeper{
		"another name": c.keeper("a.svc", "new.svc"),
		"another address": {
			Client: c, Secret: secret, DNSNames: []string{"a.svc", "new.svc"}, Clock: c.clock,
			IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP("fd00::1")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ensure(t, k)
			if !bytes.Equal(k.CA(), first.CA()) {
				t.Error("pods that run would trust it no more")
			}
			if err := trusts(t, first.CA(), k, "new.svc", noon); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDamageIsMended(t *testing.T) {
	other := newCluster(t)
	stranger := other.keeper("a.svc")
	ensure(t, stranger)
	foreign := &corev1.Secret{}
	if err := other.Get(t.Context(), secret, foreign); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(map[string][]byte){
		"nothing is there":         func(data map[string][]byte) { clear(data) },
		"the certificate is cut":   func(data map[string][]byte) { data["tls.crt"] = data["tls.crt"][:100] },
		"the key is another":       func(data map[string][]byte) { data["tls.key"] = foreign.Data["tls.key"] },
		"the authority is another": func(data map[string][]byte) { data["ca.crt"] = foreign.Data["ca.crt"] },
		"the authority is no PEM":  func(data map[string][]byte) { data["ca.crt"] = []byte("x") },
		"the authority lost its key": func(data map[string][]byte) {
			delete(data, "ca.key")
			delete(data, "tls.key")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			ensure(t, c.keeper("a.svc"))
			stored := &corev1.Secret{}
			if err := c.Get(t.Context(), secret, stored); err != nil {
				t.Fatal(err)
			}
			if stored.Data == nil {
				stored.Data = map[string][]byte{}
			}
			damage(stored.Data)
			if err := c.Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			k := c.keeper("a.svc")
			ensure(t, k)
			if err := trusts(t, k.CA(), k, "a.svc", noon); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReplicasAgree(t *testing.T) {
	for name, before := range map[string]string{"on the first certificate": "create", "on a renewal": "update"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			faster := c.keeper("a.svc")
			if before == "update" {
				ensure(t, faster)
				c.clock.Step(300 * day)
			}
			raced := false
			once := func(at string) {
				if at == before && !raced {
					raced = true
					ensure(t, faster)
				}
			}
			slower := c.keeper("a.svc")
			slower.Client = interceptor.NewClient(c, interceptor.Funcs{
				Create: func(ctx context.Context, inner client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					once("create")
					return inner.Create(ctx, object, opts...)
				},
				Update: func(ctx context.Context, inner client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
					once("update")
					return inner.Update(ctx, object, opts...)
				},
			})
			ensure(t, slower)
			if !raced {
				t.Fatal("nobody was faster")
			}
			if !bytes.Equal(faster.CA(), slower.CA()) || leaf(t, faster).SerialNumber.Cmp(leaf(t, slower).SerialNumber) != 0 {
				t.Error("replicas serve different certificates")
			}
		})
	}
}

func configurations() []client.Object {
	side := func(name string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: name, Namespace: "axiom-system"}}
	}
	return []client.Object{
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "axiom-mutating-webhook-configuration"},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: "a", ClientConfig: side("a")}, {Name: "b", ClientConfig: side("b")}},
		},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "axiom-validating-webhook-configuration"},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "a", ClientConfig: side("a")}, {Name: "b", ClientConfig: side("b")}},
		},
	}
}

// bundles are the authorities of all webhooks.
func bundles(t *testing.T, c client.Client) (found []string) {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	for name, into := range map[string]client.Object{"axiom-mutating-webhook-configuration": mutating, "axiom-validating-webhook-configuration": validating} {
		if err := c.Get(t.Context(), types.NamespacedName{Name: name}, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range mutating.Webhooks {
		found = append(found, string(w.ClientConfig.CABundle))
	}
	for _, w := range validating.Webhooks {
		found = append(found, string(w.ClientConfig.CABundle))
	}
	return found
}

func TestWebhooksTrustTheAuthority(t *testing.T) {
	c := newCluster(t, configurations()...)
	k := c.keeper("a.svc")
	k.Webhooks = "axiom"
	ensure(t, k)
	for i, bundle := range bundles(t, c) {
		if bundle != string(k.CA()) {
			t.Errorf("webhook %d trusts %.30q", i, bundle)
		}
	}
	writes := c.writes
	if writes != 3 {
		t.Errorf("%d writes, want one for each of three objects", writes)
	}
	ensure(t, k)
	c.clock.Step(300 * day)
	ensure(t, k) // a new certificate of the same authority
	if c.writes != writes+1 {
		t.Errorf("%d writes since, want that of the Secret alone", c.writes-writes)
	}
}

func TestWebhooksAreTrustedDespiteAConflict(t *testing.T) {
	c := newCluster(t, configurations()...)
	raced := false
	k := c.keeper("a.svc")
	k.Webhooks = "axiom"
	k.Client = interceptor.NewClient(c, interceptor.Funcs{
		Update: func(ctx context.Context, inner client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			if config, isConfig := object.(*admissionv1.ValidatingWebhookConfiguration); isConfig && !raced {
				raced = true
				other := config.DeepCopy()
				other.Webhooks = other.Webhooks[:1] // somebody takes a webhook away
				if err := inner.Update(ctx, other); err != nil {
					t.Fatal(err)
				}
			}
			return inner.Update(ctx, object, opts...)
		},
	})
	ensure(t, k)
	if found := bundles(t, c); len(found) != 3 {
		t.Errorf("%d webhooks, want the one that was taken away to stay away", len(found))
	}
}

func TestAMissingConfigurationIsNamed(t *testing.T) {
	c := newCluster(t, configurations()[:1]...)
	k := c.keeper("a.svc")
	k.Webhooks = "axiom"
	err := k.Ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "axiom-validating-webhook-configuration") {
		t.Errorf("error %v", err)
	}
	// What is served does not depend on it.
	if _, err := k.GetCertificate(nil); err != nil {
		t.Error(err)
	}
}

func TestItIsCheckedEveryHour(t *testing.T) {
	c := newCluster(t)
	k := c.keeper("a.svc")
	ensure(t, k)
	before := leaf(t, k)
	checked := make(chan struct{}, 8)
	k.Client = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			err := inner.Get(ctx, key, object, opts...)
			checked <- struct{}{}
			return err
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Start(ctx) }()
	for !c.clock.HasWaiters() {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
	}
	c.clock.Step(300 * day)
	<-checked
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if leaf(t, k).SerialNumber.Cmp(before.SerialNumber) == 0 {
		t.Error("it was not renewed")
	}
	if k.NeedLeaderElection() {
		t.Error("only one replica would renew what it serves")
	}
}
