package cli_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

var update = flag.Bool("update", false, "write the golden files")

// A call is one call of the program.
type call struct {
	program        string
	stdin          string
	stdout, stderr bytes.Buffer
	code           int
}

func (c *call) run(t testing.TB, args ...string) *call {
	t.Helper()
	c.code = cli.Run(t.Context(), command.Environment{
		Program: cmp.Or(c.program, "/usr/local/bin/axiom"),
		Stdin:   strings.NewReader(c.stdin),
		Stdout:  &c.stdout,
		Stderr:  &c.stderr,
		Getenv:  func(string) string { return "" },
		Version: command.Version{Version: "v1.2.3", Revision: "4be1d0c", Go: "go1.26"},
	}, args)
	return c
}

func run(t testing.TB, args ...string) *call {
	t.Helper()
	return new(call).run(t, args...)
}

// value is what the call printed as JSON.
func (c *call) value(t testing.TB) map[string]any {
	t.Helper()
	v, err := jsonvalue.Decode(c.stdout.Bytes())
	if err != nil {
		t.Fatalf("%v: %s%s", err, c.stdout.String(), c.stderr.String())
	}
	object, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("no object: %s", c.stdout.String())
	}
	return object
}

const sample = "../../config/samples/release/"

// Each case is told by a file in testdata/golden: arguments, exit code, and both
// outputs. All files but the sample are in testdata.
var golden = map[string]struct {
	args  []string
	stdin string
}{
	"validate-valid":             {args: []string{"workflow", "validate", "-f", sample + "workflow.yaml"}},
	"validate-valid-json":        {args: []string{"workflow", "validate", "-f", sample + "workflow.yaml", "-o", "json"}},
	"validate-invalid":           {args: []string{"workflow", "validate", "-f", "invalid.yaml"}},
	"validate-invalid-json":      {args: []string{"workflow", "validate", "-f", "invalid.yaml", "-o", "json"}},
	"validate-misshapen":         {args: []string{"workflow", "validate", "-f", "misshapen.yaml"}},
	"validate-composition":       {args: []string{"workflow", "validate", "-f", "composition.yaml"}},
	"validate-stdin":             {args: []string{"workflow", "validate", "--filename", "-"}, stdin: `["no", "workflow"]`},
	"validate-twice":             {args: []string{"workflow", "validate", "-f", "twice.yaml"}},
	"validate-other-kind":        {args: []string{"workflow", "validate", "-f", "task.yaml"}},
	"revision":                   {args: []string{"workflow", "revision", "-f", "composition.yaml"}},
	"revision-json":              {args: []string{"workflow", "revision", "-f", "composition.yaml", "-o", "json"}},
	"revision-warning":           {args: []string{"workflow", "revision", "-f", "-"}, stdin: "{id: d, name: d, x-more: {y: 1, z: no}}"},
	"revision-no-object":         {args: []string{"workflow", "revision", "-f", "-"}, stdin: "[]"},
	"apply":                      {args: []string{"workflow", "apply", "-f", sample + "workflow.yaml", "--changeset", sample + "second-look.yaml"}},
	"apply-json":                 {args: []string{"workflow", "apply", "-f", "composition.yaml", "--changeset", "-", "--unchecked", "-o", "json"}, stdin: `{"ops": [{"op": "removeNode", "id": "rest"}]}`},
	"apply-problems":             {args: []string{"workflow", "apply", "-f", "composition.yaml", "--changeset", "-", "--unchecked"}, stdin: `{"ops": [{"op": "removeNode", "id": "rest"}]}`},
	"apply-stale":                {args: []string{"workflow", "apply", "-f", sample + "workflow.yaml", "--changeset", "stale.yaml"}},
	"apply-stale-json":           {args: []string{"workflow", "apply", "-f", sample + "workflow.yaml", "--changeset", "stale.yaml", "-o", "json"}},
	"apply-refused-json":         {args: []string{"workflow", "apply", "-f", sample + "workflow.yaml", "--changeset", "refused-ops.yaml", "--unchecked", "-o", "json"}},
	"diff":                       {args: []string{"workflow", "diff", "composition.yaml", "after.yaml"}},
	"diff-json":                  {args: []string{"workflow", "diff", "composition.yaml", "after.yaml", "-o", "json"}},
	"diff-same":                  {args: []string{"workflow", "diff", "composition.yaml", "composition.yaml", "--exit-code"}},
	"diff-same-json":             {args: []string{"workflow", "diff", "composition.yaml", "composition.yaml", "-o", "json"}},
	"diff-exit-code":             {args: []string{"workflow", "diff", "composition.yaml", "-", "--exit-code"}, stdin: `{"id": "tiny", "name": "Tiny", "nodes": [{"id": "finish"}, {"id": "begin", "type": "start"}]}`},
	"inverse":                    {args: []string{"workflow", "inverse", "-f", sample + "workflow.yaml", "--changeset", sample + "second-look.yaml"}},
	"inverse-json":               {args: []string{"workflow", "inverse", "-f", sample + "workflow.yaml", "--changeset", sample + "second-look.yaml", "-o", "json"}},
	"inverse-refused-json":       {args: []string{"workflow", "inverse", "-f", sample + "workflow.yaml", "--changeset", "refused-ops.yaml", "-o", "json"}},
	"undo":                       {args: []string{"workflow", "undo", "--before", "composition.yaml", "--after", "after.yaml", "-f", "after.yaml"}},
	"undo-json":                  {args: []string{"workflow", "undo", "--before", "composition.yaml", "--after", "after.yaml", "-f", "after.yaml", "-o", "json"}},
	"undo-conflict":              {args: []string{"workflow", "undo", "--before", "composition.yaml", "--after", "after.yaml", "-f", sample + "workflow.yaml"}},
	"undo-conflict-json":         {args: []string{"workflow", "undo", "--before", "composition.yaml", "--after", "after.yaml", "-f", sample + "workflow.yaml", "-o", "json"}},
	"undo-incomparable-json":     {args: []string{"workflow", "undo", "--before", "composition.yaml", "--after", "after.yaml", "-f", "-", "-o", "json"}, stdin: "[]"},
	"graph":                      {args: []string{"workflow", "graph", "-f", "composition.yaml"}},
	"graph-text":                 {args: []string{"workflow", "graph", "-f", "composition.yaml", "-o", "text"}},
	"graph-dot":                  {args: []string{"workflow", "graph", "-f", "composition.yaml", "-o", "dot"}},
	"graph-svg":                  {args: []string{"workflow", "graph", "-f", "composition.yaml", "-o", "svg"}},
	"graph-json":                 {args: []string{"workflow", "graph", "-f", "composition.yaml", "-o", "json"}},
	"graph-changeset-text":       {args: []string{"workflow", "graph", "-f", sample + "workflow.yaml", "--changeset", sample + "second-look.yaml", "-o", "text"}},
	"graph-changeset-json":       {args: []string{"workflow", "graph", "-f", "composition.yaml", "--changeset", "-", "--unchecked", "-o", "json"}, stdin: `{"ops": [{"op": "removeNode", "id": "rest"}]}`},
	"graph-stale":                {args: []string{"workflow", "graph", "-f", sample + "workflow.yaml", "--changeset", "stale.yaml"}},
	"graph-stale-json":           {args: []string{"workflow", "graph", "-f", sample + "workflow.yaml", "--changeset", "stale.yaml", "-o", "json"}},
	"simulate":                   {args: []string{"workflow", "simulate", "-f", sample + "workflow.yaml", "--script", sample + "night.yaml"}},
	"simulate-json":              {args: []string{"workflow", "simulate", "-f", sample + "workflow.yaml", "--script", sample + "night.yaml", "-o", "json"}},
	"simulate-refusals":          {args: []string{"workflow", "simulate", "-f", sample + "workflow.yaml", "--script", "refusals.yaml"}},
	"simulate-refusals-json":     {args: []string{"workflow", "simulate", "-f", sample + "workflow.yaml", "--script", "refusals.yaml", "-o", "json"}},
	"simulate-failing":           {args: []string{"workflow", "simulate", "-f", sample + "workflow.yaml", "--script", "failing.yaml"}},
	"simulate-invalid":           {args: []string{"workflow", "simulate", "-f", "invalid.yaml", "--script", "failing.yaml"}},
	"simulate-waiting":           {args: []string{"workflow", "simulate", "-f", "composition.yaml", "--script", "-"}, stdin: "- start:"},
	"simulate-nothing":           {args: []string{"workflow", "simulate", "-f", "composition.yaml", "--script", "-"}, stdin: "[]"},
	"simulate-nothing-json":      {args: []string{"workflow", "simulate", "-f", "composition.yaml", "--script", "-", "-o", "json"}, stdin: "[]"},
	"simulate-unreadable-script": {args: []string{"workflow", "simulate", "-f", "composition.yaml", "--script", "-"}, stdin: "- start:\n- later: {}"},
	"eval":                       {args: []string{"expression", "eval", "--scope", "edge-condition", "--expression", "context.score >= 7", "--context", "context.yaml"}},
	"eval-json":                  {args: []string{"expression", "eval", "--scope", "action-input", "--expression", "context.big", "--context", "context.yaml", "-o", "json"}},
	"eval-event-json":            {args: []string{"expression", "eval", "--scope", "receive-event-match", "--expression", "event.ref == context.ref", "--context", "context.yaml", "--event", "event.json", "-o", "json"}},
	"eval-error":                 {args: []string{"expression", "eval", "--scope", "action-input", "--expression", "context.gone"}},
	"eval-error-json":            {args: []string{"expression", "eval", "--scope", "action-input", "--expression", "context.", "-o", "json"}},
	"eval-no-scope":              {args: []string{"expression", "eval", "--scope", "anywhere", "--expression", "1"}},
	"check":                      {args: []string{"form", "check", "--schema", "form.yaml", "--answer", "answer.json"}},
	"check-json":                 {args: []string{"form", "check", "--schema", "form.yaml", "--answer", "answer.json", "-o", "json"}},
	"check-refused":              {args: []string{"form", "check", "--schema", "form.yaml", "--answer", "refused.json"}},
	"check-refused-json":         {args: []string{"form", "check", "--schema", "form.yaml", "--answer", "refused.json", "-o", "json"}},
	"check-schema-json":          {args: []string{"form", "check", "--schema", "task.yaml", "--answer", "total.json", "-o", "json"}},
	"check-other-value-json":     {args: []string{"form", "check", "--schema", "-", "--answer", "total.json", "-o", "json"}, stdin: "responseSchema: {required: [total]}"},
	"version":                    {args: []string{"version"}},
	"version-json":               {args: []string{"version", "-o", "json"}},
	"help":                       {args: []string{"--help"}},
	"help-workflow":              {args: []string{"workflow"}},
	"help-validate":              {args: []string{"workflow", "validate", "--help"}},
	"help-simulate":              {args: []string{"workflow", "simulate", "--help"}},
	"help-eval":                  {args: []string{"expression", "eval", "--help"}},
}

