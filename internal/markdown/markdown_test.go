package markdown_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/markdown"
)

// describe lists headings as level, line and text, and fences as info, line and content.
func describe(blocks markdown.Blocks) string {
	var parts []string
	for _, h := range blocks.Headings {
		parts = append(parts, fmt.Sprintf("%d@%d %s", h.Level, h.Line, h.Text))
	}
	for _, f := range blocks.Fences {
		parts = append(parts, fmt.Sprintf("[%s]@%d %q", f.Info, f.Line, f.Content))
	}
	return strings.Join(parts, "; ")
}

func TestScan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                             {"", ""},
		"text":                                {"a\nb\n", ""},
		"a heading":                           {"# A\n", "1@1 A"},
		"six levels and no more":              {"###### A\n####### B\n", "6@1 A"},
		"a heading needs a space":             {"#A\n#\tB\n", "1@2 B"},
		"a heading without text":              {"#\n## ##\n", "1@1 ; 2@2 "},
		"a closing":                           {"# A ##\n# B#\n# C \\# \n", "1@1 A; 1@2 B#; 1@3 C \\#"},
		"an indented heading":                 {"   # A\n\n    # B\n", "1@1 A"},
		"a heading in a paragraph":            {"a\n# A\nb\n", "1@2 A"},
		"an underlined heading":               {"A\nb\n===\n\nC\n-\n", "1@1 A\nb; 2@5 C"},
		"an underline of nothing":             {"===\n\n---\n", ""},
		"a break is no underline":             {"- a\n---\n", ""},
		"a lazy line is no underline":         {"> a\n===\n", ""},
		"a fence":                             {"```\n# a\n```\n# B\n", `1@4 B; []@2 "# a\n"`},
		"a fence of tildes":                   {"~~~ yaml workflow \n# a\n```\n~~~~\n", `[yaml workflow]@2 "# a\n` + "```" + `\n"`},
		"a fence without end":                 {"```a\nb\n\n# c", `[a]@2 "b\n\n# c\n"`},
		"a fence that is too short":           {"````\n```\n````\n", `[]@2 "` + "```" + `\n"`},
		"a closing has no info":               {"```\n``` a\n```\n", `[]@2 "` + "``` a" + `\n"`},
		"an info has no backtick":             {"``` a`\n# A\n", "1@2 A"},
		"tildes may have one":                 {"~~~ a`\n~~~\n", "[a`]@2 \"\""},
		"an indented fence":                   {"  ```\n   a\n b\n  ```\n", `[]@2 " a\nb\n"`},
		"code is no fence":                    {"\n    ```\n# A\n", "1@3 A"},
		"an indented closing":                 {"```\n    ```\n", `[]@2 "    ` + "```" + `\n"`},
		"headings in containers":              {"> # A\n- # B\n1. # C\n", ""},
		"a heading behind a list":             {"- a\n# B\n", "1@2 B"},
		"a heading in an item":                {"- a\n\n  # B\n", ""},
		"a heading behind an item":            {"- a\n\n # B\n", "1@3 B"},
		"a fence in an item":                  {"- ```a\n  # b\n  ```\n# C\n", `1@4 C; [a]@2 "# b\n"`},
		"a fence that its item ends":          {"- ```\n# A\n", `1@2 A; []@2 ""`},
		"a fence in a quote":                  {"> ```\n> a\n# B\n", `1@3 B; []@2 "a\n"`},
		"a fence in a quote in an item":       {"- > ~~~\n  > a\n  > ~~~\n", `[]@2 "a\n"`},
		"an item that begins with blank":      {"-\n  # A\n-\n\n  # B\n", "1@5 B"},
		"a number that cannot interrupt":      {"a\n2. # b\n\n   # C\n", "1@4 C"},
		"a number that can":                   {"a\n1. # b\n\n   # c\n", ""},
		"an empty item cannot interrupt":      {"a\n*\n  # B\n", "1@3 B"},
		"a comment":                           {"<!-- a\n\n# b\n--> c\n# D\n", "1@5 D"},
		"a comment in one line":               {"<!-- a -->\n# B\n", "1@2 B"},
		"a processing instruction":            {"<?\n# a\n?>\n# B\n", "1@4 B"},
		"a declaration":                       {"<!A\n# a\n>\n# B\n", "1@4 B"},
		"character data":                      {"<![CDATA[\n# a\n]]>\n# B\n", "1@4 B"},
		"a script":                            {"<script>\n\n# a\n</script>\n# B\n", "1@5 B"},
		"a block of HTML":                     {"<div>\n# a\n\n# B\n", "1@4 B"},
		"a tag alone":                         {"<a href='#'>\n# a\n\n# B\n", "1@4 B"},
		"a tag with text":                     {"<a> b\n# B\n", "1@2 B"},
		"a tag in a paragraph":                {"a\n<a>\n# B\n", "1@3 B"},
		"a closing of a script is no block":   {"</script>\n# B\n", "1@2 B"},
		"tabs":                                {"-\ta\n\n\t# b\n\n  \t# c\n", ""},
		"a tab in part":                       {"-\t```\n\ta\n\t\tb\n", `[]@2 "a\n\tb\n"`},
		"a tab that reaches into an item":     {"> ```\n>\ta\n", `[]@2 "  a\n"`},
		"windows line ends":                   {"# A\r\n```\r\nb\r\n```\r\n# C\r\n", `1@1 A; 1@5 C; []@3 "b\n"`},
		"old line ends":                       {"# A\rb\r# C", "1@1 A; 1@3 C"},
		"a rule":                              {"***\n- - -\n# A\n", "1@3 A"},
		"a paragraph that goes on in a quote": {"> a\nb\n> # c\n# D\n", "1@4 D"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describe(markdown.Scan(tc.text)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestHeadingsKnowTheirPlace(t *testing.T) {
	t.Parallel()
	const text = "a\n\n# B #\nc\nD\ne\n===\nf"
	for i, want := range []string{"# B #\n", "c\nD\ne\n===\n"} {
		h := markdown.Scan(text).Headings[i]
		if got := text[h.Start:h.End]; got != want {
			t.Errorf("heading %d is %q, want %q", i, got, want)
		}
	}
}

// What nests without end, or goes on without end, takes no more than its share.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const size = 256 << 10
	for _, text := range []string{
		strings.Repeat(">", size), strings.Repeat("- ", size/2), strings.Repeat(">", size/2) + "a\n" + strings.Repeat("a\n", size/4),
		strings.Repeat("- ", size/4) + "a\n" + strings.Repeat("\n", size/2), strings.Repeat("a\n", size/2), strings.Repeat("# a\n", size/4),
		strings.Repeat("```\n", size/4), strings.Repeat("* ", size/2), "# " + strings.Repeat("# ", size/2), strings.Repeat("<a ", size/3),
		strings.Repeat("a\n=\n", size/4), strings.Repeat("1. ", size/3), strings.Repeat("\t", size),
	} {
		markdown.Scan(text)
	}
}

// FuzzScan holds that scanning never panics, that headings follow each other, and that a text in a longer fence has no
// headings left.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{"# A\n- ```b\n  c\n", "> a\n===\n", "<!--\n# a\n-->\n", "-\t\n\n1) > ~~~\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, h := range markdown.Scan(text).Headings {
			if h.Start < end || h.End < h.Start || h.End > len(text) || h.Level < 1 || h.Level > 6 {
				t.Fatalf("%q has a heading of level %d from %d to %d", text, h.Level, h.Start, h.End)
			}
			end = h.End
		}
		fence := strings.Repeat("~", 3+strings.Count(text, "~"))
		wrapped := markdown.Scan(fence + "\n" + text + "\n" + fence + "\n")
		if len(wrapped.Headings) != 0 || len(wrapped.Fences) != 1 {
			t.Fatalf("%q is not one block of code: %s", text, describe(wrapped))
		}
	})
}
