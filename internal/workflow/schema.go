package workflow

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/pattern"
)

// MaxSchemaBytes bounds the compact JSON of a response schema.
const MaxSchemaBytes = 64 << 10

// dialect is the only one of JSON Schema that is read.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// maxSchemaDepth bounds how deep schemas may nest.
const maxSchemaDepth = 200

// checkSchema holds a schema against what JSON Schema 2020-12 says about schemas, and follows every reference: each must
// lead to a schema within the same document. Keywords it does not know are annotations and pass, unless a reference
// makes a schema of them.
func checkSchema(schema any) error {
	if size := jsonvalue.Size(schema); size > MaxSchemaBytes {
		return fmt.Errorf("it has %d bytes, the limit is %d", size, MaxSchemaBytes)
	}
	s := &schemaChecker{rules: schemaRules(), ids: map[string]bool{}, seen: map[uintptr]bool{}}
	if err := s.schema(schema, newResource(schema, &url.URL{Path: "/"}), 0); err != nil {
		return err
	}
	for i := 0; i < len(s.references); i++ { //nolint:intrange // resolving finds more
		if err := s.resolve(s.references[i]); err != nil {
			return err
		}
	}
	return nil
}

// A resource is a schema that references in it are relative to.
type resource struct {
	schema any
	// base is what the ids of schemas in it are relative to.
	base *url.URL
	// anchors are the names that schemas in it gave themselves.
	anchors map[string]bool
}

func newResource(schema any, base *url.URL) *resource {
	return &resource{schema: schema, base: base, anchors: map[string]bool{}}
}

// A reference is one that was met, with the resource it was met in.
type reference struct {
	text string
	in   *resource
}

type schemaChecker struct {
	rules      map[string]schemaRule
	references []reference
	// ids are those of all resources, made absolute.
	ids map[string]bool
	// seen are the objects that were judged as schemas.
	seen map[uintptr]bool
}

// A schemaRule judges the value of a keyword.
type schemaRule func(s *schemaChecker, v any, in *resource, depth int) error

