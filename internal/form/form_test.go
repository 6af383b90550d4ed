package form

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// object decodes a JSON object as a door would.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	members, _ := value.(map[string]any)
	return members
}

func TestTheDocumentedTask(t *testing.T) {
	spec := Spec{Fields: FieldsOf([]any{
		map[string]any{"name": "approved", "type": "boolean", "required": true},
		map[string]any{"name": "window", "widget": "select", "options": []any{
			map[string]any{"label": "Now", "value": "now"}, map[string]any{"label": "Tonight", "value": "night"},
		}},
	})}
	wantFields := []Field{
		{Name: "approved", Type: "boolean", Widget: "checkbox", Label: "approved", Required: true},
		{
			Name: "window", Type: "string", Widget: "select", Label: "window",
			Options: []Option{{Label: "Now", Value: "now"}, {Label: "Tonight", Value: "night"}},
		},
	}
	if diff := cmp.Diff(wantFields, spec.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}

	got, wrong := Accept(spec, object(t, `{"approved":"true","window":"night","note":"after 22:00"}`))
	want := map[string]any{"approved": true, "window": "night", "note": "after 22:00"}
	if diff := cmp.Diff(want, got); diff != "" || wrong != nil {
		t.Errorf("%v (-want +got):\n%s", wrong, diff)
	}

	_, wrong = Accept(spec, object(t, `{"approved":"yes"}`))
	if len(wrong) != 1 || wrong[0].Error() != "approved: type" {
		t.Errorf("got %v, want approved: type", wrong)
	}
}

