package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	// MaxReply bounds a reply, in bytes.
	MaxReply = 128 << 10
	// RawOutput is the output of an action that declares none: the reply itself.
	RawOutput = "rawOutput"
	// maxFaults bounds how many faults of a reply are told.
	maxFaults = 20
)

// Codes of replies that are no result.
const (
	CodeReplyEmpty    = "REPLY_EMPTY"
	CodeReplyTooLarge = "REPLY_TOO_LARGE"
	CodeReplyInvalid  = "REPLY_INVALID"
)

// A ReplyError says what is wrong with a reply. Only one with CodeReplyInvalid
// can be repaired: the agent gave an answer, in another form than it should.
type ReplyError struct {
	Code string
	// Faults, each a path and a rule, or a sentence about the whole. They hold no
	// value of the reply.
	Faults []string
}

// Error implements error.
func (e *ReplyError) Error() string {
	if len(e.Faults) == 0 {
		return e.Code
	}
	return e.Code + ": " + strings.Join(e.Faults, "; ")
}

// A Contract is what the reply of an agent must be: a JSON object of the declared
// outputs, or any text if there are none.
type Contract struct {
	Outputs []Field `json:"outputs"`
}

// IsOpen tells whether any text will do.
func (c Contract) IsOpen() bool { return len(c.Outputs) == 0 }

// Schema is the contract as a JSON Schema 2020-12; nil if any text will do. An
// optional output may also be null.
func (c Contract) Schema() map[string]any {
	if c.IsOpen() {
		return nil
	}
	properties := map[string]any{}
	required := []any{}
	for _, f := range c.Outputs {
		property := map[string]any{"type": typeName(f.Type)}
		if f.Required {
			required = append(required, f.Name)
		} else {
			property["type"] = []any{typeName(f.Type), "null"}
		}
		if f.Description != "" {
			property["description"] = f.Description
		}
		properties[f.Name] = property
	}
	return map[string]any{"type": TypeObject, "properties": properties, "required": required}
}

// truncated is what the runner puts behind a reply that did not get through.
var truncated = regexp.MustCompile(`…\[truncated [0-9]+ bytes\]$`)

// Read returns the outputs that a reply gives. Nothing is filled in, converted or
// taken away. The error is a [*ReplyError].
func (c Contract) Read(reply string) (map[string]any, error) {
	switch {
	case len(reply) > MaxReply || truncated.MatchString(reply):
		return nil, &ReplyError{Code: CodeReplyTooLarge, Faults: []string{fmt.Sprintf("the reply has more than %d bytes", MaxReply)}}
	case c.IsOpen() && blank(reply):
		return nil, &ReplyError{Code: CodeReplyEmpty}
	case c.IsOpen():
		return map[string]any{RawOutput: reply}, nil
	}
	value, fault := decodeReply(reply)
	if fault != "" {
		return nil, &ReplyError{Code: CodeReplyInvalid, Faults: []string{fault}}
	}
	outputs, wrong := form.Accept(form.Spec{ResponseSchema: c.Schema()}, value)
	if len(wrong) == 0 {
		return outputs, nil
	}
	return nil, &ReplyError{Code: CodeReplyInvalid, Faults: faultsOf(wrong)}
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

// decodeReply reads a reply that must be one JSON value, bare or in a fence.
func decodeReply(reply string) (value any, fault string) {
	text := []byte(unfenced(strings.TrimSpace(reply)))
	if len(text) == 0 {
		return nil, "the reply is empty; it must be one JSON object"
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return nil, "the reply must be one JSON object and nothing else: " + err.Error()
	}
	if name, repeats := repeatedName(text); repeats {
		return nil, fmt.Sprintf("the member %s is there twice", show(name))
	}
	return value, ""
}

// fence is a reply that is one fenced block.
var fence = regexp.MustCompile("(?s)^```json[ \t]*\r?\n(.*)\n[ \t]*```$")

func unfenced(text string) string {
	if match := fence.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return text
}

// repeatedName finds a member of an object that is there twice: readers differ in
// which of the two they take. The text is valid JSON.
func repeatedName(text []byte) (string, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var open []*openValue
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", false // the end
		}
		if delim, isDelim := token.(json.Delim); isDelim && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			continue
		}
		if len(open) > 0 {
			if name, repeats := open[len(open)-1].take(token); repeats {
				return name, true
			}
		}
		if delim, isDelim := token.(json.Delim); isDelim {
			open = append(open, &openValue{isObject: delim == '{', atName: delim == '{', names: map[string]bool{}})
		}
	}
}

// openValue is an object or list whose end was not read yet.
type openValue struct {
	isObject bool
	// atName: the next token is the name of a member.
	atName bool
	names  map[string]bool
}

// take notes a token of the value itself and tells whether it repeats a name.
func (o *openValue) take(token json.Token) (string, bool) {
	if !o.isObject {
		return "", false
	}
	wasName := o.atName
	o.atName = !o.atName
	if !wasName {
		return "", false
	}
	name, _ := token.(string)
	if o.names[name] {
		return name, true
	}
	o.names[name] = true
	return "", false
}

const (
	contractIntroduction = "Your whole reply must be one JSON object, bare or in a single json fence, that is valid for this JSON Schema:"
	repairOrder          = "Your previous reply does not have the demanded form. Correct its form only: do not analyse anew, and change no statement. Reply with the corrected JSON object and nothing else."
)

// Extend adds to a prompt in what form the reply must be.
func (c Contract) Extend(prompt string) string {
	if c.IsOpen() {
		return prompt
	}
	return prompt + "\n\n" + contractIntroduction + "\n" + c.schemaText()
}

// Repair is the prompt that follows a reply in the wrong form.
func (c Contract) Repair(previous string, fault *ReplyError) string {
	var text strings.Builder
	text.WriteString(repairOrder + "\n\nWhat is wrong:\n")
	for _, f := range fault.Faults {
		text.WriteString("- " + f + "\n")
	}
	text.WriteString("\n" + contractIntroduction + "\n" + c.schemaText() + "\n\nYour previous reply was:\n" + previous)
	return text.String()
}

// schemaText has its members in order, so that equal contracts read alike.
func (c Contract) schemaText() string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(c.Schema()) // a tree of texts and lists
	return strings.TrimSuffix(text.String(), "\n")
}
