package journal

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Types of events that have a meaning for the journal itself.
const (
	TypeUserMessage       = "user_message"
	TypeAssistantText     = "assistant_text"
	TypeConversationReset = "conversation_reset"
	TypeSessionInit       = "session_init"
	TypeSessionEnded      = "session_ended"
)

// MemberNotice marks a text as the operator's own word to the person.
const MemberNotice = "notice"

const (
	// MaxString is what a line keeps of one string, in characters.
	MaxString = 8000
	// MaxItems is what a line keeps of one list, in entries.
	MaxItems = 200
)

// An Event is one thing that happened in a session.
type Event struct {
	Type string
	// Data is a JSON object; nil is an empty one.
	Data map[string]any
}

// Line returns the event as one line of JSON with the line break, at most
// [MaxChunk] bytes long as long as its type is a word. Long strings and lists
// are cut; what is too large even then is cut harder, and at last left out.
func (e Event) Line() []byte {
	maxString, maxItems := MaxString, MaxItems
	for range 8 { // the last try keeps some 60 characters of a string and an entry of a list
		if line := e.line(Truncate(e.Data, maxString, maxItems)); len(line) <= MaxChunk {
			return line
		}
		maxString, maxItems = maxString/2, maxItems/2
	}
	return e.line(map[string]any{"truncated": true})
}

func (e Event) line(data any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	// The canonical form would round large integers, which a journal must not.
	err := encoder.Encode(struct {
		Type string `json:"type"`
		Data any    `json:"data"`
	}{e.Type, data})
	if err != nil { // no JSON tree does that; an event must not be lost over it
		return e.line(map[string]any{"truncated": true})
	}
	return buffer.Bytes()
}

// Load returns the events of a journal whose chunks are given oldest first.
// What is no event is passed over. A reset of the conversation discards all
// that was before it, and is the first event then.
func Load(chunks ...string) []Event {
	var events []Event
	for _, chunk := range chunks {
		for line := range strings.Lines(chunk) {
			event, ok := parse(line)
			if !ok {
				continue
			}
			if event.Type == TypeConversationReset {
				events = nil
			}
			events = append(events, event)
		}
	}
	return events
}

func parse(line string) (Event, bool) {
	value, err := jsonvalue.Decode([]byte(line))
	if err != nil {
		return Event{}, false
	}
	object, _ := value.(map[string]any)
	kind, _ := object["type"].(string)
	if kind == "" {
		return Event{}, false
	}
	return Event{Type: kind, Data: DataOf(object["data"])}, true
}

// DataOf is the data of an event, given as a JSON value: anything but an object
// counts as an empty one.
func DataOf(value any) map[string]any {
	if object, ok := value.(map[string]any); ok && object != nil {
		return object
	}
	return map[string]any{}
}
