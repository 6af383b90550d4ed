package expression

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// corpus are the expressions that fuzzing starts from.
func corpus() []string {
	return []string{
		"'No reply on ' + context.ref", "context.?a.?b.orValue('none')", "context.none == null ? 0 : context.none",
		"context.items[?0].orValue('none')", "context.`a-b`", "double(context.a) / 2.0", "context['in'] == 'reserved'",
		"'%s: %d %.2f %x'.format([context.ref, context.n, context.half, 255])", "context.items.map(x, x + '!').join(',')",
		"json.encode({'b': context.o, 'a': [1.5, null, b'x']})", "sets.contains([1, 2], [dyn(2.0)])", "'a1'.matches('^[a-z]+$')",
		"[3, 1, 2].sortBy(x, -x).reverse().slice(0, 2)", "timestamp(context.due) - isoDuration('PT1H')", "{?'a': context.?ref}",
		"context.items.exists_one(x, x == 'x') && !has(context.missing) || context.missing", "context.o.all(k, k != '')",
		"[[1], [2, [3]]].flatten(2).distinct()", "strings.quote(context.ref).split('').size()", "base64.encode(b'\\xff')",
		"context.ref.replace('r', context.ref, 2).substring(1)", "optional.of(context.n).optMap(x, x * 2)", "{'a': 1} == context.o",
		"math.greatest(context.n, 2.5)", "-context.n % 2 in [1, -1]", "uint(1)", "(context.ok ? context.o : context.items).a",
		`'é' + r'ü' + "日本\u00e9"`, `b'é\xff' == bytes('ü')`, "'%s: é'.format(['ü'])", "['ö'].map(x, x + 'ä') // ß",
	}
}

func FuzzCompile(f *testing.F) {
	for i, text := range corpus() {
		f.Add(i, text)
	}
	cache := NewCache()
	f.Fuzz(func(t *testing.T, i int, text string) {
		scopes := Scopes()
		scope := scopes[uint(i)%uint(len(scopes))]
		resultType, effort, checkErr := cache.CheckEffort(string(scope), text)
		program, err := cache.Compile(scope, text)
		if failure := (*CompileError)(nil); err != nil && !errors.As(err, &failure) {
			t.Fatalf("error %v, want a CompileError", err)
		}
		if effort < textEffort || effort > maxEffort {
			t.Errorf("effort %d", effort)
		}
		if (err == nil) != (checkErr == nil) || err == nil && program.ResultType() != resultType {
			t.Errorf("compiling gives %v, checking %q, %v", err, resultType, checkErr)
		}
		if len(text) < 1<<10 && utf8.ValidString(text) && !hasEveryControl(text) {
			assertParse(t, cache.environments[scope], text)
		}
		if err != nil {
			if message := err.Error(); len(message) > 2000 || strings.Contains(message, "\n") {
				t.Errorf("error of %d bytes: %q", len(message), message)
			}
			return
		}
		if program.ResultType() == "" {
			t.Error("no result type")
		}
		if program.planned != nil {
			assertDepth(t, cache.environments[scope], text)
		}
	})
}

// hasEveryControl tells texts that are refused though the library would take them.
func hasEveryControl(text string) bool {
	_, err := standInFor(text)
	return err != nil
}

// assertDepth checks that the depth of types, as it is worked out before checking, is no less than it turns out to be.
func assertDepth(t *testing.T, env *cel.Env, text string) {
	t.Helper()
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	d := depths{}
	d.of(parsed.NativeRep().Expr(), map[string]int{contextVariable: 1, eventVariable: 1})
	for _, got := range checked.NativeRep().TypeMap() {
		if depth := depthOf(got); depth > d.deepest {
			t.Errorf("%s has the type %s of depth %d, more than %d", text, got, depth, d.deepest)
		}
	}
}

func depthOf(t *types.Type) int {
	depth := 0
	for _, parameter := range t.Parameters() {
		depth = max(depth, 1+depthOf(parameter))
	}
	return depth
}

func TestDepthIsBoundedFromAbove(t *testing.T) {
	cache := NewCache()
	for _, text := range append(corpus(), "optional.of(1).optMap(x, [x]).optFlatMap(y, y[?0])", "[type([1])].map(x, type(x))", "type(type([]))", "int", "[int, string]", "[[int]].map(x, x)", "google.protobuf.Timestamp") {
		assertDepth(t, cache.environments[ScopeReceiveEventOutput], text)
	}
}

