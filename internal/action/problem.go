package action

import (
	"fmt"
	"slices"
)

// Severities of problems.
const (
	// SeverityError keeps an item from running.
	SeverityError = "error"
	// SeverityWarning tells of something that is probably not meant.
	SeverityWarning = "warning"
)

// A Problem is one thing that is wrong with an item.
type Problem struct {
	// Severity is SeverityError or SeverityWarning.
	Severity string `json:"severity"`
	// Path of the member at fault, such as `env[0].name`.
	Path string `json:"path,omitempty"`
	// Code names the rule, for machines.
	Code string `json:"code"`
	// Message says what is wrong, for people.
	Message string `json:"message"`
}

// IsError tells whether the problem keeps the item from running.
func (p Problem) IsError() bool { return p.Severity == SeverityError }

// HasErrors tells whether one of the problems keeps the item from running.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, Problem.IsError)
}

// Surroundings answer what an item alone cannot tell. A nil member silences
// the rules that need it.
type Surroundings struct {
	// HasSessionTemplate tells whether a session template of the name exists.
	HasSessionTemplate func(name string) bool
	// HasCredential tells whether a Secret of the name exists and is labelled
	// as a credential.
	HasCredential func(name string) bool
	// CheckPrompt compiles an expression over the variable `inputs`.
	CheckPrompt func(expression string) error
}

// A report collects problems in the order they are found.
type report struct {
	found []Problem
}

func (r *report) fail(code, path, format string, args ...any) {
	r.found = append(r.found, Problem{Severity: SeverityError, Path: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (r *report) warn(code, path, format string, args ...any) {
	r.found = append(r.found, Problem{Severity: SeverityWarning, Path: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

// maxShown bounds how much of an item's text a message repeats, in characters.
const maxShown = 80

// show quotes a text of the item for a message.
func show(s string) string {
	return fmt.Sprintf("%.*q", maxShown, s)
}

// unique returns the texts without repeats, each where it stood first.
func unique(texts []string) []string {
	var kept []string
	for _, text := range texts {
		if !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}
