package action

import (
	"strings"
)

const (
	placeholderOpen  = "${{"
	placeholderClose = "}}"
)

// A placeholder is one `${{ CEL }}` of a prompt.
type placeholder struct {
	expression string
	// closed is false when the text ends before the placeholder does.
	closed bool
	// line it begins in, from 1.
	line int
	// start and end of it in the text, in bytes.
	start, end int
}

// judge says what is wrong with the placeholder, or nothing.
func (p placeholder) judge(check func(string) error) string {
	switch {
	case !p.closed:
		return "is not closed by }}"
	case blank(p.expression):
		return "is blank"
	case check == nil:
		return ""
	}
	if err := check(p.expression); err != nil {
		return "does not compile: " + err.Error()
	}
	return ""
}

// placeholders finds every placeholder of a text. A dollar before the opening
// makes it literal.
func placeholders(text string) []placeholder {
	var found []placeholder
	at := 0
	for {
		open := strings.Index(text[at:], placeholderOpen)
		if open < 0 {
			return found
		}
		open += at
		at = open + len(placeholderOpen)
		if open > 0 && text[open-1] == '$' {
			continue
		}
		p := placeholder{line: 1 + strings.Count(text[:open], "\n"), start: open}
		if end := endOfExpression(text[at:]); end >= 0 {
			p.expression, p.closed = text[at:at+end], true
			at += end + len(placeholderClose)
		}
		p.end = at
		found = append(found, p)
	}
}

// endOfExpression returns the index of the first closing outside a CEL string,
// or -1.
func endOfExpression(text string) int {
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], placeholderClose) {
			return i
		}
		if text[i] != '"' && text[i] != '\'' {
			i++
			continue
		}
		end := endOfLiteral(text, i)
		if end < 0 {
			return -1
		}
		i = end
	}
	return -1
}

// endOfLiteral returns the index behind the CEL string whose quote is at
// start, or -1 when it is not closed.
func endOfLiteral(text string, start int) int {
	quote := text[start : start+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[start:], triple) {
		quote = triple
	}
	raw := isRaw(text, start)
	for i := start + len(quote); i < len(text); i++ {
		if strings.HasPrefix(text[i:], quote) {
			return i + len(quote)
		}
		if text[i] == '\\' && !raw {
			i++
		}
	}
	return -1
}

// isRaw tells whether the string whose quote is at start has an r before it,
// alone or with the b of bytes, so that a backslash escapes nothing.
func isRaw(text string, start int) bool {
	prefix := start
	for prefix > 0 && strings.ContainsRune("rRbB", rune(text[prefix-1])) && start-prefix < 2 {
		prefix--
	}
	if prefix > 0 && isWord(text[prefix-1]) {
		return false
	}
	return strings.ContainsAny(text[prefix:start], "rR")
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
