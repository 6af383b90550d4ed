package form

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxSteps bounds how many schemas are held against values for one answer. References can ask for more than would ever
// end.
const maxSteps = 200_000

// acceptStrict takes an answer as it is. An object enters as its members, any other value under one key.
func acceptStrict(schema, answer any) (map[string]any, []FieldError) {
	steps := new(counter)
	compiled, err := compile(schema, steps)
	if err != nil {
		return nil, []FieldError{{Path: answerPath, Rule: RuleSchema}}
	}
	if wrong := validate(compiled, steps, answer); wrong != nil {
		return nil, wrong
	}
	if object, ok := answer.(map[string]any); ok {
		return maps.Clone(object), nil
	}
	return map[string]any{answerPath: answer}, nil
}

// A counter counts how many schemas are held against values, and ends a validation that goes on for too long. To the
// library it is a keyword that every schema has.
type counter struct {
	steps int
}

// errSteps is what a counter panics with, for the library has no other way to stop.
var errSteps = errors.New("too many steps")

func (c *counter) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL: "schema:///effort",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return c, nil
		},
	}
}

// Validate implements [jsonschema.SchemaExt].
func (c *counter) Validate(*jsonschema.ValidatorContext, any) {
	if c.steps++; c.steps > maxSteps {
		panic(errSteps)
	}
}

func validate(schema *jsonschema.Schema, steps *counter, answer any) (wrong []FieldError) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case errSteps:
			wrong = []FieldError{{Path: answerPath, Rule: RuleEffort}}
		default:
			panic(r)
		}
	}()
	steps.steps = 0
	err := schema.Validate(answer)
	if err == nil {
		return nil
	}
	var failure *jsonschema.ValidationError
	if !errors.As(err, &failure) {
		return []FieldError{{Path: answerPath, Rule: RuleSchema}}
	}
	wrong = collect(nil, answer, failure)
	slices.SortFunc(wrong, func(a, b FieldError) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(wrong)
}

// collect appends the failures that stand for themselves. Those below a choice are not among them: which of its
// alternatives was meant is not known.
func collect(wrong []FieldError, answer any, failure *jsonschema.ValidationError) []FieldError {
	switch k := failure.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range failure.Causes {
			wrong = collect(wrong, answer, cause)
		}
		return wrong
	case *kind.Required:
		return appendMembers(wrong, answer, failure, k.Missing)
	case *kind.DependentRequired:
		return appendMembers(wrong, answer, failure, k.Missing)
	case *kind.AdditionalProperties:
		return appendMembers(wrong, answer, failure, k.Properties)
	}
	return append(wrong, FieldError{Path: pathOf(answer, failure.InstanceLocation), Rule: ruleOf(failure)})
}

// appendMembers appends a failure for each of the members that an object lacks or has too many.
func appendMembers(wrong []FieldError, answer any, failure *jsonschema.ValidationError, names []string) []FieldError {
	for _, name := range names {
		location := append(slices.Clone(failure.InstanceLocation), name)
		wrong = append(wrong, FieldError{Path: pathOf(answer, location), Rule: ruleOf(failure)})
	}
	return wrong
}

// ruleOf is the keyword that failed. For some the library does not tell it.
func ruleOf(failure *jsonschema.ValidationError) string {
	switch failure.ErrorKind.(type) {
	case *kind.Not:
		return "not"
	case *kind.RefCycle:
		return "$ref"
	case *kind.FalseSchema:
		return "false"
	}
	if keywords := failure.ErrorKind.KeywordPath(); len(keywords) > 0 {
		return keywords[0]
	}
	return RuleSchema
}
