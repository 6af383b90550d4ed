package action

import "github.com/apitomy/axiom-operator/internal/reply"

const (
	// MaxReply bounds a reply, in bytes.
	MaxReply = reply.MaxSize
	// RawOutput is the output of an action that declares none: the reply itself.
	RawOutput = "rawOutput"
)

// Codes of replies that are no result.
const (
	CodeReplyEmpty    = reply.CodeEmpty
	CodeReplyTooLarge = reply.CodeTooLarge
	CodeReplyInvalid  = reply.CodeInvalid
)

// A ReplyError says what is wrong with a reply.
type ReplyError = reply.Error

// A Contract is what the reply of an agent must be: a JSON object of the declared
// outputs, or any text if there are none.
type Contract struct {
	Outputs []Field `json:"outputs"`
}

// IsOpen tells whether any text will do.
func (c Contract) IsOpen() bool { return len(c.Outputs) == 0 }

// general is the contract without its outputs.
func (c Contract) general() reply.Contract {
	if c.IsOpen() {
		return reply.Contract{}
	}
	return reply.Contract{Schema: c.Schema()}
}

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

// Read returns the outputs that a reply gives. Nothing is filled in, converted or
// taken away. The error is a [*ReplyError].
func (c Contract) Read(text string) (map[string]any, error) {
	value, err := c.general().Read(text)
	if err != nil {
		return nil, err
	}
	if c.IsOpen() {
		return map[string]any{RawOutput: value}, nil
	}
	outputs, _ := value.(map[string]any) // by the schema
	return outputs, nil
}

// Extend adds to a prompt in what form the reply must be.
func (c Contract) Extend(prompt string) string {
	return c.general().Extend(prompt)
}

// Repair is the prompt that follows a reply in the wrong form.
func (c Contract) Repair(previous string, fault *ReplyError) string {
	return c.general().Repair(previous, fault)
}
