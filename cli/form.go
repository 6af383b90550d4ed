package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/form"
)

type checkAnswer struct {
	Valid bool `json:"valid"`
	// Answer is what enters the run, null if nothing does.
	Answer   map[string]any `json:"answer"`
	Problems []formProblem  `json:"problems"`
}

type formProblem struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

func (x checkAnswer) Tell(p *command.Page) {
	if !x.Valid {
		p.Line("%s, %s", p.Paint(terminal.Red, "refused"), command.Plural(len(x.Problems), "problem"))
		for _, problem := range x.Problems {
			p.Line("  %s: %s", command.Clean(problem.Path), command.Clean(problem.Rule))
		}
		return
	}
	p.Line("%s, enters the run as", p.Paint(terminal.Green, "accepted"))
	for _, name := range slices.Sorted(maps.Keys(x.Answer)) {
		p.Line("  %s: %s", command.Clean(name), command.ValueText(x.Answer[name]))
	}
}

func (a *app) check() *cobra.Command {
	cmd := command.Leaf("check --schema FILE --answer FILE [-o json]", "Check an answer against the form of a human task", `
Checks an answer as admission does, and shows what enters the run. The schema is
{"form": {"fields": […]}}, {"responseSchema": {…}}, or a whole HumanTask manifest.
A form turns text into what its fields ask for ("3" into 3, "true" into true); a
response schema turns nothing into anything. With neither any object will do.`, `
  axiom form check --schema task.yaml --answer answer.json
  kubectl get humantask release-17-4be1d0c29a7f3e65 -o yaml |
    axiom form check --schema - --answer answer.json -o json`)
	var schema, path string
	fileFlag(cmd, &schema, "schema", "the form or the response schema")
	fileFlag(cmd, &path, "answer", "the answer")
	command.Require(cmd, "schema", "answer")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		spec, err := a.loadForm(schema)
		if err != nil {
			return err
		}
		given, err := a.loader.Load(path)
		if err != nil {
			return err
		}
		answer := checkAnswerOf(form.Admit(spec, given.Value))
		if err := a.Show(answer); err != nil {
			return err
		}
		return command.Verdict(answer.Valid)
	}
	return cmd
}

func checkAnswerOf(accepted map[string]any, errs []form.FieldError) checkAnswer {
	answer := checkAnswer{Valid: len(errs) == 0, Problems: []formProblem{}}
	for _, err := range errs {
		answer.Problems = append(answer.Problems, formProblem{Path: err.Path, Rule: err.Rule})
	}
	if answer.Valid {
		answer.Answer = accepted
	}
	return answer
}

// loadForm reads what a human task asks for. A misspelt member would ask for
// nothing, so only those of a task are taken.
func (a *app) loadForm(path string) (form.Spec, error) {
	doc, err := a.loadManifest(path)
	if err != nil {
		return form.Spec{}, err
	}
	object, err := doc.Object()
	if err != nil {
		return form.Spec{}, err
	}
	if command.TextOf(object["kind"]) == "HumanTask" {
		spec, ok := doc.Part("spec")
		if !ok {
			return form.Spec{}, doc.Errorf(nil, "the HumanTask has no spec")
		}
		doc = spec
	}
	return formOf(doc)
}

// Members of a task's spec and of what is in it, with what source.Describe calls
// their values; an empty text stands for any.
var (
	taskMembers = map[string]string{
		"form": "an object", "responseSchema": "", "runRef": "", "humanContext": "", "assignees": "", "expiresAfter": "",
		"fingerprint": "",
	}
	formMembers  = map[string]string{"fields": "a list"}
	fieldMembers = map[string]string{
		"name": "text", "type": "text", "widget": "text", "label": "text", "description": "text",
		"required": "a boolean", "defaultValue": "", "options": "a list",
	}
	optionMembers = map[string]string{"label": "text", "value": "text"}
)

func formOf(doc *source.Document) (form.Spec, error) {
	task, err := membersOf(doc, nil, "a human task", taskMembers)
	if err != nil {
		return form.Spec{}, err
	}
	schema := task["responseSchema"]
	switch {
	case task["form"] == nil:
		return form.Spec{ResponseSchema: schema}, nil
	case schema != nil:
		return form.Spec{}, doc.Errorf([]any{"responseSchema"}, "form and responseSchema exclude each other")
	}
	asked, err := membersOf(doc, []any{"form"}, "a form", formMembers)
	if err != nil {
		return form.Spec{}, err
	}
	fields, _ := asked["fields"].([]any)
	for i := range fields {
		if err := checkField(doc, []any{"form", "fields", i}); err != nil {
			return form.Spec{}, err
		}
	}
	return form.Spec{Fields: form.FieldsOf(fields)}, nil
}

func checkField(doc *source.Document, path []any) error {
	field, err := membersOf(doc, path, "a field", fieldMembers)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(command.TextOf(field["name"])) == "":
		return doc.Errorf(path, "a field must have a name")
	}
	options, _ := field["options"].([]any)
	for i := range options {
		if _, err := membersOf(doc, slices.Concat(path, []any{"options", i}), "an option", optionMembers); err != nil {
			return err
		}
	}
	return nil
}

// membersOf is the object at a path, of which only the known members may be
// given: one that is misspelt, or of another type, would ask for nothing.
func membersOf(doc *source.Document, path []any, what string, known map[string]string) (map[string]any, error) {
	part, _ := doc.Part(path...)
	object, ok := part.Value.(map[string]any)
	if !ok {
		return nil, doc.Errorf(path, "%s must be an object, this is %s", what, source.Describe(part.Value))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		want, isKnown := known[name]
		at, got := slices.Concat(path, []any{name}), source.Describe(object[name])
		switch {
		case !isKnown:
			return nil, doc.Errorf(at, "%s has no %q, only %s", what, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case want != "" && want != got && object[name] != nil:
			return nil, doc.Errorf(at, "%s must be %s, this is %s", name, want, got)
		}
	}
	return object, nil
}
