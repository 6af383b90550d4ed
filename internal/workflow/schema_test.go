package workflow

import (
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/pattern"
)

func TestCheckSchema(t *testing.T) {
	tests := map[string]struct {
		schema string
		want   string // part of the error, empty for none
	}{
		"true":                          {"true", ""},
		"false":                         {"false", ""},
		"anything":                      {"{}", ""},
		"an object of fields":           {"{type: object, additionalProperties: false, required: [a], properties: {a: {type: string, minLength: 1}, b: {type: [integer, 'null'], minimum: 0}}}", ""},
		"every applicator":              {"{allOf: [true], anyOf: [{}], oneOf: [{}], not: {}, if: {}, then: {}, else: {}, prefixItems: [{}], items: false, contains: {}, propertyNames: {}, dependentSchemas: {a: {}}, patternProperties: {'^x': {}}, unevaluatedItems: {}, unevaluatedProperties: false, contentSchema: {}}", ""},
		"annotations":                   {"{title: t, description: d, default: [1], examples: [1], deprecated: true, readOnly: false, writeOnly: false, format: date, x-more: {type: 1}, $comment: c}", ""},
		"the dialect":                   {"{$schema: 'https://json-schema.org/draft/2020-12/schema'}", ""},
		"a reference to itself":         {"{properties: {a: {$ref: '#'}}}", ""},
		"a reference to a definition":   {"{$ref: '#/$defs/a', $defs: {a: {type: string}}}", ""},
		"a pointer with escapes":        {"{$ref: '#/$defs/a~1b%25~0', $defs: {'a/b%~': true}}", ""},
		"a pointer into a list":         {"{anyOf: [{type: string}, {$ref: '#/anyOf/0'}]}", ""},
		"an anchor":                     {"{$ref: '#here', $defs: {a: {$anchor: here}}}", ""},
		"a dynamic anchor":              {"{$dynamicRef: '#here', $defs: {a: {$dynamicAnchor: here}}}", ""},
		"a resource within":             {"{properties: {a: {$id: 'https://x.test/a', $ref: '#/$defs/b', $defs: {b: {}}}}}", ""},
		"an anchor in two resources":    {"{$ref: '#a', $anchor: a, $defs: {b: {$id: b, $anchor: a, $ref: '#a'}}}", ""},
		"a reference to an extension":   {"{$ref: '#/x-more/a', x-more: {a: {$ref: '#/x-more/b'}, b: {type: string}}}", ""},
		"extensions in a circle":        {"{$ref: '#/x-more/a', x-more: {a: {$ref: '#/x-more/a'}}}", ""},
		"an id that is a plain name":    {"{$defs: {a: {$id: response}}}", ""},
		"vocabularies":                  {"{$vocabulary: {'https://x.test/v': false}}", ""},
		"an integral number":            {"{minLength: 2.0}", ""},
		"another dialect":               {"{$schema: 'http://json-schema.org/draft-07/schema#'}", "$schema must be the dialect"},
		"a list":                        {"[]", "must be a schema"},
		"an unknown type":               {"{type: text}", "type must be"},
		"a type twice":                  {"{type: [string, string]}", "type must be"},
		"no types":                      {"{type: []}", "type must be"},
		"a type within":                 {"{properties: {a: {items: {type: 1}}}}", `properties "a" items type must be`},
		"properties no object":          {"{properties: [a]}", "properties must be an object"},
		"a property no schema":          {"{properties: {a: string}}", `properties "a" must be a schema`},
		"allOf empty":                   {"{allOf: []}", "allOf must be a list of schemas"},
		"anyOf no list":                 {"{anyOf: {}}", "anyOf must be a list of schemas"},
		"oneOf no schemas":              {"{oneOf: [1]}", "oneOf 0 must be a schema"},
		"required no list":              {"{required: a}", "required must be"},
		"required twice":                {"{required: [a, a]}", "required must be"},
		"a length below zero":           {"{minLength: -1}", "minLength must be"},
		"a length with fraction":        {"{maxItems: 1.5}", "maxItems must be"},
		"a limit no number":             {"{minimum: '1'}", "minimum must be"},
		"a multiple of nothing":         {"{multipleOf: 0}", "multipleOf must be"},
		"a pattern that is none":        {"{pattern: '('}", "pattern must be"},
		"a property pattern":            {"{patternProperties: {'(': {}}}", "must be a regular expression"},
		"a pattern with many states":    {"{pattern: 'a{1000}{3}'}", "pattern must be"},
		"a pattern of some states":      {"{pattern: '(?:ab){400}'}", ""},
		"a pattern that counts far":     {"{pattern: '(?:ab){600}'}", "pattern must be a regular expression: the regular expression has over 2000 states"},
		"a pattern that is long":        {"{pattern: '" + strings.Repeat(".", pattern.MaxLength+1) + "'}", "over 4 KiB"},
		"a pattern no string":           {"{pattern: 1}", "pattern must be a regular expression"},
		"a property pattern too large":  {"{patternProperties: {'(?:ab){600}': {}}}", `"(?:ab){600}" must be a regular expression: the regular expression has over`},
		"an enum no list":               {"{enum: {a: 1}}", "enum must be"},
		"unique items no boolean":       {"{uniqueItems: 1}", "uniqueItems must be"},
		"dependents no list":            {"{dependentRequired: {a: b}}", "dependentRequired \"a\""},
		"dependents no object":          {"{dependentRequired: [a]}", "dependentRequired must be"},
		"an anchor no name":             {"{$anchor: '1'}", "$anchor must be"},
		"an id with fragment":           {"{$id: 'https://x.test/a#b'}", "$id must be"},
		"a title no string":             {"{title: 1}", "title must be"},
		"a reference out of itself":     {"{$ref: 'https://x.test/a'}", "must not refer out of itself"},
		"a reference to a file":         {"{items: {$ref: 'b.json#/c'}}", "must not refer out of itself"},
		"a reference no string":         {"{$ref: 1}", "must not refer out of itself"},
		"a pointer to nowhere":          {"{$ref: '#/$defs/a'}", "leads to no schema"},
		"a pointer to no schema":        {"{$ref: '#/required/0', required: [a]}", "leads to no schema"},
		"a pointer beyond a list":       {"{$ref: '#/allOf/1', allOf: [{}]}", "leads to no schema"},
		"an anchor twice":               {"{$anchor: a, items: {$dynamicAnchor: a}}", "$dynamicAnchor \"a\" stands twice"},
		"an anchor of a resource":       {"{$ref: '#a', $defs: {b: {$id: b, $anchor: a}}}", "leads to no anchor"},
		"an id twice":                   {"{$defs: {a: {$id: x}, b: {$id: ./x}}}", "$id \"./x\" stands twice"},
		"an extension no schema":        {"{$ref: '#/x-more/a', x-more: {a: {type: text}}}", `reference "#/x-more/a": type must be`},
		"an extension of an extension":  {"{$ref: '#/x-more/a', x-more: {a: {$ref: '#/x-more/b'}, b: {type: text}}}", `reference "#/x-more/b": type must be`},
		"vocabularies no object":        {"{$vocabulary: 1}", "$vocabulary must be"},
		"a pointer ill escaped":         {"{$ref: '#/%zz'}", "reference"},
		"a pointer with half an escape": {"{$ref: '#/$defs/a~2', $defs: {a~2: {}}}", "leads to no schema"},
		"an anchor nobody has":          {"{$ref: '#here'}", "leads to no anchor"},
		"a pointer out of a resource":   {"{$defs: {b: {}}, properties: {a: {$id: 'https://x.test/a', $ref: '#/$defs/b'}}}", "leads to no schema"},
		"too deep":                      {strings.Repeat("{not: ", 201) + "{}" + strings.Repeat("}", 201), "nested deeper than"},
		"as deep as may be":             {strings.Repeat("{not: ", 200) + "{}" + strings.Repeat("}", 200), ""},
		"too large":                     {`{"$comment": "` + strings.Repeat("x", MaxSchemaBytes-14) + `"}`, "bytes, the limit is 65536"},
		"as large as may be":            {`{"$comment": "` + strings.Repeat("x", MaxSchemaBytes-15) + `"}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			schema := parse(t, tc.schema)
			err := checkSchema(schema)
			if tc.want == "" && err != nil {
				t.Errorf("checkSchema() = %v, want none", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("checkSchema() = %v, want %q", err, tc.want)
			}
			// What passes here must not fail where answers are checked, in the middle of a run.
			if formErr := form.CheckSchema(schema); err == nil && formErr != nil {
				t.Errorf("form.CheckSchema() = %v, want none", formErr)
			}
		})
	}
}
