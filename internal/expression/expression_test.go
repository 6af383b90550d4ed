package expression

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eval compiles and evaluates a text that must compile.
func eval(t *testing.T, scope Scope, text string, v Variables) (any, error) {
	t.Helper()
	program, err := NewCache().Compile(scope, text)
	if err != nil {
		t.Fatalf("Compile(%s, %q): %v", scope, text, err)
	}
	return program.Eval(t.Context(), v)
}

// sample are the variables of most tables.
func sample() Variables {
	return Variables{
		Context: map[string]any{
			"a":     int64(5),
			"a-b":   "dashed",
			"bad":   false,
			"due":   "2026-03-02T12:00:00Z",
			"empty": []any{},
			"f":     1.0,
			"half":  0.5,
			"id":    int64(7),
			"in":    "reserved",
			"items": []any{"x", "y"},
			"n":     int64(3),
			"none":  nil,
			"o":     map[string]any{"b": int64(2), "a": int64(1), "c": int64(3)},
			"ok":    true,
			"ref":   "r-17",
			"s":     "42",
			"text":  "",
		},
		Event: map[string]any{"timestamp": "2026-03-02T10:00:00Z", "payload": map[string]any{"base": "main"}},
	}
}

func TestWhatIsMeantIsWritten(t *testing.T) {
	tests := map[string]struct {
		scope Scope
		text  string
		want  any
	}{
		"join text":                             {ScopeActionInput, "'No reply on ' + context.ref", "No reply on r-17"},
		"join a number to text":                 {ScopeActionInput, "'#' + string(context.id)", "#7"},
		"format":                                {ScopeActionInput, "'%s: %d'.format([context.ref, context.n])", "r-17: 3"},
		"default of a declared name":            {ScopeActionInput, "context.none == null ? 0 : context.none", int64(0)},
		"default of a declared name with value": {ScopeActionInput, "context.n == null ? 0 : context.n", int64(3)},
		"default of another name":               {ScopeActionInput, "context.?a.?b.orValue('none')", "none"},
		"default of a path that is there":       {ScopeActionInput, "context.?o.?a.orValue('none')", int64(1)},
		"orValue keeps null":                    {ScopeActionInput, "context.?none.orValue(1)", nil},
		"declared and present":                  {ScopeEdgeCondition, "context.n != null", true},
		"declared and absent":                   {ScopeEdgeCondition, "context.none != null", false},
		"has is true for null":                  {ScopeEdgeCondition, "has(context.none)", true},
		"not declared and absent":               {ScopeEdgeCondition, "has(context.x)", false},
		"is true":                               {ScopeEdgeCondition, "context.ok == true", true},
		"null is not true":                      {ScopeEdgeCondition, "context.none == true", false},
		"is not true":                           {ScopeEdgeCondition, "context.bad != true", true},
		"null is other than true":               {ScopeEdgeCondition, "context.none != true", true},
		"order with null":                       {ScopeEdgeCondition, "context.none != null && context.none > 700", false},
		"order":                                 {ScopeEdgeCondition, "context.n != null && context.n > 2", true},
		"empty list":                            {ScopeEdgeCondition, "context.empty == null || size(context.empty) == 0", true},
		"null as empty list":                    {ScopeEdgeCondition, "context.none == null || size(context.none) == 0", true},
		"empty text":                            {ScopeEdgeCondition, "context.text == null || size(context.text) == 0", true},
		"first element":                         {ScopeActionInput, "context.items[?0].orValue('none')", "x"},
		"first element of none":                 {ScopeActionInput, "context.empty[?0].orValue('none')", "none"},
		"exact division":                        {ScopeActionInput, "double(context.a) / 2.0", 2.5},
		"division of ints":                      {ScopeActionInput, "5 / 2", int64(2)},
		"int against double":                    {ScopeEdgeCondition, "context.a > 4.5", true},
		"text as int":                           {ScopeActionInput, "int(context.s) + 1", int64(43)},
		"text as double":                        {ScopeActionInput, "double(context.s) / 4.0", 10.5},
		"text never equals a number":            {ScopeEdgeCondition, "context.s == 42", false},
		"ternary of two types":                  {ScopeActionInput, "context.ok ? dyn(1) : dyn('x')", int64(1)},
		"awkward key by index":                  {ScopeActionInput, "context['in']", "reserved"},
		"awkward key in back quotes":            {ScopeActionInput, "context.`a-b`", "dashed"},
		"literal text":                          {ScopeActionInput, "'text'", "text"},
		"time": {
			ScopeReceiveEventMatch,
			"timestamp(event.timestamp) + isoDuration('PT1H') < timestamp(context.due)", true,
		},
		"time too late": {
			ScopeReceiveEventMatch,
			"timestamp(event.timestamp) + isoDuration('PT2H') < timestamp(context.due)", false,
		},
		"event payload":              {ScopeReceiveEventOutput, "event.payload.base == 'main'", true},
		"dyn equality across types":  {ScopeEdgeCondition, "dyn(1) == 1.0", true},
		"ordering across types":      {ScopeEdgeCondition, "1 < 1.5 && 2.5 > 2", true},
		"untaken arm does not fail":  {ScopeActionInput, "context.ok ? 1 : context.missing", int64(1)},
		"untaken literal conversion": {ScopeActionInput, "context.ok ? 1 : int('x')", int64(1)},
		"untaken bad pattern":        {ScopeActionInput, "context.ok || 'x'.matches('[')", true},
		"error beside true":          {ScopeEdgeCondition, "context.missing || context.ok", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := eval(t, tc.scope, tc.text, sample())
			if err != nil {
				t.Fatalf("%s: %v", tc.text, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.text, diff)
			}
		})
	}
}

