package runner

import (
	"bytes"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/runner/permission"
	"github.com/apitomy/axiom-operator/runner/redact"
)

const (
	// maxText is the size at which a text is split into several events, in
	// bytes.
	maxText = 16 << 10
	// maxReply bounds the reply of a prompt, in bytes. A reply that is longer
	// than any reader takes must still be seen to be longer.
	maxReply = 160 << 10
	// maxCalls bounds the tool calls that are remembered of one prompt.
	maxCalls = 10_000
)

// Types of events.
const (
	eventSessionInit        = "session_init"
	eventText               = "assistant_text"
	eventThinking           = "thinking"
	eventPlan               = "plan"
	eventToolUse            = "tool_use"
	eventToolProgress       = "tool_progress"
	eventToolResult         = "tool_result"
	eventPermissionRequest  = "permission_request"
	eventPermissionResolved = "permission_resolved"
	eventTurnComplete       = "turn_complete"
	eventSessionError       = "session_error"
	eventSessionEnded       = "session_ended"
	eventConversationReset  = "conversation_reset"
	eventUnhandled          = "unhandled_event"
)

// transcript turns what an agent reports into events. Pieces of text become
// one event when something else follows, or when they grow too long.
type transcript struct {
	emit     func(kind string, data map[string]any)
	redactor *redact.Redactor
	names    permission.Names
	now      func() time.Time

	mu        sync.Mutex
	textKind  string
	text      bytes.Buffer // without secrets
	pieces    *redact.Writer
	unhandled map[string]bool
	turn      turnRecord
	// cost of the conversation so far, in US dollars.
	cost float64
}

// turnRecord is what is known of the prompt that is being worked on.
type turnRecord struct {
	started     time.Time
	interrupted bool
	calls       map[string]*toolCall
	held        []*toolCall
	reply       strings.Builder
	replyIsOver bool
	hasResults  bool
	costBefore  float64
}

func newTranscript(emit func(string, map[string]any), redactor *redact.Redactor, names permission.Names, now func() time.Time) *transcript {
	t := &transcript{emit: emit, redactor: redactor, names: names, now: now, unhandled: make(map[string]bool)}
	t.pieces = redactor.Writer(&t.text)
	t.turn.calls = make(map[string]*toolCall)
	return t
}

// begin starts the record of a prompt.
func (t *transcript) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.turn = turnRecord{started: t.now(), calls: make(map[string]*toolCall), costBefore: t.cost}
}

// reset forgets what belongs to the conversation.
func (t *transcript) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.settle()
	t.cost = 0
	t.emit(eventConversationReset, map[string]any{})
}

// interrupt notes that the agent was asked to stop.
func (t *transcript) interrupt() {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.turn.interrupted = true
}

// add takes an update. It returns the name of the tool that a tool call is for,
// and whether it was about one.
func (t *transcript) add(u update) (tool string, isCall bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	switch u.Kind {
	case updateMessage:
		t.addChunk(eventText, u)
		return "", false
	case updateThought:
		t.addChunk(eventThinking, u)
		return "", false
	}
	t.flush()
	switch u.Kind {
	case updateToolCall:
		return t.addToolCall(u), true
	case updateTool:
		return t.addToolUpdate(u), true
	}
	t.release()
	switch u.Kind {
	case updatePlan:
		t.emit(eventPlan, map[string]any{"entries": u.Entries})
	case updateUsage:
		t.addUsage(u.Cost)
	default:
		t.addUnhandled(u.Kind)
	}
	return "", false
}

func (t *transcript) addChunk(kind string, u update) {
	t.release()
	content := blockOf(u.Content)
	if content.Type != "text" {
		t.flush()
		t.addUnhandled(u.Kind + "/" + content.Type)
		return
	}
	if t.textKind != kind {
		t.flush()
		t.textKind = kind
	}
	if kind == eventText {
		t.addReply(content.Text)
	}
	_, _ = t.pieces.Write([]byte(content.Text)) // a buffer takes everything
	for t.text.Len() > maxText {
		t.emitText(cutAt(t.text.Bytes(), maxText))
	}
}

// addReply collects the reply, which is what the agent says after its last
// tool call.
func (t *transcript) addReply(text string) {
	if t.turn.replyIsOver {
		t.turn.reply.Reset()
		t.turn.replyIsOver = false
	}
	if room := 2*maxReply - t.turn.reply.Len(); room > 0 {
		t.turn.reply.WriteString(text[:cutAt([]byte(text), room)])
	}
}

// cutAt returns the largest number of bytes, at most limit, that ends no
// character in its middle.
func cutAt(text []byte, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	n := limit
	for n > limit-utf8.UTFMax && n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// settle tells all that is being collected.
func (t *transcript) settle() {
	t.flush()
	t.release()
}

// flush ends the text that is being collected.
func (t *transcript) flush() {
	if t.textKind == "" {
		return
	}
	_ = t.pieces.Flush() // a buffer takes everything
	for t.text.Len() > 0 {
		t.emitText(cutAt(t.text.Bytes(), maxText))
	}
	t.textKind = ""
}

func (t *transcript) emitText(n int) {
	t.emit(t.textKind, map[string]any{"text": string(t.text.Next(n))})
}

func (t *transcript) addUnhandled(kind string) {
	if t.unhandled[kind] || len(t.unhandled) >= maxCalls {
		return
	}
	t.unhandled[kind] = true
	t.emit(eventUnhandled, map[string]any{"kind": kind})
}

// takeResults tells whether a tool call ended since it was asked last.
func (t *transcript) takeResults() bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	had := t.turn.hasResults
	t.turn.hasResults = false
	return had
}

// nextAnswer ends the texts of an answer that another one follows in the same
// turn; the reply is the last one's.
func (t *transcript) nextAnswer() {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.settle()
	t.turn.replyIsOver = true
}

// end ends the texts of a prompt and returns its reply.
func (t *transcript) end() string {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.settle()
	reply := t.redactor.String(t.turn.reply.String())
	return reply[:cutAt([]byte(reply), maxReply)]
}
