//go:build interop

package interop

import (
	"context"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"os/exec"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Why a scenario of the conformance suite does not apply.
const (
	needsReferenceTool = "calls a tool of the suite's own reference server"
	needsResources     = "there are no resources"
	needsPrompts       = "there are no prompts"
)

// notApplicable are the scenarios that ask for what the server does not announce,
// or for tools that only the suite's own server has.
var notApplicable = map[string]string{
	"logging-set-level":             "the server announces no logging: what happens is in the session's journal",
	"completion-complete":           "the server announces no completions",
	"tools-call-simple-text":        needsReferenceTool,
	"tools-call-image":              needsReferenceTool,
	"tools-call-audio":              needsReferenceTool,
	"tools-call-embedded-resource":  needsReferenceTool,
	"tools-call-mixed-content":      needsReferenceTool,
	"tools-call-with-logging":       needsReferenceTool,
	"tools-call-error":              needsReferenceTool,
	"tools-call-with-progress":      needsReferenceTool,
	"tools-call-sampling":           needsReferenceTool,
	"tools-call-elicitation":        needsReferenceTool,
	"json-schema-2020-12":           needsReferenceTool,
	"elicitation-sep1034-defaults":  needsReferenceTool,
	"elicitation-sep1330-enums":     needsReferenceTool,
	"server-sse-polling":            needsReferenceTool,
	"server-sse-multiple-streams":   "the server gives no session id: it keeps nothing between requests",
	"resources-list":                needsResources,
	"resources-read-text":           needsResources,
	"resources-read-binary":         needsResources,
	"resources-templates-read":      needsResources,
	"resources-subscribe":           needsResources,
	"resources-unsubscribe":         needsResources,
	"prompts-list":                  needsPrompts,
	"prompts-get-simple":            needsPrompts,
	"prompts-get-with-args":         needsPrompts,
	"prompts-get-embedded-resource": needsPrompts,
	"prompts-get-with-image":        needsPrompts,
}

var (
	scenarioLine = regexp.MustCompile(`(?m)^ +- (\S+)$`)
	passedLine   = regexp.MustCompile(`(?m)^Passed: ([1-9][0-9]*)/([0-9]+), 0 failed, 0 warnings$`)
)

// scenarios are those for servers that the suite knows.
func scenarios(ctx context.Context) []string {
	GinkgoHelper()
	listed, _, _ := strings.Cut(string(output(exec.CommandContext(ctx, "conformance", "list"))), "Client scenarios")
	var names []string
	for _, match := range scenarioLine.FindAllStringSubmatch(listed, -1) {
		names = append(names, match[1])
	}
	Expect(len(names)).To(BeNumerically(">", len(notApplicable)))
	return names
}

// withToken leads to a server of the gateway and shows a session's token on the
// way, which the suite cannot.
func withToken(s server) string {
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: trusting(),
		ErrorLog:  log.New(GinkgoWriter, "", 0), // a client that hangs up is an error to it
		Rewrite: func(r *httputil.ProxyRequest) {
			host := r.In.Host
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", address, host
			r.Out.Header.Set(tokenHeader, s.token)
		},
	})
	DeferCleanup(proxy.Close)
	return proxy.URL + s.path
}

var _ = Describe("The conformance suite", func() {
	It("finds nothing in the scenarios that apply", func(ctx SpecContext) {
		_, workbench := furnish()
		url := withToken(workbench)
		tell.section("Conformance suite against `/mcp`")
		tell.line("| scenario | |\n| --- | --- |")
		for _, name := range scenarios(ctx) {
			if reason, skip := notApplicable[name]; skip {
				tell.line("| `%s` | does not apply: %s |", name, reason)
				continue
			}
			By(name)
			printed := string(output(exec.CommandContext(ctx, "conformance", "server", "--url", url, "--scenario", name)))
			passed := passedLine.FindStringSubmatch(printed)
			Expect(passed).NotTo(BeNil(), printed)
			Expect(passed[1]).To(Equal(passed[2]), printed)
			tell.line("| `%s` | passes, %s of %s checks |", name, passed[1], passed[2])
		}
	})
})
