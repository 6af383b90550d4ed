package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Measures of the plot, in units of the SVG.
const (
	plotWidth  = 760
	plotLabel  = 440
	plotRow    = 26
	plotTop    = 46
	plotBottom = 16
)

// writePlot draws each goal's figure as a bar: the length is how far it is from
// its limit, on a scale that doubles.
func (r *report) writePlot(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make directory of plot: %w", err)
	}
	if err := os.WriteFile(path, []byte(r.svg()), 0o644); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return nil
}

// svg is plain and readable on light and dark ground.
func (r *report) svg() string {
	var rows []figure
	for _, f := range r.figures {
		if !f.noGoal {
			rows = append(rows, f)
		}
	}
	height := plotTop + len(rows)*plotRow + plotBottom
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">
<style>text{fill:#333}.met{fill:#2e8b57}.missed{fill:#c0392b}.goal{stroke:#777;stroke-dasharray:3 3}@media(prefers-color-scheme:dark){text{fill:#ddd}.goal{stroke:#999}}</style>
<text x="8" y="20" font-size="14">Workflow runs: how much of what each goal allows was used</text>
`, plotWidth, height, plotWidth, height)
	goal := plotLabel + barLength(1)
	fmt.Fprintf(&text, `<line class="goal" x1="%.0f" y1="%d" x2="%.0f" y2="%d"/>`+"\n", goal, plotTop-8, goal, height-plotBottom)
	fmt.Fprintf(&text, `<text x="%.0f" y="%d" text-anchor="middle">goal</text>`+"\n", goal, plotTop-12)
	for i, f := range rows {
		y := plotTop + i*plotRow
		class := "missed"
		if f.isMet() {
			class = "met"
		}
		fmt.Fprintf(&text, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLabel-8, y+15, html.EscapeString(shortened(f.measure)))
		fmt.Fprintf(&text, `<rect class="%s" x="%d" y="%d" width="%.1f" height="16"/>`+"\n", class, plotLabel, y+3, barLength(f.used()))
	}
	text.WriteString("</svg>\n")
	return text.String()
}

// used is the part of what the goal allows that was used; 1 meets it exactly.
func (f figure) used() float64 {
	switch {
	case f.atLeast && f.ratio > 0:
		return f.limit / f.ratio
	case f.limit > 0:
		return f.ratio / f.limit
	case f.ratio == 0:
		return 0
	}
	return math.Inf(1)
}

// barLength grows with the logarithm and ends with the paper.
func barLength(used float64) float64 {
	const unit = 140
	return math.Min(unit*math.Log2(1+used), plotWidth-plotLabel-8)
}

func shortened(text string) string {
	const most = 66
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
