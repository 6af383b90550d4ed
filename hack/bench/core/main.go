// Command core turns what the benchmarks of the pure packages print into the
// table of docs/performance.md.
//
// It reads the output of several rounds, in each of which every benchmark ran
// once. What it reports are ratios of two benchmarks: one for each round, and
// of those the median, because the load of a machine moves both alike. Times
// are those of the processor, not of the clock. Allocations are counted and do
// not depend on the machine at all.
//
// It knows the names of the benchmarks, and nothing of what they measure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// Markers between which the table stands.
const (
	markBegin = "<!-- bench-core:begin -->"
	markEnd   = "<!-- bench-core:end -->"
)

func main() {
	document := flag.String("document", "docs/performance.md", "where the table stands")
	flag.Parse()
	if err := run(*document); err != nil {
		fmt.Fprintln(os.Stderr, "bench-core:", err)
		os.Exit(1)
	}
}

func run(document string) error {
	samples, machine, err := read(os.Stdin)
	if err != nil {
		return fmt.Errorf("read benchmarks: %w", err)
	}
	table, err := tableOf(samples)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	body := fmt.Sprintf("_`make bench-core`, medians of %d rounds on one core; %s._\n\n%s", samples.rounds(), machine, table)
	replaced, err := between(string(text), body)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if err := os.WriteFile(document, []byte(replaced), 0o600); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// between replaces what stands between the markers.
func between(text, body string) (string, error) {
	before, rest, found := strings.Cut(text, markBegin)
	if !found {
		return "", errors.New("it has no " + markBegin)
	}
	_, after, found := strings.Cut(rest, markEnd)
	if !found {
		return "", errors.New("it has no " + markEnd)
	}
	return before + markBegin + "\n" + body + markEnd + after, nil
}
