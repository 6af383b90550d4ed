package markdown

import "strings"

const (
	// codeIndent is how many columns of white space make code of a line.
	codeIndent = 4
	tabWidth   = 4
)

// A cursor reads a line from left to right. A tab reaches to the next column that is a multiple of four, and can be
// consumed in part.
type cursor struct {
	text   string
	pos    int
	column int
	// isPartial tells that some columns of the tab at pos are consumed.
	isPartial bool
}

// indent counts the columns up to the first character that is no white space; isBlank tells that there is none.
func (c *cursor) indent() (columns int, isBlank bool) {
	column := c.column
	for i := c.pos; i < len(c.text); i++ {
		switch c.text[i] {
		case ' ':
			column++
		case '\t':
			column += tabWidth - column%tabWidth
		default:
			return column - c.column, false
		}
	}
	return column - c.column, true
}

// skip consumes columns of white space.
func (c *cursor) skip(columns int) {
	for columns > 0 && c.pos < len(c.text) {
		width := 1
		if c.text[c.pos] == '\t' {
			width = tabWidth - c.column%tabWidth
		}
		if width > columns {
			c.column, c.isPartial = c.column+columns, true
			return
		}
		c.isPartial = false
		columns -= width
		c.column += width
		c.pos++
	}
}

// next is the first character that is no white space. There is one.
func (c *cursor) next() byte {
	return strings.TrimLeft(c.text[c.pos:], " \t")[0]
}

// quote consumes the mark of a quote and one column of white space behind it.
func (c *cursor) quote() {
	indent, _ := c.indent()
	c.skip(indent)
	c.pos, c.column = c.pos+1, c.column+1
	if c.pos < len(c.text) && isSpace(c.text[c.pos]) {
		c.skip(1)
	}
}

// rest is what is not consumed, with spaces for what is left of a tab.
func (c *cursor) rest() string {
	if c.isPartial {
		return strings.Repeat(" ", tabWidth-c.column%tabWidth) + c.text[c.pos+1:]
	}
	return c.text[c.pos:]
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' }
