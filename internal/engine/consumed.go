package engine

import (
	"net/url"
	"slices"
	"time"
)

// maxConsumed is how many events a node remembers one by one.
const maxConsumed = 64

// Consumed is what a receive-event node remembers of the events it took. Those that arrived in the second of Floor or
// later it knows one by one; what arrived before counts as taken.
type Consumed struct {
	// IDs are the identities of events, by arrival; Arrivals, cut to seconds, are in the same order.
	IDs      []string    `json:"ids"`
	Arrivals []time.Time `json:"arrivals"`
	// Floor is the arrival of the newest event that had to be forgotten, cut to seconds.
	Floor time.Time `json:"floor,omitzero"`
}

func (c Consumed) has(id string, arrived time.Time) bool {
	return arrived.Before(c.Floor) || slices.Contains(c.IDs, id)
}

// with remembers one more event.
func (c Consumed) with(id string, arrived time.Time) Consumed {
	at, _ := slices.BinarySearchFunc(c.Arrivals, arrived, func(a, b time.Time) int {
		if a.After(b) {
			return 1
		}
		return -1 // behind its equals
	})
	c.IDs = slices.Insert(slices.Clone(c.IDs), at, id)
	c.Arrivals = slices.Insert(slices.Clone(c.Arrivals), at, arrived)
	forgotten := len(c.IDs) - maxConsumed
	if forgotten <= 0 {
		return c
	}
	// Within its second the floor says nothing, so what arrived then stays known.
	c.Floor = c.Arrivals[forgotten-1]
	keep := slices.IndexFunc(c.Arrivals, func(a time.Time) bool { return !a.Before(c.Floor) })
	c.IDs, c.Arrivals = c.IDs[keep:], c.Arrivals[keep:]
	return c
}

func (s *stepper) consume(node, id string, arrived time.Time) {
	if s.Consumed == nil {
		s.Consumed = map[string]Consumed{}
	}
	s.Consumed[node] = s.Consumed[node].with(id, arrived)
}

func (r *receiver) identity() string {
	return EventIdentity(r.text("eventSourceId"), r.text("id"))
}

// EventIdentity tells events apart: the same id from two sources is two events. Escaping keeps the two parts apart.
func EventIdentity(eventSourceID, id string) string {
	return url.PathEscape(eventSourceID) + "/" + id
}

// HasConsumed tells whether a node will not take the event of an identity that arrived at a moment: it had it, or it has
// forgotten whether it had.
func (in Instance) HasConsumed(node, identity string, arrived time.Time) bool {
	return in.Consumed[node].has(identity, arrived.UTC().Truncate(time.Second))
}
