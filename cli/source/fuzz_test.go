package source_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Whatever the bytes are, they are a JSON tree with positions inside the file, or
// an error that says where. What JSON can be read is read as package jsonvalue
// does.
func FuzzSource(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, {c: ~}]", `{"a": [1, 2.5, "\u00e9", null, true]}`, "a: &x {b: 1}\nc: {<<: *x}", "- |\n x\n- >\n y",
		"a: *a", "%YAML 1.1\n---\na", "? [a]\n: b", "{a: 1, a: 2}", "a: !!binary aGk=", "\ufeff{}", "a: 0x1F\nb: .inf", "a:\n  - b\n -c",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		name := "x.yaml"
		if isJSON {
			name = "x.json"
		}
		doc, err := source.Parse(name, data)
		if err != nil {
			if _, ok := errors.AsType[*source.Error](err); !ok || strings.ContainsRune(err.Error(), '\n') {
				t.Fatalf("error %q of type %T", err, err)
			}
			return
		}
		assertPlaces(t, doc, string(data), nil, doc.Value)
		assertSameAgain(t, doc.Value)
		if !isJSON {
			return
		}
		want, err := jsonvalue.Decode([]byte(strings.TrimPrefix(string(data), "\ufeff")))
		if err != nil || !jsonvalue.Equal(want, doc.Value) {
			t.Errorf("value %v, jsonvalue has %v, %v", doc.Value, want, err)
		}
	})
}

// assertPlaces visits all values. Each is where the file has something.
func assertPlaces(t *testing.T, doc *source.Document, text string, path []any, v any) {
	t.Helper()
	lines := 2 // a value that is not written may stand behind the last one
	for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		lines += strings.Count(text, lineBreak)
	}
	at := doc.Position(path...)
	if at.Line < 1 || at.Line > lines || at.Column < 1 {
		t.Fatalf("%v is at %v", path, at)
	}
	if part, ok := doc.Part(path...); !ok || part.Position() != at {
		t.Fatalf("there is no part at %v", path)
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			assertPlaces(t, doc, text, append(slices.Clip(path), i), v[i])
		}
	case map[string]any:
		for name := range v {
			assertPlaces(t, doc, text, append(slices.Clip(path), name), v[name])
		}
	case nil, bool, string, int64, float64:
	default:
		t.Fatalf("%v is a %T", path, v)
	}
}

func assertSameAgain(t *testing.T, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode value: %v", err)
	}
	doc, err := source.Parse("again.json", text)
	if err != nil || !jsonvalue.Equal(doc.Value, v) {
		t.Fatalf("as JSON the value is %v, %v, want %v", doc, err, v)
	}
}
