package definition_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/apitomy/axiom-operator/internal/definition"
)

// A definition that is admitted, for cases to break.
const (
	goodRoot = `---
name: Root
description: A root.
x-owner: {team: a}
inputs:
  - {name: request, type: string, required: true}
  - {name: count, type: number, defaultValue: 1}
outputs:
  - {name: done, type: boolean, expression: context.done}
  - {name: text, type: string, expression: "#say"}
workflow:
  components:
    Alpha: ./alpha.md
    Beta.Two: sub/beta.md
---
# Title

~~~yaml workflow
nodes:
  - {id: start, type: start, name: Start}
  - id: say
    type: action
    name: Say
    config:
      actionType: agent.prompt
      prompt: "#say"
      inputs: {agent: "'planner'", session: "'s'"}
      reply: {schema: {type: object}, repairs: 1}
      timeout: PT1H
  - id: alpha
    type: component
    name: Alpha
    config:
      component: Alpha
      inputs: {text: "#say", item: context.reply}
      repeat: {max: 3, until: result.done}
      outputs: {done: result.done}
  - {id: beta, type: component, name: Beta, config: {component: Beta.Two, forEach: {items: context.reply.items, as: one, max: 2}, inputs: {one: one.key}}}
  - id: ask
    type: human-task
    name: Ask
    config:
      title: context.request
      description: "#say"
      inputs: {Shown: "#say"}
      responseSchema: {type: object, properties: {ok: {type: boolean}}}
  - {id: end, type: end, name: End}
edges:
  - {id: e1, source: start, target: say}
  - {id: e2, source: say, target: alpha}
  - {id: e3, source: alpha, target: beta}
  - {id: e4, source: beta, target: ask}
  - {id: e5, source: ask, target: end}
~~~

## Say
Say ${{ context.request }}.

## Twice
## Twice

## Broken
${{ context. }}

## Open
${{ context.request
`
	goodAlpha = `---
name: Alpha
inputs: [{name: text, type: string, required: true}, {name: item, type: object}]
outputs: [{name: done, type: boolean, expression: "true"}]
---
~~~yaml workflow
nodes:
  - {id: start, type: start, name: Start}
  - {id: call, type: component, name: Call, config: {component: Beta.Two, inputs: {one: "'1'"}}}
  - {id: read, type: action, name: Read, config: {actionType: files.read, inputs: {worktree: "'w'", paths: [a]}, outputs: [{name: files, contextKey: read}]}}
  - {id: end, type: end, name: End}
edges:
  - {id: e1, source: start, target: call}
  - {id: e2, source: call, target: read}
  - {id: e3, source: read, target: end}
~~~
`
	goodBeta = `---
name: Beta
inputs: [{name: one, type: string, required: true}]
---
~~~yaml workflow
nodes:
  - {id: start, type: start, name: Start}
  - {id: end, type: end, name: End}
edges:
  - {id: e1, source: start, target: end}
~~~
`
)

const (
	rootPath  = "dir/root.md"
	alphaPath = "dir/alpha.md"
	betaPath  = "dir/sub/beta.md"
)

func goodFiles() files {
	return files{rootPath: goodRoot, alphaPath: goodAlpha, betaPath: goodBeta}
}

// special is a tree in which something stands at a path that is no ordinary file.
type special struct {
	files
	path  string
	entry definition.Entry
}

func (s special) Entry(ctx context.Context, path string) (definition.Entry, bool, error) {
	if path == s.path {
		return s.entry, s.entry.Mode != "", nil
	}
	return s.files.Entry(ctx, path)
}

// mark is a word that no refusal may repeat.
const mark = "zqx"

// suspicious is a gate that finds one word.
type suspicious struct{}

func (suspicious) Text(text string) *definition.Hit {
	before, _, found := strings.Cut(text, "hunter2")
	if !found {
		return nil
	}
	return &definition.Hit{Rule: "word", Line: 1 + strings.Count(before, "\n"), Column: 3}
}

// A breakage replaces a text of one file, and says what follows. Without a path it is the root.
type breakage struct {
	path, old, new string
	want           definition.Refusal
}

func (b breakage) apply(t *testing.T, all files) {
	t.Helper()
	path := b.path
	if path == "" {
		path = rootPath
	}
	if !strings.Contains(all[path], b.old) {
		t.Fatalf("%s does not contain %q", path, b.old)
	}
	all[path] = strings.Replace(all[path], b.old, b.new, 1)
}

func refusalOf(t *testing.T, tree definition.Tree, root string) *definition.Refusal {
	t.Helper()
	bundle, err := definition.Admit(t.Context(), tree, root, suspicious{}, programs)
	var refusal *definition.Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("got %v", err)
	}
	if (bundle == nil) != (refusal != nil) {
		t.Fatalf("got both or neither of a bundle and a refusal: %v", refusal)
	}
	return refusal
}

func check(t *testing.T, got *definition.Refusal, want definition.Refusal) {
	t.Helper()
	if got == nil {
		t.Fatalf("admitted, want %v", &want)
	}
	if want.Line == 0 {
		got.Line, got.Column = 0, 0
	}
	if diff := cmp.Diff(&want, got, cmpopts.IgnoreFields(definition.Refusal{}, "Path")); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
	if strings.Contains(got.Error(), mark) {
		t.Errorf("%q repeats what was refused", got.Error())
	}
}

func TestRefusalsTellTheirDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault breakage
		want  string
	}{
		"head of the root":       {breakage{old: "x-owner", new: "owner"}, rootPath},
		"component that is gone": {breakage{old: "./alpha.md", new: "./gone.md"}, rootPath},
		"head of a component":    {breakage{path: alphaPath, old: "name: Alpha", new: "nom: Alpha"}, alphaPath},
		"graph of a component":   {breakage{path: betaPath, old: "target: end", new: "target: nowhere"}, betaPath},
		"secret in a component":  {breakage{path: betaPath, old: "name: Beta", new: "name: hunter2"}, betaPath},
		"call of a component":    {breakage{path: alphaPath, old: "inputs: {one: \"'1'\"}", new: "inputs: {}"}, alphaPath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := goodFiles()
			tc.fault.apply(t, all)
			if got := refusalOf(t, all, rootPath); got == nil || got.Path != tc.want {
				t.Errorf("the refusal is %v, not of %s", got, tc.want)
			}
		})
	}
}

func TestGoodDefinitionIsAdmitted(t *testing.T) {
	t.Parallel()
	if refusal := refusalOf(t, goodFiles(), rootPath); refusal != nil {
		t.Error(refusal)
	}
}

func TestEntriesAreRefused(t *testing.T) {
	t.Parallel()
	file := func(content string) definition.Entry {
		return definition.Entry{Mode: definition.File, Size: int64(len(content)), Content: []byte(content)}
	}
	large := definition.Entry{Mode: definition.File, Size: definition.MaxSource + 1}
	for name, tc := range map[string]struct {
		path  string
		entry definition.Entry
		want  definition.Refusal
	}{
		"no root":                  {path: rootPath, want: definition.Refusal{Code: "ROOT_MISSING", Subject: rootPath}},
		"a root that is a tree":    {rootPath, definition.Entry{Mode: definition.Directory}, definition.Refusal{Code: "ROOT_NOT_A_FILE", Subject: rootPath, Rule: "directory"}},
		"a root that is a link":    {rootPath, definition.Entry{Mode: definition.Symlink}, definition.Refusal{Code: "ROOT_NOT_A_FILE", Subject: rootPath, Rule: "symlink"}},
		"a root that is a module":  {rootPath, definition.Entry{Mode: definition.Submodule}, definition.Refusal{Code: "ROOT_NOT_A_FILE", Subject: rootPath, Rule: "submodule"}},
		"a root that is no text":   {rootPath, file("\xff"), definition.Refusal{Code: "ROOT_UNREADABLE", Subject: rootPath, Rule: "encoding"}},
		"a root that is too large": {rootPath, large, definition.Refusal{Code: "ROOT_UNREADABLE", Subject: rootPath, Rule: "size"}},
		"a root with a mark":       {rootPath, file("\ufeff" + goodRoot), definition.Refusal{Code: "ROOT_UNREADABLE", Subject: rootPath, Rule: "byte-order-mark"}},
		"no component":             {path: alphaPath, want: definition.Refusal{Code: "COMPONENT_MISSING", Subject: "Alpha"}},
		"a component is a tree":    {betaPath, definition.Entry{Mode: definition.Directory}, definition.Refusal{Code: "COMPONENT_NOT_A_FILE", Subject: "Beta.Two", Rule: "directory"}},
		"a component is a link":    {betaPath, definition.Entry{Mode: definition.Symlink}, definition.Refusal{Code: "COMPONENT_NOT_A_FILE", Subject: "Beta.Two", Rule: "symlink"}},
		"a component is a module":  {betaPath, definition.Entry{Mode: definition.Submodule}, definition.Refusal{Code: "COMPONENT_NOT_A_FILE", Subject: "Beta.Two", Rule: "submodule"}},
		"a component is no text":   {betaPath, file("a\xff"), definition.Refusal{Code: "COMPONENT_UNREADABLE", Subject: "Beta.Two", Rule: "encoding"}},
		"a component is too large": {betaPath, large, definition.Refusal{Code: "COMPONENT_UNREADABLE", Subject: "Beta.Two", Rule: "size"}},
	} {
		t.Run("supervised 03: "+name, func(t *testing.T) {
			t.Parallel()
			check(t, refusalOf(t, special{goodFiles(), tc.path, tc.entry}, rootPath), tc.want)
		})
	}
}

func TestExecutableDocumentsAreFiles(t *testing.T) {
	t.Parallel()
	for _, path := range []string{rootPath, betaPath} {
		content := goodFiles()[path]
		entry := definition.Entry{Mode: definition.Executable, Size: int64(len(content)), Content: []byte(content)}
		if refusal := refusalOf(t, special{goodFiles(), path, entry}, rootPath); refusal != nil {
			t.Errorf("%s: %v", path, refusal)
		}
	}
}

// root and of shorten the refusals of the tables below.
func root(code, rule string) definition.Refusal {
	return definition.Refusal{Code: code, Subject: rootPath, Rule: rule}
}

func of(component, code, rule string) definition.Refusal {
	return definition.Refusal{Code: code, Subject: component, Rule: rule}
}

func at(line int, refusal definition.Refusal) definition.Refusal {
	refusal.Line = line
	return refusal
}

func run(t *testing.T, table map[string]breakage) {
	t.Helper()
	for name, tc := range table {
		t.Run("supervised 03: "+name, func(t *testing.T) {
			t.Parallel()
			all := goodFiles()
			tc.apply(t, all)
			check(t, refusalOf(t, all, rootPath), tc.want)
		})
	}
}

func TestSecretsAreRefused(t *testing.T) {
	t.Parallel()
	run(t, map[string]breakage{
		"a secret in the root": {old: "# Title", new: "# hunter2", want: definition.Refusal{
			Code: "SECRET_DETECTED", Subject: rootPath, Rule: "word", Line: 16, Column: 3,
		}},
		"a secret ahead of a bad head": {old: "name: Root", new: "name: hunter2\nzqx: 1", want: root("SECRET_DETECTED", "word")},
		"a secret in a component": {path: betaPath, old: "name: Beta", new: "name: hunter2\nzqx: 1", want: definition.Refusal{
			Code: "SECRET_DETECTED", Subject: "Beta.Two", Rule: "word", Line: 2, Column: 3,
		}},
	})
}

