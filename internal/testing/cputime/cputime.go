// Package cputime measures benchmarks by the time of the processor instead of that of the clock: what other processes do
// meanwhile is none of it. It counts all threads of the process, so that collecting garbage is part of the work.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Now is the time the processors spent on this process so far.
func Now() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // the argument is right, so there is no error
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Loop runs work as often as the benchmark asks and reports what one time takes as cpu-ns/op, beside allocations.
func Loop(b *testing.B, work func()) {
	b.Helper()
	b.ReportAllocs()
	start := Now()
	for b.Loop() {
		work()
	}
	report(b, Now()-start)
}

// LoopPrepared is Loop for work that needs something new each time, which is not measured.
func LoopPrepared(b *testing.B, prepare, work func()) {
	b.Helper()
	b.ReportAllocs()
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		prepare()
		start := Now()
		b.StartTimer()
		work()
		spent += Now() - start
	}
	report(b, spent)
}

func report(b *testing.B, spent time.Duration) {
	b.Helper()
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "cpu-ns/op")
}
