package permission

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"
)

func TestPolicy(t *testing.T) {
	allowed := []string{"mcp__workbench__get_item", "Read", "Bash(jq *)", "Bash(git log *)", "Bash( *)", "Bash(rm)", ""}
	command := func(text string) map[string]any { return map[string]any{"command": text} }
	cases := map[string]struct {
		call Call
		want bool
	}{
		"listed":                     {Call{Name: "mcp__workbench__get_item"}, true},
		"listed built-in":            {Call{Name: "Read"}, true},
		"not listed":                 {Call{Name: "mcp__workbench__remove_item"}, false},
		"longer than listed":         {Call{Name: "mcp__workbench__get_items"}, false},
		"another case":               {Call{Name: "read"}, false},
		"no name":                    {Call{}, false},
		"command with prefix":        {Call{"Bash", command("jq . x.json")}, true},
		"command with two words":     {Call{"Bash", command("git log -1")}, true},
		"command with another":       {Call{"Bash", command("git push")}, false},
		"command of another program": {Call{"Bash", command("jqx . x.json")}, false},
		"command without arguments":  {Call{"Bash", command("jq")}, false},
		"command in another tool":    {Call{"Shell", command("jq . x.json")}, false},
		"rule that is no prefix":     {Call{"Bash", command("rm -rf /")}, false},
		"rule of a blank prefix":     {Call{"Bash", command("  rm -rf /")}, false},
		"input that is no object":    {Call{"Bash", "jq ."}, false},
		"no input":                   {Call{Name: "Bash"}, false},
		"command that is no text":    {Call{"Bash", map[string]any{"command": []any{"jq", "."}}}, false},
		"rule as name":               {Call{Name: "Bash(jq *)"}, false},
		"unbalanced rule as name":    {Call{Name: "Bash(rm)"}, true}, // listed as it stands
	}
	policy := NewPolicy(allowed)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := policy.Allows(tc.call); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
	if (Policy{}).Allows(Call{Name: "Read"}) {
		t.Error("the zero policy allows something")
	}
}

var simpleCommands = []string{
	"jq .", "jq '.a | .b' x.json", `jq ".a" x`, `jq '.a; .b & $c ( ) < > ` + "`" + `'`, "jq '.a\n| .b' x", `jq .a\ b`, `jq "it's"`, `jq 'a"b'`,
	`jq .a#b`, `jq ""''`, `jq \"`, `jq \'`, "jq\t.", `jq "a\"b"`, `jq '#' .`, `jq '\'`, `jq {a,b}`, `jq ~ *`,
}

var otherCommands = []string{
	"", "jq", "jqx .", " jq .", "jq . ; rm x", "jq . && rm x", "jq . | sh", "jq . || rm x", "jq . & rm x", "jq . > x", "jq . < x", "jq $(rm x)",
	"jq `rm x`", "jq $HOME", `jq "$HOME"`, `jq "$(rm x)"`, "jq \"`rm x`\"", "jq .\nrm x", "jq .\rrm x", "jq 'a", `jq "a`, `jq "a'`, "jq .\\\nrm x",
	`jq \' ; rm x'`, `jq \' ; rm x #'`, `jq "a\" ; rm x "`, "jq . #'\nrm x\n'", "jq . # '\nrm x #'", `jq \`, `jq "\`, "jq (a)", "jq a;", "jq 'a'b'",
	"jq '\x00'", "jq \x00", `jq $'a\'; rm x '`,
}

func TestSimpleCommands(t *testing.T) {
	for _, command := range simpleCommands {
		// A tab after the program is a simple command too, but not the rule's.
		want := strings.HasPrefix(command, "jq ")
		if got := isSimpleCommand(command, "jq"); got != want {
			t.Errorf("%q: got %t, want %t", command, got, want)
		}
	}
	for _, command := range otherCommands {
		if isSimpleCommand(command, "jq") {
			t.Errorf("%q passes for a simple command", command)
		}
	}
}

// TestShellAgrees lets a shell run every command that passes, with jq as a
// function and everything else out of reach: it must call jq once, and nothing
// else.
func TestShellAgrees(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to ask")
	}
	for _, command := range append(slices.Clone(simpleCommands), otherCommands...) {
		if isSimpleCommand(command, "jq") {
			assertShellRunsOnlyJQ(t, bash, command)
		}
	}
}

func assertShellRunsOnlyJQ(t *testing.T, bash, command string) {
	t.Helper()
	script := "jq() { echo called; }\ncommand_not_found_handle() { echo \"ran $1\"; }\n" + command
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bash, "--norc", "-c", script)
	cmd.Env = []string{"PATH=/nonexistent"}
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "called\n" {
		t.Errorf("%q: %v\n%s", command, err, out)
	}
}

