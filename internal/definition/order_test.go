package definition_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A repair takes one fault away, and the next one shows.
type repair struct {
	path, old, new string
	code           string
	subject        string
}

// Everything is wrong at first. Each step says what is refused, and how to go on.
func TestRefusalsComeInOrder(t *testing.T) {
	t.Parallel()
	all := goodFiles()
	steps := []repair{
		{code: "SECRET_DETECTED", subject: rootPath, old: "hunter2", new: "a"},
		{code: "FRONTMATTER_INVALID", subject: rootPath, old: "name: Root\nzqx: 1", new: "name: Root"},
		{code: "BUNDLE_MALFORMED", subject: rootPath, old: "workflow:\n  zqx: 1\n", new: "workflow:\n"},
		{code: "COMPONENT_NAME_INVALID", subject: rootPath, old: "    zqx: ../zqx\n", new: ""},
		{code: "COMPONENT_NAME_STRUCTURAL", subject: "Wait", old: "    Wait: ../zqx\n", new: ""},
		{code: "COMPONENT_NAME_RESERVED", subject: "Turn", old: "    Turn: ../zqx\n", new: ""},
		{code: "COMPONENT_NAME_CORE", subject: "Read", old: "    Read: ../zqx\n", new: ""},
		{code: "COMPONENT_NAME_DUPLICATE", subject: "Alpha", old: "    ALPHA: ../zqx\n", new: ""},
		{code: "COMPONENT_PATH_INVALID", subject: "Beta.Two", old: "../sub/beta.md", new: "sub/beta.md"},
		{code: "COMPONENT_MISSING", subject: "Gone", old: "    Gone: gone.md\n", new: ""},
		{code: "COMPONENT_UNREADABLE", subject: "Beta.Two", path: betaPath, old: "\xff", new: ""},
		{code: "SECRET_DETECTED", subject: "Alpha", path: alphaPath, old: "hunter2", new: "a"},
		{code: "COMPONENT_MALFORMED", subject: "Beta.Two", path: betaPath, old: "zqx: 1\n", new: ""},
		{code: "COMPONENT_SCHEMA_INVALID", subject: "Alpha", path: alphaPath, old: "name: repeat,", new: "name: done,"},
		{code: "GRAPH_INVALID", subject: rootPath, old: "id: say-1", new: "id: say"},
		{code: "GRAPH_INVALID", subject: "Alpha", path: alphaPath, old: "id: _call", new: "id: call"},
		{code: "ACTION_CONTRACT", subject: rootPath, old: "repairs: 9", new: "repairs: 1"},
		{code: "ACTION_CONTRACT", subject: "Alpha", path: alphaPath, old: "paths: [a], zqx: 1", new: "paths: [a]"},
		{code: "COMPONENT_UNDECLARED", subject: rootPath, old: "component: Nobody", new: "component: Alpha"},
		{code: "COMPONENT_CYCLE", subject: "Alpha", path: alphaPath, old: "component: Alpha", new: "component: Beta.Two"},
		{code: "COMPONENT_INCOMPATIBLE", subject: rootPath, old: "item: context.reply, zqx: 1", new: "item: context.reply"},
	}
	// The breakages are the repairs, backwards.
	for _, s := range []repair{
		{old: "# Title", new: "# hunter2"},
		{old: "name: Root", new: "name: Root\nzqx: 1"},
		{old: "workflow:\n", new: "workflow:\n  zqx: 1\n"},
		{old: "    Alpha: ./alpha.md\n", new: "    zqx: ../zqx\n    Wait: ../zqx\n    Turn: ../zqx\n    Read: ../zqx\n    ALPHA: ../zqx\n    Gone: gone.md\n    Alpha: ./alpha.md\n"},
		{old: "sub/beta.md", new: "../sub/beta.md"},
		{path: betaPath, old: "name: Beta\n", new: "name: Beta\nzqx: 1\n"},
		{path: betaPath, old: "name: End", new: "name: End\xff"},
		{path: alphaPath, old: "name: Call", new: "name: hunter2"},
		{path: alphaPath, old: "name: done,", new: "name: repeat,"},
		{old: "id: say\n", new: "id: say-1\n"},
		{path: alphaPath, old: "id: call", new: "id: _call"},
		{path: alphaPath, old: "target: call", new: "target: _call"},
		{path: alphaPath, old: "source: call", new: "source: _call"},
		{old: "repairs: 1", new: "repairs: 9"},
		{path: alphaPath, old: "paths: [a]", new: "paths: [a], zqx: 1"},
		{old: "component: Alpha", new: "component: Nobody"},
		{path: alphaPath, old: "component: Beta.Two", new: "component: Alpha"},
		{old: "item: context.reply", new: "item: context.reply, zqx: 1"},
	} {
		breakage{path: s.path, old: s.old, new: s.new}.apply(t, all)
	}
	for _, s := range steps {
		got := refusalOf(t, all, rootPath)
		if got == nil || got.Code != s.code || got.Subject != s.subject {
			t.Fatalf("got %v, want %s of %s", got, s.code, s.subject)
		}
		if strings.Contains(got.Error(), mark) {
			t.Errorf("%s repeats what was refused", got)
		}
		breakage{path: s.path, old: s.old, new: s.new}.apply(t, all)
		if s.old == "id: _call" {
			all[alphaPath] = strings.ReplaceAll(all[alphaPath], ": _call", ": call")
		}
	}
	if refusal := refusalOf(t, all, rootPath); refusal != nil {
		t.Errorf("everything is repaired, and yet %v", refusal)
	}
}

