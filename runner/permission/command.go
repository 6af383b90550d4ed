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

// operators may stand in single quotes only; what ends a line or a text ends a
// command.
const operators = ";&|<>()`$\n\r\x00"

func isOneCommand(text string) bool {
	s := scan{atWord: true}
	for i := range len(text) {
		if !s.accept(text[i]) {
			return false
		}
	}
	return s.quote == 0 && !s.escaped
}

// scan is what a shell knows of the text before a character.
type scan struct {
	// quote that is open; 0 if none is.
	quote byte
	// escaped means that a backslash came right before.
	escaped bool
	// atWord means that a word may begin here.
	atWord bool
}

// accept takes the next character, and reports whether it leaves the text one
// command.
func (s *scan) accept(c byte) bool {
	if s.quote == '\'' {
		return s.acceptQuoted(c)
	}
	if strings.IndexByte(operators, c) >= 0 {
		return false
	}
	atWord := s.atWord
	s.atWord = false
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case s.quote != 0:
		s.close(c)
	case c == '\'' || c == '"':
		s.quote = c
	case c == '#':
		return !atWord
	default:
		s.atWord = c == ' ' || c == '\t'
	}
	return true
}

// acceptQuoted takes a character between single quotes.
func (s *scan) acceptQuoted(c byte) bool {
	s.close(c)
	return c != 0
}

func (s *scan) close(c byte) {
	if c == s.quote {
		s.quote = 0
	}
}
