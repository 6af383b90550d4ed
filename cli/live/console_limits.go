package live

import (
	"fmt"
	"net/http"
	"regexp"
)

// consoleRequests are what the console asks of a cluster, whatever its routes do:
// paths by method. Names are a single element, so none reaches another resource.
var consoleRequests = map[string]*regexp.Regexp{
	http.MethodGet: regexp.MustCompile(`^(.*/apis/axiom\.apitomy\.io/v1alpha1/namespaces/[^/]+/(compositions|turns|humantasks|workflowruns)(/[^/]+)?` +
		`|.*/api/v1/namespaces/[^/]+/configmaps/[^/]+` +
		`|.*/apis/apps/v1/namespaces/[^/]+/controllerrevisions/[^/]+)$`),
	http.MethodPatch: regexp.MustCompile(`^.*/apis/axiom\.apitomy\.io/v1alpha1/namespaces/[^/]+/` +
		`(turns/[^/]+|workflowruns/[^/]+|humantasks/[^/]+/status)$`),
}

// A limitedTripper carries requests of the console and no others.
type limitedTripper struct {
	next http.RoundTripper
}

func onlyConsoleRequests(next http.RoundTripper) http.RoundTripper {
	return limitedTripper{next}
}

// RoundTrip implements [http.RoundTripper].
func (t limitedTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	allowed := consoleRequests[r.Method]
	if allowed == nil || !allowed.MatchString(r.URL.EscapedPath()) {
		return nil, fmt.Errorf("the console does not send %s %s", r.Method, r.URL.Path)
	}
	return t.next.RoundTrip(r)
}
