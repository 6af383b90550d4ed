// Package console holds pages to their word: the commands that they show are run,
// and must print what the page says.
//
// A command begins with a dollar sign at the start of a line; what it prints are
// the lines up to the next one. A line that is an ellipsis stands for any number of
// lines. `echo $?` is the exit code of the command before.
package console

import (
	"fmt"
	"strconv"
	"strings"
)

// A Block is a part of a page that is set off as code.
type Block struct {
	// Language of the block, as its fence says.
	Language string
	Text     string
}

// Blocks of a page in Markdown, in order.
func Blocks(page string) []Block {
	var blocks []Block
	for i, part := range strings.Split("\n"+page, "\n```") {
		if i%2 == 0 {
			continue // what is between two blocks
		}
		language, text, _ := strings.Cut(part, "\n")
		blocks = append(blocks, Block{Language: language, Text: text + "\n"})
	}
	return blocks
}

// A Runner runs a command, given in words, and returns all that it printed and its
// exit code.
type Runner func(words []string) (output string, code int)

// Play runs the commands of a block. It returns how many there were, and what is
// not as the page says.
func (b Block) Play(run Runner) (commands int, faults []string) {
	last := ""
	for _, part := range strings.Split("\n"+b.Text, "\n$ ")[1:] {
		line, want, _ := strings.Cut(part+"\n", "\n")
		if line == "echo $?" {
			if strings.TrimSpace(want) != last {
				faults = append(faults, fmt.Sprintf("the page says %q, the exit code was %s", want, last))
			}
			continue
		}
		got, code := run(words(line))
		last = strconv.Itoa(code)
		if !matches(strings.TrimRight(want, "\n"), strings.TrimRight(got, "\n")) {
			faults = append(faults, fmt.Sprintf("$ %s\n-- the page says\n%s-- but it printed\n%s", line, want, got))
		}
		commands++
	}
	return commands, faults
}

// words splits a command like a shell, as far as quotes go.
func words(command string) []string {
	var words []string
	word, quote := "", rune(0)
	for _, r := range command {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			words, word = append(words, word), ""
		default:
			word += string(r)
		}
	}
	return append(words, word)
}

func matches(want, got string) bool {
	parts := strings.Split("\n"+want+"\n", "\n…\n")
	got = "\n" + got + "\n"
	if len(parts) == 1 {
		return got == parts[0]
	}
	if !strings.HasPrefix(got, parts[0]+"\n") || !strings.HasSuffix(got, "\n"+parts[len(parts)-1]) {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(got, "\n"+part+"\n")
		if at < 0 {
			return false
		}
		got = got[at:]
	}
	return true
}
