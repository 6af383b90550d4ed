// Package client calls the gateway from inside a pod. It decides which calls
// are repeated while the gateway is away, and how long to wait in between:
//
//   - A call that may be repeated goes on until its context ends, whatever
//     keeps the gateway from answering it; the waits double from 200 ms to 10 s,
//     unless the gateway names a wait itself.
//   - A proposal of workflow changes is sent again only when it never left, or
//     the gateway says that it did not look at it. A set that was applied
//     without the answer arriving would be stale the second time.
//
// Whatever else the gateway refuses is a [*Problem]. The package knows nothing
// of Kubernetes and nothing of what is sent.
package client
