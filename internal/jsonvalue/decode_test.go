package jsonvalue_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func TestDecode(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"null":                               {`null`, nil},
		"white space around":                 {" \t\r\ntrue\n ", true},
		"a string with escapes":              {`"\u00e9\/\ud83d\ude00\u0000"`, "é/😀\x00"},
		"a backslash before u":               {`"\\ud800"`, `\ud800`},
		"an integer":                         {`1`, int64(1)},
		"an integer with a fraction of zero": {`1.0`, int64(1)},
		"an integer with an exponent":        {`1e0`, int64(1)},
		"an exponent that moves the point":   {`1.25E+2`, int64(125)},
		"a negative exponent":                {`-12300e-2`, int64(-123)},
		"zeros that cancel":                  {`1` + strings.Repeat("0", 400) + `e-400`, int64(1)},
		"negative zero":                      {`-0`, int64(0)},
		"negative zero with a fraction":      {`-0.0`, int64(0)},
		"zero with any exponent":             {`0e99999999999999999999`, int64(0)},
		"no detour over double":              {`9007199254740993.0`, int64(9007199254740993)},
		"the largest int64":                  {`9223372036854775807`, int64(math.MaxInt64)},
		"the largest int64 with exponent":    {`922337203685477580.7e1`, int64(math.MaxInt64)},
		"the smallest int64":                 {`-9223372036854775808.0`, int64(math.MinInt64)},
		"one above int64":                    {`9223372036854775808`, 9223372036854775808.0},
		"one below int64":                    {`-9223372036854775809`, -9223372036854775808.0},
		"a fraction":                         {`0.1`, 0.1},
		"a fraction behind digits":           {`10.5`, 10.5},
		"a large double":                     {`1e21`, 1e21},
		"below every double":                 {`1e-400`, 0.0},
		"far below every double":             {`1e-99999999999999999999`, 0.0},
		"the last of repeated members":       {`{"a":{"x":1},"a":{"y":2.0}}`, map[string]any{"a": map[string]any{"y": int64(2)}}},
		"numbers at every depth":             {`[1.0,{"a":[2e0,0.5]}]`, []any{int64(1), map[string]any{"a": []any{int64(2), 0.5}}}},
		"brackets and quotes in a string":    {`["[{\"[",""]`, []any{`[{"[`, ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonvalue.Decode([]byte(tc.text))
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("Decode(%.80s): %v (-want +got)\n%s", tc.text, err, diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	anyError := errors.New("any")
	tests := map[string]struct {
		text string
		want error
	}{
		"nothing":                       {``, anyError},
		"half a value":                  {`{"a":`, anyError},
		"a comma at the end":            {`[1,]`, anyError},
		"a leading zero":                {`01`, anyError},
		"not a number":                  {`NaN`, anyError},
		"a control character":           {"\"\n\"", anyError},
		"a backslash at the end":        {`"\`, anyError},
		"half an escape":                {`"\ud8`, anyError},
		"two values":                    {`1 2`, jsonvalue.ErrTrailing},
		"a stray bracket":               {`{}]`, jsonvalue.ErrTrailing},
		"beyond the doubles":            {`{"id":1e400}`, jsonvalue.ErrNumber},
		"beyond them in a list":         {`[1,[-1e400]]`, jsonvalue.ErrNumber},
		"beyond every exponent":         {`1e99999999999999999999`, jsonvalue.ErrNumber},
		"broken UTF-8":                  {"\"\xff\"", jsonvalue.ErrText},
		"broken UTF-8 in a name":        {"{\"\xc3\":1}", jsonvalue.ErrText},
		"a lone high surrogate":         {`"\ud800"`, jsonvalue.ErrText},
		"a lone low surrogate":          {`"\udc00"`, jsonvalue.ErrText},
		"a pair the wrong way round":    {`"\udc00\ud800"`, jsonvalue.ErrText},
		"a high surrogate, then a text": {`"\ud800x\udc00"`, jsonvalue.ErrText},
		"a high surrogate, then no low": {`"\ud800\u0041"`, jsonvalue.ErrText},
		"a lone one behind a pair":      {`["\ud83d\ude00","\ude00"]`, jsonvalue.ErrText},
		"lists too deep":                {strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), jsonvalue.ErrDepth},
		"objects too deep":              {strings.Repeat(`{"a":`, 10_001) + `1` + strings.Repeat("}", 10_001), jsonvalue.ErrDepth},
		"very deep and never closed":    {strings.Repeat("[", 5_000_000), jsonvalue.ErrDepth},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := jsonvalue.Decode([]byte(tc.text))
			if err == nil || got != nil || !errors.Is(tc.want, anyError) && !errors.Is(err, tc.want) {
				t.Errorf("Decode(%.80s) = %v, %v, want error %v", tc.text, got, err, tc.want)
			}
		})
	}
}

func TestDecodeTakesTheDeepestValue(t *testing.T) {
	text := strings.Repeat("[", jsonvalue.MaxDepth) + strings.Repeat("]", jsonvalue.MaxDepth)
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	assertCanonical(t, v, []byte(text))
}

// Whatever Decode takes has canonical text, which decodes to an equal value
// and is its own canonical text; the standard library takes it too, and so
// does the second implementation unless a member is repeated.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.50,-0,1e21,1E-7],"b":"\ud83d\ude00\n","":null}`, `"\ud800"`, `9007199254740993.0`, `[[[{}]]]`, ` 1e400`,
		`{"a":1,"a":2}`, `0.1e1`, "\"\xff\"", `"\\u005c"`, `-0.0`, `123456789012345678901234567890`, `{"\ue000":1,"\ud83d\ude00":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := jsonvalue.Decode(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("took %q, which is no JSON", data)
		}
		text, err := jsonvalue.Canonical(v)
		if err != nil {
			t.Fatalf("no canonical text for %q: %v", data, err)
		}
		again, err := jsonvalue.Decode(text)
		if err != nil || !jsonvalue.Equal(v, again) {
			t.Fatalf("%q became %q, which decodes to %v, %v", data, text, again, err)
		}
		assertCanonical(t, again, text)
		if second, err := jcs.Transform(data); err == nil && string(second) != string(text) {
			t.Fatalf("%q: got %s, second implementation %s", data, text, second)
		}
	})
}
