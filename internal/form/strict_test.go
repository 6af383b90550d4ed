package form

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestStrictMode(t *testing.T) {
	const person = `{
		"type": "object", "required": ["name", "age"], "additionalProperties": false,
		"properties": {
			"name": {"type": "string", "pattern": "^[a-z]+$"},
			"age": {"type": "integer", "minimum": 0},
			"tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": true},
			"kind": {"enum": ["a", 1, null]},
			"pet": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["name"]}]},
			"home": {"$ref": "#/$defs/place"}
		},
		"$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}, "within": {"$ref": "#/$defs/place"}}}}
	}`
	tests := map[string]struct {
		schema string
		answer string
		want   string   // members, or empty
		wrong  []string // or errors
	}{
		"an object enters as its members":  {person, `{"name":"ann","age":7}`, `{"name":"ann","age":7}`, nil},
		"an integer spelt as a double":     {person, `{"name":"ann","age":7.0}`, `{"name":"ann","age":7}`, nil},
		"no coercion":                      {person, `{"name":"ann","age":"7"}`, "", []string{"age: type"}},
		"no default":                       {`{"properties":{"a":{"default":1}}}`, `{}`, `{}`, nil},
		"what is missing":                  {person, `{}`, "", []string{"age: required", "name: required"}},
		"what is too much":                 {person, `{"name":"ann","age":7,"x":1,"y":2}`, "", []string{"x: additionalProperties", "y: additionalProperties"}},
		"open without saying so":           {`{"type":"object"}`, `{"x":1}`, `{"x":1}`, nil},
		"a pattern":                        {person, `{"name":"Ann","age":7}`, "", []string{"name: pattern"}},
		"a bound":                          {person, `{"name":"ann","age":-1}`, "", []string{"age: minimum"}},
		"inside a list":                    {person, `{"name":"ann","age":7,"tags":["a","long","b",1]}`, "", []string{"tags[1]: maxLength", "tags[3]: type"}},
		"a list as a whole":                {person, `{"name":"ann","age":7,"tags":["a","a"]}`, "", []string{"tags: uniqueItems"}},
		"an enumeration":                   {person, `{"name":"ann","age":7,"kind":"b"}`, "", []string{"kind: enum"}},
		"an enumeration across spellings":  {person, `{"name":"ann","age":7,"kind":1.0}`, `{"name":"ann","age":7,"kind":1}`, nil},
		"a choice":                         {person, `{"name":"ann","age":7,"pet":{"age":1}}`, "", []string{"pet: oneOf"}},
		"a reference":                      {person, `{"name":"ann","age":7,"home":{"city":1}}`, "", []string{"home.city: type"}},
		"a recursive reference":            {person, `{"name":"ann","age":7,"home":{"within":{"within":{"city":1}}}}`, "", []string{"home.within.within.city: type"}},
		"several errors":                   {person, `{"name":1,"age":-1,"kind":2}`, "", []string{"age: minimum", "kind: enum", "name: type"}},
		"the answer as a whole":            {person, `[]`, "", []string{"answer: type"}},
		"a text enters under one key":      {`{"type":"string"}`, `"x"`, `{"answer":"x"}`, nil},
		"a list enters under one key":      {`{"type":"array"}`, `[1]`, `{"answer":[1]}`, nil},
		"a boolean enters under one key":   {`true`, `false`, `{"answer":false}`, nil},
		"anything is an answer":            {`{}`, `{"a":null}`, `{"a":null}`, nil},
		"nothing is an answer":             {`false`, `{}`, "", []string{"answer: false"}},
		"nothing is a member":              {`{"properties":{"a":false}}`, `{"a":1}`, "", []string{"a: false"}},
		"a negation":                       {`{"not":{"required":["a"]}}`, `{"a":1}`, "", []string{"answer: not"}},
		"all of several":                   {`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "", []string{"a: required", "b: required"}},
		"any of several":                   {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "", []string{"answer: anyOf"}},
		"a condition":                      {`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, "", []string{"b: required"}},
		"what depends":                     {`{"dependentRequired":{"a":["b","c"]}}`, `{"a":1}`, "", []string{"b: dependentRequired", "c: dependentRequired"}},
		"names of members":                 {`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, "", []string{"answer: propertyNames"}},
		"unevaluated members":              {`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"b":1}`, "", []string{"b: false"}},
		"a dynamic reference":              {`{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"}},"required":["v"]}`, `{"v":1,"c":{}}`, "", []string{"c.v: required"}},
		"formats are annotations":          {`{"properties":{"a":{"format":"email"}}}`, `{"a":"x"}`, `{"a":"x"}`, nil},
		"unknown keywords are annotations": {`{"x-order":["$ref"],"title":"T"}`, `{}`, `{}`, nil},
		"the dialect may be named":         {`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `{}`, `{}`, nil},
		"data that look like references":   {`{"const":{"$ref":"http://x"},"default":{"$schema":1},"examples":[{"$ref":1}]}`, `{"$ref":"http://x"}`, `{"$ref":"http://x"}`, nil},
		"a property that looks like one":   {`{"properties":{"$ref":{"type":"string"}}}`, `{"$ref":1}`, "", []string{"$ref: type"}},
		"a reference to a resource inside": {`{"$defs":{"a":{"$id":"schema:///a","$defs":{"b":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/b"}}}},"properties":{"y":{"$ref":"#/$defs/a"}}}`, `{"y":{"x":1}}`, "", []string{"y.x: type"}},
		"a cycle of references":            {`{"$ref":"#"}`, `{}`, "", []string{"answer: $ref"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			schema := decode(t, tc.schema)
			if err := CheckSchema(schema); err != nil {
				t.Fatalf("CheckSchema: %v", err)
			}
			got, wrong := Accept(Spec{ResponseSchema: schema}, decode(t, tc.answer))
			var errs []string
			for _, e := range wrong {
				errs = append(errs, e.Error())
			}
			if diff := cmp.Diff(tc.wrong, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if tc.want == "" {
				return
			}
			if diff := cmp.Diff(decode(t, tc.want), any(got)); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckSchemaRefuses(t *testing.T) {
	tests := map[string]string{
		"no schema":                    `"x"`,
		"a list":                       `[]`,
		"an unknown type":              `{"type":"text"}`,
		"a keyword of the wrong type":  `{"required":"a"}`,
		"a keyword out of bounds":      `{"minLength":-1}`,
		"a bad pattern":                `{"pattern":"("}`,
		"a huge pattern":               `{"pattern":"` + strings.Repeat("a{1000}", 10) + `"}`,
		"a huge pattern of names":      `{"patternProperties":{"` + strings.Repeat("a{1000}", 10) + `":{}}}`,
		"a remote reference":           `{"$ref":"https://example.com/schema"}`,
		"a reference to a file":        `{"$ref":"file:///etc/passwd"}`,
		"a reference to a sibling":     `{"$ref":"other.json"}`,
		"a nested remote reference":    `{"properties":{"a":{"items":{"$ref":"https://example.com/x"}}}}`,
		"one in a list":                `{"allOf":[{"$ref":"https://example.com/x"}]}`,
		"one below a property const":   `{"properties":{"const":{"$ref":"https://example.com/x"}}}`,
		"a reference to a meta-schema": `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		"a dynamic remote reference":   `{"$dynamicRef":"https://example.com/x#a"}`,
		"a reference that is no text":  `{"$ref":1}`,
		"a reference to nothing":       `{"$ref":"#/$defs/missing"}`,
		"an anchor that is missing":    `{"$ref":"#missing"}`,
		"another dialect":              `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
		"an own dialect":               `{"$schema":"https://example.com/dialect"}`,
		"another dialect inside":       `{"$defs":{"a":{"$id":"schema:///a","$schema":"http://json-schema.org/draft-04/schema#"}}}`,
		"over the limit":               `{"title":"` + strings.Repeat("a", MaxSchemaSize) + `"}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			schema := decode(t, text)
			if err := CheckSchema(schema); err == nil {
				t.Error("no error")
			}
			got, wrong := Accept(Spec{ResponseSchema: schema}, map[string]any{})
			if diff := cmp.Diff([]FieldError{{"answer", RuleSchema}}, wrong); diff != "" || got != nil {
				t.Errorf("accepted %v (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestSchemaOfExactlyTheLimit(t *testing.T) {
	schema := map[string]any{"title": strings.Repeat("a", MaxSchemaSize-len(`{"title":""}`))}
	if err := CheckSchema(schema); err != nil {
		t.Error(err)
	}
}

// TestEffortIsBounded uses schemas that double the work with each step.
func TestEffortIsBounded(t *testing.T) {
	var definitions []string
	for i := range 40 {
		definitions = append(definitions, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	tests := map[string]struct{ schema, answer string }{
		"references to references": {`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(definitions, ",") + `,"d40":{}}}`, `{}`},
		"a deep answer": {
			`{"$defs":{"d":{"properties":{"a":{"$ref":"#/$defs/d"}}, "allOf":[{"properties":{"a":{"$ref":"#/$defs/d"}}}]}},"$ref":"#/$defs/d"}`,
			strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			schema := decode(t, tc.schema)
			if err := CheckSchema(schema); err != nil {
				t.Fatal(err)
			}
			_, wrong := Accept(Spec{ResponseSchema: schema}, decode(t, tc.answer))
			if diff := cmp.Diff([]FieldError{{"answer", RuleEffort}}, wrong); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLargeAnswersAreWithinTheEffort(t *testing.T) {
	answer := decode(t, `{"list":[`+strings.TrimSuffix(strings.Repeat("1,", 32_000), ",")+`]}`)
	schema := decode(t, `{"properties":{"list":{"items":{"allOf":[{"type":"integer"},{"minimum":0}]}}}}`)
	if _, wrong := Accept(Spec{ResponseSchema: schema}, answer); wrong != nil {
		t.Errorf("refused: %v", wrong)
	}
}

func TestErrorsDoNotRepeatValues(t *testing.T) {
	const secret = "hunter2"
	schema := decode(t, `{
		"properties":{"a":{"const":1},"b":{"pattern":"^x"},"c":{"enum":[1]},"d":{"type":"object","required":["x"]},"e":{"maxLength":1},
		"f":{"oneOf":[{"const":1},{"const":2}]},"g":{"not":{"type":"string"}},"h":{"format":"email","type":"integer"}}}`)
	answer := map[string]any{}
	for name := range strings.SplitSeq("abcdefgh", "") {
		answer[name] = secret
	}
	_, strict := Accept(Spec{ResponseSchema: schema}, answer)
	if len(strict) != 8 {
		t.Errorf("got %v, want an error for each member", strict)
	}
	_, lenient := Accept(Spec{Fields: []Field{{Name: "a", Type: "number"}, {Name: "b", Type: "boolean"}}}, answer)
	for _, e := range append(strict, lenient...) {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("%v repeats a value", e)
		}
	}
}

func TestPathsAreShort(t *testing.T) {
	schema := decode(t, `{"additionalProperties":{"type":"string"}}`)
	_, wrong := Accept(Spec{ResponseSchema: schema}, map[string]any{strings.Repeat("é", 1000): int64(1)})
	if len(wrong) != 1 || len(wrong[0].Path) > 2*maxShownName || strings.ToValidUTF8(wrong[0].Path, "") != wrong[0].Path {
		t.Errorf("got %v", wrong)
	}
}

func FuzzStrict(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","required":["a"]}`, `{"a":1}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}`, `[[1]]`},
		{`{"$id":"x","$anchor":"y","allOf":[{"$ref":"#y"}]}`, `null`},
		{`{"patternProperties":{"^a":{"multipleOf":0.1}},"unevaluatedItems":false}`, `{"a":0.3}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, schemaData, answerData []byte) {
		schema, err := jsonvalue.Decode(schemaData)
		answer, answerErr := jsonvalue.Decode(answerData)
		if err != nil || answerErr != nil || schema == nil {
			t.Skip("no JSON")
		}
		checkErr := CheckSchema(schema)
		accepted, wrong := Accept(Spec{ResponseSchema: schema}, answer)
		switch {
		case (accepted == nil) == (wrong == nil):
			t.Errorf("accepted %v and refused %v", accepted, wrong)
		case checkErr != nil && accepted != nil:
			t.Errorf("accepted by a schema that is refused: %v", checkErr)
		}
	})
}