func TestEvaluationErrors(t *testing.T) {
	tests := map[string]struct{ text, wantReason string }{
		"missing key":              {"context.missing", "no such key: missing"},
		"missing key deeper":       {"context.o.missing", "no such key: missing"},
		"index out of bounds":      {"context.items[2]", "index out of bounds"},
		"not of null":              {"!context.none", "no such overload"},
		"null ordered":             {"context.none > 700", "no such overload"},
		"int and double mixed":     {"context.a + 0.5", "no such overload"},
		"division by zero":         {"context.a / 0", "division by zero"},
		"overflow":                 {"9223372036854775807 + context.a", "overflow"},
		"text that is no number":   {"int(context.ref)", "type conversion error"},
		"no duration":              {"isoDuration('1h')", "no ISO 8601 duration"},
		"dereferenced none":        {"optional.none().value()", "optional.none()"},
		"malformed pattern":        {"'x'.matches('[')", "regular expression"},
		"zone of the machine":      {"timestamp(context.due).getHours('Local')", "unknown time zone"},
		"duplicate dynamic key":    {"{dyn(1.5): 1}", "map key"},
		"NaN":                      {"0.0 / 0.0", "NaN"},
		"infinity":                 {"1.0 / 0.0", "infinite"},
		"NaN inside":               {"{'a': [0.0 / 0.0]}", "NaN"},
		"key that is no text":      {"{1: 'a'}", "map key of type int"},
		"uint":                     {"1u", "type uint"},
		"type":                     {"type(1)", "type type"},
		"result too large":         {"lists.range(300).map(i, ['0123456789'].map(s, lists.range(100).map(j, s)))", "256 KiB"},
		"format with wrong type":   {"'%d'.format([context.ref])", "decimal clause"},
		"join of no text":          {"[context.items, context.o].join()", "list of strings"},
		"sets of no list":          {"sets.contains(context.n, [1])", "no such overload"},
		"in of no collection":      {"1 in context.n", "no such overload"},
		"distinct of no list":      {"context.n.distinct()", "no such overload"},
		"replace of no text":       {"context.n.replace('a', 'b')", "no such overload"},
		"matches of no text":       {"context.n.matches('a')", "no such overload"},
		"iteration over a number":  {"context.n.all(x, true)", "iterable"},
		"json.encode of a type":    {"json.encode(type(1))", "has no JSON"},
		"json.encode of NaN":       {"json.encode([0.0 / 0.0])", "NaN"},
		"flatten of negative":      {"[[1]].flatten(-1)", "non-negative"},
		"negative range":           {"lists.range(-1)", "non-negative"},
		"slice out of bounds":      {"[1].slice(0, 2)", "length"},
		"base64 that is none":      {"base64.decode('*')", "illegal base64"},
		"timestamp that is none":   {"timestamp('yesterday')", "invalid RFC 3339"},
		"sort of different types":  {"[dyn(1), dyn('a')].sort()", "same type"},
		"optional of wrong target": {"context.n.hasValue()", "no such overload"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := eval(t, ScopeActionInput, tc.text, sample())
			var failure *EvalError
			if !errors.As(err, &failure) {
				t.Fatalf("%s = %v, %v; want an EvalError", tc.text, got, err)
			}
			if !strings.Contains(failure.Reason, tc.wantReason) {
				t.Errorf("%s: reason %q, want one with %q", tc.text, failure.Reason, tc.wantReason)
			}
			if !strings.Contains(err.Error(), oneLine(tc.text, maxShownExpression)) && !strings.Contains(err.Error(), `\`) {
				t.Errorf("error does not name the expression: %v", err)
			}
		})
	}
}

func TestValuesIn(t *testing.T) {
	tests := map[string]struct {
		value    any
		wantType string
	}{
		"null":                         {nil, "null_type"},
		"boolean":                      {true, "bool"},
		"text":                         {"x", "string"},
		"int64":                        {int64(1), "int"},
		"int":                          {1, "int"},
		"int32":                        {int32(1), "int"},
		"double of integral value":     {1.0, "int"},
		"negative zero":                {math.Copysign(0, -1), "int"},
		"double":                       {1.5, "double"},
		"number spelt 1":               {json.Number("1"), "int"},
		"number spelt 1.0":             {json.Number("1.0"), "int"},
		"number spelt 1e0":             {json.Number("1e0"), "int"},
		"number spelt 1.5":             {json.Number("1.5"), "double"},
		"largest int64":                {json.Number("9223372036854775807"), "int"},
		"beyond int64":                 {json.Number("9223372036854775808"), "double"},
		"smallest int64 as double":     {-9223372036854775808.0, "int"},
		"double beyond int64":          {9223372036854775808.0, "double"},
		"double below int64":           {-9223372036854777856.0, "double"},
		"list":                         {[]any{}, "list"},
		"object":                       {map[string]any{}, "map"},
		"object of a type of its own":  {named{"w": 1.0}, "map"},
		"timestamps are text at first": {"2026-03-02T12:00:00Z", "string"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for where, v := range map[string]Variables{
				"context.v":    {Context: map[string]any{"v": tc.value}},
				"context.v.w":  {Context: map[string]any{"v": map[string]any{"w": tc.value}}},
				"context.v[0]": {Context: map[string]any{"v": []any{tc.value}}},
			} {
				got, err := eval(t, ScopeEdgeCondition, "type("+where+") == "+tc.wantType, v)
				if err != nil || got != true {
					t.Errorf("type(%s) == %s: %v, %v", where, tc.wantType, got, err)
				}
			}
		})
	}
}

type named map[string]any

func TestObjectsOfTypesOfTheirOwn(t *testing.T) {
	v := Variables{Context: named{"v": named{"b": 1.0, "a": []any{named{"n": 2.0}}}}}
	got, err := eval(t, ScopeActionInput, "[context.v.b + 1, context.v.a[0].n + 1, size(context.v), context.v == {'a': [{'n': 2}], 'b': 1}]", v)
	if diff := cmp.Diff(any([]any{int64(2), int64(3), int64(2), true}), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNumbersThatAreNone(t *testing.T) {
	_, err := eval(t, ScopeActionInput, "context.v", Variables{Context: map[string]any{"v": json.Number("1e999")}})
	if failure := (*EvalError)(nil); !errors.As(err, &failure) {
		t.Errorf("error %v, want an EvalError", err)
	}
}

func TestValuesOut(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"null":                          {"null", nil},
		"boolean":                       {"true", true},
		"int":                           {"-9223372036854775808", int64(math.MinInt64)},
		"double":                        {"1.5", 1.5},
		"double of integral value":      {"2.0", int64(2)},
		"large double":                  {"1e300", 1e300},
		"text":                          {"'é\\n'", "é\n"},
		"bytes":                         {"b'\\xff\\x00'", "/wA="},
		"no bytes":                      {"b''", ""},
		"timestamp":                     {"timestamp('2026-03-02T12:00:00+02:00')", "2026-03-02T10:00:00Z"},
		"timestamp with fraction":       {"timestamp('2026-03-02T12:00:00.120Z')", "2026-03-02T12:00:00.12Z"},
		"duration":                      {"duration('90m')", "5400s"},
		"duration with fraction":        {"duration('1500ms')", "1.5s"},
		"negative duration":             {"duration('-1ns')", "-0.000000001s"},
		"no duration":                   {"duration('0s')", "0s"},
		"longest duration":              {"isoDuration('PT9223372036.854775807S')", "9223372036.854775807s"},
		"optional with value":           {"optional.of('x')", "x"},
		"optional without value":        {"optional.none()", nil},
		"optional of optional":          {"optional.of(optional.of(1))", int64(1)},
		"list":                          {"[1, 'a', null, [2.5]]", []any{int64(1), "a", nil, []any{2.5}}},
		"list of optionals":             {"[optional.of(1), optional.none()]", []any{int64(1), nil}},
		"map":                           {"{'a': {'b': b'x'}}", map[string]any{"a": map[string]any{"b": "eA=="}}},
		"empty list":                    {"[]", []any{}},
		"empty map":                     {"{}", map[string]any{}},
		"concatenated lists":            {"[1] + context.items", []any{int64(1), "x", "y"}},
		"optional entries":              {"{?'a': context.?ref, ?'b': context.?missing}", map[string]any{"a": "r-17"}},
		"optional elements":             {"[?context.?ref, ?context.?missing]", []any{"r-17"}},
		"object of the context":         {"context.o", map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)}},
		"double of the context":         {"context.f", int64(1)},
		"keys come in order":            {"context.o.map(k, k)", []any{"a", "b", "c"}},
		"keys of a literal in order":    {"{'b': 1, 'a': 2, 'c': 3}.map(k, k)", []any{"a", "b", "c"}},
		"keys of several types":         {"{'b': 1, 2: 2, true: 3, 1: 4, 3u: 5}.map(k, string(k))", []any{"true", "1", "2", "b", "3"}},
		"canonical JSON":                {"json.encode({'b': 1.0, 'a': [b'x', null], 'é': duration('1s')})", `{"a":["eA==",null],"b":1,"é":"1s"}`},
		"canonical JSON of the context": {"json.encode(context.o)", `{"a":1,"b":2,"c":3}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := eval(t, ScopeActionInput, tc.text, sample())
			if err != nil {
				t.Fatalf("%s: %v", tc.text, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.text, diff)
			}
		})
	}
}

