package expression

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/go-cmp/cmp"
)

// TestTheEnvironmentIsExactlyThis fails when an upgrade of the library adds a function or a macro.
func TestTheEnvironmentIsExactlyThis(t *testing.T) {
	env, err := newBaseEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	wantFunctions := strings.Fields(`
		!_ -_ @in @not_strictly_false @sortByAssociatedKeys
		_!=_ _%_ _&&_ _*_ _+_ _-_ _/_ _<=_ _<_ _==_ _>=_ _>_ _?._ _?_:_ _[?_] _[_] _||_
		base64.decode base64.encode bool bytes charAt contains distinct double duration dyn endsWith first flatten format
		getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds
		hasValue indexOf int isoDuration join json.encode last lastIndexOf lists.range lowerAscii matches
		math.@max math.@min math.abs math.bitAnd math.bitNot math.bitOr math.bitShiftLeft math.bitShiftRight math.bitXor
		math.ceil math.floor math.isFinite math.isInf math.isNaN math.round math.sign math.sqrt math.trunc
		optional.none optional.of optional.ofNonZeroValue or orValue replace reverse
		sets.contains sets.equivalent sets.intersects size slice sort split startsWith string strings.quote substring
		timestamp trim type uint upperAscii value`)
	slices.Sort(wantFunctions)
	functions := maps.Clone(env.Functions())
	maps.DeleteFunc(functions, func(_ string, f *decls.FunctionDecl) bool { return f.IsDeclarationDisabled() })
	if diff := cmp.Diff(wantFunctions, slices.Sorted(maps.Keys(functions))); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}

	var macros []string
	for _, macro := range env.Macros() {
		macros = append(macros, macro.Function())
	}
	slices.Sort(macros)
	wantMacros := []string{"all", "exists", "exists_one", "filter", "greatest", "has", "least", "map", "optFlatMap", "optMap", "sortBy"}
	if diff := cmp.Diff(wantMacros, slices.Compact(macros)); diff != "" {
		t.Errorf("macros (-want +got):\n%s", diff)
	}
}

func TestEveryOverrideIsOfAFunction(t *testing.T) {
	env, err := newBaseEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	for name := range overrides {
		if !env.HasFunction(name) {
			t.Errorf("override of %s, which is no function", name)
		}
	}
}

