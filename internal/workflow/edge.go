package workflow

import "math"

// An Edge leads from one node to another.
type Edge struct {
	raw map[string]any
}

// A Class says on what occasion an edge is followed.
type Class string

// The classes of edges.
const (
	// ClassNormal edges are followed when their node completes.
	ClassNormal Class = "normal"
	// ClassTimeout edges are followed when the time of their node is up.
	ClassTimeout Class = "timeout"
	// ClassError edges are followed when their node fails.
	ClassError Class = "error"
)

// ID identifies the edge among all edges.
func (e Edge) ID() string { return text(e.raw["id"]) }

// Source is the id of the node the edge leaves.
func (e Edge) Source() string { return text(e.raw["source"]) }

// Target is the id of the node the edge enters.
func (e Edge) Target() string { return text(e.raw["target"]) }

// Condition is the text of the expression that must hold for the edge to be taken; blank if there is none.
func (e Edge) Condition() string { return text(e.raw["condition"]) }

// Label is for people.
func (e Edge) Label() string { return text(e.raw["label"]) }

// Priority orders the edges of a node, the lowest first.
func (e Edge) Priority() int32 {
	n, ok := integer(e.raw["priority"])
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return 0
	}
	return int32(n)
}

// IsDefault tells whether the edge is taken when no other one is.
func (e Edge) IsDefault() bool { return flag(e.raw["isDefault"]) }

// Class is the occasion of the edge. An edge that claims two is a timeout edge; no valid document has one.
func (e Edge) Class() Class {
	switch {
	case e.isTimeout():
		return ClassTimeout
	case e.isError():
		return ClassError
	}
	return ClassNormal
}

func (e Edge) isTimeout() bool { return flag(e.raw["isTimeout"]) }

func (e Edge) isError() bool { return flag(e.raw["isError"]) }

func (e Edge) isNormal() bool { return e.Class() == ClassNormal }

// HasCondition tells whether the condition is not blank.
func (e Edge) HasCondition() bool { return !blank(e.raw["condition"]) }

// IsPlain tells whether the edge is a normal one that leaves nothing to choose: without condition and not the default.
func (e Edge) IsPlain() bool {
	return e.isNormal() && !e.HasCondition() && !e.IsDefault()
}
