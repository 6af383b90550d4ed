// Package secretscan decides whether a text or a JSON value holds a secret, so that it is not kept.
//
// Three sets of rules are asked: the default rules of a public scanner, headers that bear a token, and fields whose name
// says that their value is a secret. A comment in the scanned text switches nothing off, and there is no list of what
// may pass but the placeholders that the rules themselves define.
//
// A scanner that cannot tell says that there is a secret. What was found is told by rule and position, never by its
// text. The package knows nothing of where values come from or of what becomes of them.
package secretscan

import "fmt"

// CodeDetected is the code of whatever is refused because of a hit.
const CodeDetected = "SECRET_DETECTED"

// Rules of this package, beside those of the library.
const (
	// RuleBearer: a token behind the word that announces it.
	RuleBearer = "bearer-header"
	// RuleField: a field that is named for a secret has a value that is no placeholder.
	RuleField = "secret-field"
	// RuleError: the scanner cannot tell.
	RuleError = "scanner-error"
)

// A Hit says where a secret is, or that the scanner could not tell. It holds nothing of the text.
//
//nolint:errname // a finding first, and an error where it refuses
type Hit struct {
	// Rule that was met.
	Rule string
	// Pointer is the JSON pointer of the string; empty in a text. Where the name of a member is the secret, its place among
	// the sorted names stands for it, as in /env/#2.
	Pointer string
	// Line and Column in the string, from 1, in characters.
	Line, Column int
}

// String is rule and position.
func (h Hit) String() string {
	place := fmt.Sprintf("line %d, column %d", h.Line, h.Column)
	if h.Pointer != "" {
		place = h.Pointer + ", " + place
	}
	return h.Rule + " at " + place
}

// Error is the code, the rule and the position.
func (h Hit) Error() string {
	return CodeDetected + ": " + h.String()
}
