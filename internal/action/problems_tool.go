package action

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	usualToolName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	// plainPlaceholder is how other systems put a parameter into a tool's text.
	plainPlaceholder = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	parameterName    = regexp.MustCompile(`AXIOM_PARAM_([A-Za-z0-9_]+)`)
	parametersFile   = regexp.MustCompile(`\bAXIOM_PARAMS\b`)
)

// fileSuffix of a placeholder asks for a file with the parameter's value.
const fileSuffix = "_file"

// Problems lists what is wrong with a tool, rule by rule.
func (t Tool) Problems() []Problem {
	var r report
	r.name(t.Name)
	if !blank(t.Name) && !usualToolName.MatchString(t.Name) {
		r.warn("UNUSUAL_NAME", "name", "%s: agents expect lower-case letters, digits, - and _", show(t.Name))
	}
	r.description(t.Description)
	r.interpreter("interpreter", t.Interpreter)
	r.script("scriptTemplate", t.Template)
	r.toolPlaceholders(t)
	r.fields(fieldRules{list: "parameters", types: []string{TypeString, TypeNumber, TypeBoolean}, anyCase: true}, t.Parameters)
	r.parameterUse(t)
	r.labels(t.Labels)
	return r.found
}

func (t Tool) declares(name string) bool {
	return slices.ContainsFunc(t.Parameters, func(f Field) bool { return f.Name == name })
}

func (r *report) toolPlaceholders(t Tool) {
	var names []string
	for _, match := range plainPlaceholder.FindAllStringSubmatch(t.Template, -1) {
		names = append(names, match[1])
	}
	for _, name := range unique(names) {
		if t.declares(name) {
			r.fail("SCRIPT_PLACEHOLDER", "scriptTemplate", "{{%s}} is not replaced: scripts read the variable AXIOM_PARAM_%s", name, name)
			continue
		}
		if parameter, ok := strings.CutSuffix(name, fileSuffix); ok && t.declares(parameter) {
			r.fail("SCRIPT_PLACEHOLDER", "scriptTemplate",
				"{{%s}} is not replaced: scripts read the variable AXIOM_PARAM_%s, or the file named by AXIOM_PARAMS", name, parameter)
		}
	}
}

// parameterUse compares the variables a script names with the declared ones.
func (r *report) parameterUse(t Tool) {
	var used []string
	for _, match := range parameterName.FindAllStringSubmatch(t.Template, -1) {
		used = append(used, match[1])
	}
	for _, name := range unique(used) {
		if !t.declares(name) {
			r.fail("UNKNOWN_PARAMETER", "scriptTemplate", "AXIOM_PARAM_%.*s: no such parameter is declared", maxShown, name)
		}
	}
	if parametersFile.MatchString(t.Template) {
		return
	}
	for i, f := range t.Parameters {
		if identifier.MatchString(f.Name) && !slices.Contains(used, f.Name) {
			r.warn("UNUSED_PARAMETER", fmt.Sprintf("parameters[%d].name", i), "the script reads neither AXIOM_PARAM_%.*s nor AXIOM_PARAMS", maxShown, f.Name)
		}
	}
}

func (r *report) labels(labels []string) {
	seen := map[string]bool{}
	for i, label := range labels {
		path := fmt.Sprintf("labels[%d]", i)
		key := strings.ToLower(label)
		switch {
		case blank(label):
			r.fail("BLANK_LABEL", path, "a label must not be blank")
		case seen[key]:
			r.warn("DUPLICATE_LABEL", path, "%s is repeated", show(label))
		}
		seen[key] = true
	}
}
