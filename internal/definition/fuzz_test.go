package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/definition"
)

// FuzzAdmit holds that admission never panics, refuses or admits, says the same each time, and that what is admitted can
// be admitted again from what is retained of it.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte(goodRoot), []byte(goodAlpha), []byte(goodBeta))
	documents, err := filepath.Glob(filepath.Join(sample, "*.md"))
	if err != nil {
		f.Fatal(err)
	}
	for _, document := range documents {
		content, err := os.ReadFile(document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, content, []byte(goodBeta))
		f.Add([]byte(goodRoot), content, []byte(goodBeta))
	}
	f.Add([]byte("---\n&a [*a]\n---\n"), []byte("---\n? {a: b}\n: c\n---\n"), []byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, rootText, alphaText, betaText []byte) {
		all := files{rootPath: string(rootText), alphaPath: string(alphaText), betaPath: string(betaText)}
		first, err := definition.Admit(t.Context(), all, rootPath, open{}, programs)
		again, errAgain := definition.Admit(t.Context(), all, rootPath, open{}, programs)
		var refusal, refusalAgain *definition.Refusal
		if err != nil {
			if !errors.As(err, &refusal) || !errors.As(errAgain, &refusalAgain) || first != nil {
				t.Fatalf("got %v, then %v", err, errAgain)
			}
			if diff := cmp.Diff(refusal, refusalAgain); diff != "" {
				t.Fatalf("refusals differ (-first +second):\n%s", diff)
			}
			if refusal.Line < 0 || refusal.Line > 2+strings.Count(string(rootText)+string(alphaText)+string(betaText), "\n")+strings.Count(string(rootText)+string(alphaText)+string(betaText), "\r") {
				t.Fatalf("%v is in no line", refusal)
			}
			return
		}
		retained, err := definition.Admit(t.Context(), definition.Retained(first.Sources()), rootPath, open{}, programs)
		if err != nil {
			t.Fatalf("the retained definition is refused: %v", err)
		}
		want := first.Descriptor(commit).Digest()
		if again.Descriptor(commit).Digest() != want || retained.Descriptor(commit).Digest() != want {
			t.Fatal("descriptors differ")
		}
	})
}

// FuzzRender holds that rendering never panics, never renders a value, and gives text within its bound.
func FuzzRender(f *testing.F) {
	f.Add("a ${{ context.text }} b", "value")
	f.Add("$${{ context.text }}", "${{ context.text }}")
	f.Add("~~~\n# a\n~~~\n${{ '}}' + context.text }}", "$")
	f.Fuzz(func(t *testing.T, section, value string) {
		if !utf8.ValidString(value) {
			return
		}
		text := rendering("## S\n" + section + "\n")
		bundle, err := definition.Admit(t.Context(), files{"a.md": text}, "a.md", open{}, programs)
		if err != nil {
			return
		}
		got, err := bundle.Root().Render(t.Context(), "#s", map[string]any{"text": value})
		if err == nil && len(got) > definition.MaxRendered {
			t.Fatalf("the text has %d bytes", len(got))
		}
		if section == "${{ context.text }}" && err == nil && got != value {
			t.Fatalf("%q became %q", value, got)
		}
		if err == nil && !strings.Contains(section, "{{") && !strings.Contains(section, "#") && strings.TrimSpace(got) != strings.TrimSpace(section) && !strings.ContainsAny(section, "-=") {
			t.Fatalf("%q became %q", section, got)
		}
	})
}
