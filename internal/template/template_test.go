package template_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/template"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func workbench(t *testing.T) api.SessionTemplateSpec {
	t.Helper()
	spec, found := template.BuiltIn("axiom-workbench")
	if !found {
		t.Fatal("there is no built-in axiom-workbench")
	}
	return spec
}

func TestTheWorkbenchHasItsRulesWordForWord(t *testing.T) {
	lines := strings.Split(workbench(t).SystemPrompt, "\n")
	for _, rule := range []string{
		"Edit workflows only with propose_workflow_changes",
		"Use the workflowRevision from get_composition, or the revision returned by your last change set, as baseRevision",
		"Before writing a CEL expression that reads event data, inspect a real event of that type with get_stream_event and check the expression with evaluate_expression",
		"If no events of that type exist, say so and use the documented event schema",
		"Prefer node action types for non-AI steps",
		"Declare an input for everything an action uses",
		"Receive-event nodes must correlate",
		"Never describe the output format in an agent prompt",
		"Your workflow changes are applied by the user's editor when your turn ends",
	} {
		if !slices.Contains(lines, "- "+rule) {
			t.Errorf("the prompt lacks the rule %q", rule)
		}
	}
}

func TestThePlaceholdersAreReplaced(t *testing.T) {
	prompt := workbench(t).SystemPrompt
	if strings.Contains(prompt, "{{reference}}") || strings.Contains(prompt, "{{changesetReference}}") {
		t.Error("a placeholder is left")
	}
	got := template.Render("a {{reference}} b {{changesetReference}} c {{other}}")
	if strings.Contains(got, "{{reference}}") || strings.Contains(got, "{{changesetReference}}") || !strings.HasSuffix(got, "c {{other}}") {
		t.Errorf("rendered to %.200q…", got)
	}
	for _, placeholder := range []string{"{{reference}}", "{{changesetReference}}"} {
		if text := template.Render(placeholder); !strings.Contains(prompt, text) || len(text) < 500 {
			t.Errorf("what %s stands for is not in the prompt", placeholder)
		}
	}
}

func TestTheReferenceKnowsTheLanguage(t *testing.T) {
	changes := template.Render("{{changesetReference}}")
	for _, word := range []string{
		changeset.CodeStale, changeset.CodeMalformed, changeset.CodeTargetMissing, changeset.CodeDuplicateID, changeset.CodeEdgeEndpointMissing,
		"addNode", "updateNode", "renameNode", "removeNode", "addEdge", "updateEdge", "removeEdge", "metadata",
		"id", "baseRevision", "author", "summary", "ops", "patch", "unset", "newId", "node", "edge",
	} {
		if !regexp.MustCompile(`\b` + word + `\b`).MatchString(changes) {
			t.Errorf("the change-set reference does not name %s", word)
		}
	}
	if strings.Contains(changes, "restore") {
		t.Error("the change-set reference offers an operation that agents may not use")
	}
	reference := template.Render("{{reference}}")
	// Components are for runs from Git.
	for _, kind := range []workflow.Kind{
		workflow.KindStart, workflow.KindEnd, workflow.KindAction, workflow.KindHumanTask, workflow.KindReceiveEvent, workflow.KindWait,
	} {
		if !strings.Contains(reference, "`"+string(kind)+"`") {
			t.Errorf("the reference does not name the node type %s", kind)
		}
	}
	for _, scope := range expression.Scopes() {
		if !strings.Contains(reference, "`"+string(scope)+"`") {
			t.Errorf("the reference does not name the scope %s", scope)
		}
	}
	for _, field := range []string{"id", "type", "source", "eventSourceId", "ref", "timestamp", "actor", "payload"} {
		if !strings.Contains(reference, "`"+field+"`") {
			t.Errorf("the reference does not name the event's field %s", field)
		}
	}
}

func TestTheExampleApplies(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(template.Render("{{changesetReference}}"), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d examples, want one", len(blocks))
	}
	value, err := jsonvalue.Decode([]byte(blocks[0][1]))
	if err != nil {
		t.Fatal(err)
	}
	blank := workflow.Blank("triage")
	set := value.(map[string]any)
	if _, _, rejection := changeset.ApplyChecked(blank, set); rejection == nil || rejection.Code != changeset.CodeStale {
		t.Errorf("as it stands it is %v, want it to be stale", rejection)
	}
	if set["baseRevision"], err = changeset.Revision(blank); err != nil {
		t.Fatal(err)
	}
	result, _, rejection := changeset.ApplyChecked(blank, set)
	if rejection != nil {
		t.Fatalf("with its revision filled in it is rejected: %s", rejection)
	}
	if problems := workflow.Validate(result, expression.NewCache()); len(problems) > 0 {
		t.Errorf("its result has problems: %v", problems)
	}
}

func TestTheWorkbenchsTools(t *testing.T) {
	spec := workbench(t)
	for _, tool := range spec.AllowedTools {
		if !strings.HasPrefix(tool, "mcp__workbench__") && tool != "Bash(jq *)" {
			t.Errorf("it may use %s", tool)
		}
	}
	if diff := cmp.Diff([]api.MCPServer{{Name: "@axiom-workbench"}}, spec.MCPServers); diff != "" {
		t.Errorf("servers differ (-want +got):\n%s", diff)
	}
	if want := "Tell me what this workflow should do, or select something on the canvas and ask me to change it."; spec.WelcomeMessage != want {
		t.Errorf("welcome message %q", spec.WelcomeMessage)
	}
	spec.AllowedTools[0], spec.MCPServers[0].Name, spec.Capabilities[0] = "changed", "changed", "changed"
	if again := workbench(t); again.AllowedTools[0] == "changed" || again.MCPServers[0].Name == "changed" || again.Capabilities[0] == "changed" {
		t.Error("a caller can change the template of all")
	}
}

func TestOtherNamesAreNotBuiltIn(t *testing.T) {
	for _, name := range []string{"", "workbench", "Axiom-Workbench", "mine"} {
		if spec, found := template.BuiltIn(name); found || spec.SystemPrompt != "" {
			t.Errorf("%q is built in", name)
		}
	}
}

func TestCapabilities(t *testing.T) {
	for name, tc := range map[string]struct {
		template string
		bound    bool
		want     []string
	}{
		"the configuration assistant":        {"axiom-config-assistant", false, []string{"config-items", "validation-feedback"}},
		"the same on a composition":          {"axiom-config-assistant", true, []string{"composition", "config-items", "validation-feedback"}},
		"the general assistant":              {"general-assistant", false, []string{}},
		"the subject assistant":              {"subject-assistant", false, []string{}},
		"the workbench":                      {"axiom-workbench", true, []string{"composition"}},
		"the workbench, not bound":           {"axiom-workbench", false, []string{"composition"}},
		"a user's template on a composition": {"mine", true, []string{"composition"}},
		"a user's template, not bound":       {"mine", false, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, template.Capabilities(tc.template, tc.bound).Names()); diff != "" {
				t.Errorf("capabilities differ (-want +got):\n%s", diff)
			}
		})
	}
}
