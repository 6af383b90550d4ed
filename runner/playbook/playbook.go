// Package playbook reads the files that the scripted agent plays, and decides
// whether they can be played at all: every field and every rule is checked
// before the first prompt, and each problem is named with its place.
//
//	memory: none                      # or home: conversations outlast the program
//	turns:
//	- when: Wait an hour              # regular expression; absent: any prompt
//	  steps:
//	  - call: {tool: get_composition, save: comp}
//	  - call:
//	      tool: propose_workflow_changes
//	      args: {changeSet: {baseRevision: "${comp.workflowRevision}"}}
//	      expect: "^APPLIED"
//	      capture: {rev: 'New revision: (\S+)'}
//	  - say: Done, ${rev} is in place.
//	  stop: end_turn
//
// Values that calls saved are put in where a text says ${name.member[0]}. A
// text that is nothing but such a reference becomes the value itself; in a
// longer one stands its text. $${name} writes ${name}, and whatever else
// follows a dollar sign means nothing.
//
// The package knows nothing of protocols or tools.
package playbook

import (
	"regexp"
	"time"
)

// MaxSize of a file, in bytes.
const MaxSize = 1 << 20

// Playbook is a checked file.
type Playbook struct {
	// Memory says whether conversations outlast the agent's program.
	Memory string
	Turns  []Turn
}

// Kinds of memory.
const (
	// MemoryNone: a conversation ends with the program. The default.
	MemoryNone = "none"
	// MemoryHome: the agent keeps conversations in its home and can load them, with
	// the turns that it has played.
	MemoryHome = "home"
)

// Turn is what to do on one prompt.
type Turn struct {
	// When is held against the prompt; nil matches any.
	When  *regexp.Regexp
	Steps []Step
	// Stop is the stop reason that ends the turn.
	Stop string
}

// Matches reports whether the turn is for this prompt.
func (t Turn) Matches(prompt string) bool { return t.When == nil || t.When.MatchString(prompt) }

// Step is one of [Call], [Say], [Think], [Permission], [Sleep], [Exit],
// [Hang], [Raw] and [Error].
type Step interface {
	// Name is the key of the step in a file, and what it is about.
	Name() string
}

// Call calls a tool of an MCP server.
type Call struct {
	// Tool is its name, or mcp__<server>__<name>.
	Tool string
	// Server has the tool; empty if only one has.
	Server string
	// Args are its arguments, with references.
	Args map[string]any
	// Save is the name under which the JSON result is kept; empty keeps nothing.
	Save string
	// Expect must match the text of the result; nil accepts any.
	Expect *regexp.Regexp
	// Capture keeps, by name, what the first group of each expression matched.
	Capture map[string]*regexp.Regexp
}

// Say says a text with references.
type Say struct{ Text string }

// Think thinks a text with references.
type Think struct{ Text string }

// Permission asks for permission to use a tool.
type Permission struct {
	// Tool is its name.
	Tool string
	// Title of the request; the tool's name if empty.
	Title string
	// Input is what the tool is to be given, with references; nil if absent.
	Input any
	// Expect is the answer that must come: [Allow], [Deny] or, for any, empty.
	Expect string
}

// Answers to a permission request.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Sleep waits; it ends early when the prompt is cancelled.
type Sleep struct{ Duration time.Duration }

// Exit ends the agent's program.
type Exit struct{ Code int }

// Hang never goes on, and pays no heed to being cancelled.
type Hang struct{}

// Raw writes a text to the connection as it is.
type Raw struct{ Text string }

// Error ends the prompt in a JSON-RPC error.
type Error struct {
	Code    int
	Message string
}

// Name implements [Step].
func (s Call) Name() string { return "call " + s.Tool }

// Name implements [Step].
func (Say) Name() string { return "say" }

// Name implements [Step].
func (Think) Name() string { return "think" }

// Name implements [Step].
func (s Permission) Name() string { return "permission " + s.Tool }

// Name implements [Step].
func (Sleep) Name() string { return "sleep" }

// Name implements [Step].
func (Exit) Name() string { return "exit" }

// Name implements [Step].
func (Hang) Name() string { return "hang" }

// Name implements [Step].
func (Raw) Name() string { return "raw" }

// Name implements [Step].
func (Error) Name() string { return "error" }
