package redact

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestString(t *testing.T) {
	cases := map[string]struct {
		secrets    []string
		text, want string
	}{
		"nothing secret":      {nil, "plain text", "plain text"},
		"a secret":            {[]string{"hunter2-hunter2"}, "it is hunter2-hunter2.", "it is [redacted]."},
		"twice":               {[]string{"hunter2-hunter2"}, "hunter2-hunter2hunter2-hunter2", "[redacted][redacted]"},
		"too short":           {[]string{"hunter2"}, "hunter2", "hunter2"},
		"eight letters":       {[]string{"éàèùâêîô"}, "éàèùâêîôé", "[redacted]é"},
		"seven letters":       {[]string{"éàèùâêî"}, "éàèùâêî", "éàèùâêî"},
		"one in another":      {[]string{"12345678", "0123456789"}, "0123456789 12345678", "[redacted] [redacted]"},
		"one over another":    {[]string{"abcdefgh", "efghijkl"}, "xabcdefghijklx", "x[redacted]x"},
		"over itself":         {[]string{"abababab"}, "ababababab", "[redacted]"},
		"several lines":       {[]string{"line one\nline \"two\""}, "line one\nline \"two\"", "[redacted]"},
		"as text of JSON":     {[]string{"line one\nline \"two\""}, `{"key":"line one\nline \"two\""}`, `{"key":"[redacted]"}`},
		"equal values":        {[]string{"hunter2-hunter2", "hunter2-hunter2"}, "hunter2-hunter2", "[redacted]"},
		"beside each other":   {[]string{"aaaaaaaa", "bbbbbbbb"}, "aaaaaaaabbbbbbbb", "[redacted][redacted]"},
		"part of one is left": {[]string{"hunter2-hunter2"}, "hunter2-hunter", "hunter2-hunter"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := New(tc.secrets).String(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestZeroRedactorChangesNothing(t *testing.T) {
	var none *Redactor
	if got := none.String("text"); got != "text" {
		t.Errorf("got %q", got)
	}
	if got := none.Safe("text"); got != 4 {
		t.Errorf("safe %d", got)
	}
}

func TestValue(t *testing.T) {
	tree := map[string]any{
		"hunter2-hunter2": []any{"a hunter2-hunter2", true, 1.5, nil, map[string]any{"k": "hunter2-hunter2"}},
		"n":               int64(7),
	}
	want := map[string]any{
		"[redacted]": []any{"a [redacted]", true, 1.5, nil, map[string]any{"k": "[redacted]"}},
		"n":          int64(7),
	}
	if diff := cmp.Diff(want, New([]string{"hunter2-hunter2"}).Value(tree)); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
	if _, ok := tree["hunter2-hunter2"]; !ok {
		t.Error("the tree itself was changed")
	}
}

func TestWriterPassesOnWhatIsSafeAtOnce(t *testing.T) {
	var out strings.Builder
	w := New([]string{"hunter2-hunter2"}).Writer(&out)
	steps := []struct{ write, want string }{
		{"hello\n", "hello\n"},
		{"hunt", "hello\n"},
		{"ing\n", "hello\nhunting\n"},
		{"hunter2-hun", "hello\nhunting\n"},
		{"ter2 ok", "hello\nhunting\n[redacted] ok"},
		{" h", "hello\nhunting\n[redacted] ok "},
	}
	for _, step := range steps {
		if _, err := w.Write([]byte(step.write)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != step.want {
			t.Errorf("after %q: %q, want %q", step.write, got, step.want)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "hello\nhunting\n[redacted] ok h"; got != want {
		t.Errorf("in the end %q, want %q", got, want)
	}
}

func TestFromEnvironment(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/work", "ANTHROPIC_API_KEY=sk-1", "GH_TOKEN=gh=2", "DB_PASSWORD=3", "ENDPOINT=https://e", "CERT=4",
		"AXIOM_SECRET_ENV=CERT,ENDPOINT", "KEYBOARD=us", "my_secret=5", "PATTERN=x", "GITHUB_PAT=6",
	}
	want := []string{"sk-1", "gh=2", "3", "https://e", "4", "5", "6"}
	if diff := cmp.Diff(want, FromEnvironment(environ)); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// cutRandomly writes a text in pieces of random sizes and returns what came
// out.
func cutRandomly(t *testing.T, r *Redactor, text string, seed uint64) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var out strings.Builder
	w := r.Writer(&out)
	for rest := text; rest != ""; {
		n := 1 + rng.IntN(len(rest))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// FuzzRedact holds two laws: what comes out holds no secret that was not made
// by the mark itself, and cutting a text into pieces changes nothing.
func FuzzRedact(f *testing.F) {
	f.Add("hunter2-hunter2", "2-hunter2-hun", "xhunter2-hunter2-hunter2-hun", uint64(1))
	f.Add("aaaaaaaa", "aaaaaaaab", "aaaaaaaaaaaaab", uint64(2))
	f.Add("abababab", "babababa", "abababababab", uint64(3))
	f.Add("line\n\"two\" ", "ééééééééé", `"line\n\"two\" "`, uint64(4))
	f.Fuzz(func(t *testing.T, one, two, text string, seed uint64) {
		r := New([]string{one, two})
		clean := r.String(text)
		for piece := range strings.SplitSeq(clean, Mark) {
			for _, needle := range r.needles {
				if strings.Contains(piece, needle) {
					t.Errorf("%q still holds %q", clean, needle)
				}
			}
		}
		if got := cutRandomly(t, r, text, seed); got != clean {
			t.Errorf("in pieces %q, whole %q", got, clean)
		}
	})
}