func TestCoercion(t *testing.T) {
	tests := map[string]struct {
		kind, given, want string // want is empty for a refusal
	}{
		"string from string":                {"string", `"x"`, `"x"`},
		"string that looks like a number":   {"string", `"1"`, `"1"`},
		"string from number":                {"string", `1`, ``},
		"string from boolean":               {"string", `true`, ``},
		"string from object":                {"string", `{}`, ``},
		"another type from anything":        {"date", `[1]`, `[1]`},
		"another type from text":            {"date", `"2026"`, `"2026"`},
		"number from number":                {"number", `1.5`, `1.5`},
		"number from integer":               {"number", `7`, `7`},
		"number from text":                  {"number", `"1.5"`, `1.5`},
		"number from integer text":          {"number", `"-12"`, `-12`},
		"number from text with fraction":    {"number", `"12.0"`, `12`},
		"number from text with exponent":    {"number", `"1.2e1"`, `12`},
		"number from capital exponent":      {"number", `"25E-1"`, `2.5`},
		"number from negative zero":         {"number", `"-0.0"`, `0`},
		"number from a tenth":               {"number", `"0.1"`, `0.1`},
		"number from trailing zeros":        {"number", `"0.100"`, `0.1`},
		"number from the largest int64":     {"number", `"9223372036854775807"`, `9223372036854775807`},
		"number from the smallest int64":    {"number", `"-9223372036854775808"`, `-9223372036854775808`},
		"number from an exact larger one":   {"number", `"9223372036854775808"`, `9223372036854775808`},
		"number from the shortest of it":    {"number", `"9223372036854776000"`, `9223372036854776000`},
		"number from an inexact larger one": {"number", `"9223372036854775809"`, ``},
		"number from a very large one":      {"number", `"1e300"`, `1e300`},
		"number from the smallest double":   {"number", `"5e-324"`, `5e-324`},
		"number from too many digits":       {"number", `"0.10000000000000000001"`, ``},
		"number from the exact tenth": {
			"number", `"0.1000000000000000055511151231257827021181583404541015625"`, `0.1`,
		},
		"number beyond the doubles":          {"number", `"1e400"`, ``},
		"number below the doubles":           {"number", `"1e-400"`, ``},
		"number with a huge exponent":        {"number", `"1e99999999999999999999"`, ``},
		"number with a plus":                 {"number", `"+1"`, ``},
		"number with a leading zero":         {"number", `"01"`, ``},
		"number with a bare point":           {"number", `".5"`, ``},
		"number with space before":           {"number", `" 1"`, ``},
		"number with space after":            {"number", `"1\n"`, ``},
		"number in hexadecimals":             {"number", `"0x10"`, ``},
		"number that is none":                {"number", `"NaN"`, ``},
		"number from text of a list":         {"number", `"[1]"`, ``},
		"number from text of null":           {"number", `"null"`, ``},
		"number from two":                    {"number", `"1 2"`, ``},
		"number from a minus":                {"number", `"-"`, ``},
		"number from boolean":                {"number", `true`, ``},
		"number from list":                   {"number", `[]`, ``},
		"boolean from boolean":               {"boolean", `false`, `false`},
		"boolean from true":                  {"boolean", `"true"`, `true`},
		"boolean from false":                 {"boolean", `"false"`, `false`},
		"boolean from capitals":              {"boolean", `"True"`, ``},
		"boolean from space":                 {"boolean", `"true "`, ``},
		"boolean from number":                {"boolean", `1`, ``},
		"object from object":                 {"object", `{"a":[1]}`, `{"a":[1]}`},
		"object from list":                   {"object", `[1]`, `[1]`},
		"object from text of an object":      {"object", `" {\"a\": 1.0} "`, `{"a":1}`},
		"object from text of a list":         {"object", `"[]"`, `[]`},
		"object from text of a number":       {"object", `"1"`, ``},
		"object from text of text":           {"object", `"\"{}\""`, ``},
		"object from text of half an object": {"object", `"{"`, ``},
		"object from text of two":            {"object", `"{} {}"`, ``},
		"object from number":                 {"object", `1`, ``},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := Spec{Fields: []Field{{Name: "v", Type: tc.kind}}}
			got, wrong := Accept(spec, object(t, `{"v":`+tc.given+`}`))
			if tc.want == "" {
				if diff := cmp.Diff([]FieldError{{Path: "v", Rule: RuleType}}, wrong); diff != "" || got != nil {
					t.Errorf("accepted %v (-want +got):\n%s", got, diff)
				}
				return
			}
			if diff := cmp.Diff(object(t, `{"v":`+tc.want+`}`), got); diff != "" || wrong != nil {
				t.Errorf("%v (-want +got):\n%s", wrong, diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	options := []Option{{Label: "Now", Value: "now"}, {Label: "One", Value: "1"}, {Label: "None", Value: " "}, {Label: "Yes", Value: "true"}}
	tests := map[string]struct {
		field  Field
		answer string
		want   string // the value, or empty
		rule   string // or the rule
	}{
		"required and absent":            {Field{Required: true}, `{}`, "", RuleRequired},
		"required and null":              {Field{Required: true}, `{"v":null}`, "", RuleRequired},
		"required and blank":             {Field{Required: true}, `{"v":" \t"}`, "", RuleRequired},
		"required and given":             {Field{Required: true, Type: "string"}, `{"v":"x"}`, `"x"`, ""},
		"required and false":             {Field{Required: true, Type: "boolean"}, `{"v":false}`, `false`, ""},
		"required and zero":              {Field{Required: true, Type: "number"}, `{"v":0}`, `0`, ""},
		"required and empty":             {Field{Required: true, Type: "object"}, `{"v":{}}`, `{}`, ""},
		"a default does not stand in":    {Field{Required: true, DefaultValue: "x"}, `{}`, "", RuleRequired},
		"required before type":           {Field{Required: true, Type: "number"}, `{"v":""}`, "", RuleRequired},
		"optional and null":              {Field{Type: "number"}, `{"v":null}`, `null`, ""},
		"optional and blank":             {Field{Type: "boolean"}, `{"v":" "}`, `" "`, ""},
		"optional select and blank":      {Field{Type: "string", Widget: "select", Options: options}, `{"v":""}`, `""`, ""},
		"an option":                      {Field{Type: "string", Widget: "select", Options: options}, `{"v":"now"}`, `"now"`, ""},
		"no option":                      {Field{Type: "string", Widget: "select", Options: options}, `{"v":"later"}`, "", RuleOption},
		"the label of an option":         {Field{Type: "string", Widget: "select", Options: options}, `{"v":"Now"}`, "", RuleOption},
		"a number among options":         {Field{Type: "number", Widget: "select", Options: options}, `{"v":"1.0"}`, `1`, ""},
		"a boolean among options":        {Field{Type: "boolean", Widget: "select", Options: options}, `{"v":true}`, `true`, ""},
		"a list that is no option":       {Field{Type: "object", Widget: "select", Options: options}, `{"v":[1]}`, "", RuleOption},
		"type before option":             {Field{Type: "number", Widget: "select", Options: options}, `{"v":"now"}`, "", RuleType},
		"options of another widget":      {Field{Type: "string", Widget: "text", Options: options}, `{"v":"later"}`, `"later"`, ""},
		"select without options":         {Field{Type: "string", Widget: "select"}, `{"v":"later"}`, `"later"`, ""},
		"select with blank options only": {Field{Type: "string", Widget: "select", Options: []Option{{Value: ""}}}, `{"v":"x"}`, "", RuleOption},
		"an empty type takes anything":   {Field{}, `{"v":[]}`, `[]`, ""},
		"members that no field asks for": {Field{Type: "string"}, `{"v":"x"}`, `"x"`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.field.Name = "v"
			answer := object(t, tc.answer)
			answer["other"] = "kept"
			got, wrong := Accept(Spec{Fields: []Field{tc.field}}, answer)
			if tc.rule != "" {
				if diff := cmp.Diff([]FieldError{{Path: "v", Rule: tc.rule}}, wrong); diff != "" || got != nil {
					t.Errorf("accepted %v (-want +got):\n%s", got, diff)
				}
				return
			}
			want := object(t, `{"other":"kept","v":`+tc.want+`}`)
			if diff := cmp.Diff(want, got); diff != "" || wrong != nil {
				t.Errorf("%v (-want +got):\n%s", wrong, diff)
			}
		})
	}
}

func TestAbsentOptionalFieldsStayAbsent(t *testing.T) {
	got, wrong := Accept(Spec{Fields: []Field{{Name: "v", Type: "number", DefaultValue: 1}}}, map[string]any{})
	if wrong != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, wrong)
	}
}

