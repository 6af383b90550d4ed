package graph

import (
	"strings"
	"unicode"
)

// Captions in drawings are cut to these, in characters; the document has them
// whole.
const (
	maxCaption = 48
	maxName    = 40
	maxTitle   = 120
	// maxCondition is for lines of text, where there is room.
	maxCondition = 100
)

// colourOf is the colour of lines and texts that a change marks.
func colourOf(c Change) string {
	switch c {
	case Added, Done:
		return "#1a7f37"
	case Changed, Open:
		return "#9a6700"
	case Removed, Failed:
		return "#cf222e"
	default:
		return "#57606a"
	}
}

// tintOf is the colour of what a change fills.
func tintOf(c Change) string {
	switch c {
	case Added, Done:
		return "#dafbe1"
	case Changed, Open:
		return "#fff8c5"
	case Removed, Failed:
		return "#ffebe9"
	default:
		return "#ffffff"
	}
}

func (g *Graph) title() string {
	if strings.TrimSpace(g.Name) != "" {
		return g.Name
	}
	return g.ID
}

func (n Node) caption() string {
	if n.IsMissing {
		return "no node " + shorten(n.ID, maxName)
	}
	return shorten(n.Title(), maxName)
}

func (g *Graph) nodesWhere(is func(Node) bool) []int {
	var nodes []int
	for i, n := range g.Nodes {
		if is(n) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// isUnfit tells of a character that has no place in a line of a drawing.
func isUnfit(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// shorten makes one line of a text, of at most so many characters.
func shorten(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(text, isUnfit), " ")
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}
