package definition_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/expression"
)

// files is a tree of files by path.
type files map[string]string

func (f files) Entry(_ context.Context, path string) (definition.Entry, bool, error) {
	text, ok := f[path]
	content := []byte(text)
	return definition.Entry{Mode: definition.File, Blob: definition.BlobID(content), Size: int64(len(content)), Content: content}, ok, nil
}

// open is a gate that lets everything pass.
type open struct{}

func (open) Text(string) *definition.Hit { return nil }

// programs are shared by all tests.
var programs = expression.NewCache()

const sample = "../../config/samples/adversarial-implementation"

// sampleFiles are the documents of the sample, in a repository.
func sampleFiles(t testing.TB) files {
	t.Helper()
	entries, err := os.ReadDir(sample)
	if err != nil {
		t.Fatal(err)
	}
	found := files{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(sample, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(entry.Name(), ".md") {
			found["adversarial-implementation/"+entry.Name()] = string(content)
		}
	}
	return found
}

const sampleRoot = "adversarial-implementation/start.md"

func admitSample(t testing.TB) *definition.Bundle {
	t.Helper()
	bundle, err := definition.Admit(t.Context(), sampleFiles(t), sampleRoot, open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestSampleIsAdmitted(t *testing.T) {
	t.Parallel()
	bundle := admitSample(t)
	var names []string
	for _, c := range bundle.Components() {
		names = append(names, c.Name)
	}
	want := "DeferredIssue Discovery Implementation InstructionFiles Observation Planning UserCheckpoint"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("components %s, want %s", got, want)
	}
}
