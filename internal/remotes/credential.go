package remotes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
)

// AnnotationHosts of a Secret has the hosts it may be offered to, separated by commas: name or name:port.
const AnnotationHosts = "axiom.apitomy.io/hosts"

// Keys of Secrets.
const (
	keyUsername   = "username"
	keyPassword   = "password"
	keyPrivateKey = corev1.SSHAuthPrivateKey
	keyKnownHosts = "known_hosts"
	keyToken      = "token"
)

// A Credential is what a Secret has for one host. No way of printing it shows what it holds.
type Credential struct {
	data map[string][]byte
}

// ReadCredential takes a Secret for a host: the port of an entry in its annotation, if it has one, must be the host's, and
// an entry without one stands for the default ports. It gives CREDENTIALS_MISSING without a Secret, and CREDENTIALS_REFUSED
// for one that lacks the label or does not name the host.
func ReadCredential(secret *corev1.Secret, host string) (Credential, error) {
	if secret == nil {
		return Credential{}, missing("the Secret is not there")
	}
	if !api.IsCredential(secret) {
		return Credential{}, refused("the Secret does not have the label of credentials")
	}
	for entry := range strings.SplitSeq(secret.Annotations[AnnotationHosts], ",") {
		if names(strings.TrimSpace(entry), host) {
			return Credential{data: secret.Data}, nil
		}
	}
	return Credential{}, refused("the Secret is not for this host")
}

// names tells whether an entry stands for a host with a port.
func names(entry, host string) bool {
	entry, err := normalizeHost(entry)
	if err != nil {
		return false
	}
	for _, port := range defaultPorts {
		if withPort(entry, port) == host {
			return true
		}
	}
	return false
}

// Basic is the user and password for Git over HTTP.
func (c Credential) Basic() (username, password string, err error) {
	if username, err = c.text(keyUsername); err != nil {
		return "", "", err
	}
	password, err = c.text(keyPassword)
	return username, password, err
}

// SSH is the private key, and the lines of known hosts that a server is held against.
func (c Credential) SSH() (privateKey, knownHosts []byte, err error) {
	if privateKey, err = c.bytes(keyPrivateKey); err != nil {
		return nil, nil, err
	}
	knownHosts, err = c.bytes(keyKnownHosts)
	return privateKey, knownHosts, err
}

// Token is for forges and other services over HTTP.
func (c Credential) Token() (string, error) { return c.text(keyToken) }

// text is a value that fits into one header field.
func (c Credential) text(key string) (string, error) {
	data, err := c.bytes(key)
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", missing(fmt.Sprintf("the key %s of the Secret is not one line of text", key))
	}
	return text, nil
}

func (c Credential) bytes(key string) ([]byte, error) {
	if len(c.data[key]) == 0 {
		return nil, missing("the Secret lacks the key " + key)
	}
	return c.data[key], nil
}

// String keeps the values out of messages and logs.
func (Credential) String() string { return "credential" }

// GoString keeps them out of %#v.
func (Credential) GoString() string { return "credential" }

// MarshalJSON keeps them out of records.
func (Credential) MarshalJSON() ([]byte, error) { return []byte(`"credential"`), nil }

func missing(message string) error {
	return &effect.Failure{Code: effect.CodeCredentialsMissing, Message: message}
}

func refused(message string) error {
	return &effect.Failure{Code: effect.CodeCredentialsRefused, Message: message}
}