func TestErrorsComeInTheOrderOfTheFields(t *testing.T) {
	spec := Spec{Fields: []Field{
		{Name: "b", Type: "number"},
		{Name: "a", Required: true},
		{Name: "c", Type: "string", Widget: "select", Options: []Option{{Value: "x"}}},
		{Name: "b", Type: "boolean"}, // of equal names the first counts
	}}
	_, wrong := Accept(spec, map[string]any{"b": "secret", "c": "secret"})
	want := []FieldError{{"b", RuleType}, {"a", RuleRequired}, {"c", RuleOption}}
	if diff := cmp.Diff(want, wrong); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFormAnswersAreObjects(t *testing.T) {
	for name, spec := range map[string]Spec{"with fields": {Fields: []Field{{Name: "v"}}}, "with nothing": {}} {
		for _, answer := range []any{nil, "x", int64(1), true, []any{}} {
			got, wrong := Accept(spec, answer)
			if diff := cmp.Diff([]FieldError{{"answer", RuleType}}, wrong); diff != "" || got != nil {
				t.Errorf("%s: accepted %v as %v (-want +got):\n%s", name, answer, got, diff)
			}
		}
	}
	got, wrong := Accept(Spec{}, map[string]any{"a": []any{int64(1)}})
	if diff := cmp.Diff(map[string]any{"a": []any{int64(1)}}, got); diff != "" || wrong != nil {
		t.Errorf("%v (-want +got):\n%s", wrong, diff)
	}
}

func TestAcceptLeavesTheAnswerAlone(t *testing.T) {
	answer := map[string]any{"v": "1", "w": "{}"}
	spec := Spec{Fields: []Field{{Name: "v", Type: "number"}, {Name: "w", Type: "object"}}}
	got, _ := Accept(spec, answer)
	got["new"] = true
	if diff := cmp.Diff(map[string]any{"v": "1", "w": "{}"}, answer); diff != "" {
		t.Errorf("answer changed (-want +got):\n%s", diff)
	}
}

func TestFieldsOf(t *testing.T) {
	tests := map[string]struct {
		output any
		want   []Field
	}{
		"a name alone":  {map[string]any{"name": "v"}, []Field{{Name: "v", Type: "string", Widget: "text", Label: "v"}}},
		"a number":      {map[string]any{"name": "v", "type": "number"}, []Field{{Name: "v", Type: "number", Widget: "number", Label: "v"}}},
		"a boolean":     {map[string]any{"name": "v", "type": "boolean"}, []Field{{Name: "v", Type: "boolean", Widget: "checkbox", Label: "v"}}},
		"an object":     {map[string]any{"name": "v", "type": "object"}, []Field{{Name: "v", Type: "object", Widget: "textarea", Label: "v"}}},
		"another type":  {map[string]any{"name": "v", "type": "date"}, []Field{{Name: "v", Type: "date", Widget: "text", Label: "v"}}},
		"blank members": {map[string]any{"name": "v", "type": " ", "widget": "", "label": "\t"}, []Field{{Name: "v", Type: "string", Widget: "text", Label: "v"}}},
		"null members":  {map[string]any{"name": "v", "type": nil, "required": nil, "options": nil}, []Field{{Name: "v", Type: "string", Widget: "text", Label: "v"}}},
		"a context key": {map[string]any{"name": "v", "contextKey": "w"}, []Field{{Name: "v", Type: "string", Widget: "text", Label: "v"}}},
		"wrong types":   {map[string]any{"name": "v", "required": "yes", "label": 1, "options": "x"}, []Field{{Name: "v", Type: "string", Widget: "text", Label: "v"}}},
		"no name":       {map[string]any{"type": "number"}, nil},
		"a blank name":  {map[string]any{"name": " "}, nil},
		"no object":     {"v", nil},
		"null":          {nil, nil},
		"all members": {
			map[string]any{
				"name": "v", "type": "number", "widget": "select", "label": "Count", "description": "How many", "required": true,
				"defaultValue": int64(1), "options": []any{map[string]any{"label": "One", "value": "1"}, "no option"},
			},
			[]Field{{
				Name: "v", Type: "number", Widget: "select", Label: "Count", Description: "How many", Required: true,
				DefaultValue: int64(1), Options: []Option{{Label: "One", Value: "1"}},
			}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := FieldsOf([]any{tc.output})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, FieldsOf(asJSON(t, got))); diff != "" {
				t.Errorf("fields of the fields (-want +got):\n%s", diff)
			}
		})
	}
}

