package servingcert_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/apitomy/axiom-operator/internal/servingcert"
)

const nineYears = 9*365*day + day

// listen serves TLS with whatever certificate the keeper has, until the test ends.
func listen(t *testing.T, k *servingcert.Keeper) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: k.GetCertificate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if secured, isTLS := connection.(*tls.Conn); isTLS {
				_ = secured.HandshakeContext(t.Context())
			}
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}

// presented is the certificate that a server shows to a caller that trusts the
// authorities at the keeper's time.
func presented(t *testing.T, c *cluster, address string, authorities []byte) (*x509.Certificate, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: "a.svc", RootCAs: roots, Time: c.clock.Now,
	}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func TestAServerThatRunsShowsTheRenewedCertificate(t *testing.T) {
	c := newCluster(t)
	k, other := c.keeper("a.svc"), c.keeper("a.svc")
	ensure(t, k)
	ensure(t, other)
	address := listen(t, k)
	before, err := presented(t, c, address, k.CA())
	if err != nil {
		t.Fatal(err)
	}
	c.clock.Step(300 * day)
	ensure(t, other) // another replica is the one that renews
	ensure(t, k)
	after, err := presented(t, c, address, k.CA())
	if err != nil {
		t.Fatal(err)
	}
	if after.SerialNumber.Cmp(before.SerialNumber) == 0 || after.SerialNumber.Cmp(leaf(t, other).SerialNumber) != 0 {
		t.Errorf("it shows %s, before %s, the other replica %s", after.SerialNumber, before.SerialNumber, leaf(t, other).SerialNumber)
	}
}

// keptFresh renews once a year, so that the authority grows old and the
// certificate does not.
func keptFresh(t *testing.T, c *cluster, k *servingcert.Keeper) {
	t.Helper()
	for range 13 {
		c.clock.Step(nineYears / 13)
		ensure(t, k)
	}
}

func TestTheOldAuthorityIsTrustedBesideTheNew(t *testing.T) {
	c := newCluster(t, configurations()...)
	k := c.keeper("a.svc")
	k.Webhooks = "axiom"
	ensure(t, k)
	old := k.CA()
	slower := c.keeper("a.svc") // loads what is there, and looks again only later
	for bytes.Equal(k.CA(), old) {
		ensure(t, slower)
		c.clock.Step(100 * day)
		ensure(t, k)
	}
	if !bytes.HasSuffix(k.CA(), old) || bytes.Count(k.CA(), []byte("BEGIN CERTIFICATE")) != 2 {
		t.Fatalf("authorities are %s", k.CA())
	}
	for i, bundle := range bundles(t, c) {
		if bundle != string(k.CA()) {
			t.Errorf("webhook %d trusts %.30q", i, bundle)
		}
	}
	for name, keeper := range map[string]*servingcert.Keeper{"the replica that renewed": k, "the one that did not look yet": slower} {
		if _, err := presented(t, c, listen(t, keeper), k.CA()); err != nil {
			t.Errorf("%s is not trusted: %v", name, err)
		}
	}
	if _, err := presented(t, c, listen(t, k), old); err == nil {
		t.Error("the new certificate is of the old authority")
	}
}

func TestAuthoritiesDoNotPileUp(t *testing.T) {
	c := newCluster(t)
	k := c.keeper("a.svc")
	ensure(t, k)
	for range 4 {
		keptFresh(t, c, k)
		if got := bytes.Count(k.CA(), []byte("BEGIN CERTIFICATE")); got > 2 {
			t.Fatalf("%d authorities are trusted", got)
		}
	}
}

func TestAForeignAuthorityIsNotKept(t *testing.T) {
	other := newCluster(t)
	stranger := other.keeper("a.svc")
	ensure(t, stranger)
	c := newCluster(t)
	k := c.keeper("a.svc")
	ensure(t, k)
	stored := &corev1.Secret{}
	if err := c.Get(t.Context(), secret, stored); err != nil {
		t.Fatal(err)
	}
	stored.Data["ca.crt"] = stranger.CA()
	if err := c.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	ensure(t, k)
	if bytes.Contains(k.CA(), stranger.CA()) {
		t.Error("an authority that vouches for nothing is trusted")
	}
}

func TestANewAuthorityIsTrustedBeforeItIsServed(t *testing.T) {
	c := newCluster(t, configurations()...)
	k := c.keeper("a.svc")
	k.Webhooks = "axiom"
	ensure(t, k)
	before := leaf(t, k)
	looked := 0
	k.Client = interceptor.NewClient(c, interceptor.Funcs{
		Update: func(ctx context.Context, inner client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			looked++
			if leaf(t, k).SerialNumber.Cmp(before.SerialNumber) != 0 {
				t.Error("it is served before everybody trusts it")
			}
			return inner.Update(ctx, object, opts...)
		},
	})
	c.clock.Step(nineYears)
	ensure(t, k)
	if looked != 3 || leaf(t, k).SerialNumber.Cmp(before.SerialNumber) == 0 {
		t.Errorf("%d writes, certificate %s", looked, leaf(t, k).SerialNumber)
	}
}

func TestSomebodyElsesCertificateIsOnlyLoaded(t *testing.T) {
	maker := newCluster(t)
	source := maker.keeper("a.svc")
	ensure(t, source)
	made := func() map[string][]byte {
		stored := &corev1.Secret{}
		if err := maker.Get(t.Context(), secret, stored); err != nil {
			t.Fatal(err)
		}
		delete(stored.Data, "ca.key") // whoever issues keeps that
		return stored.Data
	}
	c := newCluster(t, append(configurations(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Namespace: secret.Namespace}, Data: made(),
	})...)
	k := c.keeper("a.svc", "a name that it lacks.svc")
	k.External, k.Webhooks = true, "axiom"
	k.Adjust = func(config *admissionv1.ValidatingWebhookConfiguration) bool {
		added := config.Labels == nil
		config.Labels = map[string]string{"adjusted": "true"}
		return added
	}
	ensure(t, k)
	maker.clock.Step(300 * day)
	ensure(t, source)
	stored := &corev1.Secret{}
	if err := c.Get(t.Context(), secret, stored); err != nil {
		t.Fatal(err)
	}
	stored.Data = made()
	if err := c.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	writes := c.writes
	ensure(t, k)
	if leaf(t, k).SerialNumber.Cmp(leaf(t, source).SerialNumber) != 0 || !bytes.Equal(k.CA(), source.CA()) {
		t.Error("what was renewed is not served")
	}
	if writes != 2 || c.writes != writes { // the adjustment, and the Secret by this test
		t.Errorf("%d and then %d writes, want the adjustment alone", writes-1, c.writes-writes)
	}
	for i, bundle := range bundles(t, c) {
		if bundle != "" {
			t.Errorf("webhook %d trusts %.30q by our hand", i, bundle)
		}
	}
}

func TestSomebodyElsesCertificateIsAwaited(t *testing.T) {
	c := newCluster(t)
	k := c.keeper("a.svc")
	k.External = true
	if err := k.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), secret.Name) {
		t.Errorf("error %v", err)
	}
	if c.writes != 0 {
		t.Error("it was made")
	}
}
