package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A sample is one run of a benchmark.
type sample struct {
	// clock and time are of one operation, in nanoseconds: those of the clock,
	// and those the processor spent on it.
	clock, time float64
	// rate is in megabytes for a second of the clock, if the benchmark has one.
	rate float64
	// allocations are those of one operation.
	allocations float64
}

// samples are those of each benchmark by its name, in the order of the rounds.
type samples map[string][]sample

// rounds is how often every benchmark ran.
func (s samples) rounds() int {
	least := 0
	for _, of := range s {
		if least == 0 || len(of) < least {
			least = len(of)
		}
	}
	return least
}

// result is a line of a benchmark. The number of cores behind a name is left
// out where there is more than one.
var result = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// read collects what benchmarks print, and the name of the machine.
func read(output io.Reader) (found samples, machine string, err error) {
	found = samples{}
	machine = runtime.Version()
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if cpu, ok := strings.CutPrefix(lines.Text(), "cpu: "); ok {
			machine = runtime.Version() + ", " + cpu
		}
		if strings.HasPrefix(lines.Text(), "--- FAIL") {
			return nil, "", fmt.Errorf("a benchmark failed: %s", lines.Text())
		}
		match := result.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		s, err := sampleOf(match[2])
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", match[1], err)
		}
		found[match[1]] = append(found[match[1]], s)
	}
	return found, machine, nil
}

// sampleOf reads pairs of a figure and its unit.
func sampleOf(text string) (s sample, err error) {
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return s, fmt.Errorf("parse figure: %w", err)
		}
		switch fields[i+1] {
		case "ns/op":
			s.clock = value
		case "cpu-ns/op":
			s.time = value
		case "MB/s":
			s.rate = value
		case "allocs/op":
			s.allocations = value
		}
	}
	return s, nil
}

// median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func valuesOf(of []sample, value func(sample) float64) []float64 {
	values := make([]float64, len(of))
	for i, s := range of {
		values[i] = value(s)
	}
	return values
}

func timeOf(s sample) float64        { return s.time }
func rateOf(s sample) float64        { return s.rate * s.clock / s.time }
func allocationsOf(s sample) float64 { return s.allocations }