// FuzzEval checks on any expression and any variables that evaluation ends without a panic, that it is deterministic,
// that spelling an integer as a double changes nothing, and that neither prices nor guards change a value.
func FuzzEval(f *testing.F) {
	variables, err := jsonvalue.Canonical(sample().Context)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range corpus() {
		f.Add(text, variables)
	}
	cache := NewCache()
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		if len(text) > 1<<10 || len(data) > 64<<10 {
			t.Skip("not what property tests are about")
		}
		tree, err := jsonvalue.Decode(data)
		object, ok := tree.(map[string]any)
		if err != nil || !ok {
			t.Skip("no object")
		}
		program, err := cache.Compile(ScopeReceiveEventOutput, text)
		if err != nil || program.planned == nil {
			t.Skip("does not compile, or is blank")
		}
		want, wantErr := program.Eval(t.Context(), Variables{Context: object, Event: object})
		if wantErr == nil {
			if _, err := jsonvalue.Canonical(want); err != nil {
				t.Fatalf("the value has no JSON: %v", err)
			}
		}
		respelt := respell(object).(map[string]any)
		got, err := program.Eval(t.Context(), Variables{Context: respelt, Event: respelt})
		assertSame(t, "respelt", outcome{want, wantErr}, outcome{got, err})
		if isLimit(wantErr) || strings.Contains(text, "json") || cost(t, program, object) > 10_000 {
			return // the library alone has no such function, or might not end
		}
		got, err = plainly(t, text, object)
		if (err == nil) != (wantErr == nil) || !jsonvalue.Equal(want, got) {
			t.Errorf("the library alone gives %v, %v; want %v, %v", got, err, want, wantErr)
		}
	})
}

// cost is what an evaluation costs.
func cost(t *testing.T, program *Program, object map[string]any) uint64 {
	if program.planned == nil {
		return 0
	}
	m := &meter{ctx: t.Context()}
	// Only the cost is of interest, also of an evaluation that fails.
	_, _, _ = program.planned.Eval(&variables{Variables: Variables{Context: object, Event: object}, meter: m})
	return m.spent
}

// outcome is what came of an evaluation.
type outcome struct {
	value any
	err   error
}

func outcomeOf(value any, err error) outcome {
	return outcome{value, err}
}

func assertSame(t *testing.T, what string, want, got outcome) {
	t.Helper()
	if fmt.Sprint(want.err) != fmt.Sprint(got.err) {
		t.Errorf("%s: error %v, want %v", what, got.err, want.err)
	}
	if !reflect.DeepEqual(want.value, got.value) { // no diff: that of two deep values would not end
		t.Errorf("%s: %.1000v, want %.1000v", what, got.value, want.value)
	}
}

// isLimit tells errors that the library alone does not have.
func isLimit(err error) bool {
	if err == nil {
		return false
	}
	for _, limit := range []string{
		errText.Error(), errElements.Error(), errKey.Error(), "regular expression", "costs more than", "the value is over",
		"unknown time zone Local", "has no JSON",
	} {
		if strings.Contains(err.Error(), limit) {
			return true
		}
	}
	return false
}

// respell is a copy of a JSON tree with its integers as doubles, where those hold them.
func respell(v any) any {
	switch v := v.(type) {
	case int64:
		if f := float64(v); int64(f) == v && f < 1<<62 && f > -1<<62 {
			return f
		}
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = respell(element)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[name] = respell(member)
		}
		return object
	}
	return v
}

// plainly evaluates without prices and guards.
func plainly(t *testing.T, text string, object map[string]any) (any, error) {
	base, err := newBaseEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(variablesOf(ScopeReceiveEventOutput)...)
	if err != nil {
		t.Fatal(err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(checked)
	if err != nil {
		return nil, err
	}
	value, _, err := program.Eval(map[string]any{contextVariable: object, eventVariable: object})
	if err != nil {
		return nil, err
	}
	e := exporter{limit: maxResult, meter: &meter{ctx: t.Context()}}
	return e.value(value)
}

func TestPricesAndGuardsChangeNoValue(t *testing.T) {
	object := sample().Context
	for _, text := range corpus() {
		if strings.Contains(text, "json.encode") {
			continue // the library alone has no implementation here
		}
		want, wantErr := plainly(t, text, object)
		got, err := eval(t, ScopeReceiveEventOutput, text, Variables{Context: object, Event: object})
		if (wantErr == nil) != (err == nil) {
			t.Errorf("%s: error %v, want %v", text, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestRespellingChangesNoResult(t *testing.T) {
	for _, text := range append(corpus(), "context", "type(context.a) == int", "context.a + 1", "context.items[context.n - 3]") {
		v := sample()
		want := outcomeOf(eval(t, ScopeReceiveEventOutput, text, v))
		v.Context = respell(v.Context).(map[string]any)
		assertSame(t, text, want, outcomeOf(eval(t, ScopeReceiveEventOutput, text, v)))
	}
}

func TestEvalIsDeterministic(t *testing.T) {
	v := large()
	for _, text := range []string{
		"context.wide.map(k, k)", "context.wide.exists(k, k > 'k03')", "{'b': 1, 'a': 2, 'c': 3}.map(k, k)", "context == context",
		"json.encode(context.wide)", "'%s'.format([context.wide])",
	} {
		want := outcomeOf(eval(t, ScopeActionInput, text, v))
		for range 3 {
			assertSame(t, text, want, outcomeOf(eval(t, ScopeActionInput, text, v)))
		}
	}
}
