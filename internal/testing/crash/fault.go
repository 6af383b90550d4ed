package crash

import (
	"fmt"
	"os"
)

// A Kind of fault.
type Kind string

// Kinds. The first three stop the process at one of its writes; those after
// them meet it at one event of its watches; the last two last for a whole play.
const (
	// StopBefore stops the process before a write is sent.
	StopBefore Kind = "stopped before write"
	// StopAfter stops it when a write was applied and the answer has not arrived.
	StopAfter Kind = "stopped after write"
	// StopAfterStale stops it as StopAfter does, and the next process begins with a
	// cache that is older than that write.
	StopAfterStale Kind = "stopped and begun from before write"
	// Late holds an event, and all that follow it in its watch, back until the
	// process has done all that it does without: what it reads of that kind in its
	// cache is old so long.
	Late Kind = "kept waiting for event"
	// Lost loses an event together with its watch: the process has to list anew.
	Lost Kind = "deprived of event"
	// Repeated delivers every event twice.
	Repeated Kind = "told every event twice"
	// Twins runs two processes at once.
	Twins Kind = "doubled"
)

// Stops are what Explore explores if a scenario names nothing else.
func Stops() []Kind { return []Kind{StopBefore, StopAfter} }

// Faults are all kinds.
func Faults() []Kind {
	return []Kind{StopBefore, StopAfter, StopAfterStale, Late, Lost, Repeated, Twins}
}

// A Fault is what a process meets in one play. The zero fault is none.
type Fault struct {
	Kind Kind
	// At is the write or the event that the fault strikes at, counted from 1; zero
	// for kinds that last.
	At int
}

func (f Fault) String() string {
	if f.At == 0 {
		return string(f.Kind)
	}
	return fmt.Sprintf("%s %d", f.Kind, f.At)
}

// faultsOf lists the faults of some kinds for a process that made so many writes
// and saw so many events undisturbed: those that last, then the others by what
// they strike at. Where only some are explored, no two kinds have the same ones.
func faultsOf(kinds []Kind, writes, events, every int) []Fault {
	var faults []Fault
	for _, kind := range kinds {
		if kind == Repeated || kind == Twins {
			faults = append(faults, Fault{Kind: kind})
		}
	}
	every = max(every, 1)
	for at := range max(writes, events) {
		for i, kind := range kinds {
			if at%every == i%every && at < lastOf(kind, writes, events) {
				faults = append(faults, Fault{Kind: kind, At: at + 1})
			}
		}
	}
	return faults
}

// lastOf is the last write or event that a kind strikes at.
func lastOf(kind Kind, writes, events int) int {
	switch kind {
	case StopBefore, StopAfter, StopAfterStale:
		return writes
	case Late, Lost:
		return events
	case Repeated, Twins:
	}
	return 0
}

// full is the environment variable that makes Sampled explore all.
const full = "AXIOM_EXPLORE"

// Sampled is a value for Scenario.Every: n, or 1 where the environment variable
// AXIOM_EXPLORE says "all".
func Sampled(n int) int {
	if os.Getenv(full) == "all" {
		return 1
	}
	return n
}
