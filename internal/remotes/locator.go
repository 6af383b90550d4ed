package remotes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// The longest URL or locator, in bytes.
const maxURL = 2048

// defaultPorts are the ports of hosts that name none, by scheme.
var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22"}

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	scpForm  = regexp.MustCompile(`^([^@:/]+)@(\[[^\]/]+\]|[^@:/]+):(.+)$`)
)

// A Locator names a repository: https://host/path, ssh://user@host/path, user@host:path or http://host/path.
type Locator struct {
	text, scheme, user, name, port, path string
}

// ParseLocator reads a locator, or gives a LOCATOR_INVALID that names the rule and quotes nothing. Whether its host may be
// talked to, and without TLS, Remotes.Git decides.
func ParseLocator(text string) (Locator, error) {
	l, err := parseLocator(text)
	if err != nil {
		return Locator{}, &effect.Failure{Code: CodeLocatorInvalid, Message: err.Error()}
	}
	return l, nil
}

func parseLocator(text string) (Locator, error) {
	if err := checkText(text); err != nil {
		return Locator{}, err
	}
	if strings.HasPrefix(text, "-") {
		return Locator{}, errors.New("begins with -")
	}
	if m := scpForm.FindStringSubmatch(text); m != nil {
		return newSSH(text, m[1], m[2], m[3])
	}
	scheme, _, _ := strings.Cut(text, "://")
	switch scheme {
	case "https", "http":
		return parseHTTPLocator(text)
	case "ssh":
		return parseSSHLocator(text)
	default:
		return Locator{}, errors.New("is neither https://, ssh://, user@host:path nor http://")
	}
}

func parseHTTPLocator(text string) (Locator, error) {
	u, err := CheckURL(text)
	if err != nil {
		return Locator{}, err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return Locator{}, errors.New("has a query")
	}
	if strings.Trim(u.Path, "/") == "" {
		return Locator{}, errors.New("has no path")
	}
	return newLocator(Locator{text: text, scheme: u.Scheme, path: u.Path}, u.Host)
}

func parseSSHLocator(text string) (Locator, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Locator{}, errors.New("is not a URL")
	}
	if _, has := u.User.Password(); has {
		return Locator{}, errors.New("has a password")
	}
	if u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return Locator{}, errors.New("has a query or a fragment")
	}
	return newSSH(text, u.User.Username(), u.Host, u.Path)
}

// newSSH is a locator that the secure shell reaches: neither user nor path can be taken for an option of a program.
func newSSH(text, user, host, path string) (Locator, error) {
	if !userForm.MatchString(user) {
		return Locator{}, errors.New("has no user, or one that is not plain")
	}
	if strings.Trim(path, "/") == "" || strings.HasPrefix(path, "-") {
		return Locator{}, errors.New("has no path, or one that begins with -")
	}
	if strings.ContainsAny(path, "?#") {
		return Locator{}, errors.New("has a query or a fragment")
	}
	if strings.ContainsFunc(path, isForbidden) {
		return Locator{}, errors.New("has white space, a control character or a backslash")
	}
	return newLocator(Locator{text: text, scheme: "ssh", user: user, path: path}, host)
}

// newLocator fills in the host.
func newLocator(l Locator, host string) (Locator, error) {
	host, err := normalizeHost(host)
	if err != nil {
		return Locator{}, fmt.Errorf("host: %w", err)
	}
	l.name, l.port, err = net.SplitHostPort(withPort(host, defaultPorts[l.scheme]))
	if err != nil {
		return Locator{}, errors.New("host: has no port")
	}
	return l, nil
}

// Scheme is https, ssh or http.
func (l Locator) Scheme() string { return l.scheme }

// User is who the secure shell logs in as; empty for others.
func (l Locator) User() string { return l.user }

// Host is the lower-case name or address and the port, as net.JoinHostPort writes them.
func (l Locator) Host() string { return net.JoinHostPort(l.name, l.port) }

// Path is the path on the host, as the locator has it.
func (l Locator) Path() string { return l.path }

// Text is the locator as it was given. It is for the remote alone: status, history and what agents read have Fingerprint.
func (l Locator) Text() string { return l.text }

// Repository is the path as forges call repositories: without slashes around it and without the suffix .git.
func (l Locator) Repository() string {
	return strings.TrimSuffix(strings.Trim(l.path, "/"), ".git")
}

// Fingerprint stands for the locator where it must not be seen: sha256: and 64 hexadecimal digits over its bytes.
func (l Locator) Fingerprint() string {
	sum := sha256.Sum256([]byte(l.text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// String keeps the locator out of messages and logs.
func (l Locator) String() string { return l.Fingerprint() }

// CheckURL reads an absolute http or https URL that has a host and nothing that could make two readers disagree about it:
// no user, fragment, white space, control character, backslash or dot segment, encoded ones included. The error names the
// rule and quotes nothing.
func CheckURL(text string) (*url.URL, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("is neither https:// nor http://")
	case u.User != nil:
		return nil, errors.New("has user info")
	case strings.Contains(text, "#"):
		return nil, errors.New("has a fragment")
	case hasDotSegment(u.Path):
		return nil, errors.New("has a dot segment")
	case strings.ContainsFunc(u.Path, isForbidden):
		return nil, errors.New("has white space, a control character or a backslash")
	}
	if _, err := normalizeHost(u.Host); err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	return u, nil
}

// checkText is what URLs and locators of every form obey.
func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > maxURL:
		return fmt.Errorf("is longer than %d bytes", maxURL)
	case strings.ContainsFunc(text, isForbidden):
		return errors.New("has white space, a control character or a backslash")
	}
	return nil
}

func isForbidden(r rune) bool {
	return r <= ' ' || r >= 0x7f || r == '\\'
}

func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// normalizeHost brings a host, with a port or without, into the one form that is compared: lower case, no zero before a
// port, addresses as netip writes them, those with colons in brackets.
func normalizeHost(host string) (string, error) {
	name, port, err := splitHost(host)
	if err != nil {
		return "", err
	}
	if port == "" {
		return bracket(name), nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strings.HasPrefix(port, "0") {
		return "", errors.New("has a port that is not a number from 1 to 65535")
	}
	return net.JoinHostPort(name, port), nil
}

// splitHost checks the name; port is empty if there is none.
func splitHost(host string) (name, port string, err error) {
	name = host
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	} else if strings.Contains(host, ":") {
		if name, port, err = net.SplitHostPort(host); err != nil || port == "" {
			return "", "", errors.New("is not a name or an address with a port")
		}
	}
	if address, err := netip.ParseAddr(name); err == nil && address.Zone() == "" {
		return address.String(), port, nil
	}
	if !nameForm.MatchString(name) || strings.Contains(name, "..") {
		return "", "", errors.New("is not a name or an address")
	}
	return strings.ToLower(name), port, nil
}

func bracket(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// withPort completes a normalized host.
func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// hostName is a normalized host without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
