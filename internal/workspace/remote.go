package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// Limits of what is taken from a remote. Zero values stand for those of DefaultLimits.
type Limits struct {
	// Listing is the size in bytes of the list of refs.
	Listing int64
	// Received is the size in bytes of a pack.
	Received int64
	// Unpacked is the size of all its objects together, and Objects their number.
	Unpacked, Objects int64
	// Object is the size of any one of them.
	Object int64
	// Delta is the size of an object that came as a delta or is the base of one, which are held in memory.
	Delta int64
}

// DefaultLimits are those of the operator.
func DefaultLimits() Limits {
	return Limits{Listing: 32 << 20, Received: 256 << 20, Unpacked: 2 << 30, Objects: 1 << 20, Object: 256 << 20, Delta: 32 << 20}
}

func (l Limits) orDefault() Limits {
	defaults := DefaultLimits()
	for _, limit := range []struct {
		value *int64
		other int64
	}{
		{&l.Listing, defaults.Listing},
		{&l.Received, defaults.Received},
		{&l.Unpacked, defaults.Unpacked},
		{&l.Objects, defaults.Objects},
		{&l.Object, defaults.Object},
		{&l.Delta, defaults.Delta},
	} {
		if *limit.value == 0 {
			*limit.value = limit.other
		}
	}
	return l
}

func (l Limits) pack() packLimits {
	l = l.orDefault()
	return packLimits{objects: l.Objects, total: l.Unpacked, object: l.Object, delta: l.Delta}
}

// Auth is what a remote is shown. Its zero value shows nothing.
type Auth struct {
	// Username and Password for HTTP.
	Username, Password string
	// PrivateKey in PEM and KnownHosts, in the form of the file of that name, for SSH. A host that is not known is refused.
	PrivateKey, KnownHosts []byte
}

// A Remote is a Git repository elsewhere. Redirects are not followed.
type Remote struct {
	// URL is `http://`, `https://`, `ssh://` or `user@host:path`, without a password.
	URL  string
	Auth Auth
	// HTTP carries requests to URLs of HTTP.
	HTTP http.RoundTripper
	// Dial reaches the host of URLs of SSH.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Limits Limits
}

// services of a Git server.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// A conversation is one with a service of a remote.
type conversation interface {
	// advertisement is what the service says first. It is read before the exchange.
	advertisement(ctx context.Context) (io.ReadCloser, error)
	// exchange sends a request and gives the answer.
	exchange(ctx context.Context, request []byte) (io.ReadCloser, error)
	io.Closer
}

// talk uses the ways it was given and no other: the library's own would go anywhere.
func (r *Remote) talk(ctx context.Context, service string) (conversation, error) {
	switch {
	case isHTTP(r.URL) && r.HTTP != nil:
		return r.talkHTTP(service)
	case !isHTTP(r.URL) && r.Dial != nil:
		return r.talkSSH(ctx, service)
	}
	return nil, unavailable(effect.ReasonNetwork, "there is no way to the server")
}

// An unavailableError says that a remote could not be used now.
type unavailableError struct {
	reason     effect.Reason
	retryAfter time.Duration
	// message without anything the remote said.
	message string
	// cause is not shown either: errors of the network name hosts.
	cause error
}

func (e *unavailableError) Error() string {
	return "remote is unavailable (" + string(e.reason) + "): " + e.message
}

func (e *unavailableError) Unwrap() error {
	return e.cause
}

func unavailable(reason effect.Reason, message string) *unavailableError {
	return &unavailableError{reason: reason, message: message}
}

// Unavailable tells why a remote could not be used, and how long it wants to be left alone.
func Unavailable(err error) (reason effect.Reason, retryAfter time.Duration, ok bool) {
	var unavailable *unavailableError
	if !errors.As(err, &unavailable) {
		return "", 0, false
	}
	return unavailable.reason, unavailable.retryAfter, true
}

// failed is an error of talking to a remote: that of the context if that ended, else what it is already, else one of the
// network.
func failed(ctx context.Context, message string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var final *effect.Failure
	var known *unavailableError
	var local *localError
	if errors.As(err, &final) || errors.As(err, &known) || errors.As(err, &local) {
		return err
	}
	return &unavailableError{reason: effect.ReasonNetwork, message: message, cause: err}
}

// A localError is one of this machine, while it talks to a remote.
type localError struct {
	error
}

func (e *localError) Unwrap() error {
	return e.error
}

// A localWriter marks errors of writing as such.
type localWriter struct {
	to io.Writer
}

func (w localWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

// errLimit says that a stream is longer than it may be.
var errLimit = errors.New("stream is too long")

// A limitedReader fails after so many bytes, where one of io would end as if there was no more.
type limitedReader struct {
	from io.Reader
	left int64
}

func (r *limitedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, errLimit
	}
	return n, err
}

// List observes all refs of a remote. The error is a *effect.Failure (OBJECT_FORMAT_UNSUPPORTED), that of the context, or
// one that Unavailable tells the reason of.
func (r *Remote) List(ctx context.Context) (*Listing, error) {
	talk, err := r.talk(ctx, uploadPack)
	if err != nil {
		return nil, err
	}
	defer talk.Close() //nolint:errcheck // All that was wanted is read by then.
	return r.listing(ctx, talk)
}

func (r *Remote) listing(ctx context.Context, talk conversation) (*Listing, error) {
	body, err := talk.advertisement(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // It is read to the end of what is wanted.
	listing, err := readListing(&limitedReader{from: body, left: r.Limits.orDefault().Listing})
	return listing, failed(ctx, "the list of refs was interrupted", err)
}

// request is what a client says, in packets.
type request struct {
	bytes.Buffer
}

// packet of a text that is far shorter than one may be.
func (r *request) packet(text string) {
	const digits = "0123456789abcdef"
	n := len(text) + 4
	r.Write([]byte{digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15]})
	r.WriteString(text)
}

func (r *request) flush() {
	r.WriteString("0000")
}
