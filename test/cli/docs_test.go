package cli

import (
	"bytes"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/live"
	"github.com/apitomy/axiom-operator/internal/testing/console"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

var _ = Describe("the page about the command line", func() {
	It("is true where it needs a cluster", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.sample()
		kubeconfig := w.kubeconfig()
		page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "cli.md"))
		Expect(err).NotTo(HaveOccurred())
		commands := 0
		for _, block := range console.Blocks(string(page)) {
			if block.Language != "shell-session" {
				continue
			}
			count, faults := block.Play(func(words []string) (string, int) {
				Expect(words[0]).To(Equal("axiom"))
				w.settles("cve-triage")
				var out bytes.Buffer
				code := cli.Run(ctx, command.Environment{
					Program: "axiom", Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" },
				}, append(words[1:], "--kubeconfig", kubeconfig), live.Commands(live.Options{Clock: clock.RealClock{}}))
				return out.String(), code
			})
			Expect(faults).To(BeEmpty())
			commands += count
		}
		Expect(commands).To(BeNumerically(">=", 10))
	})
})

// kubeconfig is alice's, for whom the namespace is the one that she works in.
func (w *world) kubeconfig() string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(alice.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = w.namespace
	path := filepath.Join(GinkgoT().TempDir(), "config")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}
