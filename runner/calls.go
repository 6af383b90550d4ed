package runner

import (
	"slices"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// maxHeld bounds the calls that wait for their input to be told.
const maxHeld = 32

// toolCall is a call of a tool. Agents tell of one before its input is complete,
// and some of them then tell of it again; it is one call all the same, and
// becomes an event when its input is known, when it has got further, or when the
// agent goes on to something else.
type toolCall struct {
	id, name, title string
	// declared is the name that the agent gave beside the title; nil if it gave
	// none.
	declared map[string]any
	input    any
	started  time.Time
	done     bool
}

// shown is the name of the tool as far as it is known.
func (c *toolCall) shown() string {
	if c.name != "" {
		return c.name
	}
	return c.title
}

// hasInput is false also for an input without members, which is what agents send
// while they do not know it.
func (c *toolCall) hasInput() bool {
	members, isObject := c.input.(map[string]any)
	return c.input != nil && (!isObject || len(members) > 0)
}

func (t *transcript) addToolCall(u update) string {
	t.turn.replyIsOver = true
	call, known := t.turn.calls[u.ToolCallID]
	// An id that comes again after its call was over is another call's.
	if !known || call.done {
		call = &toolCall{id: u.ToolCallID, started: t.now()}
		if len(t.turn.calls) < maxCalls {
			t.turn.calls[u.ToolCallID] = call
		}
		t.hold(call)
	}
	t.follow(u, call)
	return call.shown()
}

func (t *transcript) addToolUpdate(u update) string {
	call, known := t.turn.calls[u.ToolCallID]
	if !known {
		call = &toolCall{id: u.ToolCallID, started: t.now()}
	}
	t.follow(u, call)
	return call.shown()
}

// follow takes what an update says of a call, and tells what is new.
func (t *transcript) follow(u update, call *toolCall) {
	if u.Title != "" {
		call.title = u.Title
	}
	if u.RawInput != nil {
		call.input = u.RawInput
	}
	if call.declared == nil {
		call.declared = firstMeta(u.Meta)
	}
	if call.name == "" {
		call.name = t.names.Of(u.Meta, u.Title)
	}
	isRunning := u.Status == string(acp.ToolCallStatusInProgress)
	if call.hasInput() || isRunning || isOver(u) {
		t.tellCall(call)
	}
	switch {
	case call.done:
	case isRunning:
		t.emit(eventToolProgress, map[string]any{
			"toolUseId": u.ToolCallID, "toolName": call.shown(),
			"elapsedSeconds": t.now().Sub(call.started).Seconds(),
		})
	case isOver(u):
		call.done, t.turn.hasResults = true, true
		t.emit(eventToolResult, map[string]any{
			"toolUseId": u.ToolCallID, "stdout": outputOf(u.Content, u.RawOutput), "stderr": "",
			"interrupted": t.turn.interrupted, "isError": u.Status == string(acp.ToolCallStatusFailed),
		})
	}
}

// isOver tells whether an update is of a call's end.
func isOver(u update) bool {
	return u.Status == string(acp.ToolCallStatusCompleted) || u.Status == string(acp.ToolCallStatusFailed)
}

// hold keeps a call to be told of.
func (t *transcript) hold(call *toolCall) {
	if len(t.turn.held) == maxHeld {
		t.release()
	}
	t.turn.held = append(t.turn.held, call)
}

// tellCall tells of a call if nobody was told yet.
func (t *transcript) tellCall(call *toolCall) {
	i := slices.Index(t.turn.held, call)
	if i < 0 {
		return
	}
	t.turn.held = slices.Delete(t.turn.held, i, i+1)
	t.emit(eventToolUse, map[string]any{"id": call.id, "name": call.shown(), "input": call.input})
}

// release tells of all calls that are held.
func (t *transcript) release() {
	for len(t.turn.held) > 0 {
		t.tellCall(t.turn.held[0])
	}
}
