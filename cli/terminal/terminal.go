// Package terminal decides how text looks to a person: in colour where there is
// a terminal that wants it, in the same words everywhere else, and never with
// control characters that came from a file.
//
// The package knows nothing of what is told.
package terminal

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// A Style is how a piece of text is set off.
type Style string

// The styles.
const (
	// Bold is for names.
	Bold Style = "1"
	// Dim is for what may be passed over.
	Dim Style = "2"
	// Red is for errors and what is removed.
	Red Style = "31"
	// Green is for success and what is added.
	Green Style = "32"
	// Yellow is for warnings and what is changed.
	Yellow Style = "33"
	// Cyan is for places.
	Cyan Style = "36"
)

// A Palette colours text, or does not. The zero Palette does not.
type Palette struct {
	isOn bool
}

// PaletteFor is the palette for what is written to w. Only terminals get
// colours, and not where NO_COLOR is set or TERM is dumb.
func PaletteFor(w io.Writer, getenv func(string) string) Palette {
	return Palette{isOn: IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Colours is a palette that always colours.
func Colours() Palette {
	return Palette{isOn: true}
}

// Paint sets off a text.
func (p Palette) Paint(style Style, text string) string {
	if !p.isOn || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// IsTerminal tells whether a person reads what is written to a stream, or types
// what is read from it.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Clean makes a text from a file fit for a line of a terminal: white space
// becomes blanks, and no character is left that would move the cursor, change
// colours or the direction of writing.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == unicode.ReplacementChar:
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
