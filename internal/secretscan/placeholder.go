package secretscan

import (
	"regexp"
	"slices"
	"strings"
)

// Placeholders stand where a secret would, all of the value: nothing, a variable or an expression of any of these forms,
// a name in angle brackets, a run of characters that hide, and words that say so.
var (
	variable = regexp.MustCompile(`^(?:\$\{\{[^\n]*\}\}|\$\{[^}\n]*\}|\{\{[^\n]*\}\}|\$\([^)\n]*\)|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{env:\w+\}|<[^<>\n]*>)$`)
	hidden   = regexp.MustCompile(`^(?:[*.…•#_-]+|[xX]+|\[?(?i:redacted|hidden|masked|removed)\]?)$`)
	says     = regexp.MustCompile(`(?i)^(?:change|replace|insert|enter|put)[ _-]?(?:me|this|here|it)$|^(?:your|my)[ _-][A-Za-z _-]+$|^(?:example|sample|dummy|placeholder)(?:[ _-][A-Za-z _-]+)?$`)
)

// words are placeholders that are one word.
var words = []string{
	"", "changeit", "changeme", "false", "nil", "none", "null", "optional", "password", "required", "secret", "string", "tbd", "todo", "token", "true",
	"undefined",
}

// isPlaceholder tells whether the value of a field of this plain name stands for a secret that is elsewhere.
func isPlaceholder(plain, value string) bool {
	value = strings.TrimSpace(withoutScheme(strings.TrimSpace(value)))
	if slices.Contains(words, strings.ToLower(value)) || strings.ToLower(separators.Replace(value)) == plain {
		return true
	}
	return variable.MatchString(value) || hidden.MatchString(value) || says.MatchString(value) || reference.MatchString(value)
}
