package graph

import "unicode/utf8"

// widthOf estimates how wide a text is in the usual sans-serif fonts, in pixels
// at a font size of 1. It rather takes too much than too little.
func widthOf(text string) float64 {
	width := 0.0
	for _, r := range text {
		width += widthOfRune(r)
	}
	return width
}

func widthOfRune(r rune) float64 {
	switch {
	case r >= 0x1100 && utf8.RuneLen(r) >= 3 && !isNarrow(r):
		return 1.05
	case 'A' <= r && r <= 'Z':
		return 0.72
	}
	switch r {
	case 'i', 'j', 'l', 'I', '.', ',', '\'', '|', ':', ';', '!', ' ', 't', 'f', '(', ')', '[', ']', '/':
		return 0.36
	case 'm', 'w', 'M', 'W', '@', '%', '&', '=', '<', '>', '+', '…', '—':
		return 0.9
	}
	return 0.6
}

// isNarrow tells of a character beyond the alphabets whether it is no wider than
// theirs.
func isNarrow(r rune) bool {
	return r >= 0x2000 && r < 0x2E80
}

// Font sizes in pixels.
const (
	nameSize    = 13
	detailSize  = 11
	captionSize = 11
)

// captionWidth is the room a caption needs, none without one.
func captionWidth(caption string) float64 {
	if caption == "" {
		return 0
	}
	return widthOf(caption)*captionSize + 10
}

// width of the box of a node.
func (n Node) width() float64 {
	const padding, least = 30, 110
	return max(least, padding+max(widthOf(n.caption())*nameSize, widthOf(n.subtitle())*detailSize))
}

// subtitle says what sort of node it is.
func (n Node) subtitle() string {
	switch {
	case n.IsMissing:
		return "edges name it"
	case n.Detail != "":
		return shorten(string(n.Kind)+" · "+n.Detail, maxName)
	}
	return shorten(string(n.Kind), maxName)
}

func (e Edge) shortCaption() string {
	return shorten(e.Caption(), maxCaption)
}
