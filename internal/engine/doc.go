// Package engine decides what happens next in a run of a workflow.
//
// A run is an Instance, a plain value. Every function takes one, together with what came to pass (an action's result, an
// event, the end of a time) and the time it is, and returns a Step: the next instance and the history entries of what
// closed. Arguments are never changed, and the same arguments give the same step.
//
// A node that is entered becomes an activation, node#n for its n-th visit, and parks until something is delivered to
// that very activation; what comes late, twice or for another attempt is told apart and changes nothing. A step then
// follows edges, depth first, until everything is parked again or the run is over. A fork splits a branch, a join waits
// until all edges into it have been followed.
//
// Times are kept in UTC to the nanosecond, and numbers as JSON spells them, so an instance that went through JSON acts
// like the one before. Event arrivals are compared by the second, as coarse as the clock that stamps them.
//
// The package runs nothing and keeps no state. It knows nothing of Kubernetes, clocks or where an instance is stored.
package engine