func TestGolden(t *testing.T) {
	t.Chdir("testdata")
	for name, tc := range golden {
		t.Run(name, func(t *testing.T) {
			c := (&call{stdin: tc.stdin}).run(t, tc.args...)
			got := fmt.Sprintf("$ axiom %s\nexit code %d\n-- stdout --\n%s-- stderr --\n%s",
				strings.Join(tc.args, " "), c.code, c.stdout.String(), c.stderr.String())
			path := filepath.Join("golden", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// No golden file is left of a case that went.
func TestGoldenFilesHaveCases(t *testing.T) {
	entries, err := os.ReadDir("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if _, ok := golden[strings.TrimSuffix(entry.Name(), ".txt")]; !ok {
			t.Errorf("%s has no case", entry.Name())
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Chdir("testdata")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":        {[]string{"deploy"}, `unknown command "deploy" for "axiom"`},
		"an unknown subcommand":     {[]string{"workflow", "deploy"}, `unknown command "deploy" for "axiom workflow"`},
		"an unknown flag":           {[]string{"workflow", "validate", "--strict"}, "unknown flag: --strict"},
		"an argument too much":      {[]string{"workflow", "validate", "-f", "after.yaml", "more"}, `unknown command "more"`},
		"a flag that is missing":    {[]string{"workflow", "apply", "-f", "after.yaml"}, `required flag(s) "changeset" not set`},
		"an unknown format":         {[]string{"workflow", "validate", "-f", "after.yaml", "-o", "svg"}, "there is no such output, only text, json"},
		"a format without a value":  {[]string{"workflow", "validate", "-f", "after.yaml", "-o"}, "flag needs an argument"},
		"a file that is missing":    {[]string{"workflow", "validate", "-f", "gone.yaml"}, "no such file"},
		"no file name":              {[]string{"workflow", "validate", "-f", ""}, "the name of a file is empty"},
		"a directory":               {[]string{"workflow", "validate", "-f", "."}, "is a directory"},
		"standard input twice":      {[]string{"workflow", "diff", "-", "-"}, "standard input can be read for one file only"},
		"one document to tell from": {[]string{"workflow", "diff", "after.yaml"}, "accepts 2 arg(s), received 1"},
		"a diff with a list":        {[]string{"workflow", "diff", "after.yaml", "failing.yaml"}, "failing.yaml:1:1: an object is expected, this is a list"},
		"a graph of a list":         {[]string{"workflow", "graph", "-f", "failing.yaml"}, "an object is expected"},
		"a simulation of a list":    {[]string{"workflow", "simulate", "-f", "failing.yaml", "--script", "failing.yaml"}, "an object is expected"},
		"a missing script":          {[]string{"workflow", "simulate", "-f", "after.yaml", "--script", "gone"}, "no such file"},
		"a missing change set":      {[]string{"workflow", "graph", "-f", "after.yaml", "--changeset", "gone"}, "no such file"},
		"a missing live document":   {[]string{"workflow", "undo", "--before", "after.yaml", "--after", "after.yaml", "-f", "gone"}, "no such file"},
		"a context that is a list":  {[]string{"expression", "eval", "--scope", "action-input", "--expression", "1", "--context", "failing.yaml"}, "an object is expected"},
		"an event that is a list":   {[]string{"expression", "eval", "--scope", "action-input", "--expression", "1", "--event", "failing.yaml"}, "an object is expected"},
		"a form that is a list":     {[]string{"form", "check", "--schema", "failing.yaml", "--answer", "answer.json"}, "an object is expected"},
		"a missing answer":          {[]string{"form", "check", "--schema", "form.yaml", "--answer", "gone"}, "no such file"},
		"a workflow as a form":      {[]string{"form", "check", "--schema", "after.yaml", "--answer", "answer.json"}, `after.yaml:3:14: a human task has no "description", only assignees, expiresAfter, fingerprint, form`},
	} {
		t.Run(name, func(t *testing.T) {
			c := (&call{stdin: "{id: w, name: W}"}).run(t, tc.args...)
			if c.code != command.ExitUsage || c.stdout.Len() > 0 {
				t.Errorf("exit code %d, standard output %q", c.code, c.stdout.String())
			}
			if got := c.stderr.String(); !strings.HasPrefix(got, "axiom: ") || !strings.Contains(got, tc.want) {
				t.Errorf("standard error %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestForms(t *testing.T) {
	t.Chdir("testdata")
	for schema, want := range map[string]string{
		"form: 7":                               "<stdin>:1:7: form must be an object, this is a number",
		"form: {fields: 7}":                     "<stdin>:1:16: fields must be a list, this is a number",
		"form: {fields: [{name: a}, {name: }]}": "<stdin>:1:28: a field must have a name",
		"form: {fields: [x]}":                   "<stdin>:1:17: a field must be an object, this is text",
		"form: {felds: []}":                     `<stdin>:1:15: a form has no "felds", only fields`,
		"form: {fields: [{name: a, type: 7}]}":  "<stdin>:1:33: type must be text, this is a number",
		"form: {fields: [{name: a}, {name: b, required: 'true'}]}":         "<stdin>:1:48: required must be a boolean, this is text",
		"form: {fields: [{name: a, requird: true}]}":                       `<stdin>:1:36: a field has no "requird", only defaultValue, description, label, name, options, required, type, widget`,
		"form: {fields: [{name: a, options: now}]}":                        "<stdin>:1:36: options must be a list, this is text",
		"form: {fields: [{name: a, options: [{value: now}, {value: 7}]}]}": "<stdin>:1:59: value must be text, this is a number",
		"form: {fields: [{name: a, options: [now]}]}":                      "<stdin>:1:37: an option must be an object, this is text",
		"form: {fields: []}\nresponseSchema: {}":                           "<stdin>:2:17: form and responseSchema exclude each other",
		"kind: HumanTask":                                                  "<stdin>:1:1: the HumanTask has no spec",
		"kind: HumanTask\nspec: []":                                        "<stdin>:2:7: a human task must be an object, this is a list",
	} {
		c := (&call{stdin: schema}).run(t, "form", "check", "--schema", "-", "--answer", "answer.json")
		if got := c.stderr.String(); c.code != command.ExitUsage || got != "axiom: "+want+"\n" {
			t.Errorf("%s: exit code %d, %q, want %q", schema, c.code, got, want)
		}
	}
	for _, schema := range []string{"{}", "form: {}", "form: {fields: []}", "form: {fields: [{name: a, type: , options: , defaultValue: 7}]}", "kind: HumanTask\nspec: {runRef: {name: a}}"} {
		if c := (&call{stdin: schema}).run(t, "form", "check", "--schema", "-", "--answer", "answer.json"); c.code != command.ExitOK {
			t.Errorf("%s: exit code %d, %s", schema, c.code, c.stderr.String())
		}
	}
}

// What kubectl prints of a task is taken as it is.
func TestFormCheckKnowsEveryMemberOfATask(t *testing.T) {
	t.Chdir("testdata")
	for field := range reflect.TypeFor[api.HumanTaskSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		c := (&call{stdin: "kind: HumanTask\nspec: {" + name + ": null}"}).run(t, "form", "check", "--schema", "-", "--answer", "answer.json")
		if c.code != command.ExitOK {
			t.Errorf("%s: exit code %d, %s", name, c.code, c.stderr.String())
		}
	}
}

// Of words that kubectl reads otherwise only those files warn that it may read.
func TestOnlyManifestsWarn(t *testing.T) {
	words := write(t, "words.yaml", "{y: 1}")
	flow := write(t, "flow.yaml", "{id: w, x-y: {y: 1}}")
	task := write(t, "task.yaml", "{form: {fields: [{name: y}]}}")
	for name, tc := range map[string]struct {
		args  []string
		warns bool
	}{
		"a workflow":   {[]string{"workflow", "revision", "-f", flow}, true},
		"a form":       {[]string{"form", "check", "--schema", task, "--answer", "-"}, true},
		"a context":    {[]string{"expression", "eval", "--scope", "action-input", "--expression", "1", "--context", words}, false},
		"an answer":    {[]string{"form", "check", "--schema", "-", "--answer", words}, false},
		"a change set": {[]string{"workflow", "apply", "-f", "-", "--changeset", words}, false},
	} {
		c := (&call{stdin: "{}"}).run(t, tc.args...)
		if got := strings.Contains(c.stderr.String(), "a boolean for kubectl"); got != tc.warns {
			t.Errorf("%s: standard error %q", name, c.stderr.String())
		}
	}
}

// What admission would not let in because of its size is refused here too.
func TestLargeAnswers(t *testing.T) {
	for length, want := range map[int]int{form.MaxAnswerBytes - len(`{"x":""}`): command.ExitOK, form.MaxAnswerBytes: command.ExitVerdict} {
		answer := write(t, "answer.json", `{"x": "`+strings.Repeat("x", length)+`"}`)
		c := (&call{stdin: "{}"}).run(t, "form", "check", "--schema", "-", "--answer", answer)
		if c.code != want || want == command.ExitVerdict && c.stdout.String() != "refused, 1 problem\n  answer: size\n" {
			t.Errorf("text of %d: exit code %d, %.200s%s", length, c.code, c.stdout.String(), c.stderr.String())
		}
	}
}

func TestManifestsWithoutAWorkflow(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Composition":                           "<stdin>:1:1: the Composition has no workflow",
		"kind: Composition\nspec: {goal: x}":          "<stdin>:2:7: the Composition has no workflow",
		"kind: Composition\nspec: {workflow: }":       "<stdin>:2:7: the Composition has no workflow",
		"apiVersion: v1\nkind: \"Con\\efig\"":         "<stdin>:2:7: this is a Con�fig; a workflow or a Composition is expected",
		"kind: Composition\nspec: {workflow: [x]}":    "<stdin>:2:18: an object is expected, this is a list",
		"kind: [Composition]\nspec: {workflow: {a: }": "<stdin>:2: did not find expected ',' or '}'",
	} {
		c := (&call{stdin: text}).run(t, "workflow", "revision", "-f", "-")
		if got := c.stderr.String(); c.code != command.ExitUsage || got != "axiom: "+want+"\n" {
			t.Errorf("%s: exit code %d, %q, want %q", text, c.code, got, want)
		}
	}
}

func TestPluginOfKubectl(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/kubectl-axiom": "kubectl axiom workflow [command]",
		"kubectl-axiom.exe":            "kubectl axiom workflow [command]",
		"axiom":                        "  axiom workflow [command]",
	} {
		c := (&call{program: program}).run(t, "workflow", "--help")
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("%s: %q is not in %s", program, want, c.stdout.String())
		}
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, words := range [][]string{
		{"workflow", "validate"},
		{"workflow", "revision"},
		{"workflow", "apply"},
		{"workflow", "diff"},
		{"workflow", "inverse"},
		{"workflow", "undo"},
		{"workflow", "graph"},
		{"workflow", "simulate"},
		{"expression", "eval"},
		{"form", "check"},
		{"version"},
	} {
		c := run(t, append(words, "--help")...)
		for _, want := range []string{"Usage:\n  axiom " + strings.Join(words, " "), "Examples:\n", "-o, --output FORMAT"} {
			if c.code != command.ExitOK || !strings.Contains(c.stdout.String(), want) {
				t.Errorf("%v: exit code %d, %q is not in\n%s", words, c.code, want, c.stdout.String())
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	for want, args := range map[string][]string{
		"edge-condition\n": {"expression", "eval", "--scope", ""},
		"svg\n":            {"workflow", "graph", "-o", ""},
		"json\n":           {"version", "-o", ""},
	} {
		if c := run(t, append([]string{"__complete"}, args...)...); !strings.Contains(c.stdout.String(), want) {
			t.Errorf("%v does not complete to %q: %s", args, want, c.stdout.String())
		}
	}
	if c := run(t, "completion", "bash"); c.code != command.ExitOK || !strings.Contains(c.stdout.String(), "__start_axiom") {
		t.Errorf("there is no script for bash: exit code %d", c.code)
	}
}

// A document of 5 MiB and one nested 10,000 deep are answered like any other.
func TestHugeDocuments(t *testing.T) {
	node := `{"id": "n", "type": "end", "name": "N"},`
	for name, tc := range map[string]struct {
		text, want string
		code       int
	}{
		"many nodes":    {`{"id": "w", "name": "W", "nodes": [` + strings.Repeat(node, 5<<20/len(node)) + "{}]}", "WORKFLOW_TOO_LARGE", command.ExitVerdict},
		"a long text":   {`{"id": "w", "name": "` + strings.Repeat("x", 5<<20) + `"}`, "WORKFLOW_TOO_LARGE", command.ExitVerdict},
		"deep nesting":  {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "nest deeper than 1000", command.ExitUsage},
		"deep in x":     {`{"x": ` + strings.Repeat(`{"x":`, 10_000) + "1" + strings.Repeat("}", 10_001), "nest deeper than 1000", command.ExitUsage},
		"as deep as it": {`{"id": "w", "name": "W", "x": ` + strings.Repeat("[", source.MaxDepth-1) + strings.Repeat("]", source.MaxDepth-1) + "}", "EMPTY_WORKFLOW", command.ExitVerdict},
	} {
		c := (&call{stdin: tc.text}).run(t, "workflow", "validate", "-f", "-", "-o", "json")
		if got := c.stdout.String() + c.stderr.String(); c.code != tc.code || !strings.Contains(got, tc.want) || len(got) > 5000 {
			t.Errorf("%s: exit code %d, %.300s", name, c.code, got)
		}
	}
	c := (&call{stdin: `{"nodes": [` + strings.Repeat(node, 3000) + "{}]}"}).run(t, "workflow", "graph", "-f", "-")
	if c.code != command.ExitUsage || !strings.Contains(c.stderr.String(), "3001 nodes") {
		t.Errorf("exit code %d, %s", c.code, c.stderr.String())
	}
}

// Output that nobody takes is no success.
func TestBrokenPipe(t *testing.T) {
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), command.Environment{
		Program: "axiom", Stdout: brokenWriter{}, Stderr: &stderr, Getenv: os.Getenv,
	}, []string{"version"})
	if code != command.ExitUsage || !strings.Contains(stderr.String(), "write output") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// Conditions stay readable in JSON: their < and & are no HTML.
func TestJSONKeepsConditionsReadable(t *testing.T) {
	const condition = "context.a < 1 && context.b > 2"
	flow := write(t, "flow.json", encode(t, map[string]any{
		"id": "w", "name": "W",
		"nodes": []any{
			map[string]any{"id": "s", "type": "start", "name": "S", "config": map[string]any{"inputs": []any{}}},
			map[string]any{"id": "e", "type": "end", "name": "E", "config": map[string]any{}},
		},
		"edges": []any{map[string]any{"id": "x", "source": "s", "target": "e", "condition": condition}},
	}))
	changes := write(t, "changes.yaml", "{ops: [{op: updateEdge, id: x, patch: {label: l}, unset: [condition]}]}")
	script := write(t, "script.yaml", "[start: {a: 0, b: 3}]")
	for _, args := range [][]string{
		{"inverse", "-f", flow, "--changeset", changes},
		{"undo", "--before", flow, "--after", flow, "-f", flow},
		{"graph", "-f", flow},
		{"simulate", "-f", flow, "--script", script},
	} {
		c := run(t, slices.Concat([]string{"workflow"}, args, []string{"-o", "json"})...)
		if c.code != command.ExitOK || !strings.Contains(c.stdout.String(), condition) {
			t.Errorf("%s: exit code %d, %q is not in\n%s%s", args[0], c.code, condition, c.stdout.String(), c.stderr.String())
		}
	}
}

// Every problem points at the innermost part of the file that is at fault.
func TestProblemsPointAtTheirParts(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"members of the wrong type": {
			text: `
id: w
name: W
nodes:
- id: a
  type: action
  config:
    retry:
      maxAttempts: x
      backoff:
        factor: x
    outputs:
    - {name: ok}
    - 7
- id: r
  type: receive-event
  config:
    correlationKey:
      subscriptionKey: x
      eventKey: 7
    outputs:
    - {contextKey: k, expression: x}
    - {contextKey: 7}
edges:
- id: e
  source: a
  target: r
  label: l
  priority: high
`,
			want: []string{
				"13:7: error: entry 1 of outputs", "8:20: error: maxAttempts", "10:17: error: backoff.factor",
				"18:7: error: correlationKey", "22:7: error: entry 1 of outputs", "28:13: error: priority",
			},
		},
		"values that are out of order": {
			text: `
id: w
name: W
nodes:
- id: s
  type: start
  config:
    inputs:
    - {name: ref}
    - {name: ""}
- id: a
  type: action
  config:
    retry:
      maxAttempts: 3
      backoff:
        max: PT1S
- id: h
  type: human-task
  config:
    outputs:
    - {name: fine}
    - {name: n, type: number, widget: text, defaultValue: x}
- id: r
  type: receive-event
  config:
    match:
    - event.ok == true
    - event.ok ==
    correlationKey:
      subscriptionKey: context.ref
      eventKey: event.
`,
			want: []string{
				"9:7: warning: entry 1 of inputs", "16:14: error: backoff.max", "22:7: warning: output 1 of type",
				"22:7: warning: the default of output 1", "28:7: error: match 1", "31:17: error: eventKey",
			},
		},
	} {
		c := (&call{stdin: tc.text[1:]}).run(t, "workflow", "validate", "-f", "-")
		for _, want := range tc.want {
			if !strings.Contains(c.stdout.String(), "<stdin>:"+want) {
				t.Errorf("%s: %q is not in\n%s", name, want, c.stdout.String())
			}
		}
	}
}

// Of long texts a diff shows the stretch that differs, for what they begin with may be the same.
func TestDiffOfLongTexts(t *testing.T) {
	long := strings.Repeat("same words, ", 40)
	before := write(t, "before.json", encode(t, map[string]any{"id": "w", "description": long + "old end. " + long}))
	after := write(t, "after.json", encode(t, map[string]any{"id": "w", "description": long + "new end. " + long}))
	for name, tc := range map[string]struct{ before, after, want string }{
		"one word changed": {before, after, `~ description: … words, same words, old end. same words, sa… → … words, same words, new end. same words, sa…`},
		"most is new":      {write(t, "short.json", `{"id": "w", "description": "short"}`), after, `~ description: "short" → "` + long[:maxShown] + "…"},
	} {
		c := run(t, "workflow", "diff", tc.before, tc.after)
		if got := c.stdout.String(); got != tc.want+"\n" {
			t.Errorf("%s:\n%s, want\n%s", name, got, tc.want)
		}
	}
}

// maxShown is how much of a value is shown, its first quote apart.
const maxShown = 159
