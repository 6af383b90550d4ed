package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// figure is a line of the table.
type figure struct {
	measure string
	goal    string
	// value as people read it, and the raw writes' value where there is one.
	value, raw string
	// ratio is the value as a number, limit what it must not pass. atLeast turns
	// the limit around. A limit of zero with a negative ratio judges nothing.
	ratio, limit float64
	atLeast      bool
	// noGoal: the line is there to be read only.
	noGoal bool
}

// isMet tells whether the goal is.
func (f figure) isMet() bool {
	if f.atLeast {
		return f.ratio >= f.limit
	}
	return f.ratio <= f.limit
}

func (f figure) verdict() string {
	switch {
	case f.noGoal:
		return ""
	case f.isMet():
		return "met"
	}
	return "**missed**"
}

// report collects figures.
type report struct {
	// target of the Makefile that makes it, and the name of its markers.
	target  string
	quick   bool
	figures []figure
}

func newReport(target string, quick bool) *report { return &report{target: target, quick: quick} }

func (r *report) add(figures ...figure) { r.figures = append(r.figures, figures...) }

// markdown writes the table.
func (r *report) markdown() string {
	var text strings.Builder
	text.WriteString("| measure | goal | here | raw writes, same run | |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range r.figures {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", f.measure, f.goal, f.value, f.raw, f.verdict())
	}
	return text.String()
}

// marks are those between which a document's figures stand.
func (r *report) marks() (begin, end string) {
	return "<!-- " + r.target + ":begin -->", "<!-- " + r.target + ":end -->"
}

// write puts the table where it is kept, and the plot if there is a place for it.
func (r *report) write(document, plot string) error {
	text, err := os.ReadFile(document) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	what := "make " + r.target
	if r.quick {
		what += " ARGS=--quick: smaller numbers, no evidence for a goal that names larger ones"
	}
	body := fmt.Sprintf("\n_%s, %s, %d CPUs, %s._\n\n%s", what, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), r.markdown())
	replaced, err := r.between(string(text), body)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if err := os.WriteFile(document, []byte(replaced), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	if plot == "" {
		return nil
	}
	return r.writePlot(plot)
}

// between replaces what stands between the markers.
func (r *report) between(text, body string) (string, error) {
	markBegin, markEnd := r.marks()
	before, rest, found := strings.Cut(text, markBegin)
	if !found {
		return "", errors.New("it has no " + markBegin)
	}
	_, after, found := strings.Cut(rest, markEnd)
	if !found {
		return "", errors.New("it has no " + markEnd)
	}
	return before + markBegin + "\n" + body + "\n" + markEnd + after, nil
}
