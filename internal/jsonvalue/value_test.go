package jsonvalue_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func TestEqual(t *testing.T) {
	tests := map[string]struct {
		a, b any
		want bool
	}{
		"integer and double":            {int64(1), 1.0, true},
		"Go types of a number":          {[]any{int(1), int32(2), json.Number("3.0")}, []any{1.0, int64(2), int64(3)}, true},
		"neighbours beyond 2^53":        {int64(9007199254740993), int64(9007199254740992), true},
		"zeros of both signs":           {0.0, math.Copysign(0, -1), true},
		"different numbers":             {int64(1), 1.5, false},
		"order of members":              {map[string]any{"a": 1, "b": 2}, map[string]any{"b": 2, "a": 1}, true},
		"order of elements":             {[]any{1, 2}, []any{2, 1}, false},
		"a list and a longer one":       {[]any{1}, []any{1, 1}, false},
		"null and absent":               {map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		"a member more":                 {map[string]any{"a": 1}, map[string]any{"a": 1, "b": 1}, false},
		"other member":                  {map[string]any{"a": 1}, map[string]any{"a": 2}, false},
		"null and false":                {nil, false, false},
		"text and number":               {"1", int64(1), false},
		"number and text":               {int64(1), "1", false},
		"booleans":                      {true, true, true},
		"strings":                       {"é", "é", true},
		"an empty list and a nil one":   {[]any{}, []any(nil), true},
		"a list and an object":          {[]any{}, map[string]any{}, false},
		"not a number":                  {math.NaN(), math.NaN(), false},
		"infinities":                    {math.Inf(1), math.Inf(1), false},
		"values outside of JSON":        {struct{}{}, struct{}{}, false},
		"a boolean and another of text": {true, "true", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := jsonvalue.Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("Equal() = %v, want %v", got, tc.want)
			}
			if got := jsonvalue.Equal(tc.b, tc.a); got != tc.want {
				t.Errorf("Equal() the other way = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEqualIsEqualCanonicalText(t *testing.T) {
	rng := rand.New(rand.NewPCG(8785, 3))
	equal := 0
	for range 50_000 {
		a, b := smallTree(rng, 2), smallTree(rng, 2)
		textA, _ := jsonvalue.Canonical(a)
		textB, _ := jsonvalue.Canonical(b)
		want := bytes.Equal(textA, textB)
		if want {
			equal++
		}
		if got := jsonvalue.Equal(a, b); got != want {
			t.Fatalf("Equal(%s, %s) = %v", textA, textB, got)
		}
	}
	if equal < 1000 {
		t.Errorf("only %d pairs were equal: the trees are too large to say anything", equal)
	}
}

// smallTree draws from so few values that two trees are often equal.
func smallTree(rng *rand.Rand, depth int) any {
	leaves := []any{nil, true, "a", "b", int64(1), 1.0, 0.5}
	switch n := rng.IntN(len(leaves) + 2*depth); {
	case n < len(leaves):
		return leaves[n]
	case n%2 == 0:
		list := make([]any, rng.IntN(3))
		for i := range list {
			list[i] = smallTree(rng, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rng.IntN(3) {
			object[[]string{"x", "y"}[rng.IntN(2)]] = smallTree(rng, depth-1)
		}
		return object
	}
}

func TestCloneSharesNothing(t *testing.T) {
	original := map[string]any{"list": []any{int64(1), map[string]any{"deep": "x"}}, "text": "t", "none": nil}
	want := map[string]any{"list": []any{int64(1), map[string]any{"deep": "x"}}, "text": "t", "none": nil}

	clone := jsonvalue.Clone(original).(map[string]any)
	if diff := cmp.Diff(want, clone); diff != "" {
		t.Fatalf("Clone() (-want +got)\n%s", diff)
	}
	clone["list"].([]any)[1].(map[string]any)["deep"] = "changed"
	clone["list"].([]any)[0] = "changed"
	clone["text"] = "changed"
	if diff := cmp.Diff(want, original); diff != "" {
		t.Errorf("original after changes to its clone (-want +got)\n%s", diff)
	}
}

func TestSize(t *testing.T) {
	tests := map[string]struct {
		value any
		want  int
	}{
		"null":                    {nil, len(`null`)},
		"booleans":                {[]any{true, false}, len(`[true,false]`)},
		"nothing in a list":       {[]any{}, len(`[]`)},
		"nothing in an object":    {map[string]any{}, len(`{}`)},
		"members":                 {map[string]any{"a": 1, "é": "<\n\x00>"}, len(`{"a":1,"é":"<\n\u0000>"}`)},
		"integers of every type":  {[]any{int64(-12), int(3), int32(4), json.Number("5.00")}, len(`[-12,3,4,5.00]`)},
		"all digits of an int64":  {int64(999999999999999999), len(`999999999999999999`)},
		"a double":                {0.5, len(`0.5`)},
		"a double with exponent":  {1e-7, len(`1e-7`)},
		"a value outside of JSON": {math.NaN(), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := jsonvalue.Size(tc.value); got != tc.want {
				t.Errorf("Size() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestSizeIsLengthOfCanonicalText(t *testing.T) {
	rng := rand.New(rand.NewPCG(8785, 4))
	for range 10_000 {
		text, err := jsonvalue.Canonical(randomTree(rng, 4))
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonvalue.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonvalue.Size(v); got != len(text) {
			t.Fatalf("Size() = %d, want %d for %s", got, len(text), text)
		}
	}
}

func TestNumber(t *testing.T) {
	tests := map[string]struct {
		value  any
		want   float64
		wantOK bool
	}{
		"int64":                     {int64(2), 2, true},
		"int":                       {2, 2, true},
		"int32":                     {int32(2), 2, true},
		"double":                    {2.5, 2.5, true},
		"number text":               {json.Number("25e-1"), 2.5, true},
		"number text that is none":  {json.Number("two"), 0, false},
		"string":                    {"2", 0, false},
		"null":                      {nil, 0, false},
		"number text beyond double": {json.Number("1e400"), 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := jsonvalue.Number(tc.value)
			if got != tc.want || ok != tc.wantOK {
				t.Errorf("Number() = %v, %v, want %v, %v", got, ok, tc.want, tc.wantOK)
			}
		})
	}
	if _, ok := jsonvalue.Number(math.Inf(1)); ok {
		t.Error("Number(infinity) is true")
	}
}

func BenchmarkCanonical(b *testing.B) {
	rng := rand.New(rand.NewPCG(8785, 5))
	list := make([]any, 2000)
	for i := range list {
		list[i] = randomTree(rng, 4)
	}
	text, err := jsonvalue.Canonical(list)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonvalue.Canonical(list); err != nil {
			b.Fatal(err)
		}
	}
}
