package expression

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// times repeats a unit up to a length in bytes.
func times(unit string, length int) string {
	return strings.Repeat(unit, length/len(unit))
}

// compileBombs are texts of at most 16 KiB, but for those that are about length itself, which ask for as much as they
// can before anything is evaluated.
func compileBombs() map[string]string {
	list := func(unit string) string { return "[" + times(unit+",", maxExpression-10) + "1]" }
	return map[string]string{
		"a text of 100,000 characters":      "'" + strings.Repeat("a", 100_000) + "'",
		"a text of 5 MiB":                   times("1+", 5<<20) + "1",
		"a list of numbers":                 list("1"),
		"a list of texts":                   list("''"),
		"a list of empty lists":             list("[]"),
		"a list of empty maps":              list("{}"),
		"a list of calls":                   list("int(1)"),
		"a list of comparisons":             list("1<2"),
		"a list of equalities":              list("1==1"),
		"a list of dynamic equalities":      list("context.a==context.b"),
		"a list of conditionals":            list("true?1:2"),
		"a list of sums of lists":           list("[]+[]"),
		"a list of sizes":                   list("size(context)"),
		"a list of optionals":               list("optional.of(1)"),
		"a list of macros":                  list("[].all(x,x)"),
		"a list of maps":                    list("[].map(x,x)"),
		"a list of filters":                 list("[1].filter(x,x>0)"),
		"a list of sorts":                   list("[1].sortBy(x,x)"),
		"a list of optional maps":           list("context.?a.optMap(x,x)"),
		"a list of maxima":                  list("math.greatest(1,2)"),
		"a list of parentheses":             list("(((1)))"),
		"a list of formats":                 list("'%s'.format([1])"),
		"a list of wrong overloads":         list("[]+{}"),
		"a list of unknown names":           list("a"),
		"a list of unknown functions":       list("f()"),
		"a map of many members":             "{" + times("1:1,", maxExpression-10) + "1:1}",
		"equalities, then comparisons":      times("1==1&&", maxExpression/2) + times("1<2&&", maxExpression/2-10) + "true",
		"empty lists, then comparisons":     "[" + times("[],", maxExpression/2-10) + times("1<2,", maxExpression/2-10) + "1]",
		"a chain of maps":                   "[1]" + times(".map(x,x)", maxExpression-10),
		"a chain of sorts":                  "[1]" + times(".sortBy(x,x)", maxExpression-10),
		"a chain of optional maps":          "optional.of(1)" + times(".optMap(x,x)", maxExpression-20),
		"a chain of selections":             "context" + times(".a", maxExpression-10),
		"a chain of indexes":                "context" + times("[0]", maxExpression-10),
		"a chain of sums":                   times("1+", maxExpression-1) + "1",
		"a chain of alternatives":           times("true||", maxExpression-4) + "true",
		"a chain of conditionals":           times("true?1:", maxExpression-1) + "1",
		"a chain of signs":                  times("-", maxExpression-1) + "1",
		"a chain of negations":              times("!", maxExpression-4) + "true",
		"10,000 parentheses":                strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 6_000),
		"10,000 brackets":                   strings.Repeat("[", 10_000),
		"10,000 braces":                     strings.Repeat("{", 10_000),
		"250 macros in each other":          strings.Repeat("[1].map(x,", 250) + "x" + strings.Repeat(")", 250),
		"250 sorts in each other":           strings.Repeat("[1].sortBy(x,", 250) + "x" + strings.Repeat(")", 250),
		"sorts of sorts":                    strings.Repeat("[", 200) + "1" + strings.Repeat("].sortBy(x,x)", 200),
		"optional maps in each other":       strings.Repeat("optional.of(1).optMap(x,", 250) + "x" + strings.Repeat(")", 250),
		"words without operators":           times("1 ", maxExpression),
		"closing brackets":                  times(")", maxExpression),
		"backslashes":                       times("\\", maxExpression),
		"quotes":                            times("'", maxExpression),
		"bytes that are no UTF-8":           times("\xff", maxExpression),
		"a text of bytes that are no UTF-8": "'" + times("\xff", maxExpression-2) + "'",
		"a text beyond ASCII":               "'" + strings.Repeat("é", maxExpression-2) + "'",
		"a text far beyond ASCII":           "'" + strings.Repeat("😀", maxExpression-2) + "'",
		"words beyond ASCII":                strings.Repeat("é ", maxExpression/2),
		"a long line with a wrong format":   "'" + times("a", maxExpression-20) + "'.format([1])",
		"a long line with a wrong name":     "'" + times("a", maxExpression-20) + "' + nobody",
		"escapes":                           "'" + times("\\n", maxExpression-2) + "'",
		"comments":                          times("//\n", maxExpression-1) + "1",
		"lines":                             times("\n", maxExpression-1) + "1",
		"a number of 16,000 digits":         times("9", maxExpression),
		"a fraction of 16,000 digits":       "0." + times("9", maxExpression-2),
		"a huge exponent":                   "1e" + times("9", 100),
		"a pattern that does not compile":   "''.matches('" + times("(a{1000}){1000}", 15<<10) + "')",
		"format clauses":                    "'" + times("%s", maxExpression-40) + "'.format([" + times("1,", 20) + "1])",
	}
}

