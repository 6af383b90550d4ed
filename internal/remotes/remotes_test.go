package remotes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

func parse(t *testing.T, data map[string]string) *remotes.Remotes {
	t.Helper()
	r, err := remotes.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func locate(t *testing.T, text string) remotes.Locator {
	t.Helper()
	l, err := remotes.ParseLocator(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return l
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var failure *effect.Failure
	if code == "" && err == nil {
		return
	}
	if !errors.As(err, &failure) || failure.Code != code {
		t.Fatalf("error is %v, want %q", err, code)
	}
}

func TestParseRefusesWithFieldAndRule(t *testing.T) {
	for _, c := range []struct{ key, list, want string }{
		{"hosts", "[]", "hosts: unknown key"},
		{"git", "{host: a}", "git: "},
		{"git", "[{host: a, port: 1}]", `unknown field "port"`},
		{"git", "[{host: a, host: b}]", "already set"},
		{"git", "[{private: true}]", "git[0].host: is not a name or an address"},
		{"git", "[{host: a}, {host: A}]", "git[1]: is there twice"},
		{"git", "[{host: 'a:0'}]", "git[0].host: has a port"},
		{"git", "[{host: 'https://a'}]", "git[0].host"},
		{"git", "[{host: 'a/b'}]", "git[0].host"},
		{"git", "[{host: '*.example.com'}]", "git[0].host"},
		{"forges", "[{host: a, provider: gitlab, api: 'https://a'}]", "forges[0].provider"},
		{"forges", "[{host: a, provider: gitea, api: 'http://a'}]", "forges[0].api: is plain HTTP, which needs plaintext"},
		{"forges", "[{host: a, provider: gitea, api: 'https://u:p@a'}]", "forges[0].api: has user info"},
		{"forges", "[{host: a, provider: gitea, api: 'https://a?b'}]", "forges[0].api: has a query"},
		{"http", "[{method: POST, url: 'https://a/'}]", "http[0].method"},
		{"http", "[{method: GET, url: 'https://a*'}]", "http[0].url: a trailing * follows a path"},
		{"http", "[{method: GET, url: 'https://a/*/b'}]", "http[0].url: has a *"},
		{"http", "[{method: GET, url: 'http://a/'}]", "http[0].url: is plain HTTP"},
	} {
		_, err := remotes.Parse(map[string]string{c.key: c.list})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s gives %v, want %q", c.key, c.list, err, c.want)
		}
	}
}

func TestLocators(t *testing.T) {
	for _, c := range []struct{ text, scheme, host, repository string }{
		{"https://git.example.com/acme/app.git", "https", "git.example.com:443", "acme/app"},
		{"https://GIT.example.com:8443/acme/app", "https", "git.example.com:8443", "acme/app"},
		{"http://10.0.0.1/acme/app/", "http", "10.0.0.1:80", "acme/app"},
		{"ssh://git@git.example.com/acme/app.git", "ssh", "git.example.com:22", "acme/app"},
		{"ssh://git@[::1]:2222/acme/app.git", "ssh", "[::1]:2222", "acme/app"},
		{"git@git.example.com:acme/app.git", "ssh", "git.example.com:22", "acme/app"},
		{"git@[fe80::1]:acme/app.git", "ssh", "[fe80::1]:22", "acme/app"},
	} {
		l := locate(t, c.text)
		if l.Scheme() != c.scheme || l.Host() != c.host || l.Repository() != c.repository || l.Text() != c.text {
			t.Errorf("%s is %s %s %s", c.text, l.Scheme(), l.Host(), l.Repository())
		}
		if shown := fmt.Sprint(l); strings.Contains(shown, "acme") || shown != l.Fingerprint() {
			t.Errorf("%s is shown as %s", c.text, shown)
		}
	}
	if got := locate(t, "https://git.example.com/a").Fingerprint(); got != "sha256:29b9a01a697019e2763e4c8ea632b3cd8914cc19ff16c6fb13d14c6c2ee8fcaa" {
		t.Errorf("the fingerprint is %s", got)
	}
}

func TestLocatorsRefused(t *testing.T) {
	for _, text := range []string{
		"", "app", "/srv/git/app", "./app", "../app", "file:///srv/git/app", "git://git.example.com/app", "ext::sh -c touch% /tmp/x", "-oProxyCommand=x",
		"https://user@git.example.com/app", "https://user:secret@git.example.com/app", "https://git.example.com/app?x=1", "https://git.example.com/app?",
		"https://git.example.com/app#x", "https://git.example.com/app#", "https://git.example.com/a b", "https://git.example.com/a\tb",
		"https://git.example.com/a%0ab", "https://git.example.com", "https://git.example.com/", "https:///app", "https://git.example.com/../app",
		"https://git.example.com/a/%2e%2e/app", "https://-git.example.com/app", "https://git.example.com:0/app", "https://git.example.com:99999/app",
		"ssh://git:secret@git.example.com/app", "ssh://git.example.com/app", "ssh://-x@git.example.com/app", "git@-oProxyCommand=x:app", "git@host:-app",
		"git@host:", "git@host:a?b", "ftp://git.example.com/app", "HTTPS//x", "host:app", "https://git.exämple.com/app", "https://git.example.com/" + strings.Repeat("a", 2048),
	} {
		_, err := remotes.ParseLocator(text)
		wantCode(t, err, remotes.CodeLocatorInvalid)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the message quotes: %v", err)
		}
	}
}

