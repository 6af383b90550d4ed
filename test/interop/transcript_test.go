//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/apitomy/axiom-operator/internal/journal"
)

// tell collects the transcript of the suite: what would be the same in each run.
var tell transcript

// transcript has a text for each title, whatever the order of the specs.
type transcript struct {
	sections map[string]*strings.Builder
	open     *strings.Builder
}

func (t *transcript) section(format string, args ...any) {
	if t.sections == nil {
		t.sections = map[string]*strings.Builder{}
	}
	t.open = &strings.Builder{}
	t.sections[fmt.Sprintf(format, args...)] = t.open
}

func (t *transcript) line(format string, args ...any) {
	_, _ = fmt.Fprintf(t.open, format+"\n", args...)
}

func (t *transcript) String() string {
	var text strings.Builder
	for _, title := range sortedKeys(t.sections) {
		_, _ = fmt.Fprintf(&text, "\n## %s\n\n%s", title, t.sections[title])
	}
	return text.String()
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

// events tells what an agent did, in its session's words.
func (t *transcript) events(events []journal.Event, w *world) {
	t.line("```")
	for _, e := range events {
		if e.Type == "unhandled_event" {
			continue // it comes at any time
		}
		data, err := json.Marshal(e.Data)
		Expect(err).NotTo(HaveOccurred())
		text := strings.ReplaceAll(string(data), w.namespace, "<namespace>")
		t.line("%s %s", e.Type, short(passing.ReplaceAllString(text, `"$1":…`)))
	}
	t.line("```")
}

// passing are figures that differ each time.
var passing = regexp.MustCompile(`"(durationMs|elapsedSeconds)":[0-9.e-]+`)

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
	Expect(os.WriteFile(file, []byte(tell.String()), 0o644)).To(Succeed())
})
