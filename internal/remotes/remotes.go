// Package remotes decides which machines outside the cluster the operator may talk to, and with which credentials: the
// list that whoever runs it keeps, the locators of repositories, a network that refuses all else, and Secrets that name
// the hosts they are for.
//
// It knows the hosts. It knows nothing of Git, of forges or of what is said to them.
package remotes

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// Codes of failures.
const (
	CodeLocatorInvalid = "LOCATOR_INVALID"
	CodeURLInvalid     = "URL_INVALID"
	CodeForgeUnknown   = "FORGE_UNKNOWN"
)

// Providers of forges.
const (
	ProviderGitea  = "gitea"
	ProviderGitHub = "github"
)

// The most entries that each list has.
const maxEntries = 256

// Remotes is the list of what may be talked to. The empty one allows nothing. It is not changed once it is made, and safe
// for concurrent use.
type Remotes struct {
	git    []hostEntry
	forges []forgeEntry
	http   []fetchEntry
}

// A hostEntry is one member of the list git.
type hostEntry struct {
	// Host is a name or an address, with a port or without.
	Host      string `json:"host"`
	Private   bool   `json:"private"`
	Plaintext bool   `json:"plaintext"`
}

// A forgeEntry is one member of the list forges.
type forgeEntry struct {
	hostEntry `json:",inline"`
	Provider  string `json:"provider"`
	API       string `json:"api"`
}

// A fetchEntry is one member of the list http.
type fetchEntry struct {
	Method    string `json:"method"`
	URL       string `json:"url"`
	Private   bool   `json:"private"`
	Plaintext bool   `json:"plaintext"`
}

// An Access is the leave to talk to one host.
type Access struct {
	// Host is a lower-case name or address and a port, as net.JoinHostPort writes them.
	Host string
	// Private lets the host have an address that is not public.
	Private bool
	// Plaintext lets it be talked to without TLS.
	Plaintext bool
}

// A Forge is a forge that may be talked to.
type Forge struct {
	// Provider is ProviderGitea or ProviderGitHub.
	Provider string
	// Web is the lower-case authority of the pages that people read, as URLs have it.
	Web string
	// API is the address that paths of the interface are appended to; it does not end with a slash.
	API string
	// Access is the leave to talk to API.
	Access Access
}

