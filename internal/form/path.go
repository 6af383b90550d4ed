package form

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxShownName bounds how much of a member's name a path repeats, in bytes.
const maxShownName = 64

// pathOf spells a location in an answer, such as items[2].name.
func pathOf(answer any, location []string) string {
	if len(location) == 0 {
		return answerPath
	}
	var path strings.Builder
	for _, token := range location {
		answer = appendToken(&path, answer, token)
	}
	return path.String()
}

// appendToken writes one step into a value and returns where it leads.
func appendToken(path *strings.Builder, value any, token string) any {
	if list, ok := value.([]any); ok {
		path.WriteString("[" + token + "]")
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
			return list[i]
		}
		return nil
	}
	if path.Len() > 0 {
		path.WriteByte('.')
	}
	path.WriteString(shorten(token))
	object, _ := value.(map[string]any)
	return object[token]
}

func shorten(name string) string {
	if len(name) <= maxShownName {
		return name
	}
	cut := maxShownName
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}
