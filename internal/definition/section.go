package definition

import (
	"regexp"
	"strings"

	"github.com/apitomy/axiom-operator/internal/markdown"
)

// MaxRendered bounds a section whose placeholders are filled in, in bytes.
const MaxRendered = 128 << 10

// A section is the text below a heading.
type section struct {
	text string
	// line of the source its first line is.
	line int
}

// sections are those of a document by slug. More than one of a slug cannot be referred to.
type sections map[string][]section

// sectionsOf cuts a body into sections, each up to the next heading of the same or a higher level.
func sectionsOf(body string, headings []markdown.Heading, line int) sections {
	found := sections{}
	for i, h := range headings {
		end := len(body)
		for _, next := range headings[i+1:] {
			if next.Level <= h.Level {
				end = next.Start
				break
			}
		}
		heading := line + h.Line - 1
		text, above := trimBlankLines(body[h.End:end])
		s := section{text: text, line: heading + strings.Count(body[h.Start:h.End], "\n") + above}
		found[slug(h.Text)] = append(found[slug(h.Text)], s)
	}
	return found
}

// trimBlankLines takes outer blank lines away, and counts those above.
func trimBlankLines(text string) (trimmed string, above int) {
	content := strings.TrimLeft(text, " \t\r\n")
	blank := text[:len(text)-len(content)]
	start := strings.LastIndexByte(blank, '\n') + 1
	if content == "" {
		return "", 0
	}
	text = text[start:]
	end := len(strings.TrimRight(text, " \t\r\n"))
	if lineEnd := strings.IndexAny(text[end:], "\r\n"); lineEnd >= 0 {
		end += lineEnd
	} else {
		end = len(text)
	}
	return text[:end], strings.Count(blank[:start], "\n")
}

// slug is what a heading is referred to by.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '\n':
			return '-'
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_':
			return r
		}
		return -1
	}, heading)
}

// reference is the form of references to sections.
var reference = regexp.MustCompile(`^#[a-z0-9_-]+$`)

// IsReference tells whether a text refers to a section rather than being one.
func IsReference(text string) bool { return reference.MatchString(text) }

// misspelt is what nobody writes who does not mean a section, whether or not a slug can be spelt like that.
var misspelt = regexp.MustCompile(`^#\S+$`)

// meansReference tells whether a value of a document refers to a section, or is meant to.
func meansReference(v any) (text string, ok bool) {
	text, _ = v.(string)
	return text, misspelt.MatchString(text)
}

// asReference is a value of a document that refers to a section.
func asReference(v any) (text string, ok bool) {
	text, _ = v.(string)
	return text, IsReference(text)
}

// find gives the section that a reference names, if exactly one has the slug.
func (s sections) find(reference string) (section, bool) {
	named := s[strings.TrimPrefix(reference, "#")]
	if len(named) != 1 {
		return section{}, false
	}
	return named[0], true
}
