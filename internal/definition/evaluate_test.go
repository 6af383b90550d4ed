package definition_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
)

// document makes a document with a graph of these nodes between start and end, and with these sections.
func document(head, nodes, sections string) string {
	return "---\nname: Doc\n" + head + "---\n```yaml workflow\nnodes:\n  - {id: start, type: start, name: Start}\n" + nodes +
		"  - {id: end, type: end, name: End}\nedges:\n  - {id: e, source: start, target: end}\n  - {id: n, source: node, target: end}\n```\n" + sections
}

func admitDocument(t testing.TB, text string) *definition.Component {
	t.Helper()
	bundle, err := definition.Admit(t.Context(), files{"a.md": text}, "a.md", open{}, programs)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Root()
}

// rendering makes a document that refers to the section #s.
func rendering(section string) string {
	const node = "  - {id: node, type: action, name: A, config: {actionType: agent.prompt, prompt: '#s', inputs: {agent: \"'a'\", session: \"'s'\"}, outputs: [{name: reply, contextKey: declared}]}}\n"
	return document("", node, section)
}

func TestRender(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"text": "T", "n": int64(3), "list": []any{int64(1), "<"}, "hostile": "${{ context.text }} $${{ }}", "object": map[string]any{"b": true, "a": 0.5},
	}
	for name, tc := range map[string]struct{ section, want, fault string }{
		"plain":                       {section: "## S\nHello.\n", want: "Hello."},
		"nothing":                     {section: "## S\n", want: ""},
		"outer blank lines":           {section: "## S\n\n \t\n  a\n\nb  \n\n\n", want: "  a\n\nb  "},
		"a text":                      {section: "## S\n>${{ context.text }}<\n", want: ">T<"},
		"other values":                {section: "## S\n${{context.n}}${{ context.list }}${{ context.object }}\n", want: `3[1,"<"]{"a":0.5,"b":true}`},
		"null":                        {section: "## S\n>${{ null }}<\n", want: "><"},
		"a declared key without one":  {section: "## S\n>${{ context.declared }}<\n", want: "><"},
		"supervised 12: one pass":     {section: "## S\n${{ context.hostile }}\n", want: "${{ context.text }} $${{ }}"},
		"a literal":                   {section: "## S\n$${{ context.text }} ${{ context.text }}\n", want: "${{ context.text }} T"},
		"braces in strings":           {section: "## S\n${{ '}}' + \"}}\" + r'\\' + '''}}''' }}}}\n", want: `}}}}\}}}}`},
		"a section up to the next":    {section: "## S\na\n## T\nb\n", want: "a"},
		"a section with lower ones":   {section: "## S\na\n### T\nb\n# U\nc\n", want: "a\n### T\nb"},
		"headings in fences":          {section: "## S\n~~~\n# no\n~~~\n## T\n", want: "~~~\n# no\n~~~"},
		"windows line ends":           {section: "## S\r\n\r\na\r\nb\r\n\r\n## T\r\n", want: "a\r\nb"},
		"a heading with marks":        {section: "## *S* ##\na\n", want: "a"},
		"a heading that is underline": {section: "S\n===\na\n", want: "a"},
		"no value":                    {section: "\n## S\na\n${{ context.missing.member }}\n", fault: "RENDER_FAILED: line 16: the placeholder has no value"},
		"the first without a value":   {section: "## S\n${{ context.text }}\n\n${{ 1 / 0 }}\n${{ context.x }}\n", fault: "RENDER_FAILED: line 16: the placeholder has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := admitDocument(t, rendering(tc.section)).Render(t.Context(), "#s", values)
			if tc.fault != "" {
				if err == nil || err.Error() != tc.fault {
					t.Errorf("got %q (%v), want %s", got, err, tc.fault)
				}
				return
			}
			if got != tc.want || err != nil {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

func TestSlugs(t *testing.T) {
	t.Parallel()
	for heading, slug := range map[string]string{
		"Hand Off": "hand-off", "A_b-C 2!": "a_b-c-2", "Ünder Größe": "nder-gre", "What?  Why": "what--why", "`code` & more": "code--more",
	} {
		text := strings.Replace(rendering("## "+heading+"\nfound\n"), "'#s'", "'#"+slug+"'", 1)
		if got, err := admitDocument(t, text).Render(t.Context(), "#"+slug, nil); got != "found" || err != nil {
			t.Errorf("%s: got %q (%v)", heading, got, err)
		}
	}
}

func TestRenderedSectionsAreBounded(t *testing.T) {
	t.Parallel()
	c := admitDocument(t, rendering("## S\n\n${{ context.text }}\n"))
	largest := strings.Repeat("x", definition.MaxRendered)
	if got, err := c.Render(t.Context(), "#s", map[string]any{"text": largest}); got != largest || err != nil {
		t.Errorf("the largest text is not rendered: %v", err)
	}
	_, err := c.Render(t.Context(), "#s", map[string]any{"text": largest + "x"})
	var failure *definition.Failure
	if !errors.As(err, &failure) || failure.Code != "RENDER_FAILED" || failure.Phase != engine.PhaseExecution || failure.Message != "line 15: the section would have more than 131072 bytes" {
		t.Errorf("got %v", err)
	}
	long := admitDocument(t, rendering("## S\n"+largest+"x\n"))
	if _, err := long.Render(t.Context(), "#s", nil); err == nil || err.Error() != "RENDER_FAILED: line 14: the section would have more than 131072 bytes" {
		t.Errorf("got %v", err)
	}
}

func TestTextsThatAreNoReferencesAreThemselves(t *testing.T) {
	t.Parallel()
	c := admitDocument(t, rendering("## S\na\n"))
	for _, text := range []string{"", "${{ context.text }}", "# Heading", "#S", "s"} {
		if got, err := c.Render(t.Context(), text, nil); got != text || err != nil {
			t.Errorf("%q became %q (%v)", text, got, err)
		}
	}
	if _, err := c.Render(t.Context(), "#missing", nil); err == nil {
		t.Error("a section that is missing is rendered")
	}
}

func TestInterruptedEvaluationsAreNoFailures(t *testing.T) {
	t.Parallel()
	c := admitDocument(t, rendering("## S\n${{ context.text }}\n"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, renderErr := c.Render(ctx, "#s", map[string]any{"text": "a"})
	_, inputErr := c.ResolveInputs(ctx, "node", nil)
	for _, err := range []error{renderErr, inputErr} {
		var failure *definition.Failure
		if !errors.Is(err, expression.ErrInterrupted) || errors.As(err, &failure) {
			t.Errorf("got %v", err)
		}
	}
}

// acting makes a document with one action.
func acting(config string) string {
	return document("inputs: [{name: given, type: object}]\n", "  - {id: node, type: action, name: A, config: "+config+"}\n", "## S\nSection ${{ context.text }}.\n")
}

func TestResolveInputs(t *testing.T) {
	t.Parallel()
	worktree := map[string]any{"name": "w", "branch": "b"}
	values := map[string]any{"text": "T", "worktree": worktree, "headers": map[string]any{"a": "b"}, "n": int64(7), "secret": "zqx"}
	for name, tc := range map[string]struct {
		config string
		want   map[string]any
		fault  string
	}{
		"expressions, literals, sections": {
			config: `{actionType: pullRequest.upsert, body: b, inputs: {worktree: context.worktree, title: "#s", number: context.n, draft: true}}`,
			want:   map[string]any{"worktree": "w", "title": "Section T.", "number": int64(7), "draft": true},
		},
		"null is absent": {
			config: `{actionType: pullRequest.upsert, body: b, inputs: {worktree: "'w'", title: "'t'", number: context.given, base: null, draft: "null"}}`,
			want:   map[string]any{"worktree": "w", "title": "t"},
		},
		"lists": {
			config: `{actionType: files.glob, inputs: {worktree: context.worktree, include: ["**", context.text], exclude: "[context.text]"}}`,
			want:   map[string]any{"worktree": "w", "include": []any{"**", "context.text"}, "exclude": []any{"T"}},
		},
		"an object of texts": {
			config: `{actionType: http.fetch, inputs: {url: "'u'", headers: context.headers}}`,
			want:   map[string]any{"url": "u", "headers": map[string]any{"a": "b"}},
		},
		"anything": {
			config: `{actionType: fragment.evaluate, inputs: {worktree: "'w'", fragment: false}}`,
			want:   map[string]any{"worktree": "w", "fragment": false},
		},
		"a required null":              {config: `{actionType: files.read, inputs: {worktree: "'w'", paths: context.given}}`, fault: `INPUT_CONTRACT: input "paths": required`},
		"a blank one":                  {config: `{actionType: files.read, inputs: {worktree: " ", paths: []}}`, fault: `INPUT_CONTRACT: input "worktree": required`},
		"a list of numbers":            {config: `{actionType: files.read, inputs: {worktree: "'w'", paths: [1]}}`, fault: `INPUT_CONTRACT: input "paths": type`},
		"a text for a list":            {config: `{actionType: files.read, inputs: {worktree: "'w'", paths: context.text}}`, fault: `INPUT_CONTRACT: input "paths": type`},
		"a number for a name":          {config: `{actionType: git.push, inputs: {worktree: 1}}`, fault: `INPUT_CONTRACT: input "worktree": type`},
		"an object without name":       {config: `{actionType: git.push, inputs: {worktree: {}}}`, fault: `INPUT_CONTRACT: input "worktree": type`},
		"a text for a boolean":         {config: `{actionType: pullRequest.upsert, body: b, inputs: {worktree: "'w'", title: "'t'", draft: "'true'"}}`, fault: `INPUT_CONTRACT: input "draft": type`},
		"a text for a number":          {config: `{actionType: pullRequest.upsert, body: b, inputs: {worktree: "'w'", title: "'t'", number: "'1'"}}`, fault: `INPUT_CONTRACT: input "number": type`},
		"an object of numbers":         {config: `{actionType: http.fetch, inputs: {url: "'u'", headers: {a: 1}}}`, fault: `INPUT_CONTRACT: input "headers": type`},
		"no value, and nothing quoted": {config: `{actionType: git.push, inputs: {worktree: "timestamp(context.secret)"}}`, fault: `EXPRESSION_ERROR: input "worktree" has no value`},
		"a section without a value":    {config: `{actionType: git.push, inputs: {worktree: "#bad"}}`, fault: `RENDER_FAILED: line 18: the placeholder has no value`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := admitDocument(t, acting(tc.config)+"## Bad\n\n${{ 1 / 0 }}\n")
			got, err := c.ResolveInputs(t.Context(), "node", values)
			if tc.fault != "" {
				if err == nil || err.Error() != tc.fault {
					t.Errorf("got %v (%v), want %s", got, err, tc.fault)
				}
				return
			}
			if diff := cmp.Diff(tc.want, map[string]any(got)); diff != "" || err != nil {
				t.Errorf("inputs (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

func TestInputsOfTasksAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	task := "  - {id: node, type: human-task, name: A, config: {description: '#s', responseSchema: true, inputs: {Text: '#s', N: context.n, None: 'null'}}}\n"
	c := admitDocument(t, document("", task, "## S\nSection ${{ context.n }}.\n"))
	got, err := c.ResolveInputs(t.Context(), "node", map[string]any{"n": int64(1)})
	if diff := cmp.Diff(engine.Values{"Text": "Section 1.", "N": int64(1)}, got); diff != "" || err != nil {
		t.Errorf("inputs (-want +got):\n%s%v", diff, err)
	}
	if got, err := c.ResolveInputs(t.Context(), "start", nil); len(got) != 0 || err != nil {
		t.Errorf("a start has inputs %v (%v)", got, err)
	}
}

func TestActionConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config string
		want   definition.ActionConfig
	}{
		"a prompt by default": {
			`{actionType: agent.prompt, prompt: '#s', inputs: {agent: "'a'", session: "'s'"}}`,
			definition.ActionConfig{Action: "agent.prompt", Prompt: "#s", Timeout: 30 * time.Minute, Method: "GET", Allow: []string{"read"}, Reply: definition.Reply{Repairs: 2}},
		},
		"a prompt with everything": {
			`{actionType: agent.prompt, prompt: '#s', timeout: PT1S, reply: {schema: {type: object}, repairs: 0}, inputs: {agent: "'a'", session: "'s'"}}`,
			definition.ActionConfig{
				Action: "agent.prompt", Prompt: "#s", Timeout: time.Second, Method: "GET", Allow: []string{"read"},
				Reply: definition.Reply{Schema: map[string]any{"type": "object"}},
			},
		},
		"a fragment": {
			`{actionType: fragment.evaluate, allow: [write, read], paths: {include: [a], exclude: [b, c]}, inputs: {worktree: "'w'", fragment: {}}}`,
			definition.ActionConfig{
				Action: "fragment.evaluate", Timeout: 10 * time.Minute, Method: "GET", Allow: []string{"write", "read"},
				Include: []string{"a"}, Exclude: []string{"b", "c"}, Reply: definition.Reply{Repairs: 2},
			},
		},
		"a request": {
			`{actionType: http.fetch, method: HEAD, require2xx: true, credentials: c, timeout: PT24H, inputs: {url: "'u'"}}`,
			definition.ActionConfig{
				Action: "http.fetch", Timeout: 24 * time.Hour, Method: "HEAD", Require2xx: true, Credentials: "c", Allow: []string{"read"},
				Reply: definition.Reply{Repairs: 2},
			},
		},
		"a body that is a text": {
			`{actionType: issue.upsert, body: Text, inputs: {tracker: "'u'", key: "'k'", title: "'t'"}}`,
			definition.ActionConfig{Action: "issue.upsert", Body: "Text", Timeout: 10 * time.Minute, Method: "GET", Allow: []string{"read"}, Reply: definition.Reply{Repairs: 2}},
		},
		"members that are null": {
			`{actionType: http.fetch, method: null, require2xx: null, credentials: null, timeout: null, outputs: null, inputs: {url: "'u'"}}`,
			definition.ActionConfig{Action: "http.fetch", Timeout: 10 * time.Minute, Method: "GET", Allow: []string{"read"}, Reply: definition.Reply{Repairs: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := admitDocument(t, acting(tc.config)).ActionConfig("node")
			if diff := cmp.Diff(tc.want, got); diff != "" || !ok {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// Every action with everything its contract has is admitted, and without each required input refused.
func TestContracts(t *testing.T) {
	t.Parallel()
	members := map[string]string{
		"prompt": "'#s'", "reply": "{repairs: 1}", "body": "'#s'", "allow": "[read]", "paths": "{}", "method": "GET", "require2xx": "false", "credentials": "c",
	}
	for _, contract := range definition.Contracts() {
		t.Run(contract.Action, func(t *testing.T) {
			t.Parallel()
			var config, outputs []string
			for _, name := range contract.Config {
				config = append(config, name+": "+members[name])
			}
			for _, output := range contract.Outputs {
				outputs = append(outputs, "{name: "+output.Name+"}")
			}
			with := func(without string) files {
				var inputs []string
				for _, input := range contract.Inputs {
					if input.Name != without {
						inputs = append(inputs, input.Name+": context.given")
					}
				}
				all := append([]string{"actionType: " + contract.Action, "inputs: {" + strings.Join(inputs, ", ") + "}", "outputs: [" + strings.Join(outputs, ", ") + "]"}, config...)
				return files{"a.md": acting("{" + strings.Join(all, ", ") + "}")}
			}
			if refusal := refusalOf(t, with(""), "a.md"); refusal != nil {
				t.Fatal(refusal)
			}
			for _, input := range contract.Inputs {
				refusal := refusalOf(t, with(input.Name), "a.md")
				if isRefused := refusal != nil; isRefused != input.Required {
					t.Errorf("without %s: %v", input.Name, refusal)
				}
			}
		})
	}
}

func TestTheEngineGetsGraphsWithoutInputs(t *testing.T) {
	t.Parallel()
	c := admitDocument(t, acting(`{actionType: http.fetch, timeout: PT1S, inputs: {url: "1 / 0"}}`))
	flow := c.Engine().Workflow()
	node, _ := flow.Node("node")
	if _, hasTimeout := node.Timeout(); hasTimeout || len(node.Inputs()) > 0 {
		t.Errorf("the engine has %v", node.Config())
	}
	if fields := node.OutputFields(); len(fields) != 1 || fields[0].Name() != "response" {
		t.Errorf("the engine knows outputs %v", fields)
	}
	start, _ := flow.Start()
	if fields := start.InputFields(); len(fields) != 1 || fields[0].Name() != "given" || flow.Name() != "Doc" || flow.ID() != "Doc" {
		t.Errorf("the engine has inputs %v of %s", fields, flow.Name())
	}
}

func TestEvaluateOutputs(t *testing.T) {
	t.Parallel()
	const head = `inputs: [{name: given, type: string}]
outputs:
  - {name: s, type: string, expression: context.?s.orValue('none')}
  - {name: n, type: number, expression: context.n}
  - {name: b, type: boolean, expression: context.given}
  - {name: o, type: object, expression: context.o}
  - {name: text, type: string, expression: "#s"}
`
	c := admitDocument(t, document(strings.ReplaceAll(head, "context.?s.orValue('none')", `"context.?s.orValue('none')"`), "  - {id: node, type: wait, name: W, config: {duration: PT1S}}\n", "## S\n${{ context.n }}\n"))
	good := func() map[string]any { return map[string]any{"n": int64(1), "o": []any{"a"}} }
	got, err := c.EvaluateOutputs(t.Context(), good())
	want := engine.Values{"s": "none", "n": int64(1), "b": nil, "o": []any{"a"}, "text": "1"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("outputs (-want +got):\n%s%v", diff, err)
	}
	for name, tc := range map[string]struct {
		key   string
		value any
		fault string
	}{
		"a number for a text":    {"s", int64(1), `OUTPUT_CONTRACT: output "s": type`},
		"a text for a number":    {"n", "1", `OUTPUT_CONTRACT: output "n": type`},
		"a text for an object":   {"o", "{}", `OUTPUT_CONTRACT: output "o": type`},
		"a text for a boolean":   {"given", "true", `OUTPUT_CONTRACT: output "b": type`},
		"a value that is absent": {"o", nil, `OUTPUT_CONTRACT: output "o" has no value`},
	} {
		values := good()
		values[tc.key] = tc.value
		if tc.value == nil {
			delete(values, tc.key)
		}
		_, err := c.EvaluateOutputs(t.Context(), values)
		var failure *definition.Failure
		if !errors.As(err, &failure) || err.Error() != tc.fault || failure.Phase != engine.PhaseOutputValidation {
			t.Errorf("%s: got %v, want %s", name, err, tc.fault)
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	root := admitGood(t).Root()
	alpha, ok := root.Call("alpha")
	if !ok || alpha.Component != "Alpha" || alpha.Repeat == nil || alpha.Repeat.Max != 3 || alpha.Repeat.Until != "result.done" || alpha.ForEach != nil {
		t.Errorf("got %+v", alpha)
	}
	beta, ok := root.Call("beta")
	if want := (definition.ForEach{Items: "context.reply.items", As: "one", Max: 2}); !ok || beta.ForEach == nil || *beta.ForEach != want || beta.Repeat != nil || beta.Outputs != nil {
		t.Errorf("got %+v", beta)
	}
	if _, ok := root.Call("say"); ok {
		t.Error("an action calls")
	}

	items := []any{map[string]any{"key": "a"}, map[string]any{"key": "b"}}
	values := map[string]any{"request": "r", "reply": map[string]any{"items": items}}
	gotItems, err := root.CallItems(t.Context(), "beta", values)
	if diff := cmp.Diff(items, gotItems); diff != "" || err != nil {
		t.Errorf("items (-want +got):\n%s%v", diff, err)
	}
	_, err = root.CallItems(t.Context(), "beta", map[string]any{"reply": map[string]any{"items": "ab"}})
	if err == nil || err.Error() != `INPUT_CONTRACT: input "items": type` {
		t.Errorf("items that are none: %v", err)
	}
	inputs, err := root.CallInputs(t.Context(), "beta", values, definition.Item{Value: items[1], Index: 1})
	if diff := cmp.Diff(engine.Values{"one": "b"}, inputs); diff != "" || err != nil {
		t.Errorf("inputs of an item (-want +got):\n%s%v", diff, err)
	}
	inputs, err = root.CallInputs(t.Context(), "alpha", map[string]any{"request": "r"}, definition.Item{})
	if diff := cmp.Diff(engine.Values{"text": "Say r."}, inputs); diff != "" || err != nil {
		t.Errorf("inputs without what is null (-want +got):\n%s%v", diff, err)
	}
	for _, done := range []any{true, false, nil, "true"} {
		got, err := root.CallUntil(t.Context(), "alpha", nil, map[string]any{"done": done})
		if want := done == true; got != want || err != nil {
			t.Errorf("until %v: %t (%v)", done, got, err)
		}
	}
	if _, err := root.CallUntil(t.Context(), "alpha", nil, nil); err == nil || err.Error() != `EXPRESSION_ERROR: condition "until" has no value` {
		t.Errorf("until without a value: %v", err)
	}
	outputs, err := root.CallOutputs(t.Context(), "alpha", map[string]any{"done": true, "more": int64(1)})
	if diff := cmp.Diff(engine.Values{"done": true}, outputs); diff != "" || err != nil {
		t.Errorf("outputs (-want +got):\n%s%v", diff, err)
	}
	outputs, err = root.CallOutputs(t.Context(), "beta", map[string]any{"items": []any{}})
	if diff := cmp.Diff(engine.Values{"items": []any{}}, outputs); diff != "" || err != nil {
		t.Errorf("outputs by name (-want +got):\n%s%v", diff, err)
	}
	if _, err := root.CallOutputs(t.Context(), "alpha", nil); err == nil || err.Error() != `EXPRESSION_ERROR: output "done" has no value` {
		t.Errorf("outputs without a value: %v", err)
	}
}

func TestFailuresOfConditionsQuoteNothing(t *testing.T) {
	t.Parallel()
	const edge = "{id: e, source: start, target: end"
	c := admitDocument(t, strings.Replace(rendering("## S\n"), edge, edge+", condition: 'context[context.word] == 1'", 1))
	step, err := engine.StartRun(t.Context(), c.Engine(), engine.Values{"word": "marigold"}, time.Unix(0, 0), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	f := step.Instance.Failure
	if f == nil || f.Code != engine.CodeExpressionError || f.Edge != "e" || strings.Contains(f.Message, "marigold") {
		t.Errorf("the failure is %+v", f)
	}
}
