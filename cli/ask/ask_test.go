package ask_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/cli/ask"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// person types lines, and goes away after the last.
type person struct {
	lines []string
	// screen is all there was to be seen; what is typed after a prompt for a secret
	// is not.
	screen strings.Builder
}

func (p *person) Say(text string) { p.screen.WriteString(text + "\n") }

func (p *person) Line(ctx context.Context, prompt string) (string, error) {
	text, err := p.Secret(ctx, prompt)
	p.screen.WriteString(text)
	return text, err
}

func (p *person) Secret(_ context.Context, prompt string) (string, error) {
	p.screen.WriteString(prompt)
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	text := p.lines[0]
	p.lines = p.lines[1:]
	return text, nil
}

func tree(t *testing.T, text string) any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func fields(t *testing.T, text string) form.Spec {
	t.Helper()
	list, _ := tree(t, text).([]any)
	return form.Spec{Fields: form.FieldsOf(list)}
}

func fill(t *testing.T, spec form.Spec, lines ...string) (answer any, screen string, err error) {
	t.Helper()
	p := &person{lines: lines}
	interview := ask.Interview{Console: p, IsSecret: func(name string) bool { return name == "password" }}
	answer, err = interview.Fill(t.Context(), spec)
	if err == nil && len(p.lines) > 0 {
		t.Errorf("nobody asked for %q", p.lines)
	}
	return answer, p.screen.String(), err
}

