// Package source reads the documents that people keep in files: YAML or JSON,
// one value a file, as the JSON tree that all other packages work on, with the
// line and column of every value.
//
// A tree is what the API server would be given for the same file. YAML is read
// by its core schema, with integers, floats, merge keys and time stamps as the
// tools in front of an API server convert them; of what they would take for a
// boolean and YAML 1.2 takes for text, a document warns. JSON keeps its numbers
// as package jsonvalue reads them.
//
// Files come from anywhere. Bytes, values, nesting and what aliases multiply are
// bounded before memory is spent on them, and a repeated key or bytes that are
// no UTF-8 refuse the file. Every error says where.
//
// The package knows nothing of workflows.
package source
