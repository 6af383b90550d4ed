package mcpserver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/journal"
)

const (
	// maxString is what an answer shows of one string of an event, in characters.
	maxString = 2000
	// maxItems is what an answer shows of one list of an event, in entries.
	maxItems = 50
)

// missing stands for what an event does not have.
const missing = "-"

// summarizeEvent is an event in one line.
func summarizeEvent(event any) string {
	object, _ := event.(map[string]any)
	payload, _ := object["payload"].(map[string]any)
	keys := slices.Sorted(maps.Keys(payload))
	return oneLine(strings.Join([]string{
		textOr(object["id"]), textOr(object["type"]), textOr(object["eventSourceId"]), textOr(object["ref"]),
		"actor=" + actorOf(object["actor"]), "at", textOr(object["timestamp"]), "keys=[" + strings.Join(keys, ", ") + "]",
	}, " "))
}

func actorOf(actor any) string {
	object, _ := actor.(map[string]any)
	if login := textOr(object["login"]); login != missing {
		return login
	}
	return textOr(object["name"])
}

// textOr is a text, or the sign that there is none.
func textOr(value any) string {
	if text, ok := value.(string); ok && text != "" {
		return text
	}
	return missing
}

// oneLine keeps a sender from making one event look like several.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return ' '
		}
		return r
	}, text)
}

// truncateDeep is a copy of a JSON value with long strings and lists cut, each
// with a note of what is missing.
func truncateDeep(value any, stringLimit, listLimit int) any {
	return journal.Truncate(value, stringLimit, listLimit)
}

// pickPath is the part of a JSON value at a path of names with dots between and
// of indices in brackets; found is false when there is no such part, which a
// null is.
func pickPath(value any, path string) (part any, found bool) {
	for path != "" {
		var step string
		step, path = nextStep(path)
		if value, found = follow(value, step); !found {
			return nil, false
		}
	}
	return value, true
}

// nextStep cuts the first step off a path: a name, or an index with its brackets.
func nextStep(path string) (step, rest string) {
	if path[0] == '[' {
		end := strings.IndexByte(path, ']')
		if end < 0 {
			return path, ""
		}
		return path[:end+1], afterDot(path[end+1:])
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path, ""
	}
	return path[:end], afterDot(path[end:])
}

// afterDot is what follows a dot; a path that ends with one has an empty name
// there, which nothing has.
func afterDot(path string) string {
	if path == "." {
		return "[]"
	}
	return strings.TrimPrefix(path, ".")
}

func follow(value any, step string) (any, bool) {
	index, isIndex := strings.CutPrefix(step, "[")
	if !isIndex {
		object, _ := value.(map[string]any)
		member, ok := object[step]
		return member, ok
	}
	list, _ := value.([]any)
	digits, isClosed := strings.CutSuffix(index, "]")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || !isClosed || int(n) >= len(list) {
		return nil, false
	}
	return list[n], true
}
