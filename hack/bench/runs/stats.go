package main

import (
	"fmt"
	"slices"
	"time"
)

// percentile of samples, by the nearest rank; zero without any.
func percentile(samples []time.Duration, p float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(p / 100 * float64(len(sorted)))
	return sorted[min(rank, len(sorted)-1)]
}

func median(samples []time.Duration) time.Duration {
	return percentile(samples, 50)
}

func medianOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// paired are samples of what is measured and of the raw writes that alternate
// with it.
type paired struct {
	measured, raw []time.Duration
	// usedMeasured and usedRaw are what both took of the processors, together.
	usedMeasured, usedRaw time.Duration
}

func (p *paired) add(measured, raw time.Duration) {
	p.measured = append(p.measured, measured)
	p.raw = append(p.raw, raw)
}

// use adds what a pair took of the processors.
func (p *paired) use(measured, raw time.Duration) {
	p.usedMeasured += measured
	p.usedRaw += raw
}

// processor is the ratio of that.
func (p *paired) processor() string {
	return times(quotient(p.usedMeasured, p.usedRaw)) + " of processor time"
}

// ratio of a percentile of what was measured to that of the raw writes.
func (p *paired) ratio(of float64) float64 {
	return quotient(percentile(p.measured, of), percentile(p.raw, of))
}

// ratioOfPairs is the median of the pairs' own ratios.
func (p *paired) ratioOfPairs() float64 {
	ratios := make([]float64, len(p.measured))
	for i := range p.measured {
		ratios[i] = quotient(p.measured[i], p.raw[i])
	}
	return medianOf(ratios)
}

// ofPairs tells of the ratio of pairs, and of what it is a ratio of.
func (p *paired) ofPairs() string {
	return fmt.Sprintf("%s (%s; %s)", times(p.ratioOfPairs()), ms(median(p.measured)), p.processor())
}

func quotient(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// ms writes a duration in milliseconds.
func ms(d time.Duration) string {
	value := float64(d) / float64(time.Millisecond)
	if value >= 100 {
		return fmt.Sprintf("%.0f ms", value)
	}
	return fmt.Sprintf("%.1f ms", value)
}

// times writes a ratio.
func times(ratio float64) string {
	return fmt.Sprintf("%.2f×", ratio)
}

// mebibytes writes an amount of memory.
func mebibytes(bytes uint64) string {
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
