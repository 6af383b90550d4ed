// Package frames decides what happens next in a run whose workflow calls others.
//
// The workflow a run begins with and the components it calls, and those they call, are each an instance of package engine.
// A live call is a Frame: an instance that begins with the inputs of the call and nothing else, and whose outputs, once it
// reaches an end, are the result of the call. What a component fails with, its caller's node fails with.
//
// A call may be repeated until its result is good enough, or made for each item of a list; its frames follow each other.
// The nodes that call are served here, in the step that enters them; all other activations are for whoever runs the step
// to serve, in whatever frame they are. A frame has an address that it shares with no other frame of the run, and an
// activation has that of its frame before its own.
//
// As in package engine, every function takes the state of the run, changes no argument and gives the same step for the
// same arguments. The package runs nothing, and knows nothing of Kubernetes, clocks, files or where a state is stored.
package frames
