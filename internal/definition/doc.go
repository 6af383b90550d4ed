// Package definition decides whether a definition in Git may run, and gives what a run needs of it.
//
// A definition is a root document and the components that its bundle names. A document is Markdown: a head in YAML, one
// fenced block with the graph, and sections, whose texts prompts and bodies refer to. Admission reads the root and the
// components from one commit and checks them in a fixed order, up to the first refusal. What it refuses is told by code,
// place and rule; nothing of a document is repeated.
//
// A component that was admitted evaluates whatever is written in its document: inputs of nodes, sections with their
// placeholders, what calls take and leave, and outputs. All of it sees the context with every declared key, null where
// nobody wrote it. The engine gets the graph without inputs, so that nothing is evaluated twice.
//
// The package knows nothing of remotes, of frames, or of how an action is performed.
package definition
