// Package simulate plays a run of a workflow through by a script, without a
// cluster: people, actions, events and clocks are steps of the script.
//
// Each step is one call of the engine, as the operator would make it. An event
// is stored when it arrives, and after every step the stored events are offered
// to every receiver that is parked, oldest first, until none is taken any more:
// so an event that comes before anybody waits for it is found later, and one
// event may complete several receivers.
//
// The clock begins at Begin and moves only by the script, so a script always
// plays the same. The package knows nothing of files or of how its result is
// shown.
package simulate
