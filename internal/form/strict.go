package form

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/pattern"
)

const (
	// MaxSchemaSize bounds the compact JSON of a schema, in bytes.
	MaxSchemaSize = 64 << 10
	// maxSteps bounds how many schemas are held against values for one answer. References can ask for more than
	// would ever end.
	maxSteps = 200_000
	// dialect is the only one that is read.
	dialect = "https://json-schema.org/draft/2020-12/schema"
	// schemaURL is where a schema pretends to be; nothing is ever loaded.
	schemaURL = "schema:///response"
)

// CheckSchema tells why a JSON tree cannot be the schema of an answer: it must be a JSON Schema 2020-12 of at most 64
// KiB that refers to nothing outside itself.
func CheckSchema(schema any) error {
	_, err := compile(schema, new(counter))
	return err
}

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

func compile(schema any, steps *counter) (*jsonschema.Schema, error) {
	if size := jsonvalue.Size(schema); size > MaxSchemaSize {
		return nil, fmt.Errorf("the schema has %d bytes, the limit is %d", size, MaxSchemaSize)
	}
	if err := checkReferences(schema); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(sealed{})
	compiler.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) { return pattern.Compile(source) })
	compiler.RegisterVocabulary(steps.vocabulary())
	compiler.AssertVocabs()
	if err := compiler.AddResource(schemaURL, schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return compiled, nil
}

// sealed is the world outside a schema.
type sealed struct{}

var errOutside = errors.New("a schema must not refer out of itself")

// Load implements [jsonschema.URLLoader].
func (sealed) Load(string) (any, error) {
	return nil, errOutside
}

// checkReferences looks through a schema for references that leave it and for other dialects. The library would follow
// references to the meta-schemas it carries.
func checkReferences(schema any) error {
	object, _ := schema.(map[string]any)
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		if err := checkKeyword(keyword, object[keyword]); err != nil {
			return err
		}
	}
	return nil
}

func checkKeyword(keyword string, value any) error {
	switch keyword {
	case "const", "enum", "default", "examples":
		return nil // data, whatever they look like
	case "$schema":
		if strings.TrimSuffix(text(value), "#") != dialect {
			return fmt.Errorf("$schema must be %s", dialect)
		}
	case "$ref", "$dynamicRef":
		if !strings.HasPrefix(text(value), "#") {
			return errOutside
		}
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		schemas, _ := value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			if err := checkReferences(schemas[name]); err != nil {
				return err
			}
		}
	default:
		return checkAny(value)
	}
	return nil
}

// checkAny looks into a keyword that has a schema, or a list of them.
func checkAny(value any) error {
	list, isList := value.([]any)
	if !isList {
		return checkReferences(value)
	}
	for _, schema := range list {
		if err := checkReferences(schema); err != nil {
			return err
		}
	}
	return nil
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
