package permission

import "strings"

// isSimpleCommand reports whether a shell given this text would run exactly
// one command, whose words begin with prefix, and neither expand anything nor
// redirect anything: quotes are balanced, and outside single quotes there is
// no operator, substitution or line break.
//
// The text is read the way a shell reads it. A backslash takes the meaning of
// the character behind it, and a word that begins with # begins a comment,
// in which quotes mean nothing; both could otherwise hide a second command
// behind what looks like a quoted text.
func isSimpleCommand(command, prefix string) bool {
	return strings.HasPrefix(command, prefix+" ") && isOneCommand(command)
}

const (
	operators  = ";&|<>()`$\n\r\x00"
	unquoted   = byte(0)
	backslash  = '\\'
	comment    = '#'
	whitespace = " \t"
)

func isOneCommand(text string) bool {
	quote := unquoted
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == '\'':
			if c == 0 {
				return false
			}
			if c == quote {
				quote = unquoted
			}
		case strings.IndexByte(operators, c) >= 0:
			return false
		case c == backslash:
			i++
			if i == len(text) || strings.IndexByte(operators, text[i]) >= 0 {
				return false
			}
		case quote == '"':
			if c == quote {
				quote = unquoted
			}
		case c == '\'' || c == '"':
			quote = c
		case c == comment && startsWord(text, i):
			return false
		}
	}
	return quote == unquoted
}

func startsWord(text string, i int) bool {
	return i == 0 || strings.IndexByte(whitespace, text[i-1]) >= 0
}
