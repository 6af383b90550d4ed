package action_test

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func TestContractTypes(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"text": "x", "empty text": "", "integer": int64(1), "double": 1.5, "Go int": 3, "number of JSON": json.Number("2"),
		"true": true, "list": []any{}, "object": map[string]any{},
		"number text": "-1.5e3", "spaced number": " 1", "bool text": "TRUE", "object text": `{"a":1}`, "list text": `[1]`, "huge": "1e999",
	}
	for declared, fits := range map[string][]string{
		"":                 {"text", "empty text", "integer", "double", "Go int", "number of JSON", "true", "number text", "spaced number", "bool text", "object text", "list text", "huge"},
		action.TypeNumber:  {"integer", "double", "Go int", "number of JSON", "number text"},
		action.TypeBoolean: {"true", "bool text"},
		action.TypeObject:  {"object", "object text"},
	} {
		want := map[string]bool{}
		for _, name := range fits {
			want[name] = true
		}
		for name, v := range values {
			violations := action.CheckContract([]action.Field{{Name: "f", Type: declared}}, map[string]any{"f": v})
			if got := len(violations) == 0; got != want[name] {
				t.Errorf("%s as %q: fits %t, want %t", name, declared, got, want[name])
			}
		}
	}
}

func TestContractNamesFieldAndRule(t *testing.T) {
	t.Parallel()
	fields := []action.Field{
		{Name: "absent", Required: true},
		{Name: "null", Required: true},
		{Name: "optional"},
		{Name: "typed", Type: action.TypeNumber, Required: true},
		{Name: "text"},
	}
	got := action.CheckContract(fields, map[string]any{"null": nil, "optional": nil, "typed": "secret", "text": []any{}, "extra": []any{}})
	want := []action.Violation{
		{Field: "absent", Rule: "required"}, {Field: "null", Rule: "required"}, {Field: "typed", Rule: "type number"}, {Field: "text", Rule: "type string"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if text := got[2].String(); text != "typed: type number" {
		t.Errorf("got %q", text)
	}
}

// TestContractProperties checks on random contracts and values that values are
// left alone, that extra keys do not matter, that dropping `required` never
// adds a violation, and that spelling a number otherwise changes nothing.
func TestContractProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		fields, values := randomContract(random)
		before := jsonvalue.Clone(values)
		violations := action.CheckContract(fields, values)
		if !jsonvalue.Equal(before, values) {
			t.Fatalf("%v were changed to %v", before, values)
		}
		respelt, _ := jsonvalue.Clone(values).(map[string]any)
		respelt["extra"] = []any{}
		for name, v := range respelt {
			if n, ok := v.(int64); ok {
				respelt[name] = json.Number(strconv.FormatInt(n, 10) + ".0")
			}
		}
		if diff := cmp.Diff(violations, action.CheckContract(fields, respelt)); diff != "" {
			t.Fatalf("violations of %v, plain and respelt:\n%s", values, diff)
		}
		for i := range fields {
			fields[i].Required = false
		}
		if relaxed := action.CheckContract(fields, values); len(relaxed) > len(violations) {
			t.Fatalf("%v: %v without required, %v with it", values, relaxed, violations)
		}
	}
}

func randomContract(random *rand.Rand) ([]action.Field, map[string]any) {
	types := []string{"", action.TypeString, action.TypeNumber, action.TypeBoolean, action.TypeObject}
	pool := []any{nil, "", "1", "true", "{}", "[]", int64(random.IntN(9)), 1.5, true, []any{int64(1)}, map[string]any{"a": nil}}
	var fields []action.Field
	values := map[string]any{}
	for i := range random.IntN(5) {
		name := "f" + strconv.Itoa(i)
		fields = append(fields, action.Field{Name: name, Type: types[random.IntN(len(types))], Required: random.IntN(2) == 0})
		if random.IntN(4) > 0 {
			values[name] = pool[random.IntN(len(pool))]
		}
	}
	return fields, values
}
