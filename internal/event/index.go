package event

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Receiver is what an activation waits for.
type Receiver struct {
	// Type of the event. A blank one is never met.
	Type string
	// Correlates tells whether the event must be about something: whether
	// EventKey over the event must give SubscriptionKey, which is not empty.
	Correlates      bool
	EventKey        string
	SubscriptionKey string
}

// isHopeless tells whether no event can ever be meant.
func (r Receiver) isHopeless() bool {
	return strings.TrimSpace(r.Type) == "" || r.Correlates && r.SubscriptionKey == ""
}

// shortKey is the key by which the receiver is found; none if it asks for none.
func (r Receiver) shortKey() string {
	if !r.Correlates {
		return ""
	}
	return ShortKey(r.SubscriptionKey)
}

// Found are the runs that an event may be for, each list sorted.
type Found struct {
	// Runs whose subscription key the event has, or that ask for none.
	Runs []string
	// Failed are runs of which that cannot be told, because their expression
	// failed.
	Failed []string
}

// An Index finds the runs that wait for an event. It remembers what each run
// was last said to wait for. The zero value is empty and ready; it may be used
// by several goroutines at once.
type Index struct {
	mu     sync.Mutex
	waits  map[runID][]Receiver
	topics map[topic]map[group]waiting
}

type runID struct{ namespace, name string }

type topic struct{ namespace, eventType string }

// group are the receivers of a topic whose expression is the same. Its text
// stands in for its digest: equal texts share their bytes.
type group struct {
	correlates bool
	eventKey   string
}

// waiting holds the runs of a group by subscription key.
type waiting map[string]map[string]struct{}

// Put says what a run waits for now, instead of what was said before.
func (x *Index) Put(namespace, run string, receivers []Receiver) {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := runID{namespace, run}
	x.remove(id)
	for _, r := range receivers {
		if r.isHopeless() {
			continue
		}
		x.add(id, r)
	}
}

// Remove says that a run waits for nothing.
func (x *Index) Remove(namespace, run string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(runID{namespace, run})
}

func (x *Index) add(id runID, r Receiver) {
	if x.waits == nil {
		x.waits, x.topics = map[runID][]Receiver{}, map[topic]map[group]waiting{}
	}
	t, g := topic{id.namespace, r.Type}, groupOf(r)
	if x.topics[t] == nil {
		x.topics[t] = map[group]waiting{}
	}
	if x.topics[t][g] == nil {
		x.topics[t][g] = waiting{}
	}
	key := r.shortKey()
	if x.topics[t][g][key] == nil {
		x.topics[t][g][key] = map[string]struct{}{}
	}
	x.topics[t][g][key][id.name] = struct{}{}
	x.waits[id] = append(x.waits[id], r)
}

func (x *Index) remove(id runID) {
	for _, r := range x.waits[id] {
		t, g, key := topic{id.namespace, r.Type}, groupOf(r), r.shortKey()
		runs := x.topics[t][g][key]
		delete(runs, id.name)
		if len(runs) == 0 {
			delete(x.topics[t][g], key)
		}
		if len(x.topics[t][g]) == 0 {
			delete(x.topics[t], g)
		}
		if len(x.topics[t]) == 0 {
			delete(x.topics, t)
		}
	}
	delete(x.waits, id)
}

func groupOf(r Receiver) group {
	if !r.Correlates {
		return group{}
	}
	return group{correlates: true, eventKey: r.EventKey}
}

// Find returns the runs of a namespace that an event of a type may be for.
// Whatever an expression gives is asked of keyOf once, in the form of
// [ShortKey]. The index is not locked meanwhile, so that a run that is put
// while Find runs may be missing.
func (x *Index) Find(namespace, eventType string, keyOf func(eventKey string) (string, error)) Found {
	t := topic{namespace, eventType}
	runs, failed := map[string]struct{}{}, map[string]struct{}{}
	for _, g := range x.groups(t) {
		if !g.correlates {
			x.collect(t, g, "", runs)
			continue
		}
		key, err := keyOf(g.eventKey)
		if err != nil {
			x.collectAll(t, g, failed)
			continue
		}
		x.collect(t, g, key, runs)
	}
	maps.DeleteFunc(failed, func(run string, _ struct{}) bool {
		_, isFound := runs[run]
		return isFound
	})
	return Found{Runs: slices.Sorted(maps.Keys(runs)), Failed: slices.Sorted(maps.Keys(failed))}
}

func (x *Index) groups(t topic) []group {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.topics[t]))
}

func (x *Index) collect(t topic, g group, key string, runs map[string]struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.Copy(runs, x.topics[t][g][key])
}

func (x *Index) collectAll(t topic, g group, runs map[string]struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, some := range x.topics[t][g] {
		maps.Copy(runs, some)
	}
}
