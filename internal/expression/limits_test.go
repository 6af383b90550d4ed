package expression

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// large is a context of 256 KiB that has something for every attack: a long list, a long text, a wide object, digits
// and parts that equal each other.
func large() Variables {
	wide := map[string]any{}
	for i := range 4000 {
		wide[fmt.Sprintf("k%05d", i)] = int64(0)
	}
	zeros := make([]any, 20_000)
	for i := range zeros {
		zeros[i] = int64(0)
	}
	texts := make([]any, 500)
	for i := range texts {
		texts[i] = fmt.Sprintf("text %d", i)
	}
	return Variables{Context: map[string]any{
		"deep":   map[string]any{"a": map[string]any{"b": map[string]any{"c": map[string]any{"d": int64(0)}}}},
		"digits": strings.Repeat("0", 20_000) + "1",
		"hours":  strings.Repeat("1h", 10_000),
		"s":      "s",
		"small":  []any{int64(1), int64(2), int64(3), int64(4)},
		"text":   strings.Repeat("a", 60_000),
		"texts":  texts,
		"wide":   wide,
		"zeros":  zeros,
		"zeros2": append([]any{}, zeros...),
	}}
}

// attacks are expressions of at most 1 KiB that ask for as much as they can. Each must end, with a value or without.
func attacks() map[string]string {
	repeat := func(s, separator string, n int) string {
		return strings.TrimSuffix(strings.Repeat(s+separator, n), separator)
	}
	const share = ".map(l,dyn([l,l,l,l]))"
	loop := func(body string) string { return "context.zeros.all(x, " + body + ")" }
	return map[string]string{
		"nested loops":             "context.zeros.all(x, context.zeros.all(y, context.zeros.all(z, true)))",
		"loop over a path":         loop("context.deep.a.b.c.d == 0"),
		"loop over wrappers":       loop("[" + repeat("context", ",", 110) + "] != []"),
		"loop over nested wrapper": loop("[" + repeat("context.deep", ",", 70) + "] != []"),
		"loop over list wrappers":  loop("[" + repeat("context.texts", ",", 65) + "] != []"),
		"loop over constants":      loop("[" + repeat("0", ",", 450) + ",x] != []"),
		"loop over a map literal":  loop("{" + repeat("'a':0", ",", 150) + ",'b':x} != {}"),
		"loop over concatenation":  loop(repeat("context.small", "+", 65) + " != []"),
		"loop over text":           loop(repeat("context.s", "+", 99) + " != ''"),
		"loop over durations":      loop("duration(context.hours) != duration('1h')"),
		"loop over digits":         loop("int(context.digits) == 1"),
		"loop over bad digits":     loop("int(context.text) == 1 || true"),
		"loop over bytes":          loop("bytes(context.text) != b''"),
		"loop over sizes":          loop("size(context.text) > 0"),
		"loop over equality":       loop("context.zeros == context.zeros2"),
		"loop over map equality":   loop("context.wide == context.wide"),
		"loop over keys":           loop("context.wide.exists(k, true)"),
		"loop over a conditional":  loop("(true ? context.deep.a.b.c.d : 0) == 0"),
		"loop over presence":       loop("has(context.deep.a.b.c.d)"),
		"loop over indexes":        loop("context.zeros[context.zeros[context.zeros[x]]] == 0"),
		"loop over optionals":      loop("context.?deep.?a.?b.?c.?d.orValue(1) == 0"),
		"loop over missing keys":   loop("context[context.text] == 1 || true"),
		"loop over wrong indexes":  loop("context.small[dyn(context.text)] == 1 || true"),
		"loop over wrong joins":    loop("context.wide.map(k, dyn(context.wide)).join() == '' || true"),
		"loop over refusals":       loop("(context.text + context.text).split('a') == [] || true"),
		"loop over zones":          loop("timestamp('2026-01-01T00:00:00Z').getHours('America/Argentina/ComodRivadavia') >= 0"),
		"loop over formats":        loop("'%s%s%s'.format([context.texts, x, x]) != ''"),
		"loop over JSON":           loop("json.encode(context.texts) != ''"),
		"loop over patterns":       loop("context.s.matches(context.s + '(a{10}|b{10}){20}' + string(x))"),
		"loop over matches":        loop("context.text.matches('(a|aa|aaa)*b')"),
		"loop over splits":         loop("context.text.split('').size() > 0"),
		"loop over characters":     loop("context.text.charAt(59999) == 'a'"),
		"loop over sorting":        loop("context.texts.sort().size() > 0"),
		"loop over reversal":       loop("context.texts.reverse().size() > 0"),
		"constants that are free":  loop(free(150)),
		"long pattern":             "context.text.matches('" + repeat("(a{10}){10}", "", 80) + "')",
		"huge pattern":             "context.s.matches('" + repeat("a{1000}", "", 120) + "')",
		"pattern from text":        "context.s.matches(context.text)",
		"slow pattern":             "context.text.matches('(.{1,300})*(.{1,300})*b')",
		"search":                   "context.text.indexOf(context.text.substring(30000) + 'b')",
		"search backwards":         "context.text.lastIndexOf('b' + context.text.substring(30000))",
		"doubled text":             "[context.text]" + repeat(".map(t, t + t)", "", 60),
		"replaced text":            "context.text.replace('a', context.text)",
		"replaced nothing":         "context.text.replace('', context.text)",
		"joined text":              "context.zeros.map(x, context.text).join(context.text)",
		"joined small list":        "context.texts.map(x, context.text).join()",
		"formatted text":           "'" + repeat("%s", "", 40) + "'.format([" + repeat("context.wide", ",", 40) + "])",
		"quoted text":              "[context.text]" + repeat(".map(t, strings.quote(t + t))", "", 30),
		"encoded bytes":            "[bytes(context.text)]" + repeat(".map(t, bytes(base64.encode(t + t)))", "", 20),
		"JSON of JSON":             "[json.encode(context)]" + repeat(".map(t, json.encode([t, t]))", "", 30),
		"long range":               "lists.range(9223372036854775807)",
		"long map":                 "context.zeros.map(x, context.zeros.map(y, y))",
		"doubled list":             "[context.texts]" + repeat(".map(l, l + l)", "", 60),
		"flattened list":           "[context.small]" + repeat(".map(l, [l, l, l].flatten())", "", 35),
		"flattened emptiness":      "[[[]]]" + repeat(share, "", 38) + ".flatten(1000)",
		"shared parts":             "[context]" + repeat(share, "", 40),
		"shared parts compared":    "[context.small]" + repeat(share, "", 38) + ".map(l, l == l)",
		"shared parts encoded":     "json.encode([context.small]" + repeat(share, "", 38) + ")",
		"shared parts formatted":   "'%s'.format([context.small]" + repeat(share, "", 38) + ")",
		"shared parts searched":    "[1]" + repeat(share, "", 38) + ".map(l, dyn(l) in dyn(l))",
		"shared parts as keys":     "[context.small]" + repeat(share, "", 38) + ".map(l, {dyn('a'): 1}[dyn(l)])",
		"shared parts as index":    "[context.small]" + repeat(share, "", 38) + ".map(l, context[dyn(l)])",
		"shared parts as target":   "[context.small]" + repeat(share, "", 38) + ".map(l, dyn(l).foo)",
		"shared parts joined":      "[dyn(context.small)]" + repeat(share, "", 38) + ".map(l, dyn(l)).join()",
		"shared maps":              "[context.deep]" + repeat(".map(m, dyn({'a':m,'b':m}))", "", 35) + ".map(m, m == m)",
		"shared distinct":          "[context.small]" + repeat(".map(l, dyn([l,l,l,l].distinct()))", "", 28),
		"optionals in optionals":   "context.zeros.filter(x, true)" + repeat(".map(l,dyn(optional.of(l)))", "", 35),
		"sets":                     "sets.equivalent(lists.range(10000), lists.range(10000).reverse())",
		"distinct":                 "lists.range(10000).distinct()",
		"sort of long texts":       "lists.range(9999).map(i, (i % 2 == 0 ? 'a' : 'b') + context.text).sort().size()",
		"sort by long texts":       "lists.range(9999).sortBy(i, context.text + string(i)).size()",
		"greatest of many":         loop("math.greatest(context.small) == 4"),
		"deep conditionals":        loop(strings.Repeat("(x==1?0:", 40) + "0" + strings.Repeat(")", 40) + "==0"),
	}
}

