package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

func (x checkAnswer) tell(p *page) {
	if !x.Valid {
		p.line("%s, %s", p.Paint(terminal.Red, "refused"), plural(len(x.Problems), "problem"))
		for _, problem := range x.Problems {
			p.line("  %s: %s", clean(problem.Path), clean(problem.Rule))
		}
		return
	}
	p.line("%s, enters the run as", p.Paint(terminal.Green, "accepted"))
	for _, name := range slices.Sorted(maps.Keys(x.Answer)) {
		p.line("  %s: %s", clean(name), valueText(x.Answer[name]))
	}
}

func (a *app) check() *cobra.Command {
	cmd := leaf("check --schema FILE --answer FILE [-o json]", "Check an answer against the form of a human task", `
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
	require(cmd, "schema", "answer")
	a.addOutput(cmd, formatText, formatJSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		spec, err := a.loadForm(schema)
		if err != nil {
			return err
		}
		given, err := a.load(path)
		if err != nil {
			return err
		}
		answer := checkAnswerOf(form.Accept(spec, given.Value))
		if err := a.show(answer); err != nil {
			return err
		}
		return verdict(answer.Valid)
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
	doc, err := a.load(path)
	if err != nil {
		return form.Spec{}, err
	}
	object, err := doc.Object()
	if err != nil {
		return form.Spec{}, err
	}
	if textOf(object["kind"]) == "HumanTask" {
		spec, ok := doc.Part("spec")
		if !ok {
			return form.Spec{}, doc.Errorf(nil, "the HumanTask has no spec")
		}
		doc = spec
	}
	return formOf(doc)
}

var taskMembers = []string{"form", "responseSchema", "runRef", "humanContext", "assignees", "expiresAfter"}

func formOf(doc *source.Document) (form.Spec, error) {
	object, err := doc.Object()
	if err != nil {
		return form.Spec{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(taskMembers, name) {
			return form.Spec{}, doc.Errorf([]any{name}, "a human task has no %q, only %s", name, strings.Join(taskMembers, ", "))
		}
	}
	schema := object["responseSchema"]
	if schema != nil && object["form"] != nil {
		return form.Spec{}, doc.Errorf([]any{"responseSchema"}, "form and responseSchema exclude each other")
	}
	fields, err := fieldsOf(doc, object["form"])
	return form.Spec{Fields: fields, ResponseSchema: schema}, err
}

func fieldsOf(doc *source.Document, v any) ([]form.Field, error) {
	if v == nil {
		return nil, nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, doc.Errorf([]any{"form"}, "form must be an object, this is %s", source.Describe(v))
	}
	list, ok := object["fields"].([]any)
	if !ok && object["fields"] != nil {
		return nil, doc.Errorf([]any{"form", "fields"}, "fields must be a list, this is %s", source.Describe(object["fields"]))
	}
	for i, entry := range list {
		field, _ := entry.(map[string]any)
		if strings.TrimSpace(textOf(field["name"])) == "" {
			return nil, doc.Errorf([]any{"form", "fields", i}, "a field must be an object with a name")
		}
	}
	return form.FieldsOf(list), nil
}
