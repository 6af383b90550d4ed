package definition

import (
	"strconv"
	"strings"
)

// Codes of refusals, in the order in which what they stand for is checked.
const (
	CodeRootMissing        = "ROOT_MISSING"
	CodeRootNotAFile       = "ROOT_NOT_A_FILE"
	CodeRootUnreadable     = "ROOT_UNREADABLE"
	CodeSecretDetected     = "SECRET_DETECTED"
	CodeFrontmatterInvalid = "FRONTMATTER_INVALID"
	CodeBundleMalformed    = "BUNDLE_MALFORMED"

	CodeNameInvalid    = "COMPONENT_NAME_INVALID"
	CodeNameStructural = "COMPONENT_NAME_STRUCTURAL"
	CodeNameReserved   = "COMPONENT_NAME_RESERVED"
	CodeNameCore       = "COMPONENT_NAME_CORE"
	CodeNameDuplicate  = "COMPONENT_NAME_DUPLICATE"
	CodePathInvalid    = "COMPONENT_PATH_INVALID"

	CodeComponentMissing       = "COMPONENT_MISSING"
	CodeComponentNotAFile      = "COMPONENT_NOT_A_FILE"
	CodeComponentUnreadable    = "COMPONENT_UNREADABLE"
	CodeComponentMalformed     = "COMPONENT_MALFORMED"
	CodeComponentSchemaInvalid = "COMPONENT_SCHEMA_INVALID"

	CodeGraphInvalid          = "GRAPH_INVALID"
	CodeActionContract        = "ACTION_CONTRACT"
	CodeComponentUndeclared   = "COMPONENT_UNDECLARED"
	CodeComponentCycle        = "COMPONENT_CYCLE"
	CodeComponentIncompatible = "COMPONENT_INCOMPATIBLE"
	CodeInputsInvalid         = "INPUTS_INVALID"
)

// A Refusal says why a definition, or the inputs of a run, are not admitted. But for the names of inputs and the rules of
// a gate it holds nothing of what was written.
//
//nolint:errname // a verdict first, and an error where it ends an admission
type Refusal struct {
	// Code is one of those above.
	Code string
	// Subject is the component at fault, by its name, or the path of the document; of inputs the one at fault.
	Subject string
	// Rule that is broken, where the code stands for several.
	Rule string
	// Line and Column in the document, from 1; 0: all of it.
	Line, Column int
	// Path of that document, relative to the repository; empty: inputs were refused.
	Path string
}

// Error is all of it in one line.
func (r *Refusal) Error() string {
	parts := []string{r.Code}
	for _, part := range []string{r.Subject, r.Rule} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	if r.Line > 0 {
		text += ", line " + strconv.Itoa(r.Line)
	}
	if r.Column > 0 {
		text += ", column " + strconv.Itoa(r.Column)
	}
	return text
}

// A fault is a rule that a document breaks, and where. It becomes a refusal once it is known what document that is.
type fault struct {
	code string
	rule string
	line int
}

// of makes a refusal of a fault.
func (f *fault) of(subject string) *Refusal {
	return &Refusal{Code: f.code, Subject: subject, Rule: f.rule, Line: f.line}
}

// A Hit says where a gate found a secret.
type Hit struct {
	// Rule that was met.
	Rule string
	// Line and Column from 1.
	Line, Column int
}

// A Gate finds the first secret of a text, or none.
type Gate interface {
	Text(text string) *Hit
}
