package expression_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/expression"
)

func TestCallsSeeWhatTheirPlaceHas(t *testing.T) {
	t.Parallel()
	cache := expression.NewCache()
	finding, ok := expression.ForEachInput("finding")
	if !ok {
		t.Fatal("finding is no name of an item")
	}
	given := expression.Variables{
		Context: map[string]any{"n": int64(1)}, Result: map[string]any{"done": true},
		Item: map[string]any{"key": "k"}, Index: 2,
	}
	for name, tc := range map[string]struct {
		scope expression.Scope
		text  string
		want  any // nil: it does not compile
	}{
		"an output sees the result":         {expression.ScopeCallOutput, "result.done", true},
		"an output sees no context":         {expression.ScopeCallOutput, "context.n", nil},
		"until sees the result and context": {expression.ScopeRepeatUntil, "result.done && context.n == 1", true},
		"until sees no item":                {expression.ScopeRepeatUntil, "index == 2", nil},
		"an item has its name":              {finding, "finding.key + string(index) + string(context.n)", "k21"},
		"an item has no other name":         {finding, "item.key", nil},
		"an item comes without a result":    {finding, "result.done", nil},
		"a loop may hide an item":           {finding, "[1].map(finding, finding + index)", []any{int64(3)}},
		"an input sees no result":           {expression.ScopeActionInput, "result.done", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := cache.Compile(tc.scope, tc.text)
			if err != nil {
				if tc.want != nil {
					t.Fatal(err)
				}
				return
			}
			got, err := program.Eval(t.Context(), given)
			if list, isList := tc.want.([]any); isList {
				if entries, _ := got.([]any); !slices.Equal(entries, list) {
					t.Errorf("got %v (%v)", got, err)
				}
			} else if err != nil || got != tc.want {
				t.Errorf("got %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}

func TestNamesOfItemsMeanNothingElse(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "context", "result", "index", "event", "inputs", "in", "true", "1a", "a-b", "a.b", "@meter", "ä", strings.Repeat("a", 64)} {
		if scope, ok := expression.ForEachInput(name); ok {
			t.Errorf("%q makes the scope %q", name, scope)
		}
		if _, err := expression.NewCache().Check("for-each-input/"+name, "1"); err == nil {
			t.Errorf("an expression compiles with an item %q", name)
		}
	}
	for _, name := range []string{"f", "_x", "string", strings.Repeat("a", 63)} {
		scope, ok := expression.ForEachInput(name)
		if _, err := expression.NewCache().Compile(scope, name+" == 1"); !ok || err != nil {
			t.Errorf("%q is no name of an item (%v)", name, err)
		}
	}
}

func TestScopesOfCallsAreNotThoseOfDrafts(t *testing.T) {
	t.Parallel()
	for _, scope := range []expression.Scope{expression.ScopeCallOutput, expression.ScopeRepeatUntil, "for-each-input/f"} {
		if _, known := expression.ParseScope(string(scope)); known || slices.Contains(expression.Scopes(), scope) {
			t.Errorf("%s is a scope of drafts", scope)
		}
	}
}
