// Package transcript writes the events of an agent session down for people: who
// said what, which tools were used, and what came of it.
//
// Events of kinds that it does not know, and those that only a program has a use
// for, are left out. The package knows nothing of where events come from.
package transcript

import (
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// margin is the width of the column of numbers.
const margin = 5

// An entry is an event in words.
type entry struct {
	label string
	style terminal.Style
	text  string
	// isAside: the whole entry may be passed over.
	isAside bool
}

// Tell writes an event with its number, over as many lines as its text has.
func Tell(p *command.Page, line journal.Line) {
	e, ok := entryOf(line.Event)
	if !ok {
		return
	}
	lines := strings.Split(strings.TrimRight(e.text, "\n"), "\n")
	for i, text := range lines {
		text = command.Clean(text)
		if e.isAside {
			text = p.Paint(terminal.Dim, text)
		}
		if i == 0 {
			p.Line("%s  %s %s", p.Paint(terminal.Dim, fmt.Sprintf("%*d", margin, line.Number)), p.Paint(e.style, e.label+":"), text)
			continue
		}
		p.Line("%*s  %*s  %s", margin, "", len(e.label), "", text)
	}
}

func entryOf(event journal.Event) (entry, bool) {
	data := event.Data
	switch event.Type {
	case journal.TypeUserMessage:
		return entry{label: "user", style: terminal.Bold, text: text(data, "content")}, true
	case journal.TypeAssistantText:
		return spoken(data), true
	case "thinking":
		return entry{label: "thinking", style: terminal.Dim, text: text(data, "text"), isAside: true}, true
	case "plan":
		return entry{label: "plan", style: terminal.Dim, text: planned(data["entries"]), isAside: true}, true
	case "tool_use", "tool_result", "permission_request", "permission_resolved":
		return used(event)
	default:
		return noted(event)
	}
}

// spoken tells the agent's words from the operator's own.
func spoken(data map[string]any) entry {
	if data["notice"] == true {
		return entry{label: "notice", style: terminal.Yellow, text: text(data, "text")}
	}
	return entry{label: "assistant", style: terminal.Green, text: text(data, "text")}
}

func planned(v any) string {
	list, _ := v.([]any)
	lines := make([]string, 0, len(list))
	for _, step := range list {
		object, _ := step.(map[string]any)
		mark := "[ ] "
		if object["status"] == "completed" {
			mark = "[x] "
		}
		lines = append(lines, mark+text(object, "content"))
	}
	return strings.Join(lines, "\n")
}

// used tells of tools.
func used(event journal.Event) (entry, bool) {
	data := event.Data
	switch event.Type {
	case "tool_use":
		words := Tool(event)
		if input, _ := data["input"].(map[string]any); len(input) > 0 {
			words += " " + command.ValueText(input)
		}
		return entry{label: "tool", style: terminal.Cyan, text: words}, true
	case "tool_result":
		if data["isError"] == true {
			return entry{label: "failed", style: terminal.Red, text: Outcome(event)}, true
		}
		return entry{label: "result", style: terminal.Dim, text: result(event), isAside: true}, true
	case "permission_resolved":
		if data["allow"] == true {
			return entry{label: "permission", style: terminal.Dim, text: "given", isAside: true}, true
		}
		return entry{label: "permission", style: terminal.Yellow, text: "denied"}, true
	}
	return entry{label: "permission", style: terminal.Dim, text: "asked for " + shortTool(text(data, "toolName")), isAside: true}, true
}

// noted tells of the session itself.
func noted(event journal.Event) (entry, bool) {
	data := event.Data
	aside := func(words string) (entry, bool) {
		return entry{label: "session", style: terminal.Dim, text: words, isAside: true}, true
	}
	switch event.Type {
	case journal.TypeSessionInit:
		return aside(strings.TrimSpace(text(data, "agent")+" is ready") + number(data, "attempt", ", pod %v"))
	case journal.TypeConversationReset:
		return aside("a new conversation begins")
	case "turn_complete":
		return aside("the turn is complete: " + text(data, "stopReason") +
			number(data, "inputTokens", ", %v tokens read") + number(data, "outputTokens", ", %v written"))
	case "events_dropped":
		return aside("events were lost" + number(data, "count", ": %v"))
	case "session_error":
		return entry{label: "error", style: terminal.Red, text: text(data, "name") + ": " + text(data, "message")}, true
	case "session_ended":
		return entry{label: "error", style: terminal.Red, text: "the agent ended" + number(data, "exitCode", " with exit code %v") + after(text(data, "message"))}, true
	}
	return entry{}, false
}

func after(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func text(data map[string]any, member string) string {
	return command.TextOf(data[member])
}

// number words a member that may be missing.
func number(data map[string]any, member, format string) string {
	switch v := data[member].(type) {
	case int64, float64:
		return fmt.Sprintf(format, v)
	}
	return ""
}

// Tool is the tool that the agent uses, by its short name; empty for any other
// event.
func Tool(event journal.Event) string {
	if event.Type != "tool_use" {
		return ""
	}
	return command.Clean(shortTool(text(event.Data, "name")))
}

// shortTool leaves out that a tool comes from the server of the workbench, as
// nearly all do.
func shortTool(name string) string {
	return strings.TrimPrefix(name, "mcp__workbench__")
}

// Outcome is the first line of what a tool answered, shortened; empty for any
// other event, and for an answer that is data.
func Outcome(event journal.Event) string {
	if event.Type != "tool_result" {
		return ""
	}
	const limit = 120
	answer := answer(event.Data)
	if strings.HasPrefix(answer, "{") || strings.HasPrefix(answer, "[") {
		return ""
	}
	first, _, isLonger := strings.Cut(answer, "\n")
	first = command.Clean(first)
	if runes := []rune(first); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	if isLonger {
		first += " …"
	}
	return first
}

// result is an answer in a line, also if it is data.
func result(event journal.Event) string {
	if line := Outcome(event); line != "" {
		return line
	}
	if v, err := jsonvalue.Decode([]byte(answer(event.Data))); err == nil {
		return command.ValueText(v)
	}
	return command.ValueText(answer(event.Data))
}

func answer(data map[string]any) string {
	if out := strings.TrimSpace(text(data, "stdout")); out != "" {
		return out
	}
	return strings.TrimSpace(text(data, "stderr"))
}