func TestCyclesOfSeveralAreFound(t *testing.T) {
	t.Parallel()
	all := goodFiles()
	// Two names for one file: the second one calls itself by way of the first.
	breakage{old: "Beta.Two: sub/beta.md", new: "Beta.Two: alpha.md"}.apply(t, all)
	breakage{path: alphaPath, old: "component: Beta.Two", new: "component: Alpha"}.apply(t, all)
	check(t, refusalOf(t, all, rootPath), of("Alpha", "COMPONENT_CYCLE", ""))

	all = goodFiles()
	all[betaPath] = strings.ReplaceAll(strings.ReplaceAll(goodAlpha, "name: Alpha", "name: Beta"), "component: Beta.Two, inputs: {one:", "component: Alpha, inputs: {text:")
	all[alphaPath] = strings.ReplaceAll(goodAlpha, "inputs: {one:", "inputs: {text:")
	all[rootPath] = strings.ReplaceAll(goodRoot, "inputs: {one: one.key}", "inputs: {text: one.key}")
	check(t, refusalOf(t, all, rootPath), of("Alpha", "COMPONENT_CYCLE", ""))
}

func TestTwoNamesMayNameOneFile(t *testing.T) {
	t.Parallel()
	all := goodFiles()
	breakage{old: "Beta.Two: sub/beta.md\n", new: "Beta.Two: sub/beta.md\n    Gamma: ./sub/beta.md\n"}.apply(t, all)
	bundle, err := definition.Admit(t.Context(), all, rootPath, open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	if sources := bundle.Sources(); len(sources) != 3 || len(bundle.Components()) != 3 {
		t.Errorf("got %d sources and %d components", len(sources), len(bundle.Components()))
	}
}

var errTree = errors.New("the remote is away")

// away is a tree that cannot be read at one path.
type away struct {
	files
	path string
}

func (a away) Entry(ctx context.Context, path string) (definition.Entry, bool, error) {
	if path == a.path {
		return definition.Entry{}, false, errTree
	}
	return a.files.Entry(ctx, path)
}

func TestErrorsOfTheTreeAreNoRefusals(t *testing.T) {
	t.Parallel()
	for _, path := range []string{rootPath, betaPath} {
		bundle, err := definition.Admit(t.Context(), away{goodFiles(), path}, rootPath, open{}, programs)
		var refusal *definition.Refusal
		if bundle != nil || !errors.Is(err, errTree) || errors.As(err, &refusal) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := definition.Admit(ctx, goodFiles(), rootPath, open{}, programs); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v of a context that ended", err)
	}
}

func TestAdmissionIsDeterministic(t *testing.T) {
	t.Parallel()
	all := goodFiles()
	for _, b := range []breakage{
		{old: "inputs: {agent: \"'planner'\"", new: "inputs: {zqx: 1, zqy: 2, agent: \"'planner'\""},
		{path: alphaPath, old: `one: "'1'"`, new: `one: "'1'", zqa: 1, zqb: 1`},
	} {
		b.apply(t, all)
		first := refusalOf(t, all, rootPath)
		for range 20 {
			if diff := cmp.Diff(first, refusalOf(t, all, rootPath)); diff != "" {
				t.Fatalf("refusals differ (-first +later):\n%s", diff)
			}
		}
		all = goodFiles()
	}
}

const commit = "8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a"

func admitGood(t *testing.T) *definition.Bundle {
	t.Helper()
	bundle, err := definition.Admit(t.Context(), goodFiles(), rootPath, open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestDescriptor(t *testing.T) {
	t.Parallel()
	bundle := admitGood(t)
	text, err := json.Marshal(bundle.Descriptor(commit))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"kind":"git","objectFormat":"sha1","commit":"8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a","path":"dir/root.md",` +
		`"components":[{"name":"Alpha","path":"dir/alpha.md","sourceHash":"ALPHA"},{"name":"Beta.Two","path":"dir/sub/beta.md","sourceHash":"BETA"}]}`
	wanted := strings.NewReplacer("ALPHA", definition.BlobID([]byte(goodAlpha)), "BETA", definition.BlobID([]byte(goodBeta))).Replace(want)
	if string(text) != wanted {
		t.Errorf("got  %s\nwant %s", text, wanted)
	}
	tree, err := jsonvalue.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := jsonvalue.Canonical(tree)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bundle.Descriptor(commit).Digest(), fmt.Sprintf("sha256:%x", sha256.Sum256(canonical)); got != want {
		t.Errorf("the digest is %s, that of the canonical form %s", got, want)
	}
}

func TestDescriptorWithoutBundle(t *testing.T) {
	t.Parallel()
	alone := files{"a.md": goodBeta}
	bundle, err := definition.Admit(t.Context(), alone, "a.md", open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(bundle.Descriptor(commit))
	const want = `{"version":1,"kind":"git","objectFormat":"sha1","commit":"8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a","path":"a.md"}`
	if err != nil || string(text) != want {
		t.Errorf("got %s (%v)", text, err)
	}
}

func TestBlobsAreNamedAsGitNamesThem(t *testing.T) {
	t.Parallel()
	// git hash-object of nothing, and of "test content\n".
	for content, want := range map[string]string{
		"": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "test content\n": "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
	} {
		if got := definition.BlobID([]byte(content)); got != want {
			t.Errorf("%q is %s, want %s", content, got, want)
		}
	}
}

func TestRetainedSourcesGiveTheSameDefinition(t *testing.T) {
	t.Parallel()
	bundle := admitGood(t)
	sources := bundle.Sources()
	var paths []string
	for _, s := range sources {
		paths = append(paths, s.Path)
	}
	if diff := cmp.Diff([]string{rootPath, alphaPath, betaPath}, paths); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	again, err := definition.Admit(t.Context(), definition.Retained(sources), rootPath, open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	want := bundle.Descriptor(commit).Digest()
	if got := again.Descriptor(commit).Digest(); got != want {
		t.Errorf("the digest is %s, was %s", got, want)
	}
	sources[2].Content = bytes.Replace(sources[2].Content, []byte("name: End"), []byte("name: Fin"), 1)
	forged, err := definition.Admit(t.Context(), definition.Retained(sources), rootPath, open{}, programs)
	if err != nil || forged.Descriptor(commit).Digest() == want {
		t.Errorf("a changed source is not found (%v)", err)
	}
	if _, err := definition.Admit(t.Context(), definition.Retained(sources[:2]), rootPath, open{}, programs); err == nil || !strings.HasPrefix(err.Error(), "COMPONENT_MISSING") {
		t.Errorf("a source that is gone: %v", err)
	}
}

func TestRunInputs(t *testing.T) {
	t.Parallel()
	bundle := admitGood(t)
	for name, tc := range map[string]struct {
		inputs map[string]any
		want   string
	}{
		"all of them":            {inputs: map[string]any{"request": "r", "count": int64(2)}},
		"the required ones":      {inputs: map[string]any{"request": "r"}},
		"an optional null":       {inputs: map[string]any{"request": "r", "count": nil}},
		"a fraction":             {inputs: map[string]any{"request": "r", "count": 0.5}},
		"none":                   {want: `INPUTS_INVALID: "request": required`},
		"a required null":        {inputs: map[string]any{"request": nil}, want: `INPUTS_INVALID: "request": required`},
		"a number for a text":    {inputs: map[string]any{"request": int64(1)}, want: `INPUTS_INVALID: "request": type`},
		"a text for a number":    {inputs: map[string]any{"request": "r", "count": "2"}, want: `INPUTS_INVALID: "count": type`},
		"one that is undeclared": {inputs: map[string]any{"request": "r", "zz": "2"}, want: `INPUTS_INVALID: "zz": undeclared`},
		"an undeclared null":     {inputs: map[string]any{"request": "r", "zz": nil}, want: `INPUTS_INVALID: "zz": undeclared`},
		"the first by name":      {inputs: map[string]any{"zz": "2", "count": "2"}, want: `INPUTS_INVALID: "count": type`},
		"a long name":            {inputs: map[string]any{"request": "r", strings.Repeat("z", 99): "2"}, want: `INPUTS_INVALID: "` + strings.Repeat("z", 63) + `": undeclared`},
	} {
		t.Run("supervised 03: "+name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if refusal := bundle.CheckInputs(tc.inputs); refusal != nil {
				got = refusal.Error()
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestStartValues(t *testing.T) {
	t.Parallel()
	start := admitGood(t).Root().Start
	for name, tc := range map[string]struct {
		inputs, want map[string]any
		fault        string
	}{
		"a default":         {inputs: map[string]any{"request": "r"}, want: map[string]any{"request": "r", "count": int64(1)}},
		"null is absent":    {inputs: map[string]any{"request": "r", "count": nil}, want: map[string]any{"request": "r", "count": int64(1)}},
		"as given":          {inputs: map[string]any{"request": "", "count": 0.5}, want: map[string]any{"request": "", "count": 0.5}},
		"a required null":   {inputs: map[string]any{"request": nil}, fault: `INPUT_CONTRACT: input "request": required`},
		"another type":      {inputs: map[string]any{"request": []any{}}, fault: `INPUT_CONTRACT: input "request": type`},
		"an undeclared one": {inputs: map[string]any{"request": "r", "a": int64(1)}, fault: `INPUT_CONTRACT: input "a": undeclared`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := start(tc.inputs)
			if tc.fault != "" {
				if err == nil || err.Error() != tc.fault {
					t.Errorf("got %v, want %s", err, tc.fault)
				}
				return
			}
			if diff := cmp.Diff(tc.want, map[string]any(got)); diff != "" || err != nil {
				t.Errorf("values (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

func TestDefaultsAreCopies(t *testing.T) {
	t.Parallel()
	all := files{"a.md": strings.Replace(goodBeta, "{name: one, type: string, required: true}", "{name: one, type: object, defaultValue: [{a: 1}]}", 1)}
	bundle, err := definition.Admit(t.Context(), all, "a.md", open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	first, err := bundle.Root().Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	first["one"].([]any)[0].(map[string]any)["a"] = "changed"
	second, err := bundle.Root().Start(nil)
	if diff := cmp.Diff(map[string]any{"one": []any{map[string]any{"a": int64(1)}}}, map[string]any(second)); diff != "" || err != nil {
		t.Errorf("the second frame starts with (-want +got):\n%s%v", diff, err)
	}
}

func TestSupervisedWorkflowsAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node map[string]any
		want bool
	}{
		"a component":       {map[string]any{"type": "component"}, true},
		"a built-in action": {map[string]any{"type": "action", "config": map[string]any{"actionType": "git.push"}}, true},
		"an action type":    {map[string]any{"type": "action", "config": map[string]any{"actionType": "git-push"}}, false},
		"an end":            {map[string]any{"type": "end", "config": map[string]any{"actionType": "git.push"}}, false},
	} {
		maps.Copy(tc.node, map[string]any{"id": "n"})
		id, got := definition.UsesSupervised(workflow.Read(map[string]any{"nodes": []any{tc.node}}))
		if got != tc.want || got && id != "n" {
			t.Errorf("supervised 08: %s: got %q, %t", name, id, got)
		}
	}
}