func TestNothingPassesWithoutAGate(t *testing.T) {
	t.Parallel()
	_, err := definition.Admit(t.Context(), goodFiles(), rootPath, nil, programs)
	var refusal *definition.Refusal
	if !errors.As(err, &refusal) || refusal.Code != "SECRET_DETECTED" {
		t.Errorf("got %v", err)
	}
}

func TestHeadsAreRefused(t *testing.T) {
	t.Parallel()
	const code = "FRONTMATTER_INVALID"
	run(t, map[string]breakage{
		"no head":                    {old: "---\nname: Root", new: "name: Root", want: at(1, root(code, "frontmatter-missing"))},
		"a head that begins late":    {old: "---\nname: Root", new: "\n---\nname: Root", want: root(code, "frontmatter-missing")},
		"a head without end":         {old: "beta.md\n---\n", new: "beta.md\n", want: root(code, "frontmatter-missing")},
		"a head that is empty":       {old: "---\nname: Root", new: "---\n---\nname: Root", want: at(2, root(code, "yaml-one-document"))},
		"a head that is a list":      {old: "---\nname: Root", new: "---\n- a\n---\nname: Root", want: at(2, root(code, "frontmatter-mapping"))},
		"a head of two documents":    {old: "name: Root", new: "name: Root\n...\nzqx: 1", want: root(code, "yaml-syntax")},
		"no YAML":                    {old: "name: Root", new: "name: [zqx", want: root(code, "yaml-syntax")},
		"an anchor":                  {old: "name: Root", new: "name: &zqx Root", want: at(2, root(code, "yaml-anchor"))},
		"an alias":                   {old: "name: Root", new: "x-a: &zqx 1\nname: Root\nx-b: *zqx", want: at(2, root(code, "yaml-anchor"))},
		"a tag":                      {old: "name: Root", new: "name: !!str zqx", want: at(2, root(code, "yaml-tag"))},
		"a tag of its own":           {old: "name: Root", new: "name: Root\nx-b: {c: !zqx {}}", want: at(3, root(code, "yaml-tag"))},
		"a tag without a name":       {old: "name: Root", new: "name: ! zqx", want: at(2, root(code, "yaml-tag"))},
		"a merge key":                {old: "name: Root", new: "name: Root\nx-b: {<<: {zqx: 1}}", want: at(3, root(code, "yaml-merge-key"))},
		"a merge key in the bundle":  {old: "    Alpha: ./alpha.md", new: "    <<: {Zqx: a.md}\n    Alpha: ./alpha.md", want: at(13, root(code, "yaml-merge-key"))},
		"a key twice":                {old: "name: Root", new: "name: Root\nname: zqx", want: at(3, root(code, "yaml-duplicate-key"))},
		"a key twice further down":   {old: "name: Root", new: "name: Root\nx-b: [{zqx: 1, \"zqx\": 2}]", want: at(3, root(code, "yaml-duplicate-key"))},
		"a key that is a number":     {old: "name: Root", new: "name: Root\n1: zqx", want: root(code, "yaml-key")},
		"a key that is a list":       {old: "name: Root", new: "name: Root\n[zqx]: 1", want: root(code, "yaml-key")},
		"a number that JSON lacks":   {old: "name: Root", new: "name: Root\nx-b: .inf", want: root(code, "yaml-value")},
		"lists without end":          {old: "name: Root", new: "name: Root\nx-b: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), want: root(code, "yaml-depth")},
		"an unknown member":          {old: "name: Root", new: "name: Root\nzqx: 1", want: at(3, root(code, "frontmatter-member"))},
		"no name":                    {old: "name: Root\n", new: "", want: root(code, "frontmatter-name")},
		"a name that is null":        {old: "name: Root", new: "name:", want: root(code, "frontmatter-name")},
		"a name that is no text":     {old: "name: Root", new: "name: 1", want: at(2, root(code, "frontmatter-name"))},
		"a description of lists":     {old: "A root.", new: "[zqx]", want: at(3, root(code, "frontmatter-description"))},
		"inputs that are no list":    {old: "inputs:\n", new: "inputs: {}\nx-inputs:\n", want: at(5, root(code, "inputs"))},
		"an input that is a text":    {old: "  - {name: request,", new: "  - zqx\n  - {name: request,", want: at(6, root(code, "inputs"))},
		"an input without name":      {old: "{name: request,", new: "{", want: at(6, root(code, "inputs"))},
		"an input twice":             {old: "{name: count,", new: "{name: request,", want: at(7, root(code, "inputs"))},
		"an input of no type":        {old: "type: number", new: "type: zqx", want: at(7, root(code, "inputs"))},
		"an input of a list type":    {old: "type: number", new: "type: [number]", want: root(code, "inputs")},
		"an input with a member":     {old: "type: number", new: "type: number, zqx: 1", want: root(code, "inputs")},
		"required that is a text":    {old: "required: true", new: "required: 'true'", want: root(code, "inputs")},
		"options that are no list":   {old: "required: true", new: "options: zqx", want: root(code, "inputs")},
		"a default of another type":  {old: "defaultValue: 1", new: "defaultValue: zqx", want: at(7, root(code, "inputs"))},
		"outputs that are no list":   {old: "outputs:\n", new: "outputs: zqx\nx-outputs:\n", want: root(code, "outputs")},
		"an output without name":     {old: "{name: done,", new: "{", want: at(9, root(code, "outputs"))},
		"an output twice":            {old: "{name: text,", new: "{name: done,", want: at(10, root(code, "outputs"))},
		"an output named repeat":     {old: "{name: done,", new: "{name: repeat,", want: root(code, "outputs")},
		"an output of no type":       {old: "type: boolean", new: "type: zqx", want: root(code, "outputs")},
		"an output without type":     {old: "type: boolean, ", new: "", want: root(code, "outputs")},
		"an output without value":    {old: ", expression: context.done", new: "", want: root(code, "outputs")},
		"an output that is no CEL":   {old: "context.done", new: "zqx(", want: root(code, "outputs")},
		"an output of a variable":    {old: "context.done", new: "result.done", want: root(code, "outputs")},
		"an output with a member":    {old: "expression: context.done", new: "expression: context.done, zqx: 1", want: root(code, "outputs")},
		"an unknown member in a map": {old: "x-owner: {team: a}", new: "owner: {team: zqx}", want: root(code, "frontmatter-member")},
	})
}

func TestBundlesAreRefused(t *testing.T) {
	t.Parallel()
	const code = "BUNDLE_MALFORMED"
	bundle := "workflow:\n  components:\n    Alpha: ./alpha.md\n    Beta.Two: sub/beta.md\n"
	var many strings.Builder
	for i := range 33 {
		many.WriteString("    C" + strings.Repeat("x", i) + ": zqx.md\n")
	}
	run(t, map[string]breakage{
		"a bundle that is a list":    {old: bundle, new: "workflow: [zqx]\n", want: at(11, root(code, "not-a-mapping"))},
		"a bundle that is null":      {old: bundle, new: "workflow:\n", want: root(code, "not-a-mapping")},
		"a bundle that is empty":     {old: bundle, new: "workflow: {}\n", want: root(code, "empty")},
		"a bundle with a member":     {old: "workflow:\n", new: "workflow:\n  x-zqx: 1\n", want: root(code, "member")},
		"a bundle of something else": {old: bundle, new: "workflow: {zqx: {}}\n", want: root(code, "member")},
		"components that are a text": {old: bundle, new: "workflow: {components: zqx}\n", want: root(code, "not-a-mapping")},
		"components that are none":   {old: bundle, new: "workflow: {components: {}}\n", want: root(code, "empty")},
		"too many components":        {old: "    Alpha: ./alpha.md\n    Beta.Two: sub/beta.md\n", new: many.String(), want: root(code, "too-many")},
	})
}

func TestNamesAreRefused(t *testing.T) {
	t.Parallel()
	for code, names := range map[string][]string{
		"COMPONENT_NAME_INVALID": {
			"zqx", "Zqx.", ".Zqx", "Zqx..A", "Zqx.a", "Zqx-A", "'Zqx A'", "Zqx/A", "'_Zqx'", "1Zqx", "Äzqx", "''", "1", "true", "~", "[Zqx]",
			`"Zqx\n"`, "Zqx" + strings.Repeat("a", 61), "'*'", "2001-01-01",
		},
		"COMPONENT_NAME_STRUCTURAL": {
			"Start", "END", "Action", "HumanTask", "Human_Task", "Receive.Event", "Wait", "Component", "Repository.Open", "RepositoryOpen",
			"Git.Push", "Pull_request.Upsert", "PullRequest.Checks", "Http.Fetch", "AgentPrompt", "FragmentEvaluate", "F.I.L.E.S.Glob",
		},
		"COMPONENT_NAME_RESERVED": {
			"Composition", "COMPOSITION", "Turn", "T.U.R.N", "WorkflowRun", "Agent_Session", "SessionTemplate", "ActionType", "Tool", "StreamEvent",
			"Axiom", "Axiom.Zqx", "Repository.Zqx", "Worktree.A.B", "Files", "Agent.Zqx", "Fragment.Zqx", "GIT.Zqx", "Pull_Request.Zqx", "Issue.Zqx", "Http",
		},
		"COMPONENT_NAME_CORE": {
			"Context", "Event", "Result", "Error", "Inputs", "Outputs", "Workflow", "Repeat", "ForEach", "For_Each", "Prompt", "Session", "Reply",
			"Read", "Glob", "Write", "Delete", "Script", "Secret", "S.E.C.R.E.T",
		},
		"COMPONENT_NAME_DUPLICATE": {"Alpha", "ALPHA", "Al_pha", "Al.Pha", "BetaTwo"},
	} {
		for _, name := range names {
			t.Run("supervised 03: "+code+" "+name, func(t *testing.T) {
				t.Parallel()
				all := goodFiles()
				breakage{old: "    Alpha: ./alpha.md", new: "    " + name + ": zqx.md\n    Alpha: ./alpha.md"}.apply(t, all)
				got := refusalOf(t, all, rootPath)
				if got == nil || got.Code != code {
					t.Fatalf("got %v, want %s", got, code)
				}
				if isTold := got.Subject != rootPath; isTold == (code == "COMPONENT_NAME_INVALID") || got.Line == 0 {
					t.Errorf("the subject is %s, line %d", got.Subject, got.Line)
				}
				if code == "COMPONENT_NAME_INVALID" && strings.Contains(got.Error(), strings.Trim(name, `'"[]`)) && len(name) > 3 {
					t.Errorf("%s repeats the name", got)
				}
			})
		}
	}
}

func TestNamesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"A", "Alphas", "Starting", "Reader", "Gitea.Push", "FilesGlobber", "Deferred.Issue", "DeferredIssue", "My.Agent", "Contexts",
		"A" + strings.Repeat("b", 62), "Alpha2", "A1_.B2_",
	} {
		all := goodFiles()
		breakage{old: "    Alpha: ./alpha.md", new: "    " + name + ": alpha.md\n    Alpha: ./alpha.md"}.apply(t, all)
		if refusal := refusalOf(t, all, rootPath); refusal != nil {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

func TestPathsAreRefused(t *testing.T) {
	t.Parallel()
	for word, paths := range map[string][]string{
		"not-a-string":  {"1", "~", "[zqx.md]", "{a: zqx.md}", "true", ""},
		"empty":         {"''", "./"},
		"nul":           {`"zqx\0.md"`},
		"backslash":     {`'zqx\a.md'`, `'\zqx.md'`},
		"absolute":      {"/zqx.md", ".//zqx.md", "//zqx/a.md"},
		"url":           {"https://zqx/a.md", "file:zqx.md", "git@zqx:a.md", "'C:zqx.md'", "./zqx:a/b.md"},
		"glob":          {"'*.md'", "zqx?.md", "'[zqx].md'", "'{zqx}.md'", "'zqx].md'", "a/**/zqx.md"},
		"directory":     {"zqx/", "./zqx.md/"},
		"empty-segment": {"zqx//a.md"},
		"dot-segment":   {"../zqx.md", "zqx/../a.md", "zqx/./a.md", "././zqx.md", "'..'", "'.'", "zqx/.."},
		"package":       {"'@zqx/a.md'", "'./@zqx/a.md'", "'@zqx.md'"},
		"not-markdown":  {"zqx", "zqx.MD", "zqx.markdown", "zqx.md.txt", "'zqx.md '"},
		"too-long":      {strings.Repeat("a", 1020) + ".md"},
	} {
		for _, path := range paths {
			t.Run("supervised 03: "+word+" "+path[:min(len(path), 20)], func(t *testing.T) {
				t.Parallel()
				all := goodFiles()
				breakage{old: "./alpha.md", new: path}.apply(t, all)
				check(t, refusalOf(t, all, rootPath), at(13, of("Alpha", "COMPONENT_PATH_INVALID", word)))
			})
		}
	}
}

func TestTheFirstWordIsTold(t *testing.T) {
	t.Parallel()
	// Each path breaks this rule and all that follow, as far as one can.
	for _, tc := range []struct{ path, word string }{
		{`"\0\\/:*//../@zqx/"`, "nul"},
		{`'\:*//../@zqx/'`, "backslash"},
		{`'/:*//../@zqx/'`, "absolute"},
		{`'@a:*//../zqx/'`, "url"},
		{`'@a*//../zqx/'`, "glob"},
		{`'@a//../zqx/'`, "directory"},
		{`'@a//../zqx'`, "empty-segment"},
		{`'@a/../zqx'`, "dot-segment"},
		{`'@a/zqx'`, "package"},
	} {
		all := goodFiles()
		breakage{old: "./alpha.md", new: tc.path}.apply(t, all)
		check(t, refusalOf(t, all, rootPath), of("Alpha", "COMPONENT_PATH_INVALID", tc.word))
	}
}

func TestPathsThatAreTaken(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"alpha.md", "./alpha.md", "sub/alpha.md", "a b.md", "ä.md", ".hidden.md", "sub/a:b.md", "...md", "a@b/c.md", "%2e%2e.md"} {
		all := goodFiles()
		all["dir/"+strings.TrimPrefix(path, "./")] = goodAlpha
		breakage{old: "./alpha.md", new: `"` + path + `"`}.apply(t, all)
		if refusal := refusalOf(t, all, rootPath); refusal != nil {
			t.Errorf("%s: %v", path, refusal)
		}
	}
}

func TestComponentsAreRefused(t *testing.T) {
	t.Parallel()
	const malformed, schema = "COMPONENT_MALFORMED", "COMPONENT_SCHEMA_INVALID"
	_, rest, _ := strings.Cut(goodBeta, "~~~")
	block := "~~~" + rest
	run(t, map[string]breakage{
		"a component without head":     {path: betaPath, old: "---\nname", new: "name", want: at(1, of("Beta.Two", malformed, "frontmatter-missing"))},
		"a component with a bundle":    {path: betaPath, old: "name: Beta", new: "name: Beta\nworkflow: {components: {A: zqx.md}}", want: at(3, of("Beta.Two", malformed, "bundle"))},
		"a component with no bundle":   {path: betaPath, old: "name: Beta", new: "name: Beta\nworkflow:", want: of("Beta.Two", malformed, "bundle")},
		"a component without graph":    {path: betaPath, old: block, new: "", want: of("Beta.Two", malformed, "graph-block")},
		"a component with two graphs":  {path: betaPath, old: block, new: block + block, want: at(12, of("Beta.Two", malformed, "graph-block"))},
		"a graph of another info":      {path: betaPath, old: "~~~yaml workflow", new: "~~~yaml Workflow", want: of("Beta.Two", malformed, "graph-block")},
		"a graph of a longer info":     {path: betaPath, old: "~~~yaml workflow", new: "~~~yaml workflow zqx", want: of("Beta.Two", malformed, "graph-block")},
		"a graph in a comment":         {path: betaPath, old: block, new: "<!--\n" + block + "-->\n", want: of("Beta.Two", malformed, "graph-block")},
		"a graph in a fence":           {path: betaPath, old: block, new: "~~~~\n" + block + "~~~~\n", want: of("Beta.Two", malformed, "graph-block")},
		"a tag in a graph":             {path: betaPath, old: "name: End", new: "name: !zqx End", want: at(8, of("Beta.Two", malformed, "yaml-tag"))},
		"an anchor in a graph":         {path: betaPath, old: "name: End", new: "name: &zqx End", want: of("Beta.Two", malformed, "yaml-anchor")},
		"an alias in a graph":          {path: betaPath, old: "name: End", new: "name: *zqx", want: of("Beta.Two", malformed, "yaml-syntax")},
		"a key twice in a graph":       {path: betaPath, old: "name: End", new: "name: zqx, name: End", want: of("Beta.Two", malformed, "yaml-duplicate-key")},
		"a merge key in a graph":       {path: betaPath, old: "name: End", new: "<<: {name: zqx}", want: of("Beta.Two", malformed, "yaml-merge-key")},
		"a graph that is no YAML":      {path: betaPath, old: "name: End", new: "name: [zqx", want: of("Beta.Two", malformed, "yaml-syntax")},
		"a graph of two documents":     {path: betaPath, old: "edges:", new: "---\nedges:", want: of("Beta.Two", malformed, "yaml-one-document")},
		"an empty graph":               {path: betaPath, old: block, new: "~~~yaml workflow\n~~~\n", want: of("Beta.Two", malformed, "yaml-one-document")},
		"a component without a name":   {path: betaPath, old: "name: Beta\n", new: "", want: of("Beta.Two", malformed, "frontmatter-name")},
		"a component with a member":    {path: betaPath, old: "name: Beta", new: "name: Beta\nzqx: 1", want: of("Beta.Two", malformed, "frontmatter-member")},
		"an input of no type":          {path: betaPath, old: "type: string", new: "type: zqx", want: at(3, of("Beta.Two", schema, "inputs"))},
		"an output that is no CEL":     {path: alphaPath, old: `expression: "true"`, new: `expression: "zqx("`, want: at(4, of("Alpha", schema, "outputs"))},
		"an output with a reserved":    {path: alphaPath, old: "name: done", new: "name: repeat", want: of("Alpha", schema, "outputs")},
		"a head ahead of declarations": {path: betaPath, old: "name: Beta\ninputs: [{name: one, type: string", new: "inputs: [{name: one, type: zqx", want: of("Beta.Two", malformed, "frontmatter-name")},
	})
}

func TestGraphsAreRefused(t *testing.T) {
	t.Parallel()
	const code = "GRAPH_INVALID"
	block := goodRoot[strings.Index(goodRoot, "~~~"):strings.Index(goodRoot, "## Say")]
	run(t, map[string]breakage{
		"a root without graph":         {old: block, new: "", want: root(code, "graph-block")},
		"a root with two graphs":       {old: block, new: block + block, want: root(code, "graph-block")},
		"a tag in the root's graph":    {old: "name: Start}", new: "name: !!str zqx}", want: root(code, "yaml-tag")},
		"a graph that is a list":       {old: block, new: "~~~yaml workflow\n- zqx\n~~~\n", want: root(code, "INVALID_MEMBERS")},
		"a graph without edges":        {path: betaPath, old: "edges:\n  - {id: e1, source: start, target: end}\n", new: "", want: of("Beta.Two", code, "INVALID_MEMBERS")},
		"a graph with a member":        {old: "nodes:\n", new: "zqx: 1\nnodes:\n", want: root(code, "INVALID_MEMBERS")},
		"no end":                       {path: betaPath, old: "type: end", new: "type: wait, config: {duration: PT1S}", want: of("Beta.Two", code, "NO_END_NODE NO_OUTGOING_EDGES")},
		"an edge to nowhere":           {old: "source: say, target: alpha", new: "source: say, target: zqx", want: at(50, root(code, "INVALID_EDGE_TARGET"))},
		"a condition that is no CEL":   {old: "source: say, target: alpha", new: "source: say, target: alpha, condition: 'zqx('", want: at(50, root(code, "INVALID_CONDITION"))},
		"an input that is no CEL":      {old: "agent: \"'planner'\"", new: "agent: 'zqx('", want: at(21, root(code, "INVALID_INPUT_EXPRESSION"))},
		"a node id with a dot":         {path: betaPath, old: "{id: end, type: end, name: End}\nedges:\n  - {id: e1, source: start, target: end}", new: "{id: zqx.a, type: end, name: End}\nedges:\n  - {id: e1, source: start, target: zqx.a}", want: at(8, of("Beta.Two", code, "INVALID_NODE_ID"))},
		"a node id with a number":      {path: betaPath, old: "{id: end, type: end, name: End}\nedges:\n  - {id: e1, source: start, target: end}", new: "{id: 1zqx, type: end, name: End}\nedges:\n  - {id: e1, source: start, target: 1zqx}", want: of("Beta.Two", code, "INVALID_NODE_ID")},
		"a start with inputs":          {old: "type: start, name: Start", new: "type: start, name: Start, config: {inputs: [{name: zqx}]}", want: at(20, root(code, "START_DECLARES_INPUTS"))},
		"an edge id without end":       {old: "id: e1,", new: "id: " + strings.Repeat("zqx", 400) + ",", want: root(code, "INVALID_EDGE_ID")},
		"a task without schema":        {old: "      responseSchema: {type: object, properties: {ok: {type: boolean}}}\n", new: "", want: at(39, root(code, "MISSING_RESPONSE_SCHEMA"))},
		"a task with a timeout":        {old: "      title: context.request", new: "      timeout: P1D\n      title: context.request", want: at(39, root(code, "TASK_HAS_TIMEOUT"))},
		"a task with a bad schema":     {old: "{ok: {type: boolean}}", new: "{ok: {type: zqx}}", want: at(39, root(code, "INVALID_RESPONSE_SCHEMA"))},
		"a schema that refers out":     {old: "{ok: {type: boolean}}", new: "{ok: {$ref: 'https://zqx/'}}", want: root(code, "INVALID_RESPONSE_SCHEMA")},
		"a section that is missing":    {old: `prompt: "#say"`, new: `prompt: "#zqx"`, want: at(21, root(code, "INVALID_SECTION_REFERENCE"))},
		"a section that stands twice":  {old: `prompt: "#say"`, new: `prompt: "#twice"`, want: root(code, "INVALID_SECTION_REFERENCE")},
		"a prompt that is no section":  {old: `prompt: "#say"`, new: `prompt: Say zqx`, want: root(code, "INVALID_SECTION_REFERENCE")},
		"a description without target": {old: `description: "#say"`, new: `description: "#zqx"`, want: at(39, root(code, "INVALID_SECTION_REFERENCE"))},
		"a description misspelt":       {old: `description: "#say"`, new: `description: "#Zqx"`, want: at(39, root(code, "INVALID_SECTION_REFERENCE"))},
		"a body misspelt":              {path: alphaPath, old: "actionType: files.read,", new: "actionType: files.read, body: '#zqx.a',", want: at(10, of("Alpha", code, "INVALID_SECTION_REFERENCE"))},
		"a task input without target":  {old: `Shown: "#say"`, new: `Shown: "#zqx"`, want: root(code, "INVALID_SECTION_REFERENCE")},
		"a call input without target":  {old: `inputs: {text: "#say"`, new: `inputs: {text: "#zqx"`, want: at(30, root(code, "INVALID_SECTION_REFERENCE"))},
		"an output without target":     {old: `expression: "#say"`, new: `expression: "#zqx"`, want: at(9, root(code, "INVALID_SECTION_REFERENCE"))},
		"a placeholder that is no CEL": {old: `prompt: "#say"`, new: `prompt: "#broken"`, want: at(63, root(code, "INVALID_PLACEHOLDER"))},
		"a placeholder without end":    {old: `prompt: "#say"`, new: `prompt: "#open"`, want: at(66, root(code, "INVALID_PLACEHOLDER"))},
		"a placeholder that is blank":  {old: "Say ${{ context.request }}.", new: "Say ${{ }}.", want: at(57, root(code, "INVALID_PLACEHOLDER"))},
		"a placeholder of inputs":      {old: "Say ${{ context.request }}.", new: "Say ${{ inputs.zqx }}.", want: root(code, "INVALID_PLACEHOLDER")},
		"a call with a member":         {old: "component: Alpha\n", new: "component: Alpha\n      retry: {}\n", want: at(30, root(code, "INVALID_CALL_MEMBER"))},
		"a repeat without end":         {old: "{max: 3, until: result.done}", new: "{max: 3}", want: at(30, root(code, "INVALID_REPEAT"))},
		"a repeat without limit":       {old: "{max: 3, until: result.done}", new: "{until: result.done}", want: root(code, "INVALID_REPEAT")},
		"a repeat of none":             {old: "{max: 3,", new: "{max: 0,", want: root(code, "INVALID_REPEAT")},
		"a repeat of too many":         {old: "{max: 3,", new: "{max: 101,", want: root(code, "INVALID_REPEAT")},
		"a repeat of a text":           {old: "{max: 3,", new: "{max: '3',", want: root(code, "INVALID_REPEAT")},
		"a repeat with a member":       {old: "{max: 3,", new: "{max: 3, zqx: 1,", want: root(code, "INVALID_REPEAT")},
		"a repeat that is a text":      {old: "{max: 3, until: result.done}", new: "zqx", want: root(code, "INVALID_REPEAT")},
		"a repeat until a number":      {old: "until: result.done", new: "until: '1 + 1'", want: root(code, "INVALID_REPEAT")},
		"items that are no CEL":        {old: "items: context.reply.items", new: "items: 'zqx('", want: at(38, root(code, "INVALID_FOR_EACH"))},
		"items that are a list":        {old: "items: context.reply.items", new: "items: [zqx]", want: root(code, "INVALID_FOR_EACH")},
		"an item named context":        {old: "as: one", new: "as: context", want: root(code, "INVALID_FOR_EACH")},
		"an item named index":          {old: "as: one", new: "as: index", want: root(code, "INVALID_FOR_EACH")},
		"an item named with a dash":    {old: "as: one", new: "as: zqx-a", want: root(code, "INVALID_FOR_EACH")},
		"too many items":               {old: "max: 2", new: "max: 1000", want: root(code, "INVALID_FOR_EACH")},
		"items with a member":          {old: "max: 2", new: "max: 2, zqx: 1", want: root(code, "INVALID_FOR_EACH")},
		"an input of another item":     {old: "inputs: {one: one.key}", new: "inputs: {one: zqx.key}", want: root(code, "INVALID_INPUT_EXPRESSION")},
		"an item without forEach":      {path: alphaPath, old: `one: "'1'"`, new: `one: index`, want: of("Alpha", code, "INVALID_INPUT_EXPRESSION")},
		"a call output over context":   {old: "outputs: {done: result.done}", new: "outputs: {done: context.zqx}", want: root(code, "INVALID_OUTPUT_EXPRESSION")},
		"a call output that is a bool": {old: "outputs: {done: result.done}", new: "outputs: {done: true}", want: root(code, "INVALID_OUTPUT_EXPRESSION")},
	})
}

func TestActionsAreRefused(t *testing.T) {
	t.Parallel()
	const code = "ACTION_CONTRACT"
	const call = "actionType: agent.prompt\n"
	read := "{actionType: files.read, inputs: {worktree: \"'w'\", paths: [a]}, outputs: [{name: files, contextKey: read}]}"
	alpha := func(config, rule string) breakage {
		return breakage{path: alphaPath, old: read, new: config, want: at(10, of("Alpha", code, rule))}
	}
	run(t, map[string]breakage{
		"an action of a composition":  {path: alphaPath, old: "files.read", new: "zqx", want: at(10, of("Alpha", code, "action-type"))},
		"an action of nobody":         {path: alphaPath, old: "files.read", new: "files.zqx", want: of("Alpha", code, "action-type")},
		"an unknown input":            {path: alphaPath, old: "paths: [a]", new: "paths: [a], zqx: 1", want: of("Alpha", code, "input")},
		"a missing input":             {path: alphaPath, old: ", paths: [a]", new: "", want: of("Alpha", code, "missing-input paths")},
		"an input that is null":       {path: alphaPath, old: "paths: [a]", new: "paths: null", want: of("Alpha", code, "missing-input paths")},
		"an unknown output":           {path: alphaPath, old: "{name: files,", new: "{name: zqx,", want: of("Alpha", code, "output")},
		"an unknown member":           {path: alphaPath, old: "outputs: [{name: files", new: "zqx: 1, outputs: [{name: files", want: of("Alpha", code, "config-member")},
		"an extension":                {path: alphaPath, old: "outputs: [{name: files", new: "x-zqx: 1, outputs: [{name: files", want: of("Alpha", code, "config-member")},
		"a retry":                     {path: alphaPath, old: "outputs: [{name: files", new: "retry: {}, outputs: [{name: files", want: of("Alpha", code, "config-member")},
		"credentials nobody wants":    {path: alphaPath, old: "outputs: [{name: files", new: "credentials: zqx, outputs: [{name: files", want: of("Alpha", code, "config-member")},
		"no prompt":                   {old: "      prompt: \"#say\"\n", new: "", want: at(21, root(code, "prompt"))},
		"a prompt that is a list":     {old: `prompt: "#say"`, new: "prompt: [zqx]", want: root(code, "prompt")},
		"a timeout of more than days": {old: "timeout: PT1H", new: "timeout: PT24H0.1S", want: root(code, "timeout")},
		"a reply that is a text":      {old: "reply: {schema: {type: object}, repairs: 1}", new: "reply: zqx", want: root(code, "reply")},
		"a reply with a member":       {old: "repairs: 1", new: "repairs: 1, zqx: 1", want: root(code, "reply")},
		"too many repairs":            {old: "repairs: 1", new: "repairs: 6", want: root(code, "reply")},
		"less than no repairs":        {old: "repairs: 1", new: "repairs: -1", want: root(code, "reply")},
		"half a repair":               {old: "repairs: 1", new: "repairs: 0.5", want: root(code, "reply")},
		"a schema of no type":         {old: "{schema: {type: object}", new: "{schema: {type: zqx}", want: root(code, "reply-schema")},
		"a schema that refers out":    {old: "{schema: {type: object}", new: "{schema: {$ref: 'file:///zqx'}", want: root(code, "reply-schema")},
		"a schema of another dialect": {old: "{schema: {type: object}", new: "{schema: {$schema: 'http://json-schema.org/draft-07/schema#'}", want: root(code, "reply-schema")},
		"a body of a prompt":          {old: call, new: call + "      body: zqx\n", want: root(code, "config-member")},
		"nothing is allowed":          alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, allow: []}", "allow"),
		"something twice is allowed":  alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, allow: [read, read]}", "allow"),
		"something else is allowed":   alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, allow: [zqx]}", "allow"),
		"a text is allowed":           alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, allow: read}", "allow"),
		"paths that are a list":       alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, paths: [zqx]}", "paths"),
		"paths of another kind":       alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, paths: {zqx: []}}", "paths"),
		"a path that is a number":     alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, paths: {include: [1]}}", "paths"),
		"a path to include is none":   alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, paths: {include: ['zqx[']}}", "paths"),
		"a path to exclude is none":   alpha("{actionType: fragment.evaluate, inputs: {worktree: \"'w'\", fragment: {}}, paths: {exclude: [ok, '']}}", "paths"),
		"a method that changes":       alpha("{actionType: http.fetch, inputs: {url: \"'u'\"}, method: POST}", "method"),
		"a success that is a text":    alpha("{actionType: http.fetch, inputs: {url: \"'u'\"}, require2xx: 'zqx'}", "require2xx"),
		"credentials without name":    alpha("{actionType: http.fetch, inputs: {url: \"'u'\"}, credentials: ''}", "credentials"),
		"credentials that are a list": alpha("{actionType: http.fetch, inputs: {url: \"'u'\"}, credentials: [zqx]}", "credentials"),
		"an issue without body":       alpha("{actionType: issue.upsert, inputs: {tracker: \"'u'\", key: \"'k'\", title: \"'t'\"}}", "body"),
	})
}

