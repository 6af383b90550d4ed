package workflow

import "slices"

// A Kind is what a node does.
type Kind string

// The kinds of nodes.
const (
	// KindStart is where a run begins.
	KindStart Kind = "start"
	// KindEnd is where a run completes.
	KindEnd Kind = "end"
	// KindAction runs an action type.
	KindAction Kind = "action"
	// KindHumanTask asks a person.
	KindHumanTask Kind = "human-task"
	// KindReceiveEvent waits for an event from outside.
	KindReceiveEvent Kind = "receive-event"
	// KindWait waits for some time.
	KindWait Kind = "wait"
	// KindComponent calls another definition.
	KindComponent Kind = "component"
)

// Kinds lists all kinds, in the order of their documentation.
func Kinds() []Kind {
	return []Kind{KindStart, KindEnd, KindAction, KindHumanTask, KindReceiveEvent, KindWait, KindComponent}
}

func (k Kind) isKnown() bool {
	return slices.Contains(Kinds(), k)
}