// What compiling allocates is bounded, and by its effort at that: the time it takes follows, on any machine.
func TestCompileBombsAreBounded(t *testing.T) {
	const (
		maxAllocated    = 128 << 20
		maxBytesPerUnit = 2_500
	)
	cache := NewCache()
	for _, text := range corpus() {
		_, _ = cache.Compile(ScopeReceiveEventOutput, text) // what the parser learns it keeps
	}
	for name, text := range compileBombs() {
		t.Run(name, func(t *testing.T) {
			e := &entry{}
			allocated := allocatedBy(func() { e = cache.check(key{ScopeReceiveEventOutput, text}) })
			if failure := (*CompileError)(nil); e.err != nil && !errors.As(e.err, &failure) {
				t.Errorf("error %v, want a CompileError", e.err)
			}
			if e.err != nil && len(e.err.Error()) > 2000 {
				t.Errorf("error of %d bytes", len(e.err.Error()))
			}
			if e.effort > maxEffort || allocated > maxBytesPerUnit*(e.effort+textEffort) {
				t.Errorf("an effort of %d allocated %d bytes", e.effort, allocated)
			}
			if e.err == nil {
				allocated += allocatedBy(func() { e.plan(cache.planner) })
			}
			if allocated > maxAllocated {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
		})
	}
}

// allocatedBy is how many bytes work allocates.
func allocatedBy(work func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func TestRefusalsOfWhatIsTooMuch(t *testing.T) {
	bombs := compileBombs()
	for name, want := range map[string]string{
		"a text of 100,000 characters": "over 16384 characters",
		"a text of 5 MiB":              "over 16384 characters",
		"a list of empty lists":        "too much to compile",
		"a list of sorts":              "too much to compile",
		"a chain of sums":              "max recursion depth exceeded",
		"10,000 parentheses":           "recursion limit exceeded",
	} {
		_, err := NewCache().Compile(ScopeActionInput, bombs[name])
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-1") {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// What people write is far from every limit.
func TestHonestExpressionsAreNoEffort(t *testing.T) {
	cache := NewCache()
	honest := append(corpus(),
		// A message of many parts, a choice of many cases, a form of many fields.
		"'a: '"+strings.Repeat(" + string(context.x)", 40),
		strings.Repeat("context.kind == 'some-kind' ? 'some-text' : ", 40)+"'other'",
		"{"+strings.Repeat("'name': context.x == null ? dyn(0) : context.x, ", 40)+"'last': 1}",
		strings.Repeat("(context.a == true && context.b != 'x' || size(context.c) > 0) && ", 10)+"true",
		strings.Repeat("context.items.filter(x, x.ok == true).map(x, x.name)", 1)+".sortBy(x, x).join(', ')",
	)
	for _, text := range honest {
		_, effort, err := cache.CheckEffort(string(ScopeReceiveEventOutput), text)
		if err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
		if effort > maxEffort/10 {
			t.Errorf("%.60s has an effort of %d", text, effort)
		}
	}
}

func TestEffort(t *testing.T) {
	cache := NewCache()
	for text, want := range map[string]int{
		"":                                   textEffort,
		"1":                                  textEffort + 1 + 1,
		"context":                            textEffort + 1 + 1,
		"context.ok == true":                 textEffort + 6 + 4,
		"'No reply on ' + context.ref":       textEffort + 9 + 4 + 9*1/variablesPerUnit,
		"nobody":                             textEffort + 1 + 1,
		"1 +":                                textEffort + 2 + syntaxEffort,
		" \t1\n":                             textEffort + 1 + 1,
		strings.Repeat(" ", 100_000):         textEffort,
		strings.Repeat("1", maxExpression+1): textEffort,
	} {
		for range 2 { // the second time it is remembered
			if _, got, _ := cache.CheckEffort(string(ScopeEdgeCondition), text); got != want {
				t.Errorf("effort of %.40q is %d, want %d", text, got, want)
			}
		}
	}
}
