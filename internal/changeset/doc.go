// Package changeset decides what a workflow document becomes when someone
// wants it changed: it names content by a revision, runs the operations of a
// change set or refuses them, combines the sets of a turn, tells two documents
// apart, and leads back to what was.
//
// A revision is the SHA-256 of the canonical JSON of a document without the
// positions of its nodes, so layout is no content and spelling does not
// matter. A change set carries the revision it was written for and is refused
// as a whole when the document moved on, when one of its operations does not
// fit, or when one is no operation at all.
//
// Operations run on a state that shares nodes, edges and values with its
// arguments and puts changed copies in their place, so it never writes to
// what it was given, and a refused set leaves no trace. Only what a caller
// gets is copied deep.
//
// The package knows nothing of what makes a workflow valid: a result may have
// problems, an invalid draft can be changed like any other, and members it
// has no name for are kept. It knows nothing of turns, budgets, storage or
// Kubernetes either.
package changeset
