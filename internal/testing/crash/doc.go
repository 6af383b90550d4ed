// Package crash lets faults strike a process and checks that the world ends up
// the same, with every effect once.
//
// A Scenario names a process, such as a manager with its controllers, and a
// play: everybody else, who acts on the API server and waits for what should
// come of it. Explore first plays without any fault and counts the writes of the
// process and the events that reach it. Then it plays once for each fault:
//
//   - The process is stopped before a write is sent, or when the write has been
//     applied but before the process learns of it. A new process starts with
//     nothing but what the API server holds, or with a cache that is filled from
//     an older state, as one that lists from a lagging replica has it.
//   - An event of a watch comes late: until the process has done all that it does
//     without, its cache is old. Or the event is lost, together with the watch. Or
//     every event comes twice.
//   - Two processes run at once, without knowing of each other.
//
// Every ending is compared with the first one: the objects, and which objects
// were created how often.
//
// The faults are put under the process's HTTP transport. So they reach whatever
// client the process uses, typed, cached or raw, and they count what the API
// server counts: one request that may change something. Events and leases are
// not counted, since nothing may depend on them. From the moment that a process
// is stopped no request of it gets through any more, so it has no last word.
//
// Which write or event is the n-th may differ from one play to the next, where
// the process works on several things at a time. Each play still has a fault of
// its own, and over all plays they are all met.
//
// Endings are compared in a normal form: what must differ from play to play,
// such as UIDs, times, resource versions and digests, is replaced by words. A
// play is given time to come to its ending; what it has come to must last.
//
// The package knows nothing of what the process does.
package crash
