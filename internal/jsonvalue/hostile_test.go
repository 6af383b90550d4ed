package jsonvalue_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// errAny stands for one that encoding/json words.
var errAny = errors.New("any")

// hostile are texts of about 5 MiB that ask for as much as they can.
func hostile() map[string]struct {
	text string
	want error // nil for a value
} {
	const size = 5 << 20
	filled := func(before, unit, after string) string { return before + strings.Repeat(unit, size/len(unit)) + after }
	// parted has as many parts as there may be: each unit has so many.
	parted := func(before, unit, after string, parts int) string {
		return before + strings.Repeat(unit, (jsonvalue.MaxValues-3)/parts) + after
	}
	return map[string]struct {
		text string
		want error
	}{
		"a long string":                  {filled(`"`, "a", `"`), nil},
		"escapes":                        {filled(`"`, `\n`, `"`), nil},
		"escaped pairs of surrogates":    {filled(`"`, `\ud83d\ude00`, `"`), nil},
		"long strings":                   {filled("[", `"`+strings.Repeat("a", 100)+`",`, `""]`), nil},
		"one member many times":          {parted("{", `"a":1,`, `"a":2}`, 1), nil},
		"many numbers":                   {parted("[", "1,", "1]", 1), nil},
		"many doubles":                   {parted("[", "0.5,", "1]", 1), nil},
		"many empty lists":               {parted("[", "[],", "1]", 2), nil},
		"many empty objects":             {parted("[", "{},", "1]", 2), nil},
		"many objects":                   {parted("[", `{"a":1},`, "1]", 2), nil},
		"objects in objects":             {parted("[", strings.Repeat(`{"a":`, 1000)+"1"+strings.Repeat("}", 1000)+",", "1]", 1001), nil},
		"lists in lists":                 {parted("[", strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+",", "1]", 1001), nil},
		"lists of lists of lists":        {parted("[", "[[[]]],", "1]", 4), nil},
		"white space":                    {filled("1", " ", ""), nil},
		"zeros that cancel":              {"1" + strings.Repeat("0", size) + "e-5242880", nil},
		"digits behind the point":        {filled("0.", "9", ""), nil},
		"a tiny number":                  {filled("1e-", "9", ""), nil},
		"one number too many":            {"[" + strings.Repeat("1,", jsonvalue.MaxValues-1) + "1]", jsonvalue.ErrValues},
		"too many numbers":               {filled("[", "1,", "1]"), jsonvalue.ErrValues},
		"too many lists":                 {filled("[", "[],", "1]"), jsonvalue.ErrValues},
		"too many objects":               {filled("[", `{"a":1},`, "1]"), jsonvalue.ErrValues},
		"too many members of one name":   {filled("{", `"a":1,`, `"a":1}`), jsonvalue.ErrValues},
		"digits beyond the doubles":      {filled("", "9", ""), jsonvalue.ErrNumber},
		"an exponent beyond the doubles": {filled("1e", "9", ""), jsonvalue.ErrNumber},
		"bytes that are no UTF-8":        {filled(`"`, "\xff", `"`), jsonvalue.ErrText},
		"lone surrogates":                {filled(`"`, `\ud83d`, `"`), jsonvalue.ErrText},
		"one level too deep":             {strings.Repeat("[", jsonvalue.MaxDepth+1) + strings.Repeat("]", jsonvalue.MaxDepth+1), jsonvalue.ErrDepth},
		"lists that never close":         {filled("", "[", ""), jsonvalue.ErrDepth},
		"objects that never close":       {filled("", `{"a":`, ""), jsonvalue.ErrDepth},
		"nothing but white space":        {filled("", " ", ""), errAny},
		"no JSON":                        {filled("", "x", ""), errAny},
		"a string that never closes":     {filled(`"`, "a", ""), errAny},
		"a value, then another":          {filled("1 ", "2", ""), jsonvalue.ErrTrailing},
	}
}

func TestHostileTextsAreBounded(t *testing.T) {
	const maxAllocated = 128 << 20
	for name, tc := range hostile() {
		t.Run(name, func(t *testing.T) {
			data := []byte(tc.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			value, err := jsonvalue.Decode(data)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
			if (err == nil) != (tc.want == nil) || !errors.Is(tc.want, errAny) && !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if err != nil {
				if len(err.Error()) > 200 {
					t.Errorf("error of %d bytes", len(err.Error()))
				}
				return
			}
			useEverywhere(t, value)
		})
	}
}

// useEverywhere does to a value what the package can do, which must take it as Decode did.
func useEverywhere(t *testing.T, value any) {
	t.Helper()
	text, err := jsonvalue.Canonical(value)
	if err != nil {
		t.Fatalf("no canonical text: %v", err)
	}
	if size := jsonvalue.Size(value); size < len(text) {
		t.Errorf("size %d, canonical text has %d bytes", size, len(text))
	}
	if clone := jsonvalue.Clone(value); !jsonvalue.Equal(clone, value) {
		t.Error("the clone is not equal")
	}
}

// A tree that a program built can do what no text can: contain itself.
func TestCanonicalRefusesCycles(t *testing.T) {
	list := []any{nil}
	list[0] = list
	object := map[string]any{}
	object["a"] = []any{object}
	for name, value := range map[string]any{"a list in itself": list, "an object in itself": object} {
		if _, err := jsonvalue.Canonical(value); !errors.Is(err, jsonvalue.ErrDepth) {
			t.Errorf("%s: error %v, want %v", name, err, jsonvalue.ErrDepth)
		}
	}
}
