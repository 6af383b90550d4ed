package action

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/apitomy/axiom-operator/internal/placeholder"
)

// Problems lists what is wrong with an action type, rule by rule.
func (t Type) Problems(around Surroundings) []Problem {
	var r report
	r.name(t.Name)
	if strings.Contains(t.Name, ".") {
		r.fail("RESERVED_NAME", "name", "%s: names with a dot belong to built-in actions", show(t.Name))
	}
	r.description(t.Description)
	r.mode(t)
	r.typeScript(t)
	r.typePrompt(t, around)
	r.references(t, around)
	r.env(t.Env)
	types := []string{TypeString, TypeNumber, TypeBoolean, TypeObject}
	r.fields(fieldRules{list: "inputs", types: types}, t.Inputs)
	r.fields(fieldRules{list: "outputs", types: types}, t.Outputs)
	return r.found
}

func (r *report) mode(t Type) {
	if !t.RunsScript() && t.Mode != ModeAgent {
		r.fail("INVALID_MODE", "mode", "mode %s is not one of script, node, agent", show(t.Mode))
	}
	r.interpreter("script.interpreter", t.Script.Interpreter)
}

// inputPlaceholder is how other systems put an input into a script's text.
var inputPlaceholder = regexp.MustCompile(`\{\{\s*inputs\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

func (r *report) typeScript(t Type) {
	if !t.RunsScript() {
		return
	}
	const path = "script.scriptTemplate"
	r.script(path, t.Script.Template)
	var names []string
	for _, match := range inputPlaceholder.FindAllStringSubmatch(t.Script.Template, -1) {
		names = append(names, match[1])
	}
	for _, name := range unique(names) {
		r.fail("SCRIPT_PLACEHOLDER", path, "{{inputs.%s}} is not replaced: scripts read the variable AXIOM_INPUT_%s", name, name)
	}
}

func (r *report) typePrompt(t Type, around Surroundings) {
	if t.Mode != ModeAgent {
		return
	}
	const path = "agent.promptTemplate"
	if blank(t.Agent.Prompt) {
		r.fail("MISSING_PROMPT", path, "a prompt is needed")
	}
	for _, p := range placeholder.Find(t.Agent.Prompt) {
		if reason := judge(p, around.CheckPrompt); reason != "" {
			r.fail("INVALID_PLACEHOLDER", path, "placeholder in line %d %s", p.Line, reason)
		}
	}
}

// judge says what is wrong with a placeholder, or nothing.
func judge(p placeholder.Placeholder, check func(string) error) string {
	if err := p.Check(); err != nil {
		return err.Error()
	}
	if check == nil {
		return ""
	}
	if err := check(p.Expression); err != nil {
		return "does not compile: " + err.Error()
	}
	return ""
}

func (r *report) references(t Type, around Surroundings) {
	template := t.Agent.SessionTemplate
	if t.Mode == ModeAgent && template != "" && around.HasSessionTemplate != nil && !around.HasSessionTemplate(template) {
		r.fail("UNKNOWN_SESSION_TEMPLATE", "agent.sessionTemplate", "there is no session template %s", show(template))
	}
	if around.HasCredential == nil {
		return
	}
	for i, v := range t.Env {
		if v.Secret != nil && !blank(v.Secret.Name) && !around.HasCredential(v.Secret.Name) {
			r.fail("UNKNOWN_SECRET", fmt.Sprintf("env[%d].secretKeyRef.name", i), "there is no Secret %s labelled as a credential", show(v.Secret.Name))
		}
	}
}

func (r *report) env(env []EnvVar) {
	seen := map[string]bool{}
	for i, v := range env {
		path := fmt.Sprintf("env[%d]", i)
		if !identifier.MatchString(v.Name) || strings.HasPrefix(v.Name, "AXIOM_") {
			r.fail("INVALID_ENV_NAME", path+".name", "%s is not an identifier, or begins with AXIOM_", show(v.Name))
		}
		if seen[v.Name] {
			r.fail("DUPLICATE_ENV_NAME", path+".name", "%s is set twice", show(v.Name))
		}
		seen[v.Name] = true
		if v.Secret != nil && (blank(v.Secret.Name) || blank(v.Secret.Key)) {
			r.fail("INVALID_SECRET_REF", path+".secretKeyRef", "name and key of the Secret are needed")
		}
	}
}