func TestAttacksEndInBounds(t *testing.T) {
	const maxAllocated = 128 << 20
	v := large()
	cache := NewCache()
	for name, text := range attacks() {
		t.Run(name, func(t *testing.T) {
			if len(text) > 1<<10 {
				t.Fatalf("expression of %d bytes", len(text))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			program, err := cache.Compile(ScopeActionInput, text)
			if err != nil {
				t.Fatal(err)
			}
			value, err := program.Eval(t.Context(), v)
			runtime.ReadMemStats(&after)
			if failure := (*EvalError)(nil); err != nil && !errors.As(err, &failure) {
				t.Errorf("error %v, want an EvalError", err)
			}
			if err != nil && strings.Contains(err.Error(), "internal error") {
				t.Errorf("the interpreter failed: %v", err)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			if allocated > maxAllocated {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
			t.Logf("%d KiB, error %v, value %.40s", allocated>>10, err, fmt.Sprint(value))
		})
	}
}

// TestCompilingEndsInBounds uses expressions of at most 1 KiB that keep the parser or the checker busy.
func TestCompilingEndsInBounds(t *testing.T) {
	const maxAllocated = 64 << 20
	cache := NewCache()
	for name, text := range map[string]string{
		"nested lists":        strings.Repeat("[", 500) + strings.Repeat("]", 500),
		"nested lists, fewer": strings.Repeat("[", 100) + strings.Repeat("]", 100),
		"nested maps":         strings.Repeat("{'a':", 100) + "1" + strings.Repeat("}", 100),
		"nested macros":       strings.Repeat("[1].map(x,", 90) + "x" + strings.Repeat(")", 90),
		"a chain of lists":    "[1]" + strings.Repeat(".map(x,[[[[[[[[x]]]]]]]])", 40),
		"a chain of maps":     "[1]" + strings.Repeat(".map(x,{'a':{'a':x}})", 47),
		"a chain of sorts":    "context.l" + strings.Repeat(".sortBy(x,x)", 80),
		"nested optionals":    strings.Repeat("optional.of(", 70) + "1" + strings.Repeat(")", 70),
		"nested optMaps":      strings.Repeat("optional.of(1).optMap(x,", 40) + "x" + strings.Repeat(")", 40),
		"many lists":          "[" + strings.Repeat("[[[[[[[[[[[[]]]]]]]]]]]],", 40) + "[]]",
		"parentheses":         strings.Repeat("(", 1000),
		"brackets":            strings.Repeat("[{", 500),
		"quotes":              strings.Repeat("'", 1000),
		"no operators":        strings.Repeat("a b ", 250),
		"conditionals":        strings.Repeat("context.a?1:", 80) + "0",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := cache.Compile(ScopeActionInput, text)
			runtime.ReadMemStats(&after)
			if failure := (*CompileError)(nil); err != nil && !errors.As(err, &failure) {
				t.Errorf("error %v, want a CompileError", err)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
		})
	}
}

func TestSizeGuard(t *testing.T) {
	v := Variables{Context: map[string]any{
		"k64":  strings.Repeat("a", 64<<10),
		"k512": strings.Repeat("a", 512<<10),
		"m1":   strings.Repeat("a", 1<<20),
		"esc":  strings.Repeat(`"`, 512<<10),
		"s":    "a",
	}}
	const text, elements = "over 1 MiB", "over 10,000 elements"
	tests := map[string]struct{ text, wantReason string }{
		"a sum at the limit":              {"size(context.k512 + context.k512)", ""},
		"a sum over it":                   {"size(context.k512 + context.k512 + context.s)", text},
		"bytes at the limit":              {"size(bytes(context.k512) + bytes(context.k512))", ""},
		"bytes over it":                   {"size(bytes(context.k512) + bytes(context.k512) + b'a')", text},
		"a replacement at the limit":      {"size(context.k512.replace('a', 'bb'))", ""},
		"a replacement over it":           {"size(context.k512.replace('a', 'bbb'))", text},
		"a bounded replacement":           {"size(context.m1.replace('a', 'bb', 0))", ""},
		"a bounded replacement over it":   {"size(context.m1.replace('a', 'bb', 1))", text},
		"a shrinking replacement":         {"size(context.m1.replace('a', ''))", ""},
		"a join at the limit":             {"size(['', context.k512].join(context.k512))", ""},
		"a join over it":                  {"size([context.s, context.k512].join(context.k512))", text},
		"a format at the limit":           {"size('%s%s'.format([context.k512, context.k512]))", ""},
		"a format over it":                {"size('%s%s.'.format([context.k512, context.k512]))", text},
		"a format in hexadecimals":        {"size('%x'.format([context.k512]))", ""},
		"hexadecimals over it":            {"size('%x.'.format([context.k512]))", text},
		"a format of a list over it":      {"'%s'.format([[context.k512, context.k512]])", text},
		"a format of a map over it":       {"'%s'.format([{'a': context.k512, 'b': context.k512}])", text},
		"a quote at the limit":            {"size(strings.quote(context.m1.substring(2)))", ""},
		"a quote over it":                 {"strings.quote(context.m1.substring(1))", text},
		"a quote with escapes over it":    {"strings.quote(context.esc)", text},
		"JSON at the limit":               {"size(json.encode(context.m1.substring(2)))", ""},
		"JSON over it":                    {"json.encode(context.m1)", "over 1024 KiB"},
		"base64 at the limit":             {"size(base64.encode(bytes(context.m1.substring(262144))))", ""},
		"base64 over it":                  {"base64.encode(bytes(context.m1.substring(262143)))", text},
		"a list of a sum at the limit":    {"size(lists.range(5000) + lists.range(5000))", ""},
		"a list of a sum over it":         {"size(lists.range(5001) + lists.range(5000))", elements},
		"a range at the limit":            {"size(lists.range(10000))", ""},
		"a range over it":                 {"lists.range(10001)", elements},
		"a map at the limit":              {"size(lists.range(10000).map(x, x))", ""},
		"a map over it":                   {"context.k64.split('', 10000).map(x, x) + ['b']", elements},
		"a split at the limit":            {"size(context.k64.split('', 10000))", ""},
		"a split over it":                 {"context.k64.split('')", elements},
		"a split by text over it":         {"context.k64.split('a')", elements},
		"a flattening at the limit":       {"size([lists.range(5000), lists.range(5000)].flatten())", ""},
		"a flattening over it":            {"[lists.range(5000), lists.range(5001)].flatten()", elements},
		"a deeper flattening over it":     {"[[lists.range(5000)], [lists.range(5001)]].flatten(2)", elements},
		"a sort at the limit":             {"size(lists.range(10000).sort())", ""},
		"a sort by keys":                  {"size(lists.range(1000).sortBy(x, -x))", ""},
		"sets at the limit":               {"sets.contains(lists.range(10000), [1])", ""},
		"a pattern of many states":        {"'a'.matches('(a{10}){90}(b{20}){50}(c{20}){50}')", "states"},
		"a long pattern":                  {"'a'.matches(context.k64)", "regular expression is over 4 KiB"},
		"a literal pattern of bad syntax": {"'a'.matches('(')", "regular expression is malformed"},
		"work that costs too much":        {"lists.range(10000).all(x, lists.range(10000).all(y, true))", "costs more than 1000000"},
	}
	cache := NewCache()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := cache.Compile(ScopeActionInput, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = program.Eval(t.Context(), v)
			switch {
			case tc.wantReason == "" && err != nil:
				t.Errorf("%s: %v", tc.text, err)
			case tc.wantReason != "" && (err == nil || !strings.Contains(err.Error(), tc.wantReason)):
				t.Errorf("%s: error %v, want one with %q", tc.text, err, tc.wantReason)
			}
		})
	}
}

