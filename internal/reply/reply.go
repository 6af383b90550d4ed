// Package reply decides whether what an agent replies is what it was asked for, and what it is asked next if it is not.
//
// A contract is a JSON Schema, or nothing, and then any text will do. A reply is taken as it is: nothing is filled in,
// converted or taken away. One in the wrong form can be repaired, a few times; one that holds a secret cannot, for it
// must not be kept or sent back.
//
// The package knows nothing of sessions and turns, and of what a reply is for.
package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/apitomy/axiom-operator/internal/form"
)

const (
	// MaxSize bounds a reply, in bytes.
	MaxSize = 128 << 10
	// DefaultRepairs is how often a reply may be repaired where nothing is said.
	DefaultRepairs = 2
	// MaxRepairs bounds what may be said.
	MaxRepairs = 5
	// maxFaults bounds how many faults of a reply are told.
	maxFaults = 20
)

// Codes of replies that are no result.
const (
	CodeEmpty    = "REPLY_EMPTY"
	CodeTooLarge = "REPLY_TOO_LARGE"
	CodeInvalid  = "REPLY_INVALID"
	CodeSecret   = "SECRET_DETECTED"
)

// An Error says what is wrong with a reply. Only one with CodeInvalid can be repaired: the agent gave an answer, in
// another form than it should.
type Error struct {
	Code string
	// Faults, each a path and a rule, or a sentence about the whole. They hold no value of the reply.
	Faults []string
	// Cause is what the gate said, if it let nothing pass.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	if len(e.Faults) == 0 {
		return e.Code
	}
	return e.Code + ": " + strings.Join(e.Faults, "; ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// A Contract is what a reply must be.
type Contract struct {
	// Schema is a JSON Schema 2020-12 without references out of itself; nil if any text will do.
	Schema any `json:"schema,omitempty"`
}

// IsOpen tells whether any text will do.
func (c Contract) IsOpen() bool { return c.Schema == nil }

// Check tells why the contract cannot be asked for.
func (c Contract) Check() error {
	if c.IsOpen() {
		return nil
	}
	return form.CheckSchema(c.Schema)
}

// CheckRepairs tells why a reply cannot be repaired this often.
func CheckRepairs(repairs int64) error {
	if repairs < 0 || repairs > MaxRepairs {
		return fmt.Errorf("repairs must be from 0 to %d", MaxRepairs)
	}
	return nil
}

// truncated is what the runner puts behind a reply that did not get through.
var truncated = regexp.MustCompile(`…\[truncated [0-9]+ bytes\]$`)

// Read returns the value of a reply: the text itself if any will do, else a JSON tree. The error is an [*Error].
func (c Contract) Read(text string) (any, error) {
	switch {
	case len(text) > MaxSize || truncated.MatchString(text):
		return nil, &Error{Code: CodeTooLarge, Faults: []string{fmt.Sprintf("the reply has more than %d bytes", MaxSize)}}
	case c.IsOpen() && strings.TrimSpace(text) == "":
		return nil, &Error{Code: CodeEmpty}
	case c.IsOpen():
		return text, nil
	}
	value, fault := decode(text)
	if fault != "" {
		return nil, &Error{Code: CodeInvalid, Faults: []string{fault}}
	}
	if _, wrong := form.Accept(form.Spec{ResponseSchema: c.Schema}, value); len(wrong) > 0 {
		return nil, &Error{Code: CodeInvalid, Faults: faultsOf(wrong)}
	}
	return value, nil
}

func faultsOf(wrong []form.FieldError) []string {
	var faults []string
	for _, e := range wrong[:min(len(wrong), maxFaults)] {
		faults = append(faults, e.Error())
	}
	if hidden := len(wrong) - len(faults); hidden > 0 {
		faults = append(faults, fmt.Sprintf("%d more", hidden))
	}
	return faults
}

// A Gate tells why a JSON tree must not be kept, by rule and position alone; nil lets it pass.
type Gate func(value any) error

// CheckSecret asks the gate about a reply before it is kept: about its text and, where it is JSON, about its value too,
// for JSON can spell a character in more than one way. A gate that is nil lets nothing pass. The error is an [*Error].
func CheckSecret(text string, gate Gate) error {
	if gate == nil {
		return &Error{Code: CodeSecret}
	}
	if err := gate(text); err != nil {
		return &Error{Code: CodeSecret, Cause: err}
	}
	value, fault := decode(text)
	if fault != "" {
		return nil
	}
	if err := gate(value); err != nil {
		return &Error{Code: CodeSecret, Cause: err}
	}
	return nil
}

// A Judgement is what follows from a reply: a value, the prompt of a repair, or the end.
type Judgement struct {
	// Value of the reply, if nothing else is set.
	Value any
	// Repair is the prompt that follows; empty if none does.
	Repair string
	// Failure is why there is no value, and none will follow.
	Failure *Error
}

// Attempts say how often a reply was repaired, and how often it may be.
type Attempts struct {
	Made, Allowed int
}

// Judge decides on a reply.
func (c Contract) Judge(text string, attempts Attempts, gate Gate) Judgement {
	if wrong, is := errors.AsType[*Error](CheckSecret(text, gate)); is {
		return Judgement{Failure: wrong}
	}
	value, err := c.Read(text)
	wrong, isWrong := errors.AsType[*Error](err)
	switch {
	case !isWrong:
		return Judgement{Value: value}
	case wrong.Code == CodeInvalid && attempts.Made < attempts.Allowed:
		return Judgement{Repair: c.Repair(text, wrong)}
	}
	return Judgement{Failure: wrong}
}

const (
	introduction = "Your whole reply must be one JSON value, bare or in a single json fence, that is valid for this JSON Schema:"
	repairOrder  = "Your previous reply does not have the demanded form. Correct its form only: do not analyse anew, and change no statement. Reply with the corrected JSON value and nothing else."
)

// Extend adds to a message in what form the reply must be.
func (c Contract) Extend(message string) string {
	if c.IsOpen() {
		return message
	}
	return message + "\n\n" + introduction + "\n" + c.schemaText()
}

// Repair is the prompt that follows a reply in the wrong form.
func (c Contract) Repair(previous string, wrong *Error) string {
	var text strings.Builder
	text.WriteString(repairOrder + "\n\nWhat is wrong:\n")
	for _, fault := range wrong.Faults {
		text.WriteString("- " + fault + "\n")
	}
	text.WriteString("\n" + introduction + "\n" + c.schemaText() + "\n\nYour previous reply was:\n" + previous)
	return text.String()
}

// schemaText has its members in order, so that equal contracts read alike.
func (c Contract) schemaText() string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(c.Schema) // a JSON tree
	return strings.TrimSuffix(text.String(), "\n")
}
