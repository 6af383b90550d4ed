package jsonvalue_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func TestCanonical(t *testing.T) {
	tests := map[string]struct {
		value any
		want  string
	}{
		"null":                             {nil, `null`},
		"booleans":                         {[]any{true, false}, `[true,false]`},
		"an empty list and a nil one":      {[]any{[]any{}, []any(nil)}, `[[],[]]`},
		"an empty object and a nil one":    {[]any{map[string]any{}, map[string]any(nil)}, `[{},{}]`},
		"every Go type of an integer":      {[]any{int64(1), int(2), int32(3), json.Number("4.0")}, `[1,2,3,4]`},
		"an integral double":               {1e3, `1000`},
		"negative zero":                    {math.Copysign(0, -1), `0`},
		"negative zero from its text":      {json.Number("-0"), `0`},
		"the largest double without e":     {999999999999999900000.0, `999999999999999900000`},
		"1e21 takes an exponent":           {1e21, `1e+21`},
		"0.000001 takes none":              {0.000001, `0.000001`},
		"1e-7 takes one of one digit":      {1e-7, `1e-7`},
		"an exponent of two digits":        {-1.5e-10, `-1.5e-10`},
		"the smallest double":              {5e-324, `5e-324`},
		"the largest double":               {math.MaxFloat64, `1.7976931348623157e+308`},
		"2^53 is exact":                    {int64(1 << 53), `9007199254740992`},
		"2^53+1 is its neighbour":          {int64(1<<53 + 1), `9007199254740992`},
		"-2^53-1 likewise":                 {int64(-1<<53 - 1), `-9007199254740992`},
		"the largest int64":                {int64(math.MaxInt64), `9223372036854776000`},
		"the smallest int64":               {int64(math.MinInt64), `-9223372036854776000`},
		"short escapes":                    {"\"\\\b\t\n\f\r", `"\"\\\b\t\n\f\r"`},
		"long escapes in lower case":       {"\x00\x0b\x1f", `"\u0000\u000b\u001f"`},
		"nothing else is escaped":          {"/<>&\x7f\u2028\u2029é😀", "\"/<>&\x7f\u2028\u2029é😀\""},
		"members sorted":                   {map[string]any{"b": 1, "B": 2, "10": 3, "9": 4, "": 5}, `{"":5,"10":3,"9":4,"B":2,"b":1}`},
		"a prefix comes first":             {map[string]any{"ab": 1, "a": 2}, `{"a":2,"ab":1}`},
		"a surrogate pair before U+E000":   {map[string]any{"\ue000": 1, "😀": 2, "\uffff": 3, "\ud7ff": 4}, "{\"\ud7ff\":4,\"😀\":2,\"\ue000\":1,\"\uffff\":3}"},
		"astral names by their second one": {map[string]any{"x😁": 1, "x😀": 2}, `{"x😀":2,"x😁":1}`},
		"objects in objects":               {map[string]any{"b": map[string]any{"d": 1, "c": 2}, "a": []any{map[string]any{"f": 1, "e": 2}}}, `{"a":[{"e":2,"f":1}],"b":{"c":2,"d":1}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonvalue.Canonical(tc.value)
			if err != nil || string(got) != tc.want {
				t.Errorf("Canonical() = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	tests := map[string]struct {
		value any
		want  error
	}{
		"not a number":            {math.NaN(), jsonvalue.ErrNumber},
		"infinity":                {[]any{math.Inf(-1)}, jsonvalue.ErrNumber},
		"a number text too large": {json.Number("1e400"), jsonvalue.ErrNumber},
		"a number text of Go":     {json.Number("0x10"), jsonvalue.ErrNumber},
		"an infinity in words":    {json.Number("Inf"), jsonvalue.ErrNumber},
		"a leading zero":          {json.Number("01"), jsonvalue.ErrNumber},
		"a bare point":            {json.Number("1."), jsonvalue.ErrNumber},
		"no exponent":             {json.Number("1e+"), jsonvalue.ErrNumber},
		"an empty number":         {json.Number(""), jsonvalue.ErrNumber},
		"trailing characters":     {json.Number("1 "), jsonvalue.ErrNumber},
		"broken UTF-8":            {"a\xff", jsonvalue.ErrText},
		"a surrogate in UTF-8":    {"\xed\xa0\x80", jsonvalue.ErrText},
		"a broken member name":    {map[string]any{"\xc0": 1}, jsonvalue.ErrText},
		"another Go type":         {map[string]any{"a": []string{"b"}}, jsonvalue.ErrType},
		"lists too deep":          {nestedLists(jsonvalue.MaxDepth + 1), jsonvalue.ErrDepth},
		"objects too deep":        {map[string]any{"a": nestedLists(jsonvalue.MaxDepth)}, jsonvalue.ErrDepth},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonvalue.Canonical(tc.value)
			if !errors.Is(err, tc.want) || got != nil {
				t.Errorf("Canonical() = %.60s, %v, want error %v", got, err, tc.want)
			}
		})
	}
}

func TestCanonicalTakesTheDeepestValue(t *testing.T) {
	got, err := jsonvalue.Canonical(nestedLists(jsonvalue.MaxDepth))
	if err != nil || len(got) != 2*jsonvalue.MaxDepth {
		t.Errorf("Canonical() has %d bytes, error %v", len(got), err)
	}
}

func nestedLists(depth int) any {
	v := []any{}
	for range depth - 1 {
		v = []any{v}
	}
	return v
}

func TestStringForm(t *testing.T) {
	tests := map[string]struct {
		value any
		want  string
	}{
		"a string is itself":  {`say "hi"`, `say "hi"`},
		"null is empty":       {nil, ``},
		"a number":            {1.0, `1`},
		"a boolean":           {false, `false`},
		"a list of a string":  {[]any{"a"}, `["a"]`},
		"an object is sorted": {map[string]any{"b": nil, "a": "<"}, `{"a":"<","b":null}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonvalue.StringForm(tc.value)
			if err != nil || got != tc.want {
				t.Errorf("StringForm() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	if got, err := jsonvalue.StringForm(math.NaN()); err == nil {
		t.Errorf("StringForm(NaN) = %q, want an error", got)
	}
}

// The second implementation parses text of its own and shares no code with
// this one. It differs in one point only, which random trees never reach: it
// refuses objects that name a member twice, where Decode keeps the last.
func TestCanonicalAgreesWithSecondImplementation(t *testing.T) {
	rng := rand.New(rand.NewPCG(8785, 1))
	for range 20_000 {
		tree := randomTree(rng, 4)
		spelt := spell(nil, rng, tree)
		want, err := jcs.Transform(spelt)
		if err != nil {
			t.Fatalf("second implementation refuses %s: %v", spelt, err)
		}
		assertCanonical(t, tree, want)

		decoded, err := jsonvalue.Decode(spelt)
		if err != nil {
			t.Fatalf("Decode(%s): %v", spelt, err)
		}
		assertCanonical(t, decoded, want)
	}
}

func TestSecondImplementationRefusesRepeatedMembers(t *testing.T) {
	const text = `{"a":1,"a":2}`
	if got, err := jcs.Transform([]byte(text)); err == nil {
		t.Errorf("Transform(%s) = %s: it no longer differs, compare repeated members too", text, got)
	}
}

func TestCanonicalDoublesAgreeWithSecondImplementation(t *testing.T) {
	rng := rand.New(rand.NewPCG(8785, 2))
	for range 200_000 {
		f := randomDouble(rng)
		want, err := jcs.NumberToJSON(f)
		if err != nil {
			t.Fatalf("second implementation refuses %v: %v", f, err)
		}
		assertCanonical(t, f, []byte(want))
	}
}

func assertCanonical(t *testing.T, v any, want []byte) {
	t.Helper()
	got, err := jsonvalue.Canonical(v)
	if err != nil || string(got) != string(want) {
		t.Fatalf("Canonical(%#v)\n got %s, %v\nwant %s", v, got, err, want)
	}
}

// randomDouble draws from all bit patterns of a finite double.
func randomDouble(rng *rand.Rand) float64 {
	for {
		if f := math.Float64frombits(rng.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

// randomTree returns a JSON value of at most the given depth.
func randomTree(rng *rand.Rand, depth int) any {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch rng.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return rng.IntN(2) == 0
	case 2, 3:
		return randomString(rng)
	case 4:
		return int64(rng.Uint64()) >> rng.IntN(64)
	case 5:
		return float64(rng.IntN(2000)-1000) / 8
	case 6:
		return randomDouble(rng)
	case 7:
		list := make([]any, rng.IntN(5))
		for i := range list {
			list[i] = randomTree(rng, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rng.IntN(6) {
			object[randomString(rng)] = randomTree(rng, depth-1)
		}
		return object
	}
}

// randomString mixes ASCII, control characters and every plane of Unicode.
func randomString(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(6) {
		switch rng.IntN(4) {
		case 0:
			b.WriteByte(byte(rng.IntN(0x80)))
		case 1:
			b.WriteRune(rune(0xE000 + rng.IntN(0x2000)))
		case 2:
			b.WriteRune(rune(0x10000 + rng.IntN(0x100000)))
		default:
			b.WriteRune(rune(rng.IntN(0xD800)))
		}
	}
	return b.String()
}

// spell writes v as JSON text in one of its many spellings.
func spell(dst []byte, rng *rand.Rand, v any) []byte {
	dst = append(dst, " \t\n"[:rng.IntN(4)]...)
	switch v := v.(type) {
	case string:
		dst = spellString(dst, rng, v)
	case int64:
		dst = strconv.AppendInt(dst, v, 10)
		dst = append(dst, []string{"", ".0", ".000", "e0", "E+00"}[rng.IntN(5)]...)
	case float64:
		format := []byte{'e', 'E', 'g', 'f'}[rng.IntN(4)]
		dst = strconv.AppendFloat(dst, v, format, -1, 64)
	case []any:
		dst = append(dst, '[')
		for i, element := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = spell(dst, rng, element)
		}
		dst = append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		comma := false
		for name, member := range v {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = append(spellString(dst, rng, name), ' ', ':')
			dst = spell(dst, rng, member)
		}
		dst = append(dst, '}')
	default:
		text, _ := json.Marshal(v)
		dst = append(dst, text...)
	}
	return append(dst, " \r"[:rng.IntN(3)]...)
}

func spellString(dst []byte, rng *rand.Rand, s string) []byte {
	text, _ := json.Marshal(s)
	if quoted := []byte(strconv.QuoteToASCII(s)); rng.IntN(3) == 0 && json.Valid(quoted) {
		text = quoted // Go's escapes are JSON for most strings only
	}
	return append(dst, text...)
}