func TestHostsOfRepositories(t *testing.T) {
	r := parse(t, map[string]string{"git": `
- {host: git.example.com}
- {host: "build.example.com:8443", private: true}
- {host: 127.0.0.1, private: true, plaintext: true}`})
	for text, code := range map[string]string{
		"https://git.example.com/a":        "",
		"https://git.example.com:443/a":    "",
		"git@git.example.com:a":            "",
		"https://git.example.com:8443/a":   effect.CodeRemoteNotAllowed,
		"https://build.example.com:8443/a": "",
		"https://build.example.com/a":      effect.CodeRemoteNotAllowed,
		"http://git.example.com/a":         effect.CodeRemoteNotAllowed,
		"http://127.0.0.1/a":               "",
		"https://evil.git.example.com/a":   effect.CodeRemoteNotAllowed,
		"https://git.example.com.evil/a":   effect.CodeRemoteNotAllowed,
	} {
		_, err := r.Git(locate(t, text))
		wantCode(t, err, code)
	}
	access, err := r.Git(locate(t, "https://build.example.com:8443/a"))
	if err != nil || access != (remotes.Access{Host: "build.example.com:8443", Private: true}) {
		t.Errorf("the access is %+v, %v", access, err)
	}
	if _, err := parse(t, nil).Git(locate(t, "https://git.example.com/a")); err == nil {
		t.Error("an empty list allows a host")
	}
}

func TestForges(t *testing.T) {
	r := parse(t, map[string]string{"forges": `
- {host: git.example.com, provider: gitea, api: "https://api.example.com/v1/"}
- {host: "127.0.0.1:3000", provider: github, api: "http://127.0.0.1:3000/api", private: true, plaintext: true}`})
	forge, err := r.ForgeOf(locate(t, "git@git.example.com:acme/app.git"))
	if err != nil || forge.API != "https://api.example.com/v1" || forge.Access.Host != "api.example.com:443" {
		t.Errorf("the forge is %+v, %v", forge, err)
	}
	forge, err = r.ForgeOf(locate(t, "http://127.0.0.1:3000/acme/app"))
	if err != nil || forge.Provider != remotes.ProviderGitHub || !forge.Access.Private {
		t.Errorf("the forge is %+v, %v", forge, err)
	}
	for _, text := range []string{"https://other.example.com/a", "http://git.example.com/a", "http://127.0.0.1/a"} {
		_, err := r.ForgeOf(locate(t, text))
		wantCode(t, err, remotes.CodeForgeUnknown)
	}
	if _, err := r.ForgeOfURL(&url.URL{Scheme: "https", Host: "GIT.example.com"}); err != nil {
		t.Error(err)
	}
}

