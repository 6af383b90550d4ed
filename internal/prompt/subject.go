package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxManifest bounds what is told of a subject, in bytes: more would leave a
// model no room to think.
const MaxManifest = 128 << 10

// OfSubject is the prompt that begins a conversation about an object: its
// manifest, a blank line, the message byte for byte. What a manifest quotes is
// indented in it, and so cannot pass for the line that ends it.
func OfSubject(manifest, message string) string {
	lines := []string{"[Subject]", cutManifest(strings.TrimSuffix(manifest, "\n")), "[End of subject]"}
	return strings.Join(lines, "\n") + "\n\n" + message
}

func cutManifest(manifest string) string {
	if len(manifest) <= MaxManifest {
		return manifest
	}
	end := MaxManifest
	for end > 0 && !utf8.RuneStart(manifest[end]) {
		end--
	}
	return fmt.Sprintf("%s…[truncated %d chars]", manifest[:end], utf8.RuneCountInString(manifest[end:]))
}