func TestAnswersByFields(t *testing.T) {
	const all = `[
		{"name":"approved","type":"boolean","required":true,"label":"Ship it?"},
		{"name":"window","widget":"select","options":[{"label":"Now","value":"now"},{"label":"Two","value":"2"},{"value":"night"}]},
		{"name":"share","type":"number","defaultValue":5},
		{"name":"extra","type":"object"},
		{"name":"note","widget":"textarea"},
		{"name":"code","type":"hue"}]`
	for name, tc := range map[string]struct {
		form  string
		lines []string
		want  string
	}{
		"all of them":             {all, []string{"y", "1", "7.5", `{"a":[1]}`, "one", "two", ".", "red", ""}, `{"approved":true,"window":"now","share":7.5,"extra":{"a":[1]},"note":"one\ntwo","code":"red"}`},
		"what is needed":          {all, []string{"No", "", "-", "", "", "", "yes"}, `{"approved":false}`},
		"a default":               {all, []string{"true", "", "", "", ".", "", "Y"}, `{"approved":true,"share":5}`},
		"a value before a place":  {all, []string{"y", "2", "-", "", "", "", ""}, `{"approved":true,"window":"2"}`},
		"a place":                 {all, []string{"y", "3", "-", "", "", "", ""}, `{"approved":true,"window":"night"}`},
		"what is not of the type": {all, []string{"perhaps", "", "y", "4", "day", "night", "much", `"7"`, "7", "1", "[", "[2]", "", "", ""}, `{"approved":true,"window":"night","share":7,"extra":[2]}`},
		"a field that stands twice": {
			`[{"name":"a","type":"number"},{"name":"a","type":"boolean"}]`, []string{"1", ""}, `{"a":1}`,
		},
		"nothing to ask for": {`[]`, []string{"yes", "[1]", `{"any":1}`, ""}, `{"any":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, screen, err := fill(t, fields(t, tc.form), tc.lines...)
			if err != nil {
				t.Fatalf("%v\n%s", err, screen)
			}
			if diff := cmp.Diff(tree(t, tc.want), got); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s\n%s", diff, screen)
			}
		})
	}
}

func TestAnswersBySchema(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		lines  []string
		want   string
	}{
		"of the kinds": {
			`{"type":"object","required":["z","a"],"properties":{"a":{"type":"integer"},"m":{"type":"array"},"z":{"type":"boolean"},"n":{"type":"object"},"o":{}}}`,
			[]string{"n", "1.5", "x", "3", "[1,2]", `[]`, "{}", "some words", ""},
			`{"z":false,"a":3,"m":[1,2],"n":{},"o":"some words"}`,
		},
		"of a list": {
			`{"type":"object","required":["level"],"properties":{"level":{"enum":["low",2,null]}}}`, []string{"4", "2", ""}, `{"level":2}`,
		},
		"that is fixed": {
			`{"type":"object","required":["kind"],"properties":{"kind":{"const":"plan"}}}`, []string{"other", "", ""}, `{"kind":"plan"}`,
		},
		"by references": {
			`{"type":"object","$defs":{"name":{"type":"string","minLength":3}},"properties":{"who":{"$ref":"#/$defs/name"}}}`,
			[]string{"ab", "abc", ""},
			`{"who":"abc"}`,
		},
		"that depends on others": {
			`{"type":"object","required":["proceed"],"properties":{"proceed":{"type":"boolean"},"why":{"type":"string"}},
			  "if":{"properties":{"proceed":{"const":false}}},"then":{"required":["why"]}}`,
			[]string{"n", "", "too soon", ""},
			`{"proceed":false,"why":"too soon"}`,
		},
		"of a value":   {`{"type":"integer","minimum":3}`, []string{"no", "2", "3", ""}, `3`},
		"of anything":  {`{}`, []string{`"text"`, ""}, `"text"`},
		"as false":     {`{"type":"object","properties":{"a":false,"b":{"type":"string"}}}`, []string{"", "x", ""}, `{"b":"x"}`},
		"without form": {`{"type":"object"}`, []string{"[]", "{}", ""}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, screen, err := fill(t, form.Spec{ResponseSchema: tree(t, tc.schema)}, tc.lines...)
			if err != nil {
				t.Fatalf("%v\n%s", err, screen)
			}
			if diff := cmp.Diff(tree(t, tc.want), got); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s\n%s", diff, screen)
			}
		})
	}
}

func TestWhatIsSeen(t *testing.T) {
	_, screen, err := fill(t, fields(t, `[
		{"name":"approved","type":"boolean","required":true,"label":"Ship\u001b[31m it?","description":"Think\ntwice."},
		{"name":"window","widget":"select","defaultValue":"now","options":[{"label":"At once","value":"now"}]}]`), "maybe", "y", "", "")
	if err != nil {
		t.Fatal(err)
	}
	const want = "\nShip\ufffd[31m it?  yes or no, required\n  Think\n  twice.\n> maybe  that is not yes or no\n> y" +
		"\nwindow  a number or value of the list, optional, - leaves it out\n  1  At once\n[now] > " +
		"\n  approved: true\n  window: \"now\"\ngive this answer? [Y/n] "
	if diff := cmp.Diff(want, screen); diff != "" {
		t.Errorf("screen mismatch (-want +got):\n%s", diff)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	for name, spec := range map[string]form.Spec{
		"by name":   fields(t, `[{"name":"password","required":true,"defaultValue":"sesame"}]`),
		"by widget": fields(t, `[{"name":"word","widget":"password","required":true,"defaultValue":"sesame"}]`),
		"by format": {ResponseSchema: tree(t, `{"type":"object","required":["word"],"properties":{"word":{"type":"string","format":"password","minLength":6,"default":"sesame"}}}`)},
		"by use":    {ResponseSchema: tree(t, `{"type":"object","required":["word"],"properties":{"word":{"type":"string","writeOnly":true,"enum":["sesame","hush-hush"],"default":"sesame"}}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range []string{"hush-hush", ""} {
				answer, screen, err := fill(t, spec, line, "")
				if err != nil {
					t.Fatal(err)
				}
				object, _ := answer.(map[string]any)
				for _, value := range object {
					if want := strings.TrimSpace(line); want != "" && value != want || want == "" && value != "sesame" {
						t.Errorf("the answer to %q is %v", line, value)
					}
				}
				if strings.Contains(screen, "hush") || strings.Contains(screen, "sesame") || !strings.Contains(screen, ": ••••\n") {
					t.Errorf("it shows\n%s", screen)
				}
			}
		})
	}
}

func TestLeaving(t *testing.T) {
	spec := fields(t, `[{"name":"a","widget":"textarea"}]`)
	for name, lines := range map[string][]string{
		"before the answer": nil, "within it": {"one"}, "before giving it": {"one", "."}, "by saying no": {"one", ".", "perhaps", "no"},
	} {
		if answer, _, err := fill(t, spec, lines...); !errors.Is(err, ask.ErrLeft) || answer != nil && err == nil {
			t.Errorf("%s: got %v, %v", name, answer, err)
		}
	}
}

// broken is a console that cannot be read from.
type broken struct{ person }

var errBroken = errors.New("broken")

func (*broken) Line(context.Context, string) (string, error) { return "", errBroken }

func TestBrokenConsole(t *testing.T) {
	interview := ask.Interview{Console: &broken{}, IsSecret: func(string) bool { return false }}
	if _, err := interview.Fill(t.Context(), fields(t, `[{"name":"a"}]`)); !errors.Is(err, errBroken) || errors.Is(err, ask.ErrLeft) {
		t.Errorf("got %v", err)
	}
}
