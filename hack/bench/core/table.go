package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A comparison is a line of the table: what a benchmark takes for one unit of
// its work, against another one.
type comparison struct {
	measure string
	of      side
	against side
	goal    string
	// limit is what the ratio must not pass, or with atLeast what it must
	// reach.
	limit   float64
	atLeast bool
}

// A side is a benchmark and how many units of work one operation of it does.
type side struct {
	benchmark string
	units     float64
}

// comparisons are the lines of the table, in their order.
func comparisons() []comparison {
	var all []comparison
	for _, scaling := range []struct{ measure, benchmark string }{
		{"validation, a node; expressions met before", "CoreValidate/known"},
		{"validation, a node; every expression new", "CoreValidate/new"},
		{"change set of as many operations as nodes, a node", "CoreApply"},
		{"change set of one operation, a node", "CoreApplyOne"},
	} {
		for _, nodes := range []int{100, 1000} {
			all = append(all, comparison{
				measure: fmt.Sprintf("%s: %d nodes against 10", scaling.measure, nodes),
				of:      side{fmt.Sprintf("%s/%d", scaling.benchmark, nodes), float64(nodes)},
				against: side{scaling.benchmark + "/10", 10},
				goal:    "at most 2", limit: 2,
			})
		}
	}
	for _, step := range []struct {
		name  string
		short int
	}{{"complete", 10}, {"deliver", 1000}} {
		all = append(all, comparison{
			measure: fmt.Sprintf("engine step (%s): 10,000 history entries against %d", step.name, step.short),
			of:      side{fmt.Sprintf("CoreStep/%s/10000", step.name), 1},
			against: side{fmt.Sprintf("CoreStep/%s/%d", step.name, step.short), 1},
			goal:    "flat: at most 1.2", limit: 1.2,
		})
	}
	for _, shape := range []string{"path", "condition", "text", "macro"} {
		all = append(all, comparison{
			measure: fmt.Sprintf("expression (%s): compiled and evaluated against cached", shape),
			of:      side{"CoreExpression/" + shape + "/compiled", 1},
			against: side{"CoreExpression/" + shape + "/cached", 1},
			goal:    "at least 20", limit: 20, atLeast: true,
		})
	}
	return all
}

// tableOf writes the table.
func tableOf(s samples) (string, error) {
	var b strings.Builder
	b.WriteString("| measure | goal | here | allocations | median | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, c := range comparisons() {
		line, err := c.line(s)
		if err != nil {
			return "", err
		}
		b.WriteString(line)
	}
	line, err := canonicalLine(s)
	if err != nil {
		return "", err
	}
	b.WriteString(line)
	b.WriteString(strings.Join(absoluteLines(s), ""))
	return b.String(), nil
}

func (c comparison) line(s samples) (string, error) {
	of, against, err := pair(s, c.of.benchmark, c.against.benchmark)
	if err != nil {
		return "", err
	}
	perUnit := c.against.units / c.of.units
	ratio := median(ratios(of, against, timeOf)) * perUnit
	allocated := median(ratios(of, against, allocationsOf)) * perUnit
	took := time.Duration(median(valuesOf(of, timeOf)) / c.of.units)
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %v | %s |\n", c.measure, c.goal, ratio, allocated, round(took), c.verdict(ratio)), nil
}

func (c comparison) verdict(ratio float64) string {
	if c.atLeast && ratio >= c.limit || !c.atLeast && ratio <= c.limit {
		return "met"
	}
	return "**missed**"
}

func canonicalLine(s samples) (string, error) {
	of, against, err := pair(s, "CoreCanonical/canonical", "CoreCanonical/encoding-json")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("| canonical JSON, bytes a second: against `encoding/json` | none | %.2f | %.2f | %.0f MB/s against %.0f MB/s | |\n",
		median(ratios(of, against, rateOf)), median(ratios(of, against, allocationsOf)),
		median(valuesOf(of, rateOf)), median(valuesOf(against, rateOf))), nil
}

// absoluteLines are goals in seconds. They are judged by the best round, which
// the machine disturbed least.
func absoluteLines(s samples) []string {
	lines := []string{
		absoluteLine("1,000 operations on 1,000 nodes and 4,000 edges", s["CoreApply/1000"], 100*time.Millisecond),
		absoluteLine("their inverse", s["CoreInverse"], time.Second),
	}
	for _, name := range slowest(s, "Hostile/", 3) {
		measure := "validation of what takes longest within all budgets: " + strings.ReplaceAll(strings.TrimPrefix(name, "Hostile/"), "-", " ")
		lines = append(lines, absoluteLine(measure, s[name], time.Second))
	}
	return lines
}

func absoluteLine(measure string, of []sample, limit time.Duration) string {
	if len(of) == 0 {
		return fmt.Sprintf("| %s | %v | not measured | | | |\n", measure, limit)
	}
	times := valuesOf(of, timeOf)
	best := time.Duration(slices.Min(times))
	verdict := "met"
	if best > limit {
		verdict = "**missed**"
	}
	return fmt.Sprintf("| %s | %v | %v at best | | %v | %s |\n", measure, limit, round(best), round(time.Duration(median(times))), verdict)
}

// slowest are the names of the benchmarks with a prefix that take longest.
func slowest(s samples, prefix string, count int) []string {
	best := map[string]float64{}
	for name, of := range s {
		if strings.HasPrefix(name, prefix) {
			best[name] = slices.Min(valuesOf(of, timeOf))
		}
	}
	names := slices.SortedFunc(maps.Keys(best), func(a, b string) int {
		return cmp.Or(cmp.Compare(best[b], best[a]), cmp.Compare(a, b))
	})
	return names[:min(len(names), count)]
}

func pair(s samples, of, against string) (a, b []sample, err error) {
	a, b = s[of], s[against]
	if len(a) == 0 || len(b) == 0 {
		return nil, nil, fmt.Errorf("there are %d runs of %s and %d of %s", len(a), of, len(b), against)
	}
	n := min(len(a), len(b))
	return a[:n], b[:n], nil
}

// ratios are those of each round.
func ratios(of, against []sample, value func(sample) float64) []float64 {
	found := make([]float64, len(of))
	for i := range of {
		found[i] = value(of[i]) / value(against[i])
	}
	return found
}

// round leaves three digits.
func round(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}
