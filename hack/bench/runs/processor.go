package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux counts processor time for everybody to read.
const tick = 10 * time.Millisecond

// processorTime is what the processes that this program started, the API server,
// etcd and the operator, have used of the processors so far. Other load on the
// machine moves it far less than it moves the time that passes.
func processorTime() (time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("look for processes: %w", err)
	}
	self := strconv.Itoa(os.Getpid())
	var used time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // it is one of /proc
		if err != nil {
			continue // it has ended
		}
		parent, ticks, err := readStat(string(text))
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		if parent == self {
			used += time.Duration(ticks) * tick
		}
	}
	return used, nil
}

// readStat reads the parent and the processor time of a process from its line in
// /proc. The name, in brackets, may contain anything.
func readStat(text string) (parent string, ticks int64, err error) {
	_, rest, _ := cutLast(text, ") ")
	fields := strings.Fields(rest)
	const afterName, user, system = 1, 11, 12
	if len(fields) <= system {
		return "", 0, fmt.Errorf("it has %d fields after the name", len(fields))
	}
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return "", 0, err
		}
		ticks += n
	}
	return fields[afterName], ticks, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// timed is how long something took, and what it took of the processors.
func timed(do func() error) (passed, used time.Duration, err error) {
	before, err := processorTime()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	passed = time.Since(began)
	after, err := processorTime()
	return passed, after - before, err
}
