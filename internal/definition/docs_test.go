package definition_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/testing/console"
)

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/supervised.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The document that the page shows is one.
func TestPageShowsADocument(t *testing.T) {
	t.Parallel()
	admitted := 0
	for _, block := range console.Blocks(readPage(t)) {
		if block.Language != "markdown" {
			continue
		}
		if _, err := definition.Admit(t.Context(), files{"shown.md": block.Text}, "shown.md", open{}, programs); err != nil {
			t.Errorf("supervised 60: the document is refused: %v\n%s", err, block.Text)
		}
		admitted++
	}
	if admitted == 0 {
		t.Error("supervised 60: the page shows no document")
	}
}

// The call that the page shows fits the sample's component of that name.
func TestPageShowsACall(t *testing.T) {
	t.Parallel()
	for _, block := range console.Blocks(readPage(t)) {
		if !strings.HasPrefix(block.Text, "- id: Planning\n") {
			continue
		}
		if _, err := definition.Admit(t.Context(), calling(t, block.Text), sampleRoot, open{}, programs); err != nil {
			t.Errorf("supervised 60: the call is refused: %v", err)
		}
		return
	}
	t.Error("supervised 60: the page shows no call")
}

// calling is the sample with another root, whose one node is the call.
func calling(t *testing.T, call string) files {
	t.Helper()
	tree := sampleFiles(t)
	frontmatter, _, _ := strings.Cut(strings.TrimPrefix(tree[sampleRoot], "---\n"), "\n---\n")
	_, bundle, _ := strings.Cut(frontmatter, "\nworkflow:")
	tree[sampleRoot] = "---\nname: Caller\ninputs:\n" +
		"  - {name: handoff, type: string, required: true}\n  - {name: handoffDecision, type: object, required: true}\n" +
		"  - {name: instructions, type: string, required: true}\n  - {name: planner, type: string, required: true}\n" +
		"  - {name: implementor, type: string, required: true}\nworkflow:" + bundle + "\n---\n" +
		"~~~yaml workflow\nnodes:\n- {id: start, type: start, name: Start}\n" + call + "- {id: end, type: end, name: End}\n" +
		"edges:\n- {id: a, source: start, target: Planning}\n- {id: b, source: Planning, target: end}\n~~~\n"
	return tree
}

// actionRow is a line of the table of actions: its name, inputs, config and outputs.
var actionRow = regexp.MustCompile("(?m)^\\| `([a-zA-Z]+\\.[a-z]+)` \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|[^|]*\\|$")

type documented struct{ Action, Inputs, Config, Outputs string }

// The table of actions tells their contracts.
func TestPageTellsTheContracts(t *testing.T) {
	t.Parallel()
	strip := strings.NewReplacer("`", "", " ", "")
	var told, want []documented
	for _, row := range actionRow.FindAllStringSubmatch(readPage(t), -1) {
		told = append(told, documented{row[1], strip.Replace(row[2]), sortedList(strip.Replace(row[3])), strip.Replace(row[4])})
	}
	for _, c := range definition.Contracts() {
		want = append(want, documented{c.Action, parameters(c.Inputs, "?"), sortedList(strings.Join(c.Config, ",")), parameters(c.Outputs, "")})
	}
	byAction := func(a, b documented) int { return strings.Compare(a.Action, b.Action) }
	slices.SortFunc(told, byAction)
	slices.SortFunc(want, byAction)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("supervised 60: the page tells of other actions (-contract +page):\n%s", diff)
	}
}

func sortedList(list string) string {
	parts := strings.Split(list, ",")
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// parameters lists names, with a mark behind those that may be absent.
func parameters(list []definition.Parameter, mark string) string {
	var names []string
	for _, p := range list {
		if !p.Required {
			p.Name += mark
		}
		names = append(names, p.Name)
	}
	return strings.Join(names, ",")
}

// Every code that a definition can be refused with is explained.
func TestPageTellsTheRefusals(t *testing.T) {
	t.Parallel()
	told := map[string]bool{}
	_, rows, _ := strings.Cut(readPage(t), "\n## What is refused\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for line := range strings.Lines(rows) {
		if codes, isRow := strings.CutPrefix(line, "| `"); isRow {
			codes, _, _ = strings.Cut(codes, " | ")
			for code := range strings.SplitSeq(strings.ReplaceAll(codes, "`", ""), ", ") {
				told[code] = true
			}
		}
	}
	for _, code := range []string{
		definition.CodeRootMissing, definition.CodeRootNotAFile, definition.CodeRootUnreadable, definition.CodeSecretDetected,
		definition.CodeFrontmatterInvalid, definition.CodeBundleMalformed, definition.CodeNameInvalid, definition.CodeNameStructural,
		definition.CodeNameReserved, definition.CodeNameCore, definition.CodeNameDuplicate, definition.CodePathInvalid,
		definition.CodeComponentMissing, definition.CodeComponentNotAFile, definition.CodeComponentUnreadable,
		definition.CodeComponentMalformed, definition.CodeComponentSchemaInvalid, definition.CodeGraphInvalid, definition.CodeActionContract,
		definition.CodeComponentUndeclared, definition.CodeComponentCycle, definition.CodeComponentIncompatible, definition.CodeInputsInvalid,
	} {
		if !told[code] {
			t.Errorf("supervised 60: the page does not tell of %s", code)
		}
		delete(told, code)
	}
	if len(told) > 0 {
		t.Errorf("supervised 60: the page tells of refusals that there are not: %v", told)
	}
}
