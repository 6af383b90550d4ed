// Package crash stops a process at each of its writes and checks that the
// world ends up the same.
//
// A Scenario names a process, such as a manager with its controllers, and a
// play: everybody else, who acts on the API server, waits for what should come
// of it and returns the objects as they are in the end. Explore first plays
// without any fault and counts the writes of the process. Then it plays once
// for each of those writes and each of two faults: the process is stopped
// before the write is sent, and it is stopped when the write has been applied
// but before the process learns of it. A new process starts each time, with
// nothing but what the API server holds. Every ending is compared with the
// first one.
//
// The fault is put under the process's HTTP transport. So it reaches whatever
// client the process uses, typed, cached or raw, and it counts what the API
// server counts: one request that may change something. Events and leases are
// not counted, since nothing may depend on them. From the moment of the fault
// no request of that process gets through any more, so a stopped process has
// no last word.
//
// Which write is the n-th may differ from one play to the next, where the
// process works on several things at a time. Each play still stops the process
// at one write of its own, and over all plays they are all met.
//
// Endings are compared in a normal form: what must differ from play to play,
// such as UIDs, times, resource versions and digests, is replaced by words.
//
// The package knows nothing of what the process does.
package crash