func TestGuardsOnListsOfTheContext(t *testing.T) {
	over := make([]any, maxElements+1)
	for i := range over {
		over[i] = int64(i)
	}
	v := Variables{Context: map[string]any{"over": over}}
	for text, wantErr := range map[string]bool{
		"size(context.over)":                          false,
		"context.over[10000]":                         false,
		"context.over.exists(x, x == 10000)":          false,
		"10000 in context.over":                       false,
		"size(context.over.filter(x, x < 5))":         false,
		"size(context.over.slice(0, 10000))":          false,
		"size(context.over.map(x, x > 0, x))":         false,
		"context.over.map(x, x)":                      true,
		"context.over.filter(x, true)":                true,
		"context.over.slice(0, 10001)":                true,
		"context.over.reverse()":                      true,
		"context.over.sort()":                         true,
		"context.over.sortBy(x, x)":                   true,
		"context.over + [1]":                          true,
		"sets.contains(context.over, [1])":            true,
		"sets.intersects([1], context.over)":          true,
		"sets.equivalent(context.over, context.over)": true,
		"[context.over].flatten()":                    true,
	} {
		_, err := eval(t, ScopeActionInput, text, v)
		if got := err != nil && strings.Contains(err.Error(), "10,000 elements"); got != wantErr || !wantErr && err != nil {
			t.Errorf("%s: error %v, want one: %v", text, err, wantErr)
		}
	}
}

