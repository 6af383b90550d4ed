package form

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/pattern"
)

const (
	// MaxSchemaSize bounds the compact JSON of a schema, in bytes.
	MaxSchemaSize = 64 << 10
	// dialect is the only one that is read.
	dialect = "https://json-schema.org/draft/2020-12/schema"
	// schemaURL is where a schema pretends to be; nothing is ever loaded. No id that a part of the schema may have, relative
	// to this, is the same.
	schemaURL = "schema:///?response"
)

// CheckSchema tells why a JSON tree cannot be the schema of an answer: it must be a JSON Schema 2020-12 of at most 64
// KiB that refers to nothing outside itself.
func CheckSchema(schema any) error {
	_, err := compile(schema, new(counter))
	return err
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
