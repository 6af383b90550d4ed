package placeholder_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/placeholder"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"none":                     {"a { b }} $ {{ c }}", ""},
		"some":                     {"a ${{ b }}\n\n${{c}}${{ d }}", "1: b |3:c|3: d "},
		"a literal":                {"$${{ a }} ${{ b }}", "1: b "},
		"two dollars and one":      {"$$${{ a }}", ""},
		"an end in a string":       {`${{ "}}" + '}}' }}`, `1: "}}" + '}}' `},
		"an escaped quote":         {`${{ "\"}}" }}`, `1: "\"}}" `},
		"a raw string":             {`${{ r"\" }}`, `1: r"\" `},
		"raw bytes":                {`${{ br'\' + Rb'\' }}`, `1: br'\' + Rb'\' `},
		"a word that ends in r":    {`${{ for"\"}}" }}`, `1: for"\"}}" `},
		"three quotes":             {`${{ """ "}}" """ + ''' '}}' ''' }}`, `1: """ "}}" """ + ''' '}}' ''' `},
		"a quote in a comment":     {"${{ a // isn't }} it's ${{ b }}", "1: a // isn't |1: b "},
		"a line behind a comment":  {"${{ a // isn't\n + '}}' }}", "1: a // isn't\n + '}}' "},
		"a comment in a string":    {`${{ "//" + "}}" }}`, `1: "//" + "}}" `},
		"an end behind an end":     {"${{ a }}}}", "1: a "},
		"a blank one":              {"${{ \n }}", "1! \n "},
		"one without end":          {"\n${{ a", "2!"},
		"all behind it":            {"${{ a }} ${{ 'b }} ${{ c }}", "1: a |1!"},
		"a string without end":     {`${{ "a }}`, "1!"},
		"three quotes without end": {`${{ """a" }}`, "1!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range placeholder.Find(tc.text) {
				separator := ":"
				if p.Check() != nil {
					separator = "!"
				}
				got = append(got, fmt.Sprint(p.Line, separator, p.Expression))
			}
			if joined := strings.Join(got, "|"); joined != tc.want {
				t.Errorf("got %s, want %s", joined, tc.want)
			}
		})
	}
}

var errNone = errors.New("no value")

func TestRender(t *testing.T) {
	t.Parallel()
	eval := func(expression string) (any, error) {
		switch expression {
		case "a":
			return "A", nil
		case "list":
			return []any{int64(1)}, nil
		case "hostile":
			return "${{a}} $${{", nil
		}
		return nil, errNone
	}
	for name, tc := range map[string]struct {
		text, want string
		line       int
		cause      error
	}{
		"text":                   {text: "x${{a}}y${{list}}", want: "xAy[1]"},
		"a value is not a text":  {text: "${{hostile}}", want: "${{a}} $${{"},
		"a literal":              {text: "$${{a}}", want: "${{a}}"},
		"the bound":              {text: "12345678${{a}}0", want: "12345678A0"},
		"over the bound":         {text: "12345678${{a}}00", cause: placeholder.ErrTooLong},
		"over the bound halfway": {text: "\n1234567890${{a}}", line: 2, cause: placeholder.ErrTooLong},
		"no value":               {text: "\n\n${{b}}", line: 3, cause: errNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 10
			if tc.cause == nil {
				limit = max(limit, len(tc.want))
			}
			got, err := placeholder.Render(tc.text, limit, eval)
			var wrong *placeholder.Error
			switch {
			case tc.cause == nil:
				if got != tc.want || err != nil {
					t.Errorf("got %q (%v), want %q", got, err, tc.want)
				}
			case !errors.As(err, &wrong) || !errors.Is(err, tc.cause) || wrong.Line != tc.line:
				t.Errorf("got %q (%v), want an error in line %d", got, err, tc.line)
			}
		})
	}
	var wrong *placeholder.Error
	if _, err := placeholder.Render("${{ }}", 10, eval); !errors.As(err, &wrong) || wrong.Line != 1 {
		t.Errorf("a blank placeholder: %v", err)
	}
}

// Finding takes its share of a text and no more, whatever is not closed in it.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"${{'", "${{", `${{"""`, "$${{'"} {
		if found := placeholder.Find(strings.Repeat(part, 100_000)); len(found) > 1 {
			t.Errorf("%s: there are %d placeholders", part, len(found))
		}
	}
}