func TestAnswer(t *testing.T) {
	always := acp.PermissionOption{OptionId: "always", Kind: acp.PermissionOptionKindAllowAlways}
	once := acp.PermissionOption{OptionId: "once", Kind: acp.PermissionOptionKindAllowOnce}
	no := acp.PermissionOption{OptionId: "no", Kind: acp.PermissionOptionKindRejectOnce}
	never := acp.PermissionOption{OptionId: "never", Kind: acp.PermissionOptionKindRejectAlways}
	twofold := acp.PermissionOption{OptionId: "always", Kind: acp.PermissionOptionKindAllowOnce}
	cases := map[string]struct {
		options     []acp.PermissionOption
		allow       bool
		want        string
		wantAllowed bool
	}{
		"allow":                     {[]acp.PermissionOption{always, once, no}, true, "once", true},
		"allow, only for good":      {[]acp.PermissionOption{always, never, no}, true, "no", false},
		"allow, nothing on offer":   {nil, true, "", false},
		"allow, with an id for two": {[]acp.PermissionOption{always, twofold, no}, true, "no", false},
		"deny":                      {[]acp.PermissionOption{always, once, never, no}, false, "no", false},
		"deny for good":             {[]acp.PermissionOption{always, once, never}, false, "never", false},
		"deny, cannot be said":      {[]acp.PermissionOption{always, once}, false, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outcome, allowed := Answer(tc.options, tc.allow)
			got := ""
			if outcome.Selected != nil {
				got = string(outcome.Selected.OptionId)
			} else if outcome.Cancelled == nil {
				t.Error("an answer that is neither")
			}
			if got != tc.want || allowed != tc.wantAllowed {
				t.Errorf("got %q, %t, want %q, %t", got, allowed, tc.want, tc.wantAllowed)
			}
		})
	}
}

func TestNames(t *testing.T) {
	names, err := NewNames(nil, "workbench", "my.server")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		meta   map[string]any
		titles []string
		want   string
	}{
		"meta":                   {map[string]any{"toolName": "Write"}, []string{"mcp__a__b"}, "Write"},
		"meta that is no text":   {map[string]any{"toolName": 7}, []string{"mcp__a__b"}, ""},
		"qualified":              {nil, []string{"mcp__workbench__get_item"}, "mcp__workbench__get_item"},
		"server and tool":        {nil, []string{"workbench__get_item"}, "mcp__workbench__get_item"},
		"path":                   {nil, []string{"workbench/get_item"}, "mcp__workbench__get_item"},
		"words":                  {nil, []string{"get_item (workbench MCP Server)"}, "mcp__workbench__get_item"},
		"server with underscore": {nil, []string{"mcp__my_server__get_item"}, "mcp__my_server__get_item"},
		"one underscore":         {nil, []string{"workbench_get_item"}, "mcp__workbench__get_item"},
		"one behind a dot":       {nil, []string{"my.server_get_item"}, "mcp__my.server__get_item"},
		"one of no server":       {nil, []string{"my-server_get_item"}, ""},
		"one, and nothing else":  {nil, []string{"workbench_"}, ""},
		"built-in":               {nil, []string{"Write"}, "Write"},
		"later title":            {nil, []string{"May I?", "Write"}, "Write"},
		"sentence":               {nil, []string{"Write a file"}, ""},
		"name inside of a text":  {nil, []string{"run mcp__workbench__get_item now"}, ""},
		"line break behind":      {nil, []string{"mcp__workbench__get_item\n"}, ""},
		"nothing":                {nil, nil, ""},
		"nothing said":           {map[string]any{"other": "x"}, []string{""}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names.Of(tc.meta, tc.titles...); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOwnPatterns(t *testing.T) {
	names, err := NewNames([]string{`(?P<server>\w+)::(?P<tool>\w+)|(?P<other>nothing)`, `run (?P<tool>\w+)`})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{names.Of(nil, "a::b"), names.Of(nil, "run Write"), names.Of(nil, "nothing"), names.Of(nil, "mcp__a__b")}
	if diff := cmp.Diff([]string{"mcp__a__b", "Write", "", ""}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for pattern, want := range map[string]string{"(": "compile tool name pattern", `(\w+)`: "has no group `tool`"} {
		if _, err := NewNames([]string{pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pattern %q: error %v, want %s", pattern, err, want)
		}
	}
}

// FuzzNothingElseIsAllowed holds the law of the policy: an allow option is only
// ever chosen for what is listed, and never the one that allows for good.
func FuzzNothingElseIsAllowed(f *testing.F) {
	for _, command := range append(slices.Clone(simpleCommands), otherCommands...) {
		f.Add("Bash", "Bash", command)
	}
	f.Add("mcp__workbench__get_item", "", "")
	f.Add("get_item (workbench MCP Server)", "Write", "jq .")
	policy := NewPolicy([]string{"mcp__workbench__get_item", "Bash(jq *)"})
	names, err := NewNames(nil)
	if err != nil {
		f.Fatal(err)
	}
	options := []acp.PermissionOption{
		{OptionId: "always", Kind: acp.PermissionOptionKindAllowAlways}, {OptionId: "once", Kind: acp.PermissionOptionKindAllowOnce},
	}
	f.Fuzz(func(t *testing.T, title, metaName, command string) {
		meta := map[string]any{}
		if metaName != "" {
			meta["toolName"] = metaName
		}
		call := Call{Name: names.Of(meta, title), Input: map[string]any{"command": command}}
		outcome, allowed := Answer(options, policy.Allows(call))
		if chosen := outcome.Selected; chosen != nil && chosen.OptionId == "always" {
			t.Error("allowed for good")
		}
		if !allowed || call.Name == "mcp__workbench__get_item" {
			return
		}
		if call.Name != "Bash" || !strings.HasPrefix(command, "jq ") || strings.ContainsAny(outsideQuotes(command), ";&|<>()`$\n\r") {
			t.Errorf("allowed %q with %q", call.Name, command)
		}
	})
}

// outsideQuotes is what is left of a command without its single-quoted texts,
// as far as that can be told without knowing what a backslash or a double
// quote does to a single one.
func outsideQuotes(command string) string {
	if strings.ContainsAny(command, `\"`) {
		return ""
	}
	var outside strings.Builder
	for i, part := range strings.Split(command, "'") {
		if i%2 == 0 {
			outside.WriteString(part)
		}
	}
	return outside.String()
}
