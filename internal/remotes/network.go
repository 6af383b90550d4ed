package remotes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// Bounds of one request.
const (
	maxHeaderBytes    = 64 << 10
	connectTimeout    = 10 * time.Second
	handshakeTimeout  = 10 * time.Second
	answerTimeout     = 60 * time.Second
	idleTimeout       = 30 * time.Second
	idleConnections   = 16
	idlePerHost       = 2
	expectContinueFor = time.Second
)

// ErrBodyTooLarge is of an answer that is longer than its reader takes.
var ErrBodyTooLarge = errors.New("the body is too large")

// notPublic are the ranges that belong to nobody on the public network, beyond those that netip knows by name.
var notPublic = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// A Network reaches the hosts it is given leave for, and no others. It is safe for concurrent use.
type Network struct {
	public, private *http.Transport
}

// NewNetwork trusts the authorities of the machine and those of bundle, which is PEM or empty. It uses no proxy, whatever
// the environment says: a proxy would see the names and addresses in its place.
func NewNetwork(bundle []byte) (*Network, error) {
	roots, err := authorities(bundle)
	if err != nil {
		return nil, err
	}
	return &Network{public: newTransport(roots, false), private: newTransport(roots, true)}, nil
}

// authorities is nil for those of the machine alone.
func authorities(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read authorities of the machine: %w", err)
	}
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("read authorities: no certificate in the bundle")
	}
	return roots, nil
}

func newTransport(roots *x509.CertPool, private bool) *http.Transport {
	return &http.Transport{
		DialContext:            dialer(private).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		ExpectContinueTimeout:  expectContinueFor,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// dialer checks each address when it is connected to, so that a name which resolves to another one the second time gains
// nothing.
func dialer(private bool) *net.Dialer {
	return &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		return checkAddress(address, private)
	}}
}

// checkAddress refuses an address and port that an entry gives no leave for.
func checkAddress(address string, private bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return notAllowed("the address is not one")
	}
	ip := at.Addr().WithZone("").Unmap()
	if ip.IsUnspecified() || ip.IsMulticast() {
		return notAllowed("the address is nobody's")
	}
	if !private && !isPublic(ip) {
		return notAllowed("the address is not public, which needs private")
	}
	return nil
}

func isPublic(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(ip) {
			return false
		}
	}
	return true
}

// Transport carries requests to the one host of access. It follows no redirect, being no client, and refuses a request to
// another host or, unless access says otherwise, one without TLS.
func (n *Network) Transport(access Access) http.RoundTripper {
	if access.Private {
		return guarded{access: access, next: n.private}
	}
	return guarded{access: access, next: n.public}
}

// Client is for requests to the one host of access. A redirect is an answer like any other.
func (n *Network) Client(access Access) *http.Client {
	return &http.Client{Transport: n.Transport(access), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Dial connects to the one host of access, for protocols of their own, and leaves encryption to them.
func (n *Network) Dial(ctx context.Context, access Access) (net.Conn, error) {
	conn, err := dialer(access.Private).DialContext(ctx, "tcp", access.Host)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// CloseIdleConnections ends the connections that are kept for more requests.
func (n *Network) CloseIdleConnections() {
	n.public.CloseIdleConnections()
	n.private.CloseIdleConnections()
}

// guarded is a transport to one host.
type guarded struct {
	access Access
	next   http.RoundTripper
}

// RoundTrip carries a request to the host, or gives a REMOTE_NOT_ALLOWED and sends nothing.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.check(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return g.next.RoundTrip(r)
}

func (g guarded) check(r *http.Request) error {
	if withPort(strings.ToLower(r.URL.Host), defaultPorts[r.URL.Scheme]) != g.access.Host || r.URL.User != nil {
		return notAllowed("the request is to another host")
	}
	if r.URL.Scheme != "https" && (r.URL.Scheme != "http" || !g.access.Plaintext) {
		return notAllowed("the request is not encrypted")
	}
	return nil
}

// ReadBody reads a whole body of at most limit bytes, or gives ErrBodyTooLarge.
func ReadBody(body io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, ErrBodyTooLarge
	}
	return data, nil
}
