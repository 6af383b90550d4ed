package journal

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxRecapEntries = 20
	maxRecapText    = 500
)

// lineBreak is all that Unicode and terminals take for the end of a line.
var lineBreak = regexp.MustCompile("\r\n|[\n\r\v\f\u0085\u2028\u2029]")

// Recap tells an agent that knows nothing of its session what was said in it,
// as loaded. A session that works on a composition has its goal, which may be
// empty; others have nil.
func Recap(events []Event, goal *string) string {
	lines := []string{"This conversation is being resumed after Axiom restarted. Your previous process ended, so here is a recap."}
	if goal != nil {
		lines = append(lines, "Goal: "+goalText(*goal))
	}
	lines = append(lines, "Recent conversation (oldest first):")
	lines = append(lines, recapEntries(events)...)
	if goal != nil {
		lines = append(lines, "Call get_composition before making changes.")
	}
	return strings.Join(lines, "\n")
}

func goalText(goal string) string {
	if strings.TrimSpace(goal) == "" {
		return "(none given)"
	}
	return OneLine(goal)
}

func recapEntries(events []Event) []string {
	var entries []string
	for _, event := range slices.Backward(events) {
		if len(entries) == maxRecapEntries {
			break
		}
		if entry, ok := recapEntry(event); ok {
			entries = append(entries, entry)
		}
	}
	slices.Reverse(entries)
	return entries
}

func recapEntry(event Event) (string, bool) {
	var role, member string
	switch event.Type {
	case TypeUserMessage:
		role, member = "user", "content"
	case TypeAssistantText:
		role, member = "assistant", "text"
	default:
		return "", false
	}
	// A notice is the operator talking to the person, behind the agent's back.
	if event.Data[MemberNotice] == true {
		return "", false
	}
	text, ok := event.Data[member].(string)
	if !ok {
		return "", false
	}
	return "- " + role + ": " + shorten(OneLine(text)), true
}

// OneLine turns every line break in a text into a space, so that what somebody
// wrote cannot pass for a line of its own.
func OneLine(text string) string {
	return lineBreak.ReplaceAllLiteralString(text, " ")
}

func shorten(text string) string {
	if utf8.RuneCountInString(text) <= maxRecapText {
		return text
	}
	return prefix(text, maxRecapText) + "…"
}