// functionCases are expressions with their values.
func functionCases() map[string]any {
	return map[string]any{
		"'abc'.charAt(1)":             "b",
		"'abcabc'.indexOf('c')":       int64(2),
		"'abcabc'.indexOf('c', 3)":    int64(5),
		"'abcabc'.lastIndexOf('a')":   int64(3),
		"['a', 'b'].join()":           "ab",
		"['a', 'b'].join('-')":        "a-b",
		"'a,b,c'.split(',')":          []any{"a", "b", "c"},
		"'a,b,c'.split(',', 2)":       []any{"a", "b,c"},
		"'aXbX'.replace('X', '-')":    "a-b-",
		"'aXbX'.replace('X', '-', 1)": "a-bX",
		"'abc'.substring(1)":          "bc",
		"'abc'.substring(0, 2)":       "ab",
		"'  a '.trim()":               "a",
		"'AbÉ'.lowerAscii()":          "abÉ",
		"'aBé'.upperAscii()":          "ABé",
		"'abé'.reverse()":             "éba",
		"'%s %d %.2f %x %b %e'.format(['a', 1, 2.5, 255, 5, 1.0])": "a 1 2.50 ff 101 1.000000e+00",
		"'%s'.format([[1, 'a', {'k': null}]])":                     "[1, a, {k: null}]",
		"'100%%'.format([])":                                       "100%",
		"strings.quote('a\"\\n')":                                  `"a\"\n"`,
		"math.greatest(1, 2.5)":                                    2.5,
		"math.greatest([1, 3, 2])":                                 int64(3),
		"math.least(3, 1, 2)":                                      int64(1),
		"math.ceil(1.2)":                                           int64(2),
		"math.floor(-1.2)":                                         int64(-2),
		"math.round(2.5)":                                          int64(3),
		"math.trunc(-1.7)":                                         int64(-1),
		"math.abs(-3)":                                             int64(3),
		"math.sign(-3)":                                            int64(-1),
		"math.sqrt(9)":                                             int64(3),
		"math.isInf(1.0 / 0.0)":                                    true,
		"math.isNaN(0.0 / 0.0)":                                    true,
		"math.isFinite(1.5)":                                       true,
		"math.bitAnd(6, 3)":                                        int64(2),
		"math.bitOr(6, 3)":                                         int64(7),
		"math.bitXor(6, 3)":                                        int64(5),
		"math.bitNot(0)":                                           int64(-1),
		"math.bitShiftLeft(1, 4)":                                  int64(16),
		"math.bitShiftRight(16, 4)":                                int64(1),
		"[1, 2, 3].slice(1, 3)":                                    []any{int64(2), int64(3)},
		"[[1], [2, [3]]].flatten()":                                []any{int64(1), int64(2), []any{int64(3)}},
		"[[1], [2, [3]]].flatten(2)":                               []any{int64(1), int64(2), int64(3)},
		"[1, 2.0, 2, 1.0].distinct()":                              []any{int64(1), int64(2)},
		"[1, 2].reverse()":                                         []any{int64(2), int64(1)},
		"['b', 'a'].sort()":                                        []any{"a", "b"},
		"[3, 1, 2].sortBy(x, -x)":                                  []any{int64(3), int64(2), int64(1)},
		"lists.range(3)":                                           []any{int64(0), int64(1), int64(2)},
		"[1, 2].first()":                                           int64(1),
		"[1, 2].last()":                                            int64(2),
		"[].first()":                                               nil,
		"[].last().orValue('none')":                                "none",
		"sets.contains([1, 2, 3], [2.0, 3])":                       true,
		"sets.contains([1], [1, 2])":                               false,
		"sets.equivalent([1, 2, 2], [2, 1])":                       true,
		"sets.equivalent([1], [1, 2])":                             false,
		"sets.intersects([1, 2], [2, 3])":                          true,
		"sets.intersects([1], [2])":                                false,
		"base64.encode(b'hello')":                                  "aGVsbG8=",
		"string(base64.decode('aGVsbG8'))":                         "hello",
		"json.encode('a<b')":                                       `"a<b"`,
		"isoDuration('P1DT1H') == duration('25h')":                 true,
		"optional.of(1).or(optional.of(2))":                        int64(1),
		"optional.none().or(optional.of(2))":                       int64(2),
		"optional.ofNonZeroValue('').hasValue()":                   false,
		"optional.of(2).optMap(x, x * 2)":                          int64(4),
		"optional.of([3]).optFlatMap(x, x[?0])":                    int64(3),
		"optional.of(2).value()":                                   int64(2),
		"[1, 2].exists_one(x, x > 1)":                              true,
		"[1, 2, 3].filter(x, x != 2)":                              []any{int64(1), int64(3)},
		"[1, 2, 3].map(x, x != 2, x * 2)":                          []any{int64(2), int64(6)},
		"'x' in {'x': 1}":                                          true,
		"dyn(2.0) in [1, 2]":                                       true,
		"dyn(1) in {1.0 < 2: 1}":                                   false,
		"'a1'.matches('^[a-z][0-9]$')":                             true,
		"matches('b', 'a' + '|b')":                                 true,
		"'abc'.contains('b') && 'abc'.startsWith('a')":             true,
		"size('é') + size(b'é') + size([1]) + size({})":            int64(4),
		"[1, [2, {'a': 3}]] == [1, [2.0, {'a': 3.0}]]":             true,
		"{'a': 1} == {'a': 1, 'b': 2}":                             false,
		"optional.of([1]) == optional.of([1])":                     true,
		"optional.none() == optional.of(dyn(1))":                   false,
		"[null] == [dyn(null)]":                                    true,
		"7 % 3 == 1 && 7 >= 7 && 6 <= 7 || false":                  true,
		"[bool('true'), bool('false')]":                            []any{true, false},
		"bytes('é') == b'\\xc3\\xa9'":                              true,
		"[int('-7'), int(2.9), int(uint(3)), int(timestamp('1970-01-01T00:00:01Z'))]": []any{int64(-7), int64(2), int64(3), int64(1)},
		"double('0.5') + double(1)":                                 1.5,
		"int(uint('7') + 1u)":                                       int64(8),
		"'abc'.endsWith('bc') && !'abc'.endsWith('b')":              true,
		"context.?o.?a.orValue(0) + context.?missing.?a.orValue(5)": int64(6),
		"[1, 2].all(x, x > 0) && [1, 2].exists(x, x > 1)":           true,
		"[timestamp('2026-03-02T09:14:07.5Z')].map(t, [t.getFullYear(), t.getMonth(), t.getDate(), t.getDayOfMonth(), t.getDayOfYear(), t.getDayOfWeek()])[0]": []any{
			int64(2026), int64(2), int64(2), int64(1), int64(60), int64(1),
		},
		"[timestamp('2026-03-02T09:14:07.5Z')].map(t, [t.getHours(), t.getMinutes(), t.getSeconds(), t.getMilliseconds()])[0]": []any{
			int64(9), int64(14), int64(7), int64(500),
		},
		"[duration('90m7s')].map(d, [d.getHours(), d.getMinutes(), d.getSeconds(), d.getMilliseconds()])[0]": []any{
			int64(1), int64(90), int64(5407), int64(5_407_000), // each the whole duration in its unit
		},
		"timestamp('2026-03-29T00:30:00Z').getHours('Europe/Berlin')": int64(1),
		"timestamp('2026-03-29T23:30:00+02:00').getHours()":           int64(21),
		"type(context.o) == map && type(context.items) == list":       true,
		"dyn(context.o) == dyn(context.items)":                        false,
		"size(context.o) + size(context.items)":                       int64(5),
		"'b' in context.o && !('z' in context.o)":                     true,
		"'y' in context.items":                                        true,
		"optional.ofNonZeroValue(context.empty).hasValue()":           false,
		strings.Repeat("[", 16) + strings.Repeat("]", 16) + " == []":  false,
		"[1]" + strings.Repeat(".map(x, [x])", 15) + ".size()":        int64(1),
		"[1]" + strings.Repeat(".map(x, [x][0])", 30) + "[0]":         int64(1),
		"[1]" + strings.Repeat(".map(x, dyn([x]))", 30) + ".size()":   int64(1),
		"optional.of(1)" + strings.Repeat(".optMap(x, x + 1)", 20):    int64(21),
		strings.Repeat(" ", maxExpression-1) + "1":                    int64(1),
		"(context.ok ? context.o : context.items).b":                  int64(2),
		"context.items[context.n - 2]":                                "y",
		"context.o[context.items.map(x, 'a')[0]]":                     int64(1),
		"has(context.o.a) && !has(context.o.z)":                       true,
	}
}

