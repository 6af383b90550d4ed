package expression

import (
	"fmt"
	"testing"

	"github.com/apitomy/axiom-operator/internal/testing/cputime"
)

// What a run pays for an expression it has met before, and for one that is new. The number makes a text new.
func BenchmarkCoreExpression(b *testing.B) {
	for name, shape := range map[string]string{
		"path":      "context.deep.a.b%d",
		"condition": "context.ok == true && context.n > %d",
		"text":      "'%%s: %%d'.format([context.ref, %d])",
		"macro":     "context.items.exists(x, x == 'y') || context.n == %d",
	} {
		v := Variables{Context: map[string]any{
			"ok": true, "n": int64(7), "ref": "r-17", "items": []any{"x", "y"}, "deep": map[string]any{"a": map[string]any{"b0": int64(1)}},
		}}
		b.Run(name+"/cached", func(b *testing.B) {
			cache := NewCache()
			text := fmt.Sprintf(shape, 0)
			compileAndEval(b, cache, text, v)
			cputime.Loop(b, func() { compileAndEval(b, cache, text, v) })
		})
		b.Run(name+"/compiled", func(b *testing.B) {
			cache := NewCache()
			object := v.Context["deep"].(map[string]any)["a"].(map[string]any)
			i := 0
			work := func() {
				clear(object)
				object[fmt.Sprint("b", i)] = int64(1)
				compileAndEval(b, cache, fmt.Sprintf(shape, i), v)
				i++
			}
			work() // what the parser learns from the first text of a shape it keeps
			cputime.Loop(b, work)
		})
	}
}

func compileAndEval(b *testing.B, cache *Cache, text string, v Variables) {
	program, err := cache.Compile(ScopeActionInput, text)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := program.Eval(b.Context(), v); err != nil {
		b.Fatal(err)
	}
}
