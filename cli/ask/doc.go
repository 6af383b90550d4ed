// Package ask has a person answer a human task, one question after the other.
//
// A form is asked by its fields, a JSON Schema by the properties of the object that
// it describes, and anything else as one JSON value. What is typed is turned into
// what the question is about and held against it at once, and the whole answer once
// more before it is given, by the rules that admission has: nothing leaves the
// terminal that would be refused there. What looks like a secret is neither echoed
// nor shown again.
//
// The package knows nothing of tasks, of clusters, and of where the answer goes.
package ask