func schemaRules() map[string]schemaRule {
	rules := map[string]schemaRule{
		"$schema":     keyword("the dialect "+dialect, func(v any) bool { return strings.TrimSuffix(text(v), "#") == dialect }),
		"$id":         keyword("a URI without fragment", isSchemaID),
		"$vocabulary": keyword("an object of booleans", isVocabulary),
		"$ref":        (*schemaChecker).reference, "$dynamicRef": (*schemaChecker).reference,
		"$anchor": (*schemaChecker).anchor, "$dynamicAnchor": (*schemaChecker).anchor,
		"type":              keyword("a type or a list of different types", isSchemaType),
		"enum":              keyword("a list", isList),
		"pattern":           func(_ *schemaChecker, v any, _ *resource, _ int) error { return checkPattern(v) },
		"multipleOf":        keyword("a number above 0", func(v any) bool { n, ok := jsonvalue.Number(v); return ok && n > 0 }),
		"required":          keyword("a list of different strings", isNameList),
		"dependentRequired": (*schemaChecker).dependentRequired,
		"patternProperties": (*schemaChecker).patternProperties,
		"uniqueItems":       keyword("a boolean", isBool),
	}
	add := func(rule schemaRule, names ...string) {
		for _, name := range names {
			rules[name] = rule
		}
	}
	add((*schemaChecker).subschema, "items", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema")
	add((*schemaChecker).subschemaList, "allOf", "anyOf", "oneOf", "prefixItems")
	add((*schemaChecker).subschemaMap, "properties", "$defs", "definitions", "dependentSchemas")
	add(keyword("a number", isNumber), "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
	add(keyword("an integer from 0", isCount), "maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains",
		"maxProperties", "minProperties")
	add(keyword("a string", isString), "$comment", "title", "description", "format", "contentEncoding", "contentMediaType")
	add(keyword("a boolean", isBool), "deprecated", "readOnly", "writeOnly")
	add(keyword("a list", isList), "examples")
	return rules
}

// keyword judges a value on its own.
func keyword(want string, is jsonType) schemaRule {
	return func(_ *schemaChecker, v any, _ *resource, _ int) error {
		if !is(v) {
			return fmt.Errorf("must be %s", want)
		}
		return nil
	}
}

func isSchemaID(v any) bool {
	id, err := url.Parse(text(v))
	return isString(v) && err == nil && id.Fragment == ""
}

func isVocabulary(v any) bool {
	for _, required := range object(v) {
		if !isBool(required) {
			return false
		}
	}
	return isObject(v)
}

func isSchemaType(v any) bool {
	names := []any{v}
	if isList(v) {
		names = list(v)
	}
	known := []string{"null", "boolean", "object", "array", "number", "string", "integer"}
	for i, name := range names {
		if !slices.Contains(known, text(name)) || slices.Contains(names[:i], name) {
			return false
		}
	}
	return len(names) > 0
}

// checkPattern holds a regular expression against the limits that stand where answers are matched.
func checkPattern(v any) error {
	if !isString(v) {
		return errors.New("must be a regular expression")
	}
	if _, err := pattern.Measure(text(v)); err != nil {
		return fmt.Errorf("must be a regular expression: %w", err)
	}
	return nil
}

func isCount(v any) bool {
	n, ok := integer(v)
	return ok && n >= 0
}

func isNameList(v any) bool {
	names := texts(v)
	slices.Sort(names)
	return isStringList(v) && len(slices.Compact(names)) == len(list(v))
}

// schema judges one schema and what is in it, in the order of the keywords' names.
func (s *schemaChecker) schema(v any, in *resource, depth int) error {
	if isBool(v) {
		return nil
	}
	raw, ok := v.(map[string]any)
	switch {
	case !ok:
		return errors.New("must be a schema: an object or a boolean")
	case depth > maxSchemaDepth:
		return fmt.Errorf("is nested deeper than %d", maxSchemaDepth)
	}
	s.seen[reflect.ValueOf(raw).Pointer()] = true
	in, err := s.resourceOf(raw, in)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		rule, known := s.rules[name]
		if !known {
			continue
		}
		if err := rule(s, raw[name], in, depth); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	return nil
}

// resourceOf is the resource that a schema with an id begins, or else the one it stands in.
func (s *schemaChecker) resourceOf(raw map[string]any, in *resource) (*resource, error) {
	id, given := raw["$id"].(string)
	if !given || !isSchemaID(id) { // which is for the rule of the keyword to tell
		return in, nil
	}
	base, err := in.base.Parse(id)
	if err != nil {
		return nil, fmt.Errorf("$id %s: %w", show(id), err)
	}
	if s.ids[base.String()] {
		return nil, fmt.Errorf("$id %s stands twice", show(id))
	}
	s.ids[base.String()] = true
	return newResource(raw, base), nil
}

func (s *schemaChecker) subschema(v any, in *resource, depth int) error {
	return s.schema(v, in, depth+1)
}

func (s *schemaChecker) subschemaList(v any, in *resource, depth int) error {
	if len(list(v)) == 0 {
		return errors.New("must be a list of schemas and not empty")
	}
	for i, entry := range list(v) {
		if err := s.schema(entry, in, depth+1); err != nil {
			return fmt.Errorf("%d %w", i, err)
		}
	}
	return nil
}

func (s *schemaChecker) subschemaMap(v any, in *resource, depth int) error {
	if !isObject(v) {
		return errors.New("must be an object of schemas")
	}
	for _, name := range slices.Sorted(maps.Keys(object(v))) {
		if err := s.schema(object(v)[name], in, depth+1); err != nil {
			return fmt.Errorf("%s %w", show(name), err)
		}
	}
	return nil
}

func (s *schemaChecker) patternProperties(v any, in *resource, depth int) error {
	for _, source := range slices.Sorted(maps.Keys(object(v))) {
		if err := checkPattern(source); err != nil {
			return fmt.Errorf("%s %w", show(source), err)
		}
	}
	return s.subschemaMap(v, in, depth)
}

func (s *schemaChecker) dependentRequired(v any, _ *resource, _ int) error {
	if !isObject(v) {
		return errors.New("must be an object of lists")
	}
	for _, name := range slices.Sorted(maps.Keys(object(v))) {
		if !isNameList(object(v)[name]) {
			return fmt.Errorf("%s must be a list of different strings", show(name))
		}
	}
	return nil
}

// anchorName is the grammar of anchors.
var anchorName = regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9._]*$`)

func (s *schemaChecker) anchor(v any, in *resource, _ int) error {
	name := text(v)
	switch {
	case !anchorName.MatchString(name):
		return errors.New("must be a name")
	case in.anchors[name]:
		return fmt.Errorf("%s stands twice", show(name))
	}
	in.anchors[name] = true
	return nil
}

func (s *schemaChecker) reference(v any, in *resource, _ int) error {
	if !strings.HasPrefix(text(v), "#") {
		return fmt.Errorf("%s must begin with #: a schema must not refer out of itself", show(text(v)))
	}
	s.references = append(s.references, reference{text: text(v), in: in})
	return nil
}

// resolve requires a reference to lead to a schema.
func (s *schemaChecker) resolve(ref reference) error {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref.text, "#"))
	if err != nil {
		return fmt.Errorf("reference %s: %w", show(ref.text), err)
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		if !ref.in.anchors[fragment] {
			return fmt.Errorf("reference %s leads to no anchor", show(ref.text))
		}
		return nil
	}
	target := lookUp(ref.in.schema, fragment)
	if !isSchema(target) || !pointerGrammar.MatchString(fragment) {
		return fmt.Errorf("reference %s leads to no schema", show(ref.text))
	}
	if isBool(target) || s.seen[reflect.ValueOf(target).Pointer()] {
		return nil
	}
	// Whoever looks for anchors does not look behind keywords that are unknown.
	if err := s.schema(target, newResource(ref.in.schema, ref.in.base), 0); err != nil {
		return fmt.Errorf("reference %s: %w", show(ref.text), err)
	}
	return nil
}

// pointerGrammar is that of JSON pointers: behind a tilde stands 0 or 1.
var pointerGrammar = regexp.MustCompile(`^(?:[^~]|~[01])*$`)

// lookUp follows a JSON pointer, to nil where it leads nowhere.
func lookUp(v any, pointer string) any {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if entries, ok := v.([]any); ok {
			at, err := strconv.Atoi(token)
			if err != nil || at < 0 || at >= len(entries) {
				return nil
			}
			v = entries[at]
			continue
		}
		v = object(v)[token]
	}
	return v
}
