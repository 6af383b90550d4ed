// Package servingcert gives the operator's webhook and gateway their serving
// certificate: an authority of the operator's own, kept in one Secret that all
// replicas share, and a certificate signed by it that is renewed in time.
//
// The authority stays as long as it outlives a new certificate, since pods and
// webhook configurations trust the one they were given. When it is replaced, the
// one before stays trusted beside it until it expires, for replicas that have not
// loaded the new certificate yet.
//
// The certificate may also be somebody else's work, such as cert-manager's: then it
// is loaded, and loaded again when it changes, and nothing is written.
package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the Secret.
const (
	keyAuthority     = "ca.crt"
	keyAuthorityKey  = "ca.key"
	keyCertificate   = corev1.TLSCertKey
	keyPrivate       = corev1.TLSPrivateKeyKey
	checkEvery       = time.Hour
	certificateLife  = 365 * 24 * time.Hour
	authorityLife    = 10 * certificateLife
	renewWhenLeft    = certificateLife / 3
	organisationName = "axiom-operator"
)

// ErrNotReady says that no certificate was loaded yet.
var ErrNotReady = errors.New("no serving certificate yet")

// Keeper keeps the certificate.
type Keeper struct {
	// Client reads and writes the API server without a cache.
	Client client.Client
	// Secret that holds the authority and the certificate.
	Secret types.NamespacedName
	// DNSNames and IPs that the certificate is for.
	DNSNames []string
	IPs      []net.IP
	// Webhooks is the prefix of the names of the webhook configurations that
	// shall trust the authority; empty: none.
	Webhooks string
	// Adjust changes the validating configuration in other ways at the same time
	// and tells whether it did; may be nil.
	Adjust func(*admissionv1.ValidatingWebhookConfiguration) bool
	// External says that somebody else keeps the Secret and what the webhook
	// configurations trust: the certificate is loaded and never made, and of the
	// configurations only what Adjust changes is written.
	External bool
	// Clock decides when to renew.
	Clock clock.WithTicker

	current atomic.Pointer[pair]
}

// pair is a loaded certificate and the authorities to trust for it.
type pair struct {
	certificate *tls.Certificate
	authority   []byte
}

// GetCertificate serves tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if loaded := k.current.Load(); loaded != nil {
		return loaded.certificate, nil
	}
	return nil, ErrNotReady
}

// CA returns the certificates of all authorities to trust, PEM, the one that signs
// first; nil before the first Ensure.
func (k *Keeper) CA() []byte {
	if loaded := k.current.Load(); loaded != nil {
		return loaded.authority
	}
	return nil
}

// Start renews the certificate until the context ends. It implements the
// manager's Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := k.Clock.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			if err := k.Ensure(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Serving certificate could not be checked")
			}
		}
	}
}

// NeedLeaderElection is false: every replica serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Ensure loads the certificate, after making or renewing it where needed, and
// has the webhook configurations trust it. Replicas may do so at once: the
// Secret's resource version decides who makes it, and the others load it.
//
// Callers are told to trust a new authority before its certificate is served; that
// they could not be told is an error that keeps nothing from being served.
func (k *Keeper) Ensure(ctx context.Context) error {
	var data map[string][]byte
	err := retry.OnError(retry.DefaultBackoff, isRace, func() error {
		var err error
		data, err = k.ensureSecret(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("ensure serving certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return fmt.Errorf("load serving certificate: %w", err)
	}
	err = k.trustAll(ctx, data[keyAuthority])
	k.current.Store(&pair{certificate: &certificate, authority: data[keyAuthority]})
	return err
}

func (k *Keeper) trustAll(ctx context.Context, ca []byte) error {
	if k.Webhooks == "" {
		return nil
	}
	if k.External {
		return k.trustValidating(ctx, nil)
	}
	return errors.Join(k.trustMutating(ctx, ca), k.trustValidating(ctx, ca))
}

func (k *Keeper) ensureSecret(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := k.Client.Get(ctx, k.Secret, secret)
	if k.External {
		return secret.Data, err
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && k.isGood(secret.Data) {
		return secret.Data, nil
	}
	renewed, makeErr := k.renewed(secret.Data)
	if makeErr != nil {
		return nil, makeErr
	}
	secret.Data = renewed
	if err == nil {
		return renewed, k.Client.Update(ctx, secret)
	}
	secret.Name, secret.Namespace, secret.Type = k.Secret.Name, k.Secret.Namespace, corev1.SecretTypeTLS
	return renewed, k.Client.Create(ctx, secret)
}

// isGood tells whether the certificate lasts, is for all names, and is signed
// by the authority beside it.
func (k *Keeper) isGood(data map[string][]byte) bool {
	loaded, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil || loaded.Leaf == nil {
		return false
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data[keyAuthority]) {
		return false
	}
	now := k.Clock.Now()
	if _, err := loaded.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return false
	}
	hasIP := func(ip net.IP) bool {
		return slices.ContainsFunc(loaded.Leaf.IPAddresses, ip.Equal)
	}
	for _, name := range k.DNSNames {
		if !slices.Contains(loaded.Leaf.DNSNames, name) {
			return false
		}
	}
	for _, ip := range k.IPs {
		if !hasIP(ip) {
			return false
		}
	}
	return loaded.Leaf.NotAfter.Sub(now) > renewWhenLeft
}

func (k *Keeper) trustMutating(ctx context.Context, ca []byte) error {
	return trust(ctx, k.Client, k.Webhooks+"-mutating-webhook-configuration", func(config *admissionv1.MutatingWebhookConfiguration) bool {
		changed := false
		for i := range config.Webhooks {
			changed = setCA(&config.Webhooks[i].ClientConfig, ca) || changed
		}
		return changed
	})
}

func (k *Keeper) trustValidating(ctx context.Context, ca []byte) error {
	return trust(ctx, k.Client, k.Webhooks+"-validating-webhook-configuration", func(config *admissionv1.ValidatingWebhookConfiguration) bool {
		changed := k.Adjust != nil && k.Adjust(config)
		for i := range config.Webhooks {
			changed = setCA(&config.Webhooks[i].ClientConfig, ca) || changed
		}
		return changed
	})
}

// trust updates a webhook configuration if set changes it. The names follow
// those that kustomize gives the generated manifests: a common prefix and the
// kind.
func trust[C any, P interface {
	*C
	client.Object
}](ctx context.Context, c client.Client, name string, set func(P) bool) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		config := P(new(C)) // decoding into an old one would keep what is gone
		if err := c.Get(ctx, types.NamespacedName{Name: name}, config); err != nil {
			return err
		}
		if !set(config) {
			return nil
		}
		return c.Update(ctx, config)
	})
	if err != nil {
		return fmt.Errorf("have %s trust the certificate: %w", name, err)
	}
	return nil
}

// setCA changes nothing without an authority.
func setCA(config *admissionv1.WebhookClientConfig, ca []byte) bool {
	if ca == nil || bytes.Equal(config.CABundle, ca) {
		return false
	}
	config.CABundle = ca
	return true
}

func isRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
