package prompt_test

import (
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/prompt"
)

func TestOfSubject(t *testing.T) {
	got := prompt.OfSubject("kind: Tool\nmetadata:\n  name: ask\n", "  Why?\n")
	if want := "[Subject]\nkind: Tool\nmetadata:\n  name: ask\n[End of subject]\n\n  Why?\n"; got != want {
		t.Errorf("prompt %q, want %q", got, want)
	}
}

func TestASubjectIsCutBetweenCharacters(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		left     string
	}{
		"just fits":       {strings.Repeat("x", prompt.MaxManifest), ""},
		"one too many":    {strings.Repeat("x", prompt.MaxManifest+1), "…[truncated 1 chars]"},
		"inside a letter": {strings.Repeat("x", prompt.MaxManifest-1) + "éé", "…[truncated 2 chars]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := prompt.OfSubject(tc.manifest, "m")
			if !strings.HasSuffix(got, tc.left+"\n[End of subject]\n\nm") || len(got) > prompt.MaxManifest+100 {
				t.Errorf("prompt of %d bytes ends in %q", len(got), got[len(got)-60:])
			}
			if strings.ToValidUTF8(got, "") != got {
				t.Error("a character was cut in two")
			}
		})
	}
}
