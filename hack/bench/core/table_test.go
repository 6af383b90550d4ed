package main

import (
	"fmt"
	"strings"
	"testing"
)

// output is what the benchmarks print in one round, each taking times its figure.
func output(figure func(name string) float64) string {
	var b strings.Builder
	b.WriteString("goos: linux\ncpu: Some CPU\n")
	names := []string{"CoreCanonical/canonical", "CoreCanonical/encoding-json", "CoreInverse", "Hostile/short-sums", "Hostile/long-lists"}
	for _, c := range comparisons() {
		names = append(names, c.of.benchmark, c.against.benchmark)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			f := figure(name)
			fmt.Fprintf(&b, "Benchmark%s \t 7\t %g ns/op\t %g cpu-ns/op\t 100.00 MB/s\t 64 B/op\t %g allocs/op\n", name, 2*f, f, f)
		}
		seen[name] = true
	}
	return b.String() + "PASS\n"
}

func TestTable(t *testing.T) {
	figures := map[string]float64{
		"CoreValidate/known/10": 1000, "CoreValidate/known/100": 15_000, "CoreValidate/known/1000": 300_000,
		"CoreExpression/path/compiled": 190, "CoreExpression/path/cached": 10,
		"CoreExpression/macro/compiled": 210, "CoreExpression/macro/cached": 10,
		"CoreCanonical/canonical": 100, "CoreCanonical/encoding-json": 250,
		"Hostile/short-sums": 2e9, "Hostile/long-lists": 5e8,
	}
	round := func(factor float64) string {
		return output(func(name string) float64 {
			if f, ok := figures[name]; ok {
				return factor * f
			}
			return factor * 10
		})
	}
	// The machine is twice and thrice as slow in other rounds: ratios stay.
	samples, machine, err := read(strings.NewReader(round(1) + round(3) + round(2)))
	if err != nil || samples.rounds() != 3 || !strings.Contains(machine, "Some CPU") {
		t.Fatalf("%d rounds on %q: %v", samples.rounds(), machine, err)
	}
	table, err := tableOf(samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"expressions met before: 100 nodes against 10 | at most 2 | 1.50 | 1.50 | 300ns | met |",
		"expressions met before: 1000 nodes against 10 | at most 2 | 3.00 | 3.00 | 600ns | **missed** |",
		"expression (path): compiled and evaluated against cached | at least 20 | 19.00 | 19.00 | 380ns | **missed** |",
		"expression (macro): compiled and evaluated against cached | at least 20 | 21.00 | 21.00 | 420ns | met |",
		"against `encoding/json` | none | 1.00 | 0.40 | 200 MB/s against 200 MB/s | |",
		"| their inverse | 1s | 10ns at best | | 20ns | met |",
		"budgets: short sums | 1s | 2s at best | | 4s | **missed** |\n| validation of what takes longest within all budgets: long lists | 1s | 500ms at best | | 1s | met |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

func TestReadRefusesFailures(t *testing.T) {
	if _, _, err := read(strings.NewReader(output(func(string) float64 { return 1 }) + "--- FAIL: BenchmarkCoreStep\n")); err == nil {
		t.Error("a failed benchmark is no error")
	}
	samples, _, err := read(strings.NewReader("BenchmarkCoreApply/10 \t 1\t 5 ns/op\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tableOf(samples); err == nil {
		t.Error("a missing benchmark is no error")
	}
}

func TestBetween(t *testing.T) {
	got, err := between("a\n"+markBegin+"\nold\n"+markEnd+"\nb\n", "new\n")
	if want := "a\n" + markBegin + "\nnew\n" + markEnd + "\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"", markBegin, markEnd, markEnd + markBegin} {
		if _, err := between(text, ""); err == nil {
			t.Errorf("%q has both markers", text)
		}
	}
}