// free is an expression of so many constants, and operators between them, that cost nothing.
func free(constants int) string {
	return strings.TrimSuffix(strings.Repeat("true&&", constants), "&&")
}

// TestCosts pins the price list: work on text is priced alike whether or not the type is known at compile time.
func TestCosts(t *testing.T) {
	v := Variables{Context: map[string]any{
		"list": []any{"a", "b", "c"}, "o": map[string]any{"a": int64(1), "b": int64(2)}, "s": strings.Repeat("a", 100),
		"deep": map[string]any{"a": map[string]any{"b": int64(1)}},
	}}
	tests := map[string]uint64{
		"1":                                    0,
		"true && false || true":                0,
		"context":                              1,
		"context.s":                            2,
		"context.deep.a.b":                     4,
		"has(context.deep.a.b)":                4,
		"true ? context.deep.a : context.deep": 4,
		"context.list[0]":                      3,
		"context.list[context.deep.a.b]":       7,
		"[1, 2]":                               12,
		"{'a': 1}":                             32,
		"1 + 2":                                1,
		"context.s + context.s":                2 + 2 + 1 + 20,
		"'" + strings.Repeat("a", 200) + "'.startsWith('a')": 1 + 21,
		"context.s == context.s":                             2 + 2 + 1 + 10,
		"context.s == 'b'":                                   2 + 1,
		"context.o == context.o":                             2 + 2 + 1 + 4 + 2,
		"'b' in context.list":                                2 + 1 + 2 + 2,
		"context.list.join(context.s)":                       2 + 2 + 3 + 21 + 1 + 10,
		"context.list.reverse()":                             2 + 13 + 1,
		"'a'.matches('a')":                                   2,
		"context.o.all(k, true)":                             2 + 4 + 2*(2+1) + 1,
		"context.list.all(k, true)":                          2 + 3*(2+1) + 1,
		"context.list.map(k, k)":                             2 + 10 + 3*(11+1+1+1) + 1,
		"context.list.all(k, " + free(15) + ")":              2 + 3*(2+1) + 1,
		"context.list.all(k, " + free(64) + ")":              2 + 3*(2+1+4) + 1,
		"context.list.map(k, " + free(64) + ")":              2 + 10 + 3*(11+1+1+4) + 1,
		"context.list.all(k, [1].all(l, " + free(64) + "))":  2 + 3*(2+1+11+2+1+4+1) + 1,
		"json.encode(context.o)":                             2 + 1 + 3 + 2,
		"'%s'.format([context.s])":                           2 + 11 + 1 + 1 + 1 + 10,
		"context.s.indexOf('ab')":                            2 + 20 + 1 + 11,
		"lists.range(5)":                                     15 + 1,
		"optional.of(context.s).orValue('')":                 2 + 11,
	}
	cache := NewCache()
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			program, err := cache.Compile(ScopeActionInput, text)
			if err != nil {
				t.Fatal(err)
			}
			m := &meter{ctx: t.Context()}
			if _, _, err := program.planned.Eval(&variables{Variables: v, meter: m}); err != nil {
				t.Fatal(err)
			}
			if m.spent != want {
				t.Errorf("cost %d, want %d", m.spent, want)
			}
		})
	}
}
