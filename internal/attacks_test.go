package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPageOfAttacksNamesTests finds every test that the page about security names.
func TestPageOfAttacksNamesTests(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := textOfTests(t, "..")
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+|(?:attack|supervised [0-9]{2}): [^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 50 {
		t.Fatalf("only %d tests are named", len(named))
	}
	for _, match := range named {
		name := match[1]
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			name = "func " + name + "("
		}
		// The word before the colon may stand for all of a table.
		_, story, _ := strings.Cut(name, ": ")
		if !strings.Contains(tests, name) && (story == "" || !strings.Contains(tests, story)) {
			t.Errorf("there is no test %q", match[1])
		}
	}
}

// textOfTests is all that is written in tests, one after the other.
func textOfTests(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(filepath.Clean(path))
		text.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}
