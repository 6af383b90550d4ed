package live

import (
	"io"

	"github.com/apitomy/axiom-operator/cli/terminal"
)

// A statusLine is where progress is told: lines that stay, and on a terminal one
// below them that is written over and over.
type statusLine struct {
	w       io.Writer
	palette terminal.Palette
	isLive  bool
}

func (a *app) newStatusLine() statusLine {
	return statusLine{
		w: a.Stderr, palette: terminal.PaletteFor(a.Stderr, a.Getenv),
		isLive: terminal.IsTerminal(a.Stderr) && a.Getenv("TERM") != "dumb",
	}
}

// maxLive is how wide the line below may be: one that is broken cannot be erased.
const maxLive = 78

// eraseLine goes back to the start of a line and clears it.
const eraseLine = "\r\x1b[K"

// rewrite writes the line below anew.
func (s statusLine) rewrite(text string) {
	if !s.isLive {
		return
	}
	shown := []rune(text)
	_, _ = io.WriteString(s.w, eraseLine+s.palette.Paint(terminal.Dim, string(shown[:min(len(shown), maxLive)])))
}

func (s statusLine) erase() {
	if s.isLive {
		_, _ = io.WriteString(s.w, eraseLine)
	}
}