// asJSON is fields as an object of the API holds them.
func asJSON(t *testing.T, fields []Field) []any {
	t.Helper()
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := value.([]any)
	return list
}

// allTypes has a field of each type, named like it.
func allTypes() Spec {
	var spec Spec
	for _, kind := range []string{"string", "number", "boolean", "object", "date"} {
		spec.Fields = append(spec.Fields, Field{Name: kind, Type: kind})
	}
	spec.Fields = append(spec.Fields, Field{
		Name: "choice", Type: "number", Widget: "select", Options: []Option{{Value: "1"}, {Value: "2.5"}},
	})
	return spec
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{
		`{"number":"1.0","boolean":"true","object":"[1]","string":"x","date":null,"choice":"2.50"}`,
		`{"number":"9223372036854775808"}`, `{"number":" 1"}`, `{"object":"{\"a\":{}}","choice":1}`, `[]`, `null`, `{"choice":"1e0"}`,
	} {
		f.Add([]byte(seed))
	}
	spec := allTypes()
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, err := jsonvalue.Decode(data)
		if err != nil {
			t.Skip("no JSON")
		}
		before := jsonvalue.Clone(answer)
		accepted, wrong := Accept(spec, answer)
		if !jsonvalue.Equal(before, answer) {
			t.Error("the answer was changed")
		}
		if (accepted == nil) != (wrong != nil) {
			t.Fatalf("accepted %v and refused %v", accepted, wrong)
		}
		if wrong != nil {
			return
		}
		again, wrong := Accept(spec, accepted)
		if wrong != nil || !jsonvalue.Equal(accepted, again) {
			t.Errorf("what was accepted is not accepted as it is: %v, %v; want %v", again, wrong, accepted)
		}
		for name, given := range answer.(map[string]any) {
			if _, kept := accepted[name]; !kept {
				t.Errorf("member %q with %v is lost", name, given)
			}
		}
	})
}

func FuzzNumberText(f *testing.F) {
	f.Add(int64(math.MaxInt64), 0.1)
	f.Add(int64(math.MinInt64), 5e-324)
	f.Add(int64(0), math.MaxFloat64)
	f.Fuzz(func(t *testing.T, i int64, d float64) {
		if got, ok := number(strconv.FormatInt(i, 10)); !ok || got != i {
			t.Errorf("number(%d) = %v, %v", i, got, ok)
		}
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return
		}
		for _, format := range []byte("efg") {
			text := strings.Replace(strconv.FormatFloat(d, format, -1, 64), "e+", "e", 1)
			got, ok := number(text)
			value, isNumber := jsonvalue.Number(got)
			if !ok || !isNumber || value != d {
				t.Errorf("number(%s) = %v, %v; want %v", text, got, ok, d)
			}
		}
	})
}
