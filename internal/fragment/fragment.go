// Package fragment decides whether a fragment may be carried out: a JSON document in which an agent proposes to read or to
// change files.
//
// A fragment is admitted whole or not at all, before anything is done. What it may do is bounded by what is written here:
// four operations, of which configuration can only take some away. A refusal names an operation by its index and repeats
// nothing of the fragment.
//
// The package asks a tree what stands at a path and knows nothing else of repositories; it carries nothing out.
package fragment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Bounds of a fragment.
const (
	// MaxSize bounds its canonical JSON, in bytes.
	MaxSize = 192 << 10
	// MaxOperations bounds how many operations it has; it has one at least.
	MaxOperations = 64
	// MaxFile bounds the content of a file, in bytes.
	MaxFile = 128 << 10
)

// Codes of refusals.
const (
	CodeTooLarge  = "FRAGMENT_TOO_LARGE"
	CodeMalformed = "FRAGMENT_MALFORMED"
	CodeClass     = "FRAGMENT_CLASS"
	CodeForm      = "FRAGMENT_FORM"
	CodePath      = "FRAGMENT_PATH"
	CodeDuplicate = "FRAGMENT_DUPLICATE"
	CodeSecret    = "SECRET_DETECTED"
	// CodeContract: not the fragment is at fault, but the options.
	CodeContract = "ACTION_CONTRACT"
)

// A Refusal says why a fragment is not carried out. It holds nothing of the fragment.
//
//nolint:errname // what the contract calls it
type Refusal struct {
	Code string
	// Index of the operation at fault, from 0; -1: the whole.
	Index int
	// Cause is what the gate or the check of a path said, if it was asked.
	Cause error
}

// Error is the code and the operation.
func (r *Refusal) Error() string {
	if r.Index < 0 {
		return r.Code
	}
	return fmt.Sprintf("%s: operation %d", r.Code, r.Index)
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

func refuse(code string, index int) *Refusal {
	return &Refusal{Code: code, Index: index}
}

// A Class is what the operations of one fragment have in common.
type Class string

// The classes.
const (
	Read  Class = "read"
	Write Class = "write"
)

// The kinds of operations.
const (
	OpRead   = "read"
	OpGlob   = "glob"
	OpWrite  = "write"
	OpDelete = "delete"
)

// classes are the operations there are.
var classes = map[string]Class{OpRead: Read, OpGlob: Read, OpWrite: Write, OpDelete: Write}

// A Fragment is one that may be carried out.
type Fragment struct {
	Class      Class
	Operations []Operation
	// Digest is the SHA-256 of its canonical JSON, as sha256: and hexadecimal digits.
	Digest string
}

// An Operation is one of a fragment. Which members count depends on its kind.
type Operation struct {
	// Kind is one of the Op constants.
	Kind string
	// Path of OpRead, OpWrite and OpDelete.
	Path string
	// Content of OpWrite.
	Content string
	// Executable of OpWrite, as given; nil if it was not.
	Executable *bool
	// Include and Exclude of OpGlob. Exclude is nil if it was not given.
	Include, Exclude []string
	// Before is what stands at the path when the fragment is admitted.
	Before Kind
}

// IsExecutable tells whether a written file gets the bit: as given, or as it was before.
func (o Operation) IsExecutable() bool {
	if o.Executable != nil {
		return *o.Executable
	}
	return o.Before == Executable
}

// Admit decides on a fragment, a JSON tree. Strings are taken as they are. The error is a [*Refusal], or what the tree
// could not help. A gate that is nil lets nothing pass.
func Admit(value any, options Options, tree Tree, gate Gate) (*Fragment, error) {
	limits, err := options.compile()
	if err != nil {
		return nil, &Refusal{Code: CodeContract, Index: -1, Cause: err}
	}
	canonical, err := jsonvalue.Canonical(value)
	switch {
	case err != nil:
		return nil, refuse(CodeMalformed, -1)
	case len(canonical) > MaxSize:
		return nil, refuse(CodeTooLarge, -1)
	}
	entries, refusal := readEntries(value)
	if refusal != nil {
		return nil, refusal
	}
	class, refusal := limits.classOf(entries)
	if refusal != nil {
		return nil, refusal
	}
	operations, refusal := readOperations(entries)
	if refusal != nil {
		return nil, refusal
	}
	if err := checkTargets(operations, limits, tree); err != nil {
		return nil, err
	}
	if refusal := checkContents(operations, entries, gate); refusal != nil {
		return nil, refusal
	}
	sum := sha256.Sum256(canonical)
	return &Fragment{Class: class, Operations: operations, Digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// Value is the fragment as the JSON tree it was admitted from.
func (f *Fragment) Value() map[string]any {
	operations := make([]any, 0, len(f.Operations))
	for _, operation := range f.Operations {
		operations = append(operations, map[string]any{operation.Kind: operation.members()})
	}
	return map[string]any{memberOperations: operations}
}

func (o Operation) members() map[string]any {
	switch o.Kind {
	case OpGlob:
		members := map[string]any{memberInclude: listOf(o.Include)}
		if o.Exclude != nil {
			members[memberExclude] = listOf(o.Exclude)
		}
		return members
	case OpWrite:
		members := map[string]any{memberPath: o.Path, memberContent: o.Content}
		if o.Executable != nil {
			members[memberExecutable] = *o.Executable
		}
		return members
	}
	return map[string]any{memberPath: o.Path}
}

func listOf(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}
