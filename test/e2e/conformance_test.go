//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/live"
)

// axiom calls the program and gives what it printed.
func axiom(ctx SpecContext, args ...string) (code int, out string) {
	var printed bytes.Buffer
	code = cli.Run(ctx, command.Environment{
		Program: "axiom", Stdin: strings.NewReader(""), Stdout: &printed, Stderr: &printed, Getenv: os.Getenv, Version: command.Version{Version: "e2e"},
	}, append(args, "--kubeconfig", os.Getenv("KUBECONFIG")), live.Commands(live.Options{Clock: clock.RealClock{}}))
	return code, printed.String()
}

var _ = Describe("An installation", func() {
	It("conforms, and its doctor finds nothing wrong", func(ctx SpecContext) {
		code, report := axiom(ctx, "conformance", "--in", "axiom-e2e-conformance")
		AddReportEntry("conformance", report, ReportEntryVisibilityAlways)
		Expect(code).To(Equal(command.ExitOK), report)

		code, report = axiom(ctx, "doctor")
		AddReportEntry("doctor", report, ReportEntryVisibilityAlways)
		Expect(code).To(Equal(command.ExitOK), report)
	})
})
