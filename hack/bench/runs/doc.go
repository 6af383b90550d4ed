// Command runs measures how workflow runs perform against a real API server,
// and writes a table and a plot.
//
// It starts etcd and a kube-apiserver of its own, installs the project's types
// and webhooks, and starts the operator as a process: the same controllers and
// admission as in a cluster, in a child of this program, so that its memory is
// its own and it can be killed. Then it plays what people and events do.
//
// No figure stands alone. Each measurement alternates with raw status writes on
// the same server, of an object that has neither schema nor webhook, in the
// same run; what is reported is the ratio of medians. The machine's load moves
// both alike. What can be counted is counted: writes, reconciles, Events and
// requests, at the operator's HTTP transport.
//
// With --gateway it measures agents instead, whose sessions propose change sets
// at once.
//
// It knows nothing of how the operator is built: it sees requests, objects and
// the operator's metrics.
package main
