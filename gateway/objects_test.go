package gateway_test

import (
	"crypto/tls"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/gateway"
	"github.com/apitomy/axiom-operator/internal/token"
)

func hashOf(presented string) string { return token.Hash(presented) }

func withoutOwner(pod *corev1.Pod) { pod.OwnerReferences = nil }

func configMap(w *world, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(w, name), Data: data}
}

func (w *world) result() *corev1.ConfigMap {
	GinkgoHelper()
	return reload(w, configMap(w, "ship-a1", nil))
}

// tlsServer is a server with a certificate and a real clock, at an address that
// cannot be served.
func (w *world) tlsServer(certificate *tls.Certificate) *gateway.Server {
	GinkgoHelper()
	server := gateway.New(gateway.Options{
		Client: k8s, Reader: k8s, Cached: k8s, Informers: sessions, Expressions: expressions, Template: templateOf,
		Clock: clock.RealClock{}, Log: logr.Discard(), Address: "127.0.0.1:-1",
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
	})
	Expect(server.Connect(w.ctx)).To(Succeed())
	return server
}