func TestCallsAreRefused(t *testing.T) {
	t.Parallel()
	run(t, map[string]breakage{
		"a call of nobody":       {path: alphaPath, old: "component: Beta.Two", new: "component: Zqx", want: at(9, of("Alpha", "COMPONENT_UNDECLARED", ""))},
		"a call by path":         {old: "component: Alpha", new: "component: alpha.md", want: at(30, root("COMPONENT_UNDECLARED", ""))},
		"a call by a plain form": {old: "component: Alpha", new: "component: ALPHA", want: root("COMPONENT_UNDECLARED", "")},
		"a call of the root":     {path: alphaPath, old: "component: Beta.Two", new: "component: Root", want: of("Alpha", "COMPONENT_UNDECLARED", "")},
		"a call of itself":       {path: alphaPath, old: "component: Beta.Two, inputs: {one: \"'1'\"}", new: "component: Alpha, inputs: {text: \"'1'\"}", want: of("Alpha", "COMPONENT_CYCLE", "")},
		"an undeclared input":    {path: alphaPath, old: `one: "'1'"`, new: `one: "'1'", zqx: 1`, want: at(9, of("Alpha", "COMPONENT_INCOMPATIBLE", "undeclared-input"))},
		"a missing input":        {path: alphaPath, old: `inputs: {one: "'1'"}`, new: `inputs: {}`, want: of("Alpha", "COMPONENT_INCOMPATIBLE", "missing-input")},
		"an input that is null":  {path: alphaPath, old: `one: "'1'"`, new: `one: null`, want: of("Alpha", "COMPONENT_INCOMPATIBLE", "missing-input")},
		"no inputs at all":       {path: alphaPath, old: `, inputs: {one: "'1'"}`, new: ``, want: of("Alpha", "COMPONENT_INCOMPATIBLE", "missing-input")},
		"two loops":              {old: "repeat: {max: 3,", new: "forEach: {items: context.reply, as: x, max: 1}\n      repeat: {max: 3,", want: at(30, root("COMPONENT_INCOMPATIBLE", "repeat-and-for-each"))},
	})
}