func TestResultOfExactlyTheLimit(t *testing.T) {
	longest := strings.Repeat("a", maxResult-len(`""`))
	for name, tc := range map[string]struct {
		value   string
		wantErr bool
	}{
		"at the limit":   {longest, false},
		"over the limit": {longest + "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := eval(t, ScopeActionInput, "context.v", Variables{Context: map[string]any{"v": tc.value}})
			if (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %v", err, tc.wantErr)
			}
		})
	}
}

func TestEvalLeavesVariablesAlone(t *testing.T) {
	v := sample()
	text := "[context.items + ['z'], context.items.reverse(), context.o, context.items.map(x, x + '!')]"
	if _, err := eval(t, ScopeActionInput, text, v); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), v); diff != "" {
		t.Errorf("variables changed (-want +got):\n%s", diff)
	}
}

func TestNilVariablesAreEmpty(t *testing.T) {
	got, err := eval(t, ScopeReceiveEventMatch, "size(context) + size(event)", Variables{})
	if err != nil || got != int64(0) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		scope Scope
		text  string
		want  bool
	}{
		"true":                       {ScopeEdgeCondition, "context.ok", true},
		"false":                      {ScopeEdgeCondition, "context.bad", false},
		"a number is not taken":      {ScopeEdgeCondition, "1", false},
		"the text true is not taken": {ScopeEdgeCondition, "'true'", false},
		"null is not taken":          {ScopeEdgeCondition, "context.none", false},
		"an optional of true":        {ScopeEdgeCondition, "context.?ok", true},
		"an optional of nothing":     {ScopeEdgeCondition, "context.?missing", false},
		"a blank condition":          {ScopeEdgeCondition, " \n", true},
		"a blank match":              {ScopeReceiveEventMatch, "", false},
		"a match":                    {ScopeReceiveEventMatch, "event.payload.base == 'main'", true},
	}
	cache := NewCache()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := cache.Compile(tc.scope, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Selects(t.Context(), sample())
			if err != nil || got != tc.want {
				t.Errorf("Selects = %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestAnErrorIsNeverFalse(t *testing.T) {
	cache := NewCache()
	for _, text := range []string{
		"context.missing", "context.missing && true", "!context.missing", "context.n > 'a'", "context.none",
		"context.missing || context.bad", "context.items.exists(x, x.y)", "context.items.all(x, x.y)",
		"lists.range(10000).exists(x, lists.range(10000).exists(y, false))",
	} {
		program, err := cache.Compile(ScopeEdgeCondition, text)
		if err != nil {
			t.Fatal(err)
		}
		value, evalErr := program.Eval(t.Context(), sample())
		selected, err := program.Selects(t.Context(), sample())
		if selected || (err == nil) != (evalErr == nil) {
			t.Errorf("%s: Selects = %v, %v; Eval = %v, %v", text, selected, err, value, evalErr)
		}
		if text != "context.none" && err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestBlankExpressions(t *testing.T) {
	for _, scope := range Scopes() {
		want, wantType := any(nil), "null_type"
		if scope == ScopeEdgeCondition {
			want, wantType = true, "bool"
		}
		for _, text := range []string{"", " ", "\t\n "} {
			program, err := NewCache().Compile(scope, text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Eval(t.Context(), Variables{})
			if err != nil || got != want || program.ResultType() != wantType {
				t.Errorf("%s %q = %v (%s), %v; want %v (%s)", scope, text, got, program.ResultType(), err, want, wantType)
			}
		}
	}
}

func TestCancelledContextIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("shutting down"))
	cache := NewCache()
	for _, text := range []string{"1", "", "context.missing"} {
		program, err := cache.Compile(ScopeEdgeCondition, text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = program.Eval(ctx, sample())
		if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("%q: error %v, want ErrInterrupted with its cause", text, err)
		}
		if _, err := program.Selects(ctx, sample()); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%q: Selects error %v, want ErrInterrupted", text, err)
		}
	}
}

// A countdown is a context that ends after it was looked at n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancellingEndsARunningEvaluation(t *testing.T) {
	tests := map[string]string{
		"an iteration":               "lists.range(10000).all(x, true)",
		"an iteration beside true":   "lists.range(10000).exists(x, false) || lists.range(10000).all(x, true)",
		"one beside a failure":       "lists.range(10000).exists(x, false) || context.missing",
		"a comparison":               "context.long == context.other",
		"nested iterations":          "lists.range(100).all(x, lists.range(100).all(y, true))",
		"a function on lists":        "sets.equivalent(lists.range(500), lists.range(500).reverse())",
		"the rendering of a value":   "json.encode(context.long)",
		"a search":                   "'needle' in context.long",
		"the conversion of a result": "context.long",
	}
	long := make([]any, 5000)
	v := Variables{Context: map[string]any{"long": long, "other": append([]any{}, long...)}}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := NewCache().Compile(ScopeActionInput, text)
			if err != nil {
				t.Fatal(err)
			}
			ctx := &countdown{Context: t.Context(), n: 3}
			if _, err := program.Eval(ctx, v); !errors.Is(err, ErrInterrupted) {
				t.Errorf("error %v, want ErrInterrupted", err)
			}
			if ctx.n < -3 {
				t.Errorf("went on to look at its context %d times", -ctx.n)
			}
		})
	}
}

func TestErrorsAreShortAndOfOneLine(t *testing.T) {
	cache := NewCache()
	long := strings.Repeat("é", 1000)
	_, compileErr := cache.Compile(ScopeActionInput, "unknown +\n'"+long+"'")
	program, err := cache.Compile(ScopeActionInput, "context['"+long+"']")
	if err != nil {
		t.Fatal(err)
	}
	_, evalErr := program.Eval(t.Context(), Variables{})
	for name, err := range map[string]error{"compile": compileErr, "eval": evalErr} {
		if message := err.Error(); len(message) > 1000 || strings.ContainsAny(message, "\n\r") {
			t.Errorf("%s error of %d bytes: %s", name, len(message), message)
		}
	}
}
