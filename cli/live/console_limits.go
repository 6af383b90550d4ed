package live

import (
	"fmt"
	"net/http"
	"regexp"
)

// consoleRequests are what the console asks of a cluster, whatever its routes do:
// paths by method. Names are those of objects, so none leads to another resource.
var consoleRequests = map[string]*regexp.Regexp{
	http.MethodGet: regexp.MustCompile(`^(.*/apis/axiom\.apitomy\.io/v1alpha1/namespaces/[a-z0-9-]+/(compositions|turns|humantasks|workflowruns)(/[a-z0-9][a-z0-9.-]*)?` +
		`|.*/api/v1/namespaces/[a-z0-9-]+/configmaps/[a-z0-9][a-z0-9.-]*` +
		`|.*/apis/apps/v1/namespaces/[a-z0-9-]+/controllerrevisions/[a-z0-9][a-z0-9.-]*)$`),
	http.MethodPatch: regexp.MustCompile(`^.*/apis/axiom\.apitomy\.io/v1alpha1/namespaces/[a-z0-9-]+/` +
		`(turns/[a-z0-9][a-z0-9.-]*|workflowruns/[a-z0-9][a-z0-9.-]*|humantasks/[a-z0-9][a-z0-9.-]*/status)$`),
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
