package action_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/action"
)

var errNoKey = errors.New("no such key")

// lookUp is an evaluator that knows a few names.
func lookUp(expression string) (any, error) {
	values := map[string]any{
		"name": "Ada", "n": int64(3), "null": nil, "list": []any{int64(1), "<"}, "nested": "${{ name }} and $${{ name }}", `"}}"`: "}}",
	}
	value, known := values[strings.TrimSpace(expression)]
	if !known {
		return nil, errNoKey
	}
	return value, nil
}

func TestRenderPrompt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ template, want, wantErr string }{
		"plain":                      {template: "Hello.", want: "Hello."},
		"nothing":                    {},
		"text":                       {template: "Hello ${{ name }}!", want: "Hello Ada!"},
		"twice, side by side":        {template: "${{name}}${{n}}", want: "Ada3"},
		"null":                       {template: "a${{ null }}b", want: "ab"},
		"other values":               {template: "${{ list }}", want: `[1,"<"]`},
		"a value is not rendered":    {template: "${{ nested }}", want: "${{ name }} and $${{ name }}"},
		"literal":                    {template: "write $${{ name }} for ${{ name }}", want: "write ${{ name }} for Ada"},
		"literal alone":              {template: "$${{", want: "${{"},
		"two dollars and a literal":  {template: "$$${{ name }}", want: "$${{ name }}"},
		"an end in a string":         {template: `${{ "}}" }}.`, want: "}}."},
		"other braces":               {template: "{{ name }} $ {x} }}", want: "{{ name }} $ {x} }}"},
		"unclosed":                   {template: "a\n${{ name", wantErr: "line 2: the placeholder is not closed by }}"},
		"blank":                      {template: "${{  }}", wantErr: "line 1: the placeholder is blank"},
		"unknown":                    {template: "\n\n${{ who }}", wantErr: "line 3: no such key"},
		"what no JSON can say":       {template: "${{ n }}" + strings.Repeat("x", action.MaxPrompt-1), want: "3" + strings.Repeat("x", action.MaxPrompt-1)},
		"one byte too much":          {template: "${{ n }}" + strings.Repeat("x", action.MaxPrompt), wantErr: "the prompt has more than 131072 bytes"},
		"too much before the end":    {template: strings.Repeat("x", action.MaxPrompt) + "${{ n }}${{ who }}", wantErr: "line 1: the prompt has more than 131072 bytes"},
		"windows line ends are kept": {template: "a\r\n${{ n }}\r\n", want: "a\r\n3\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := action.RenderPrompt(tc.template, lookUp)
			if got != tc.want || fmt.Sprint(err) != tc.wantErr && (err != nil || tc.wantErr != "") {
				t.Errorf("got %q (%v), want %q (%s)", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestRenderPromptPassesOnWhatItsEvaluatorCannotHelp(t *testing.T) {
	t.Parallel()
	_, err := action.RenderPrompt("${{ x }}", func(string) (any, error) { return nil, errNoKey })
	if !errors.Is(err, errNoKey) {
		t.Errorf("got %v", err)
	}
}

// FuzzRenderPrompt holds that rendering never panics, that a template in which
// nothing is wrong renders, and that what is literal comes out as it is meant.
func FuzzRenderPrompt(f *testing.F) {
	for _, seed := range []string{"", "${{ x }}", "$${{ x }}", "${{ '}}' }} ${{", "$$${{a}}${{b}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		asked := 0
		got, err := action.RenderPrompt(template, func(string) (any, error) { asked++; return "", nil })
		valid := !action.HasErrors(action.Type{Name: "a", Mode: action.ModeAgent, Agent: action.Agent{Prompt: template + "."}}.Problems(action.Surroundings{}))
		if valid != (err == nil) && len(template) < action.MaxPrompt {
			t.Fatalf("%q is valid: %t, rendering says %v", template, valid, err)
		}
		if err == nil && asked == 0 && got != strings.ReplaceAll(template, "$${{", "${{") {
			t.Errorf("%q was changed to %q", template, got)
		}
	})
}
