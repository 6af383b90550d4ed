package playbook

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const complete = `
turns:
- when: Wait an hour
  steps:
  - call: {tool: get_composition, save: comp}
  - call:
      tool: propose_workflow_changes
      server: workbench
      args: {changeSet: {id: cs-1, baseRevision: "${comp.workflowRevision}", at: 2026-01-02, n: [1, 1.5, 0x10, null, true]}}
      expect: "^APPLIED"
      capture: {rev: 'New revision: (\S+)'}
  - say: "${rev} $${rev} ${{ cel }}"
- when: break
  steps: [{think: hm}, {permission: {tool: Write, expect: deny}}, {permission: {tool: Bash, title: "May I?", input: {command: jq .}}}, {sleep: 2s}, {exit: 3}]
- steps: [{hang: true}, {hang: }, {raw: garbage}, {error: no}, {error: {code: -32001, message: no}}]
  stop: max_tokens
- {}
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	none := map[string]*regexp.Regexp{}
	want := &Playbook{Memory: MemoryNone, Turns: []Turn{
		{
			When: regexp.MustCompile("Wait an hour"),
			Steps: []Step{
				Call{Tool: "get_composition", Args: map[string]any{}, Save: "comp", Capture: none},
				Call{
					Tool: "propose_workflow_changes", Server: "workbench",
					Args: map[string]any{"changeSet": map[string]any{
						"id": "cs-1", "baseRevision": "${comp.workflowRevision}", "at": "2026-01-02", "n": []any{int64(1), 1.5, int64(16), nil, true},
					}},
					Expect: regexp.MustCompile("^APPLIED"), Capture: map[string]*regexp.Regexp{"rev": regexp.MustCompile(`New revision: (\S+)`)},
				},
				Say{"${rev} $${rev} ${{ cel }}"},
			},
			Stop: "end_turn",
		},
		{
			When: regexp.MustCompile("break"),
			Steps: []Step{
				Think{"hm"},
				Permission{Tool: "Write", Expect: Deny},
				Permission{Tool: "Bash", Title: "May I?", Input: map[string]any{"command": "jq ."}},
				Sleep{2 * time.Second},
				Exit{3},
			},
			Stop: "end_turn",
		},
		{Steps: []Step{Hang{}, Hang{}, Raw{"garbage"}, Error{-32603, "no"}, Error{-32001, "no"}}, Stop: "max_tokens"},
		{Stop: "end_turn"},
	}}
	same := cmp.Comparer(func(a, b *regexp.Regexp) bool { return a == b || a != nil && b != nil && a.String() == b.String() })
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("playbook (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	step := func(text string) string { return "turns: [{steps: [" + text + "]}]" }
	cases := map[string]struct{ text, want string }{
		"nothing":                   {"", "read playbook: the file is empty"},
		"no YAML":                   {"turns: [", "read playbook: yaml: line 1: did not find expected node content"},
		"two documents":             {"turns: []\n---\nturns: []", "read playbook: the file must hold one document"},
		"too large":                 {strings.Repeat("#", MaxSize+1), "read playbook: the file has 1048577 bytes, more than 1048576"},
		"too many values":           {"turns: [" + strings.Repeat("a,", maxNodes) + "]", "read playbook: the file has more than 100000 values"},
		"aliases without end":       {bomb(), "read playbook: the file has more than 100000 values"},
		"repeated member":           {"turns: []\nturns: []", `read playbook: line 2: "turns" is there twice`},
		"member that is no text":    {"{[a]: 1}", "read playbook: line 1: the name of a member must be a plain text"},
		"merged members":            {"{a: &a {b: 1}, c: {<<: *a}}", "read playbook: line 1: the name of a member must be a plain text"},
		"number too large":          {step("{exit: 99999999999999999999}"), "turns[0].steps[0].exit: must be an integer from 0 to 255"},
		"integer too large":         {step("{exit: 18446744073709551615}"), `read playbook: line 1: "18446744073709551615" is no number that can be kept`},
		"no number":                 {step("{exit: .nan}"), `read playbook: line 1: ".nan" is no number of JSON`},
		"binary":                    {step("{say: !!binary AAAA}"), "read playbook: line 1: !!binary is no type of JSON"},
		"no object":                 {"[]", "playbook: must be an object"},
		"no turns":                  {"{}", "turns: must be a list"},
		"empty turns":               {"turns: []", "turns: must not be empty"},
		"another memory":            {"{memory: long, turns: [{}]}", "memory: must be one of none, home"},
		"unknown member":            {"turns: [{step: []}]", "turns[0].step: is unknown; known are when, steps, stop"},
		"turn that is no object":    {"turns: [x]", "turns[0]: must be an object"},
		"when that is no text":      {"turns: [{when: 7}]", "turns[0].when: must be a regular expression"},
		"when that is no pattern":   {"turns: [{when: '('}]", "turns[0].when: must be a regular expression: error parsing regexp: missing closing ): `(`"},
		"unknown stop reason":       {"turns: [{stop: done}]", "turns[0].stop: must be one of end_turn, max_tokens, max_turn_requests, refusal, cancelled"},
		"blank stop reason":         {"turns: [{stop: ''}]", "turns[0].stop: must be one of end_turn, max_tokens, max_turn_requests, refusal, cancelled"},
		"steps that are no list":    {"turns: [{steps: {}}]", "turns[0].steps: must be a list"},
		"step that is no object":    {step("hang"), "turns[0].steps[0]: must be an object with one member: call, error, exit, hang, permission, raw, say, sleep, think"},
		"two steps in one":          {step("{say: a, think: b}"), "turns[0].steps[0]: must be an object with one member: call, error, exit, hang, permission, raw, say, sleep, think"},
		"unknown step":              {step("{shout: a}"), "turns[0].steps[0].shout: is no step; steps are call, error, exit, hang, permission, raw, say, sleep, think"},
		"call that is no object":    {step("{call: get}"), "turns[0].steps[0].call: must be an object"},
		"call without a tool":       {step("{call: {save: a}}"), "turns[0].steps[0].call.tool: must be a text that is not blank"},
		"call of something unknown": {step("{call: {tool: a, retry: 1}}"), "turns[0].steps[0].call.retry: is unknown; known are tool, server, args, save, expect, capture"},
		"args that are no object":   {step("{call: {tool: a, args: [1]}}"), "turns[0].steps[0].call.args: must be an object"},
		"save under no name":        {step("{call: {tool: a, save: a-b}}"), `turns[0].steps[0].call.save: "a-b" is no name: letters, digits and underscores, not beginning with a digit`},
		"expectation":               {step("{call: {tool: a, expect: '['}}"), "turns[0].steps[0].call.expect: must be a regular expression: error parsing regexp: missing closing ]: `[`"},
		"captures that are none":    {step("{call: {tool: a, capture: x}}"), "turns[0].steps[0].call.capture: must be an object of regular expressions"},
		"capture without a group":   {step("{call: {tool: a, capture: {b: x}}}"), "turns[0].steps[0].call.capture.b: must have a group"},
		"capture under no name":     {step("{call: {tool: a, capture: {1b: (x)}}}"), `turns[0].steps[0].call.capture.1b: "1b" is no name: letters, digits and underscores, not beginning with a digit`},
		"blank text":                {step("{say: ' '}"), "turns[0].steps[0].say: must be a text that is not blank"},
		"permission":                {step("{permission: Write}"), "turns[0].steps[0].permission: must be an object"},
		"permission of nothing":     {step("{permission: {}}"), "turns[0].steps[0].permission.tool: must be a text that is not blank"},
		"unknown answer":            {step("{permission: {tool: a, expect: maybe}}"), "turns[0].steps[0].permission.expect: must be one of allow, deny"},
		"duration":                  {step("{sleep: 2}"), "turns[0].steps[0].sleep: must be a duration such as 2s or 1m30s"},
		"negative duration":         {step("{sleep: -2s}"), "turns[0].steps[0].sleep: must be a duration such as 2s or 1m30s"},
		"exit code":                 {step("{exit: 256}"), "turns[0].steps[0].exit: must be an integer from 0 to 255"},
		"hang":                      {step("{hang: 2s}"), "turns[0].steps[0].hang: must be true"},
		"error that is none":        {step("{error: 7}"), "turns[0].steps[0].error: must be an object"},
		"error without a message":   {step("{error: {code: 1}}"), "turns[0].steps[0].error.message: must be a text that is not blank"},
		"error code":                {step("{error: {code: x, message: no}}"), "turns[0].steps[0].error.code: must be an integer from -2147483648 to 2147483647"},
		"reference to nothing":      {step("{say: '${a.b}'}, {think: '$${c}'}"), "turns[0].steps[0]: ${a} is saved by no call"},
		"reference deep in args":    {step("{call: {tool: a, args: {x: ['${b}']}}}"), "turns[0].steps[0]: ${b} is saved by no call"},
		"several": {
			"turns: [{when: '(', steps: [{exit: -1}]}]",
			"turns[0].when: must be a regular expression: error parsing regexp: missing closing ): `(`\nturns[0].steps[0].exit: must be an integer from 0 to 255",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text))
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
}

// bomb is a small file whose aliases stand for more values than there are
// atoms.
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 x\n")
	for i := range 30 {
		fmt.Fprintf(&text, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return text.String()
}

func TestExpand(t *testing.T) {
	variables := Variables{
		"comp": map[string]any{"rev": "sha256:3f", "items": []any{map[string]any{"name": "a", "n": int64(3)}}, "none": nil, "with-dash": 1.5},
		"rev":  "r-1",
	}
	tree := map[string]any{
		"whole":         "${comp.items}",
		"text":          "at ${comp.rev}, ${comp.items[0].n}${comp.none}, ${comp.with-dash}: ${comp.items[0]}",
		"escaped":       "$${rev} $$ ${} ${{ rev }} ${1} $rev $${rev",
		"whole escaped": "$${rev}",
		"list":          []any{"${rev}", int64(7), true},
		"${rev}":        "kept",
	}
	want := map[string]any{
		"whole":         []any{map[string]any{"name": "a", "n": int64(3)}},
		"text":          `at sha256:3f, 3, 1.5: {"n":3,"name":"a"}`,
		"escaped":       "${rev} $$ ${} ${{ rev }} ${1} $rev $${rev",
		"whole escaped": "${rev}",
		"list":          []any{"r-1", int64(7), true},
		"${rev}":        "kept",
	}
	got, err := variables.Expand(tree)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestExpandRefuses(t *testing.T) {
	variables := Variables{"comp": map[string]any{"items": []any{"a"}}}
	cases := map[string]string{
		"${other}":         "${other}: nothing is saved as other",
		"${comp.rev}":      "${comp.rev}: there is no rev",
		"${comp.items[1]}": "${comp.items[1]}: there is no [1]",
		"${comp.items.a}":  "${comp.items.a}: there is no a",
		"${comp[0]}":       "${comp[0]}: there is no [0]",
		"a ${comp.x} b":    "${comp.x}: there is no x",
	}
	for text, want := range cases {
		for _, tree := range []any{text, []any{text}, map[string]any{"a": text}} {
			if _, err := variables.Expand(tree); err == nil || err.Error() != want {
				t.Errorf("%v: error %v, want %s", tree, err, want)
			}
		}
	}
}

func TestExpandedValuesAreCopies(t *testing.T) {
	saved := map[string]any{"a": []any{"b"}}
	got, err := Variables{"v": saved}.Expand("${v}")
	if err != nil {
		t.Fatal(err)
	}
	got.(map[string]any)["a"].([]any)[0] = "changed"
	if saved["a"].([]any)[0] != "b" {
		t.Error("changing the result changed what is saved")
	}
}

func TestStepsHaveNames(t *testing.T) {
	want := map[string]Step{
		"call get": Call{Tool: "get"}, "say": Say{}, "think": Think{}, "permission Write": Permission{Tool: "Write"},
		"sleep": Sleep{}, "exit": Exit{}, "hang": Hang{}, "raw": Raw{}, "error": Error{},
	}
	for name, step := range want {
		if got := step.Name(); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

// FuzzParse: whatever a file holds, it is refused or can be played; every
// reference in a playable file is one that Expand knows what to do with.
func FuzzParse(f *testing.F) {
	f.Add(complete)
	f.Add("turns: [{steps: [{say: '${a}'}, {call: {tool: t, save: a}}]}]")
	f.Add(bomb())
	f.Fuzz(func(t *testing.T, text string) {
		book, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if len(book.Turns) == 0 {
			t.Error("a playbook without turns passed")
		}
		for _, turn := range book.Turns {
			if turn.Stop == "" {
				t.Error("a turn without a stop reason passed")
			}
			for _, step := range turn.Steps {
				checkExpansion(t, step)
			}
		}
	})
}

func checkExpansion(t *testing.T, step Step) {
	variables := Variables{}
	for _, name := range uses(texts(step)) {
		variables[name] = "value"
	}
	expanded, err := variables.Expand(texts(step))
	if err != nil {
		return // a path into a text leads nowhere
	}
	if _, err := jsonvalue.Canonical(expanded); err != nil && !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%s: %v", step.Name(), err)
	}
}