// Parse reads the data of a ConfigMap: the keys git, forges and http, each a YAML list. A key that is not there is an
// empty list. The error names the field and the rule that is broken.
func Parse(data map[string]string) (*Remotes, error) {
	r := &Remotes{}
	lists := map[string]any{"git": &r.git, "forges": &r.forges, "http": &r.http}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		list, known := lists[key]
		if !known {
			return nil, fmt.Errorf("%s: unknown key", key)
		}
		if err := yaml.UnmarshalStrict([]byte(data[key]), list); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// validate checks every entry, and brings hosts into the one form they are compared in.
func (r *Remotes) validate() error {
	if err := each("git", r.git, (*hostEntry).validate); err != nil {
		return err
	}
	if err := each("forges", r.forges, (*forgeEntry).validate); err != nil {
		return err
	}
	return each("http", r.http, (*fetchEntry).validate)
}

// each checks the entries of one list, whose keys, which validate returns, are unique.
func each[E any](name string, entries []E, validate func(*E) (string, error)) error {
	if len(entries) > maxEntries {
		return fmt.Errorf("%s: more than %d entries", name, maxEntries)
	}
	seen := map[string]bool{}
	for i := range entries {
		key, err := validate(&entries[i])
		if err != nil {
			return fmt.Errorf("%s[%d].%w", name, i, err)
		}
		if seen[key] {
			return fmt.Errorf("%s[%d]: is there twice", name, i)
		}
		seen[key] = true
	}
	return nil
}

func (e *hostEntry) validate() (string, error) {
	host, err := normalizeHost(e.Host)
	if err != nil {
		return "", fmt.Errorf("host: %w", err)
	}
	e.Host = host
	return host, nil
}

func (e *forgeEntry) validate() (string, error) {
	host, err := e.hostEntry.validate()
	if err != nil {
		return "", err
	}
	if e.Provider != ProviderGitea && e.Provider != ProviderGitHub {
		return "", fmt.Errorf("provider: is neither %s nor %s", ProviderGitea, ProviderGitHub)
	}
	e.API = strings.TrimRight(e.API, "/")
	u, err := CheckURL(e.API)
	if err != nil {
		return "", fmt.Errorf("api: %w", err)
	}
	if u.RawQuery != "" || u.ForceQuery {
		return "", errors.New("api: has a query")
	}
	return host, checkScheme("api", u.Scheme, e.Plaintext)
}

func (e *fetchEntry) validate() (string, error) {
	if e.Method != http.MethodGet && e.Method != http.MethodHead {
		return "", errors.New("method: is neither GET nor HEAD")
	}
	prefix, open := strings.CutSuffix(e.URL, "*")
	if strings.Contains(prefix, "*") {
		return "", errors.New("url: has a * that is not its end")
	}
	u, err := CheckURL(prefix)
	if err != nil {
		return "", fmt.Errorf("url: %w", err)
	}
	if open && u.Path == "" {
		return "", errors.New("url: a trailing * follows a path, not a host")
	}
	return e.Method + " " + e.URL, checkScheme("url", u.Scheme, e.Plaintext)
}

// checkScheme refuses what is not encrypted, unless the entry says it may be so.
func checkScheme(field, scheme string, plaintext bool) error {
	if scheme == "http" && !plaintext {
		return fmt.Errorf("%s: is plain HTTP, which needs plaintext", field)
	}
	return nil
}

// Git gives the leave to talk to the host of a repository, or a REMOTE_NOT_ALLOWED. No name is resolved for it. An entry
// without a port means the default one of the scheme; a port of its own needs an entry of its own.
func (r *Remotes) Git(l Locator) (Access, error) {
	for _, e := range r.git {
		if withPort(e.Host, defaultPorts[l.scheme]) != l.Host() {
			continue
		}
		if l.scheme == "http" && !e.Plaintext {
			return Access{}, notAllowed("the host is not listed for plain HTTP")
		}
		return Access{Host: l.Host(), Private: e.Private, Plaintext: e.Plaintext}, nil
	}
	return Access{}, notAllowed("the host is not listed under git")
}

// ForgeOfURL finds the forge that has a page, or a FORGE_UNKNOWN.
func (r *Remotes) ForgeOfURL(page *url.URL) (Forge, error) {
	want := withPort(strings.ToLower(page.Host), defaultPorts[page.Scheme])
	for _, e := range r.forges {
		if withPort(e.Host, defaultPorts[page.Scheme]) == want && (page.Scheme != "http" || e.Plaintext) {
			return e.forge()
		}
	}
	return Forge{}, forgeUnknown()
}

// ForgeOf finds the forge that has a repository, or a FORGE_UNKNOWN. A repository that is reached by SSH is on the one
// forge of that name, whatever the port of its pages.
func (r *Remotes) ForgeOf(l Locator) (Forge, error) {
	if l.scheme != "ssh" {
		return r.ForgeOfURL(&url.URL{Scheme: l.scheme, Host: l.Host()})
	}
	var found []forgeEntry
	for _, e := range r.forges {
		if hostName(e.Host) == l.name {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		return Forge{}, forgeUnknown()
	}
	return found[0].forge()
}

// forge is the entry as it is used.
func (e *forgeEntry) forge() (Forge, error) {
	api, err := url.Parse(e.API)
	if err != nil {
		return Forge{}, fmt.Errorf("parse address of forge: %w", err)
	}
	access := Access{Host: withPort(strings.ToLower(api.Host), defaultPorts[api.Scheme]), Private: e.Private, Plaintext: e.Plaintext}
	return Forge{Provider: e.Provider, Web: e.Host, API: e.API, Access: access}, nil
}

// Fetch checks a request against the list http: a URL_INVALID, or a REMOTE_NOT_ALLOWED of a method and URL that no entry
// names. The first entry that does decides.
func (r *Remotes) Fetch(method, text string) (Access, error) {
	u, err := CheckURL(text)
	if err != nil {
		return Access{}, &effect.Failure{Code: CodeURLInvalid, Message: err.Error()}
	}
	for _, e := range r.http {
		if e.Method == method && matches(e.URL, text) {
			return Access{Host: withPort(strings.ToLower(u.Host), defaultPorts[u.Scheme]), Private: e.Private, Plaintext: e.Plaintext}, nil
		}
	}
	return Access{}, notAllowed("the method and URL are not listed under http")
}

// matches compares a URL with an entry's, exactly or up to its trailing *.
func matches(entry, text string) bool {
	prefix, open := strings.CutSuffix(entry, "*")
	return entry == text || open && strings.HasPrefix(text, prefix)
}

func notAllowed(message string) error {
	return &effect.Failure{Code: effect.CodeRemoteNotAllowed, Message: message}
}

func forgeUnknown() error {
	return &effect.Failure{Code: CodeForgeUnknown, Message: "the host is not listed under forges"}
}