// Each function of the environment stands in a case, as the checker names it.
func TestEveryFunctionHasACase(t *testing.T) {
	cache := NewCache()
	env := cache.environments[ScopeActionInput]
	called := map[string]bool{}
	for text := range functionCases() {
		checked := cache.check(key{ScopeActionInput, text}).checked
		ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
			if e.Kind() == ast.CallKind {
				called[e.AsCall().FunctionName()] = true
			}
		}))
	}
	for name, function := range env.Functions() {
		if !function.IsDeclarationDisabled() && !called[name] {
			t.Errorf("no case calls %s", name)
		}
	}
}

func TestFunctions(t *testing.T) {
	for text, want := range functionCases() {
		t.Run(text, func(t *testing.T) {
			got, err := eval(t, ScopeActionInput, text, sample())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct {
		scope      Scope
		text       string
		wantReason string
	}{
		"event in a condition":            {ScopeEdgeCondition, "event.type == 'x'", "undeclared reference to 'event'"},
		"event in an input":               {ScopeActionInput, "event", "undeclared reference to 'event'"},
		"event in a title":                {ScopeHumanTaskTitle, "event", "undeclared reference to 'event'"},
		"event in a subscription key":     {ScopeCorrelationSubscriptionKey, "event", "undeclared reference to 'event'"},
		"context in an event key":         {ScopeCorrelationEventKey, "context", "undeclared reference to 'context'"},
		"another variable":                {ScopeReceiveEventMatch, "inputs.x", "undeclared reference to 'inputs'"},
		"the meter":                       {ScopeEdgeCondition, "@meter", "Syntax error"},
		"syntax":                          {ScopeEdgeCondition, "context.", "Syntax error"},
		"literals of different types":     {ScopeEdgeCondition, "1 == 1.0", "no matching overload"},
		"sum of different types":          {ScopeActionInput, "1 + 1.0", "no matching overload"},
		"a condition of no boolean":       {ScopeEdgeCondition, "1 ? 2 : 3", "no matching overload"},
		"arms of different types":         {ScopeActionInput, "context.ok ? 1 : 'x'", "no matching overload"},
		"unwrap":                          {ScopeActionInput, "optional.unwrap([optional.of(1)])", "undeclared reference"},
		"unwrapOpt":                       {ScopeActionInput, "[optional.of(1)].unwrapOpt()", "undeclared reference"},
		"bind":                            {ScopeActionInput, "cel.bind(x, 1, x)", "undeclared reference"},
		"two variables":                   {ScopeActionInput, "[1].transformList(i, v, v)", "undeclared reference"},
		"two variables of all":            {ScopeActionInput, "[1].all(i, v, true)", "undeclared reference"},
		"regular expression library":      {ScopeActionInput, "regex.extract('a', 'a')", "undeclared reference"},
		"network library":                 {ScopeActionInput, "ip('127.0.0.1')", "undeclared reference"},
		"message of protocol buffers":     {ScopeActionInput, "google.protobuf.Struct{}", "no part of the language"},
		"wrapper of protocol buffers":     {ScopeActionInput, "google.protobuf.Int64Value{value: 1}", "no part of the language"},
		"wrong format":                    {ScopeActionInput, "'%d'.format(['x'])", "decimal clause"},
		"format that asks for too much":   {ScopeActionInput, "'%.101f'.format([1.0])", "maximum"},
		"optional element that is none":   {ScopeActionInput, "[?context.n]", "optional"},
		"optional entry that is none":     {ScopeActionInput, "{?'a': context.n}", "optional"},
		"key that is no key":              {ScopeActionInput, "{b'a': 1}", "map key"},
		"key that is a list":              {ScopeActionInput, "{[1]: 1}", "map key"},
		"lists nested too deep":           {ScopeActionInput, strings.Repeat("[", 17) + strings.Repeat("]", 17), "nest deeper than 16"},
		"maps nested too deep":            {ScopeActionInput, strings.Repeat("{'a':", 17) + "1" + strings.Repeat("}", 17), "nest deeper than 16"},
		"optionals nested too deep":       {ScopeActionInput, strings.Repeat("optional.of(", 17) + "1" + strings.Repeat(")", 17), "nest deeper than 16"},
		"macros nested too deep":          {ScopeActionInput, "[1]" + strings.Repeat(".map(x, [x])", 16), "nest deeper than 16"},
		"depth in a condition":            {ScopeActionInput, "[1].all(x, " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + " == [])", "nest deeper than 16"},
		"depth handed on":                 {ScopeActionInput, "[1]" + strings.Repeat(".map(x, [x].sortBy(y, 1).reverse().slice(0, 1).distinct())", 16), "nest deeper than 16"},
		"depth handed on by a choice":     {ScopeActionInput, "[1]" + strings.Repeat(".map(x, true ? [x] + [x] : [x])", 16), "nest deeper than 16"},
		"depth handed on by optionals":    {ScopeActionInput, "[1]" + strings.Repeat(".map(x, [x].first().or([x].last()).orValue(x)).map(x, [[x], [x]].flatten())", 16), "nest deeper than 16"},
		"a text that is too long":         {ScopeActionInput, strings.Repeat(" ", maxExpression) + "1", "over 16384 characters"},
		"many issues, of which a few are": {ScopeActionInput, "a + b + c + d + e", "1:9: undeclared reference to 'c'"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := NewCache().Compile(tc.scope, tc.text)
			failure, ok := errors.AsType[*CompileError](err)
			if !ok {
				t.Fatalf("Compile = %v, %v; want a CompileError", program, err)
			}
			if !strings.Contains(failure.Reason, tc.wantReason) || strings.Contains(failure.Reason, "'e'") {
				t.Errorf("reason %q, want one with %q", failure.Reason, tc.wantReason)
			}
			if failure.Scope != tc.scope || !strings.Contains(err.Error(), "compile expression") {
				t.Errorf("error %v of scope %s", err, failure.Scope)
			}
		})
	}
}

func TestResultTypes(t *testing.T) {
	tests := map[string]struct{ scope, text, want string }{
		"bool":     {"edge-condition", "context.n > 1", "bool"},
		"dyn":      {"edge-condition", "context.n", "dyn"},
		"int":      {"edge-condition", "1", "int"},
		"string":   {"human-task-title", "'a' + context.ref", "string"},
		"list":     {"action-input", "[1]", "list(int)"},
		"map":      {"action-input", "{'a': 1}", "map(string, int)"},
		"context":  {"action-input", "context", "map(string, dyn)"},
		"optional": {"action-input", "context.?a", "optional_type(dyn)"},
		"null":     {"action-input", "null", "null_type"},
		"blank":    {"edge-condition", "  ", "bool"},
	}
	cache := NewCache()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := cache.Check(tc.scope, tc.text)
			if err != nil || got != tc.want {
				t.Errorf("Check = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	for scope, text := range map[string]string{"edge-condition": "context.", "no-such-scope": "1"} {
		if _, err := cache.Check(scope, text); err == nil {
			t.Errorf("Check(%s, %s): no error", scope, text)
		}
	}
}

func TestScopes(t *testing.T) {
	want := []Scope{
		"edge-condition", "action-input", "human-task-title", "correlation-subscription-key", "correlation-event-key",
		"receive-event-match", "receive-event-output",
	}
	if diff := cmp.Diff(want, Scopes()); diff != "" {
		t.Errorf("Scopes (-want +got):\n%s", diff)
	}
	for _, scope := range want {
		if got, ok := ParseScope(string(scope)); !ok || got != scope {
			t.Errorf("ParseScope(%s) = %s, %v", scope, got, ok)
		}
	}
	if _, ok := ParseScope("Edge-Condition"); ok {
		t.Error("ParseScope took an unknown scope")
	}
	if _, err := NewCache().Compile("no-such-scope", "1"); err == nil {
		t.Error("Compile took an unknown scope")
	}
}
