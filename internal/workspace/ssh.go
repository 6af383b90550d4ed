package workspace

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Hashed names of known hosts are made with it.
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// sshPort where an address names none.
const sshPort = "22"

// defaultSSHUser where an address names none.
const defaultSSHUser = "git"

// An sshAddress is where a repository is.
type sshAddress struct {
	user, host, port, path string
}

// parseSSH reads `ssh://user@host:port/path` and `user@host:path`.
func parseSSH(address string) (sshAddress, bool) {
	if strings.HasPrefix(address, "ssh://") {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			return sshAddress{}, false
		}
		a := sshAddress{user: u.User.Username(), host: u.Hostname(), port: u.Port(), path: u.Path}
		// Below a home, as programs on the command line have it.
		a.path = strings.TrimPrefix(a.path, "/~/")
		return a.orDefault(), a.path != ""
	}
	user, rest, found := strings.Cut(address, "@")
	host, path, split := strings.Cut(rest, ":")
	a := sshAddress{user: user, host: host, path: path}
	return a.orDefault(), found && split && host != "" && path != ""
}

func (a sshAddress) orDefault() sshAddress {
	if a.user == "" {
		a.user = defaultSSHUser
	}
	if a.port == "" {
		a.port = sshPort
	}
	return a
}

// sshTalk is a conversation over one session.
type sshTalk struct {
	client *ssh.Client
	input  io.WriteCloser
	output io.Reader
	// stop ends the watch over the context.
	stop func() bool
}

func (r *Remote) talkSSH(ctx context.Context, service string) (conversation, error) {
	address, ok := parseSSH(r.URL)
	if !ok {
		return nil, unavailable(effect.ReasonNetwork, "the address is malformed")
	}
	config, err := r.sshConfig(address)
	if err != nil {
		return nil, err
	}
	hostPort := net.JoinHostPort(address.host, address.port)
	connection, err := r.Dial(ctx, "tcp", hostPort)
	if err != nil {
		return nil, failed(ctx, "the server could not be reached", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	talk, err := startSSH(connection, hostPort, config, service+" "+quote(address.path))
	if err != nil {
		stop()
		return nil, failed(ctx, "the server could not be talked to", joinClose(sshError(err), connection))
	}
	talk.stop = stop
	return talk, nil
}

func startSSH(connection net.Conn, hostPort string, config *ssh.ClientConfig, command string) (*sshTalk, error) {
	transport, channels, requests, err := ssh.NewClientConn(connection, hostPort, config)
	if err != nil {
		return nil, err
	}
	client := ssh.NewClient(transport, channels, requests)
	session, err := client.NewSession()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	input, err := session.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	output, err := session.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := session.Start(command); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &sshTalk{client: client, input: input, output: output}, nil
}

// quote a path for the shell of a server.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

func (t *sshTalk) advertisement(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(t.output), nil
}

func (t *sshTalk) exchange(ctx context.Context, body []byte) (io.ReadCloser, error) {
	if _, err := io.Copy(t.input, bytes.NewReader(body)); err != nil {
		return nil, failed(ctx, "the request was interrupted", err)
	}
	return io.NopCloser(t.output), nil
}

// Close ends the session with its connection: what was wanted of it is read.
func (t *sshTalk) Close() error {
	t.stop()
	return t.client.Close()
}

// sshConfig shows a key to a host that is known, and to no other.
func (r *Remote) sshConfig(address sshAddress) (*ssh.ClientConfig, error) {
	signer, err := ssh.ParsePrivateKey(r.Auth.PrivateKey)
	if err != nil {
		return nil, failure(effect.CodeCredentialsRefused, "the private key cannot be read, or needs a passphrase")
	}
	known, err := parseKnownHosts(r.Auth.KnownHosts, knownhosts.Normalize(net.JoinHostPort(address.host, address.port)))
	if err != nil {
		return nil, failure(effect.CodeCredentialsRefused, "the known hosts cannot be read")
	}
	if len(known.keys) == 0 {
		return nil, failure(effect.CodeCredentialsRefused, "the host is not among the known hosts")
	}
	return &ssh.ClientConfig{
		User: address.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, ClientVersion: "SSH-2.0-" + agent,
		HostKeyCallback: known.check, HostKeyAlgorithms: known.algorithms(),
	}, nil
}

// errHostKey says that a host has not shown a key it is known by.
var errHostKey = unavailable(effect.ReasonAuthentication, "the host has not shown a key it is known by")

func sshError(err error) error {
	var refused *ssh.ServerAuthError
	switch {
	case errors.Is(err, errHostKey):
		return errHostKey
	case errors.As(err, &refused), strings.Contains(err.Error(), "unable to authenticate"):
		return unavailable(effect.ReasonAuthentication, "the server refused the key")
	}
	return err
}

// hostKeys are those that a host is known by.
type hostKeys struct {
	keys    []ssh.PublicKey
	revoked []ssh.PublicKey
}

// parseKnownHosts finds the keys of a host. Certificate authorities are not supported: a host that is known by one alone is not.
func parseKnownHosts(file []byte, host string) (hostKeys, error) {
	var known hostKeys
	for len(file) > 0 {
		marker, patterns, key, _, rest, err := ssh.ParseKnownHosts(file)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return known, err
		}
		file = rest
		switch {
		case marker == "revoked":
			known.revoked = append(known.revoked, key)
		case marker == "" && isHost(patterns, host):
			known.keys = append(known.keys, key)
		}
	}
	return known, nil
}

// isHost tells whether a line is about a host: one of its patterns is, and none that is negated.
func isHost(patterns []string, host string) bool {
	matched := false
	for _, pattern := range patterns {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !matchesHost(pattern, host) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

func matchesHost(pattern, host string) bool {
	hashed, isHashed := strings.CutPrefix(pattern, "|1|")
	if !isHashed {
		// A name with a port stands in brackets, which are not those of a class.
		return matchSegment(strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern), host)
	}
	encodedSalt, encodedSum, _ := strings.Cut(hashed, "|")
	salt, saltErr := base64.StdEncoding.DecodeString(encodedSalt)
	sum, sumErr := base64.StdEncoding.DecodeString(encodedSum)
	mac := hmac.New(sha1.New, salt)
	_, _ = io.WriteString(mac, host)
	return saltErr == nil && sumErr == nil && hmac.Equal(mac.Sum(nil), sum)
}

func (k hostKeys) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	isKey := func(other ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), other.Marshal()) }
	if slices.ContainsFunc(k.revoked, isKey) || !slices.ContainsFunc(k.keys, isKey) {
		return errHostKey
	}
	return nil
}

// algorithms to ask the host for, so that it shows the key it is known by and not another of its keys.
func (k hostKeys) algorithms() []string {
	var algorithms []string
	for _, key := range k.keys {
		if key.Type() == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		algorithms = append(algorithms, key.Type())
	}
	return algorithms
}
