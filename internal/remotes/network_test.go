package remotes_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

func network(t *testing.T, bundle []byte) *remotes.Network {
	t.Helper()
	n, err := remotes.NewNetwork(bundle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.CloseIdleConnections)
	return n
}

func get(ctx context.Context, t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	return response, err
}

func TestNetworkRefusesAddressesThatAreNotPublic(t *testing.T) {
	n := network(t, nil)
	for _, host := range []string{
		"127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "[::ffff:10.0.0.1]:1", "10.1.2.3:1", "172.16.0.1:1", "192.168.1.1:1", "169.254.169.254:1",
		"100.64.0.1:1", "0.0.0.0:1", "[::]:1", "224.0.0.1:1", "[ff02::1]:1", "[fe80::1]:1", "[fc00::1]:1", "[fec0::1]:1", "[64:ff9b::7f00:1]:1", "[2002:7f00:1::]:1",
		"[2001:db8::1]:1", "192.0.2.1:1", "198.18.0.1:1", "240.0.0.1:1", "255.255.255.255:1", "localhost:1",
	} {
		_, err := n.Dial(t.Context(), remotes.Access{Host: host})
		if t.Run(host, func(t *testing.T) { wantCode(t, err, effect.CodeRemoteNotAllowed) }); strings.Contains(host, "0.0.0.0") {
			_, err = n.Dial(t.Context(), remotes.Access{Host: host, Private: true})
			wantCode(t, err, effect.CodeRemoteNotAllowed)
		}
	}
}

func TestNetworkReachesOneHostOnly(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	n, host := network(t, nil), server.Listener.Addr().String()
	_, err := get(t.Context(), t, n.Client(remotes.Access{Host: host, Plaintext: true}), server.URL)
	wantCode(t, err, effect.CodeRemoteNotAllowed)
	_, err = get(t.Context(), t, n.Client(remotes.Access{Host: host, Private: true}), server.URL)
	wantCode(t, err, effect.CodeRemoteNotAllowed)
	_, err = get(t.Context(), t, n.Client(remotes.Access{Host: "other:80", Private: true, Plaintext: true}), server.URL)
	wantCode(t, err, effect.CodeRemoteNotAllowed)
	if requests.Load() != 0 {
		t.Fatalf("%d requests came through", requests.Load())
	}
	response, err := get(t.Context(), t, n.Client(remotes.Access{Host: host, Private: true, Plaintext: true}), server.URL)
	if err != nil || response.StatusCode != http.StatusFound || requests.Load() != 1 {
		t.Errorf("the redirect gives %v after %d requests: %v", response, requests.Load(), err)
	}
}

func TestNetworkTrustsTheBundle(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	server.Config.ErrorLog = nil
	access := remotes.Access{Host: server.Listener.Addr().String(), Private: true}
	if _, err := get(t.Context(), t, network(t, nil).Client(access), server.URL); err == nil {
		t.Error("an unknown authority is trusted")
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if _, err := get(t.Context(), t, network(t, bundle).Client(access), server.URL); err != nil {
		t.Error(err)
	}
	if _, err := remotes.NewNetwork([]byte("no certificate")); err == nil {
		t.Error("a bundle without certificates is taken")
	}
}

func TestNetworkBoundsHeadersAndBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("a", 80<<10))
	}))
	defer server.Close()
	access := remotes.Access{Host: server.Listener.Addr().String(), Private: true, Plaintext: true}
	if _, err := get(t.Context(), t, network(t, nil).Client(access), server.URL); err == nil {
		t.Error("a long header is read")
	}
	if data, err := remotes.ReadBody(strings.NewReader("abc"), 3); err != nil || string(data) != "abc" {
		t.Errorf("the body is %q, %v", data, err)
	}
	if _, err := remotes.ReadBody(strings.NewReader("abcd"), 3); !errors.Is(err, remotes.ErrBodyTooLarge) {
		t.Errorf("the error is %v", err)
	}
	if _, err := remotes.ReadBody(io.MultiReader(strings.NewReader("a"), broken{}), 3); err == nil {
		t.Error("half a body is a body")
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
