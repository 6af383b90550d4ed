package action_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/action"
)

// sound is an action type without problems.
func sound(change ...func(*action.Type)) action.Type {
	t := action.Type{
		Name: "assess", Description: "Scores a change.", Mode: action.ModeScript,
		Script:  action.Script{Template: "true"},
		Inputs:  []action.Field{{Name: "ref", Required: true}},
		Outputs: []action.Field{{Name: "score", Type: action.TypeNumber}},
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

// coded are problems as `severity code path`.
func coded(problems []action.Problem) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Severity+" "+p.Code+" "+p.Path)
	}
	return texts
}

func asAgent(prompt string) func(*action.Type) {
	return func(t *action.Type) {
		t.Mode, t.Script, t.Agent.Prompt = action.ModeAgent, action.Script{}, prompt
	}
}

func TestTypeProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*action.Type)
		want   []string
	}{
		"none":               {func(*action.Type) {}, nil},
		"node is script":     {func(t *action.Type) { t.Mode = action.ModeNode }, nil},
		"blank name":         {func(t *action.Type) { t.Name = " " }, []string{"error MISSING_NAME name"}},
		"name of a built-in": {func(t *action.Type) { t.Name = "git.commit" }, []string{"error RESERVED_NAME name"}},
		"blank description":  {func(t *action.Type) { t.Description = "" }, []string{"warning MISSING_DESCRIPTION description"}},
		"no mode":            {func(t *action.Type) { t.Mode = "" }, []string{"error INVALID_MODE mode"}},
		"unknown interpreter": {
			func(t *action.Type) { t.Script.Interpreter = "perl" }, []string{"error INVALID_INTERPRETER script.interpreter"},
		},
		"blank script": {func(t *action.Type) { t.Script.Template = "\n" }, []string{"error MISSING_SCRIPT script.scriptTemplate"}},
		"blank prompt": {asAgent(" "), []string{"error MISSING_PROMPT agent.promptTemplate"}},
		"a prompt needs no script, nor a script a prompt": {asAgent("Do ${{ inputs.ref }}."), nil},
		"placeholders in a script, each once": {
			func(t *action.Type) {
				t.Script.Template = "echo {{inputs.ref}} {{ inputs.ref }} {{inputs.other}} {{ref}}"
			},
			[]string{"error SCRIPT_PLACEHOLDER script.scriptTemplate", "error SCRIPT_PLACEHOLDER script.scriptTemplate"},
		},
		"every bad placeholder in a prompt": {
			asAgent("${{ }} ${{ bad }} ${{ good }} ${{ open"),
			slices.Repeat([]string{"error INVALID_PLACEHOLDER agent.promptTemplate"}, 3),
		},
		"unknown session template": {
			func(t *action.Type) { asAgent("x")(t); t.Agent.SessionTemplate = "nobody" },
			[]string{"error UNKNOWN_SESSION_TEMPLATE agent.sessionTemplate"},
		},
		"environment": {
			func(t *action.Type) {
				t.Env = []action.EnvVar{
					{Name: "OK"},
					{Name: "OK"},
					{Name: "1st"},
					{Name: "AXIOM_X"},
					{Name: "A", Secret: &action.KeyRef{Name: "known", Key: ""}},
					{Name: "B", Secret: &action.KeyRef{Name: "unknown", Key: "k"}},
				}
			},
			[]string{
				"error UNKNOWN_SECRET env[5].secretKeyRef.name",
				"error DUPLICATE_ENV_NAME env[1].name", "error INVALID_ENV_NAME env[2].name", "error INVALID_ENV_NAME env[3].name",
				"error INVALID_SECRET_REF env[4].secretKeyRef",
			},
		},
		"fields": {
			func(t *action.Type) {
				t.Inputs = []action.Field{{Name: ""}, {Name: "a-b"}, {Name: "x"}, {Name: "X"}, {Name: "x"}, {Name: "y", Type: "list"}}
				t.Outputs = []action.Field{{Name: "x", Type: action.TypeObject}}
			},
			[]string{
				"error MISSING_FIELD_NAME inputs[0].name", "error INVALID_FIELD_NAME inputs[1].name",
				"error DUPLICATE_FIELD_NAME inputs[4].name", "error INVALID_FIELD_TYPE inputs[5].type",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			around := action.Surroundings{
				HasSessionTemplate: func(name string) bool { return name == "known" },
				HasCredential:      func(name string) bool { return name == "known" },
				CheckPrompt: func(text string) error {
					if strings.Contains(text, "bad") {
						return errors.New("no such thing")
					}
					return nil
				},
			}
			if diff := cmp.Diff(tc.want, coded(sound(tc.change).Problems(around))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTypeProblemsAreSilentWithoutSurroundings(t *testing.T) {
	t.Parallel()
	lonely := sound(asAgent("${{ whatever }}"), func(t *action.Type) {
		t.Agent.SessionTemplate = "nobody"
		t.Env = []action.EnvVar{{Name: "A", Secret: &action.KeyRef{Name: "nobody", Key: "k"}}}
	})
	if problems := lonely.Problems(action.Surroundings{}); len(problems) != 0 {
		t.Errorf("got %v, want none", problems)
	}
}

func TestPlaceholderMessagesNameTheVariable(t *testing.T) {
	t.Parallel()
	script := sound(func(t *action.Type) { t.Script.Template = "{{inputs.ref}}" })
	if got := script.Problems(action.Surroundings{})[0].Message; !strings.Contains(got, "AXIOM_INPUT_ref") {
		t.Errorf("message %q does not name the variable", got)
	}
	tool := soundTool(func(t *action.Tool) { t.Template += "{{query_file}}" })
	if got := tool.Problems()[0].Message; !strings.Contains(got, "AXIOM_PARAM_query") || !strings.Contains(got, "AXIOM_PARAMS") {
		t.Errorf("message %q does not name the variables", got)
	}
}

// TestPlaceholdersEndOutsideStrings shows by what reaches the checker where
// a placeholder ends.
func TestPlaceholdersEndOutsideStrings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prompt string
		want   []string
	}{
		"plain":                  {"a ${{x}} b ${{ y }}", []string{"x", " y "}},
		"braces in a string":     {`${{ '}}' + "}}" }}`, []string{` '}}' + "}}" `}},
		"escaped quote":          {`${{ 'it\'s }}' }}`, []string{` 'it\'s }}' `}},
		"raw string":             {`${{ r'\' }} }}`, []string{` r'\' `}},
		"raw bytes":              {`${{ bR"\" }}`, []string{` bR"\" `}},
		"an r that ends a name":  {`${{ var'\'}}' }}`, []string{` var'\'}}' `}},
		"triple quotes":          {`${{ '''a'}}''' }}`, []string{` '''a'}}''' `}},
		"dollar before":          {`$${{ x }} ${{ y }}`, []string{" y "}},
		"a map closes first":     {`${{ {'a': {'b': 1}} }}`, []string{` {'a': {'b': 1`}},
		"unclosed string":        {`${{ 'x }}`, nil},
		"nothing":                {`$ {{ x }}`, nil},
		"several lines":          {"${{\nx\n}}", []string{"\nx\n"}},
		"opening in placeholder": {"${{ ${{ x }}", []string{" ${{ x "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			around := action.Surroundings{CheckPrompt: func(text string) error { got = append(got, text); return nil }}
			sound(asAgent(tc.prompt)).Problems(around)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("expressions (-want +got):\n%s", diff)
			}
		})
	}
}

func soundTool(change ...func(*action.Tool)) action.Tool {
	t := action.Tool{
		Name: "search-issues", Description: "Searches.", Template: `run "$AXIOM_PARAM_query" `,
		Parameters: []action.Field{{Name: "query", Required: true}},
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

func TestToolProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*action.Tool)
		want   []string
	}{
		"none":           {func(*action.Tool) {}, nil},
		"blank name":     {func(t *action.Tool) { t.Name = "" }, []string{"error MISSING_NAME name"}},
		"unusual name":   {func(t *action.Tool) { t.Name = "Search.Issues" }, []string{"warning UNUSUAL_NAME name"}},
		"blank":          {func(t *action.Tool) { t.Description = " " }, []string{"warning MISSING_DESCRIPTION description"}},
		"interpreter":    {func(t *action.Tool) { t.Interpreter = "sh" }, []string{"error INVALID_INTERPRETER interpreter"}},
		"no script":      {func(t *action.Tool) { t.Template = ""; t.Parameters = nil }, []string{"error MISSING_SCRIPT scriptTemplate"}},
		"file is used":   {func(t *action.Tool) { t.Template = `jq . "$AXIOM_PARAMS"` }, nil},
		"unused":         {func(t *action.Tool) { t.Template = "true # AXIOM_PARAMS_OLD" }, []string{"warning UNUSED_PARAMETER parameters[0].name"}},
		"no placeholder": {func(t *action.Tool) { t.Template += "{{other}}" }, nil},
		"placeholder":    {func(t *action.Tool) { t.Template += "{{query}} {{ query_file }}" }, slices.Repeat([]string{"error SCRIPT_PLACEHOLDER scriptTemplate"}, 2)},
		"undeclared":     {func(t *action.Tool) { t.Template += "$AXIOM_PARAM_limit ${AXIOM_PARAM_limit}" }, []string{"error UNKNOWN_PARAMETER scriptTemplate"}},
		"same name in another case": {
			func(t *action.Tool) {
				t.Parameters = append(t.Parameters, action.Field{Name: "QUERY"})
				t.Template += "$AXIOM_PARAM_QUERY"
			},
			[]string{"error DUPLICATE_FIELD_NAME parameters[1].name"},
		},
		"no objects": {func(t *action.Tool) { t.Parameters[0].Type = action.TypeObject }, []string{"error INVALID_FIELD_TYPE parameters[0].type"}},
		"labels": {
			func(t *action.Tool) { t.Labels = []string{"a", " ", "A"} },
			[]string{"error BLANK_LABEL labels[1]", "warning DUPLICATE_LABEL labels[2]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, coded(soundTool(tc.change).Problems())); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadKeepsEveryMember(t *testing.T) {
	t.Parallel()
	got, err := action.ReadType("x", map[string]any{
		"description": "d", "mode": "script", "x-more": 1, "name": "other",
		"script": map[string]any{"interpreter": "node", "scriptTemplate": "s", "image": "i"},
		"env":    []any{map[string]any{"name": "A", "secretKeyRef": map[string]any{"name": "n", "key": "k"}}},
		"inputs": []any{map[string]any{"name": "a", "type": "number", "required": true}},
	})
	want := action.Type{
		Name: "x", Description: "d", Mode: "script",
		Script: action.Script{Interpreter: "node", Template: "s", Image: "i"},
		Env:    []action.EnvVar{{Name: "A", Secret: &action.KeyRef{Name: "n", Key: "k"}}},
		Inputs: []action.Field{{Name: "a", Type: "number", Required: true}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, type (-want +got):\n%s", err, diff)
	}
	if _, err := action.ReadTool("x", map[string]any{"parameters": "none"}); err == nil {
		t.Error("a list that is none was read")
	}
}

func FuzzPlaceholders(f *testing.F) {
	for _, seed := range []string{"${{ 'a' }}", "$${{", "${{ r'", `${{ """`, "${{}}${{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		checked := 0
		around := action.Surroundings{CheckPrompt: func(text string) error {
			checked++
			if !strings.Contains(prompt, "${{"+text+"}}") {
				t.Errorf("%q is no placeholder of the prompt", text)
			}
			return nil
		}}
		problems := sound(asAgent(prompt)).Problems(around)
		bad := len(slices.DeleteFunc(problems, func(p action.Problem) bool { return p.Code != "INVALID_PLACEHOLDER" }))
		if opened := strings.Count(prompt, "${{"); checked+bad > opened {
			t.Errorf("%d placeholders were judged, the prompt opens %d", checked+bad, opened)
		}
	})
}
