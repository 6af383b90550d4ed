package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
)

// policy lets the page run what the program brought along, speak with the program,
// and do nothing else. Texts never become markup: there is no policy for types that
// could.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A guard lets requests of the page through, and nobody else's.
type guard struct {
	// authority is the host and port of the page.
	authority string
	// token opens the door once.
	token  string
	isUsed atomic.Bool
	// session is what the cookie holds.
	session string
}

func newGuard(authority string) *guard {
	return &guard{authority: authority, token: secret(), session: secret()}
}

// secret is a text that nobody can guess.
func secret() string {
	data := make([]byte, 32)
	_, _ = rand.Read(data) // it never fails
	return base64.RawURLEncoding.EncodeToString(data)
}

func (g *guard) origin() string { return "http://" + g.authority }

// cookieName has the port, since browsers do not tell ports of a host apart when
// they send cookies.
func (g *guard) cookieName() string {
	return "axiom-console-" + g.authority[strings.LastIndexByte(g.authority, ':')+1:]
}

// addressed lets requests through that are meant for the page, and says how browsers
// have to treat the answers.
func (g *guard) addressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(name, value)
		}
		if r.Host != g.authority {
			http.Error(w, "this is another host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admitted lets requests through that the page sends.
func (g *guard) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.isForeign(r):
			http.Error(w, "the request comes from another page", http.StatusForbidden)
		case !g.isKnown(r):
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write(outside)
		case isWrite(r) && !isJSON(r):
			http.Error(w, "only application/json is taken", http.StatusUnsupportedMediaType)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isForeign tells of a request that another page made a browser send. Reads may come
// from the address bar, and from programs that say nothing of where; writes must say
// that they are the page's own.
func (g *guard) isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
	case "none":
		return isWrite(r)
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	return origin != g.origin() && (origin != "" || isWrite(r))
}

func (g *guard) isKnown(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookieName())
	return err == nil && isSame(cookie.Value, g.session)
}

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

func isSame(given, wanted string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(wanted)) == 1
}

// enter exchanges the token for the cookie. The answer is a page that leads on, not a
// redirect: whoever followed the link from another site would not send the cookie
// along with one.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if !isSame(r.URL.Query().Get("token"), g.token) || !g.isUsed.CompareAndSwap(false, true) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(outside)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(), Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	_, _ = w.Write(inside)
}

// Pages before the page. They need no style, so that nothing is served to whoever is
// not let in.
var (
	inside = []byte(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Axiom</title>` +
		`<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on to the console</a></p></html>`)
	outside = []byte(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Axiom</title><h1>You are not let in</h1>` +
		`<p>Open the link that <code>axiom console</code> printed. It works once; for another browser start the console again.</p></html>`)
)
