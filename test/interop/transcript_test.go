//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// tell collects the transcript of the suite: what would be the same in each run.
var tell transcript

type transcript struct{ text strings.Builder }

func (t *transcript) line(format string, args ...any) {
	_, _ = fmt.Fprintf(&t.text, format+"\n", args...)
}

func (t *transcript) section(format string, args ...any) {
	t.line("\n## "+format+"\n", args...)
}

// calls tells what was called and the first line of each answer.
func (t *transcript) calls(s server, got session, w *world) {
	t.line("```")
	for i, c := range s.calls {
		arguments, err := json.Marshal(c.Arguments)
		Expect(err).NotTo(HaveOccurred())
		if c.Arguments == nil {
			arguments = []byte("{}")
		}
		t.line("%s %s", c.Tool, short(string(arguments)))
		t.line("  → %s", short(strings.ReplaceAll(got.Results[i].Content[0].Text, w.namespace, "<namespace>")))
	}
	t.line("```\n")
}

// short is a text in one line that a reader can take in.
func short(text string) string {
	const room = 120
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > room {
		return string(runes[:room]) + "…"
	}
	return string(runes)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var _ = ReportAfterSuite("transcript", func(report Report) {
	file := os.Getenv(envTranscript)
	if file == "" || !report.SuiteSucceeded {
		return
	}
	Expect(os.WriteFile(file, []byte(strings.TrimLeft(tell.text.String(), "\n")), 0o644)).To(Succeed())
})
