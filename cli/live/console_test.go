package live

import (
	"errors"
	"net/http"
	"testing"
)

// passed tells of a request that reached the cluster.
var errPassed = errors.New("passed")

type gate struct{}

func (gate) RoundTrip(*http.Request) (*http.Response, error) { return nil, errPassed }

func TestConsoleRequests(t *testing.T) {
	const ours = "https://cluster/apis/axiom.apitomy.io/v1alpha1/namespaces/n/"
	for name, tc := range map[string]struct {
		method, url string
		passes      bool
	}{
		"a list":                    {http.MethodGet, ours + "turns?watch=true", true},
		"an object":                 {http.MethodGet, ours + "humantasks/a", true},
		"a decision":                {http.MethodPatch, ours + "turns/a", true},
		"an answer":                 {http.MethodPatch, ours + "humantasks/a/status", true},
		"a resume":                  {http.MethodPatch, ours + "workflowruns/a", true},
		"a value":                   {http.MethodGet, "https://cluster/prefix/api/v1/namespaces/n/configmaps/a", true},
		"a snapshot":                {http.MethodGet, "https://cluster/apis/apps/v1/namespaces/n/controllerrevisions/a", true},
		"a Secret":                  {http.MethodGet, "https://cluster/api/v1/namespaces/n/secrets/a", false},
		"all Secrets":               {http.MethodGet, "https://cluster/api/v1/secrets", false},
		"a Secret by a detour":      {http.MethodGet, ours + "turns/..%2F..%2Fsecrets/a", false},
		"all ConfigMaps":            {http.MethodGet, "https://cluster/api/v1/namespaces/n/configmaps", false},
		"a session":                 {http.MethodGet, ours + "agentsessions/a", false},
		"all namespaces":            {http.MethodGet, "https://cluster/apis/axiom.apitomy.io/v1alpha1/turns", false},
		"an edit of a draft":        {http.MethodPatch, ours + "compositions/a", false},
		"a forged status":           {http.MethodPatch, ours + "turns/a/status", false},
		"another question":          {http.MethodPatch, ours + "humantasks/a", false},
		"a turn of its own":         {http.MethodPost, ours + "turns", false},
		"a deletion":                {http.MethodDelete, ours + "turns/a", false},
		"a whole object":            {http.MethodPut, ours + "turns/a", false},
		"a request through the API": {http.MethodGet, "https://cluster/api/v1/namespaces/n/services/a/proxy/x", false},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := onlyConsoleRequests(gate{}).RoundTrip(request)
			if response != nil {
				_ = response.Body.Close()
			}
			if passes := errors.Is(err, errPassed); passes != tc.passes {
				t.Errorf("passes: %t, want %t (%v)", passes, tc.passes, err)
			}
		})
	}
}