func TestFetchList(t *testing.T) {
	r := parse(t, map[string]string{"http": `
- {method: GET, url: "https://status.example.com/api/*"}
- {method: HEAD, url: "https://status.example.com/exact?x=1"}`})
	for request, code := range map[string]string{
		"GET https://status.example.com/api/health":     "",
		"GET https://status.example.com/api/":           "",
		"GET https://status.example.com/api/x?y=1":      "",
		"GET https://status.example.com/api":            effect.CodeRemoteNotAllowed,
		"HEAD https://status.example.com/api/health":    effect.CodeRemoteNotAllowed,
		"HEAD https://status.example.com/exact?x=1":     "",
		"HEAD https://status.example.com/exact?x=12":    effect.CodeRemoteNotAllowed,
		"GET https://status.example.com/api/../admin":   remotes.CodeURLInvalid,
		"GET https://status.example.com/api/%2E./admin": remotes.CodeURLInvalid,
		"GET https://status.example.com/api/..%5cadmin": remotes.CodeURLInvalid,
		"GET https://u:p@status.example.com/api/":       remotes.CodeURLInvalid,
		"GET https://status.example.com/api/#x":         remotes.CodeURLInvalid,
		"GET file:///etc/passwd":                        remotes.CodeURLInvalid,
	} {
		method, text, _ := strings.Cut(request, " ")
		_, err := r.Fetch(method, text)
		if t.Run(request, func(t *testing.T) { wantCode(t, err, code) }); err != nil && strings.Contains(err.Error(), "admin") {
			t.Errorf("the message quotes: %v", err)
		}
	}
}

func secret(labelled bool, hosts string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{remotes.AnnotationHosts: hosts}}, Data: map[string][]byte{}}
	if labelled {
		s.Labels = map[string]string{api.LabelCredential: "true"}
	}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func TestCredentialsAreForTheirHosts(t *testing.T) {
	for _, c := range []struct {
		secret *corev1.Secret
		host   string
		code   string
	}{
		{nil, "git.example.com:443", effect.CodeCredentialsMissing},
		{secret(false, "git.example.com", nil), "git.example.com:443", effect.CodeCredentialsRefused},
		{secret(true, "", nil), "git.example.com:443", effect.CodeCredentialsRefused},
		{secret(true, "other.example.com", nil), "git.example.com:443", effect.CodeCredentialsRefused},
		{secret(true, "example.com", nil), "git.example.com:443", effect.CodeCredentialsRefused},
		{secret(true, "other.example.com, GIT.example.com", nil), "git.example.com:443", ""},
		{secret(true, "git.example.com", nil), "git.example.com:22", ""},
		{secret(true, "git.example.com", nil), "git.example.com:8443", effect.CodeCredentialsRefused},
		{secret(true, "git.example.com:8443", nil), "git.example.com:8443", ""},
		{secret(true, "git.example.com:8443", nil), "git.example.com:443", effect.CodeCredentialsRefused},
	} {
		_, err := remotes.ReadCredential(c.secret, c.host)
		wantCode(t, err, c.code)
	}
}

func TestCredentialsHaveKeysAndAreNotShown(t *testing.T) {
	all := map[string]string{"username": "bot", "password": "hunter2\n", "ssh-privatekey": "KEY", "known_hosts": "LINES", "token": "t0p"}
	c, err := remotes.ReadCredential(secret(true, "h", all), "h:443")
	if err != nil {
		t.Fatal(err)
	}
	username, password, err := c.Basic()
	if err != nil || username != "bot" || password != "hunter2" {
		t.Errorf("basic is %q %q %v", username, password, err)
	}
	key, hosts, err := c.SSH()
	if err != nil || string(key) != "KEY" || string(hosts) != "LINES" {
		t.Errorf("ssh is %q %q %v", key, hosts, err)
	}
	if token, err := c.Token(); err != nil || token != "t0p" {
		t.Errorf("token is %q %v", token, err)
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(c), fmt.Sprintf("%#v", c), fmt.Sprintf("%+v", struct{ C any }{c}), string(encoded)} {
		if strings.Contains(shown, "hunter2") || strings.Contains(shown, "104 117") {
			t.Errorf("it is shown as %s", shown)
		}
	}
	empty, err := remotes.ReadCredential(secret(true, "h", map[string]string{"token": "a\nb"}), "h:443")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = empty.Basic()
	wantCode(t, err, effect.CodeCredentialsMissing)
	_, _, err = empty.SSH()
	wantCode(t, err, effect.CodeCredentialsMissing)
	_, err = empty.Token()
	wantCode(t, err, effect.CodeCredentialsMissing)
}
