package secretscan

import (
	"regexp"
	"slices"
	"strings"
)

// secretFields are the names of fields whose value is a secret, without separators and in lower case.
var secretFields = []string{
	"accesstoken", "apikey", "authorization", "authtoken", "clientsecret", "passwd", "password", "privatekey", "refreshtoken", "secretkey",
	"sessiontoken",
}

// separators are what may stand between the words of a name.
var separators = strings.NewReplacer(" ", "", "_", "", "-", "")

// IsSecretName tells of a field's name that its value is a secret, whatever it is.
func IsSecretName(name string) bool {
	return slices.Contains(secretFields, plainOf(name))
}

// plainOf is a name as the list has it.
func plainOf(name string) string {
	return strings.ToLower(separators.Replace(name))
}

// isSecretField tells whether a member of an object is a secret by its name.
func isSecretField(name, value string) bool {
	return IsSecretName(name) && isSecretOf(plainOf(name), value)
}

// isSecretOf tells whether the value of a field is one. Authorization is also what a person gives, in a sentence; in a
// header it is one word, or two.
func isSecretOf(plain, value string) bool {
	if plain == "authorization" && len(strings.Fields(value)) > 2 {
		return false
	}
	return !isPlaceholder(plain, value)
}

// assignment is a secret field in a text, up to what is assigned: the groups are the name and the operator. In nested
// JSON the quotes have backslashes.
var assignment = regexp.MustCompile(`(?i)\b(access[ _-]?token|api[ _-]?key|authorization|auth[ _-]?token|client[ _-]?secret|passwd|password|` +
	`private[ _-]?key|refresh[ _-]?token|secret[ _-]?key|session[ _-]?token)\\*["'` + "`" + `]?[ \t]*(:=|=>|=|:)[ \t]*`)

var (
	// quoted is a value in quotes; one of the groups is the value.
	quoted = regexp.MustCompile(`^\\*(?:"([^"\\\n]*)|'([^'\\\n]*)|` + "`([^`\\\\\\n]*))")
	// bare is a value without quotes, behind the name of a scheme if there is one.
	bare = regexp.MustCompile(`^(?i:(?:bearer|basic|token)[ \t]+)?[^\s"'` + "`" + `,;(){}\[\]<>\\]+`)
)

// findField returns where a text has a secret field, or -1.
func findField(text string) int {
	for from := 0; ; {
		groups := assignment.FindStringSubmatchIndex(text[from:])
		if groups == nil {
			return -1
		}
		plain := strings.ToLower(separators.Replace(text[from+groups[2] : from+groups[3]]))
		if assignsSecret(plain, text[from+groups[1]:]) {
			return from + groups[2]
		}
		from += groups[5] // behind the operator: what is assigned may be a field itself
	}
}

// assignsSecret looks at what stands behind the operator.
func assignsSecret(plain, rest string) bool {
	if groups := quoted.FindStringSubmatch(rest); groups != nil {
		return isSecretOf(plain, groups[1]+groups[2]+groups[3])
	}
	value := bare.FindString(rest)
	isCall := strings.HasPrefix(rest[len(value):], "(")
	return !isCall && looksRandom(withoutScheme(value)) && isSecretOf(plain, value)
}

const minBare = 6

var (
	// path is how a program or an expression speaks of a value that is elsewhere.
	path = regexp.MustCompile(`^[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$`)
	// reference is a path that begins where values are kept.
	reference = regexp.MustCompile(`^(?:context|result|inputs|index|env|process\.env|secrets|vars|os\.environ|config|self|this)(?:\??\.[A-Za-z_]\w*)+$`)
)

// looksRandom tells a secret without quotes from a word of a sentence and from a name in a program: it has a digit
// beside letters, or a character that neither of them has.
func looksRandom(value string) bool {
	value = strings.TrimRight(value, ".:!?")
	if len(value) < minBare || path.MatchString(value) || strings.HasPrefix(value, "=") {
		return false
	}
	hasLetter := strings.ContainsFunc(value, func(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' })
	return hasLetter && strings.ContainsAny(value, "0123456789@#%^+=!")
}

var scheme = regexp.MustCompile(`^(?i:bearer|basic|token)[ \t]+`)

func withoutScheme(value string) string {
	return value[len(scheme.FindString(value)):]
}

// bearer is a token behind the word that announces it.
var bearer = regexp.MustCompile(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/-]{8,}=*)`)

// findBearer returns where a text has a token behind the word bearer, or -1. A word in its place has no digit.
func findBearer(text string) int {
	for _, groups := range bearer.FindAllStringSubmatchIndex(text, -1) {
		token := text[groups[2]:groups[3]]
		if strings.ContainsAny(token, "0123456789") && !isPlaceholder(RuleBearer, token) {
			return groups[0]
		}
	}
	return -1
}
