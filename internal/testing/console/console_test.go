package console_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/testing/console"
)

const fence = "```"

const page = `# A page

` + fence + `console
$ say "two words" 'it is'
two words
it is
$ echo $?
0
` + fence + `

Some words, $ no command.

` + fence + `yaml
a: 1
` + fence + `
`

// say prints its arguments, one a line.
func say(words []string) (string, int) {
	return strings.Join(words[1:], "\n") + "\n", len(words) - 3
}

func TestBlocks(t *testing.T) {
	want := []console.Block{
		{Language: "console", Text: "$ say \"two words\" 'it is'\ntwo words\nit is\n$ echo $?\n0\n"},
		{Language: "yaml", Text: "a: 1\n"},
	}
	if diff := cmp.Diff(want, console.Blocks(page)); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestPlay(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		commands int
		faults   int
	}{
		"what is true":               {console.Blocks(page)[0].Text, 1, 0},
		"another output":             {"$ say a b\na\nc\n", 1, 1},
		"an output that is too long": {"$ say a b\na\n", 1, 1},
		"another exit code":          {"$ say a b\na\nb\n$ echo $?\n1\n", 1, 1},
		"an ellipsis":                {"$ say a b c d\na\n…\nd\n", 1, 0},
		"an ellipsis for nothing":    {"$ say a b\na\n…\nb\n", 1, 0},
		"an ellipsis at the end":     {"$ say a b c\na\n…\n", 1, 0},
		"all of it":                  {"$ say a b c\n…\n", 1, 0},
		"a line between":             {"$ say a b c d e\na\n…\nc\n…\ne\n", 1, 0},
		"no such line between":       {"$ say a b c d e\na\n…\nx\n…\ne\n", 1, 1},
		"two commands":               {"$ say a b\na\nb\n$ say c d\nc\nd\n", 2, 0},
		"no command":                 {"a: 1\n", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			commands, faults := console.Block{Text: tc.text}.Play(say)
			if commands != tc.commands || len(faults) != tc.faults {
				t.Errorf("%d commands, faults %q", commands, faults)
			}
		})
	}
}
