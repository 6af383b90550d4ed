package journal_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/journal"
)

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		value, want any
	}{
		"long text and long list": {
			map[string]any{"s": "xxxxxxxxxx", "a": []any{int64(1), int64(2), int64(3), int64(4)}},
			map[string]any{"s": "xxxx…[truncated 6 chars]", "a": []any{int64(1), int64(2), "…[2 more items]"}},
		},
		"text of the limit":        {"xxxx", "xxxx"},
		"characters, not bytes":    {"öööö", "öööö"},
		"cut between characters":   {"öö😀öö", "öö😀ö…[truncated 1 chars]"},
		"list of the limit":        {[]any{true, nil}, []any{true, nil}},
		"nested":                   {[]any{map[string]any{"k": []any{"12345", 1.5, nil}}}, []any{map[string]any{"k": []any{"1234…[truncated 1 chars]", 1.5, "…[1 more items]"}}}},
		"names are left alone":     {map[string]any{"a long name": nil}, map[string]any{"a long name": nil}},
		"an object that is no map": {map[string]any(nil), map[string]any{}},
		"numbers":                  {int64(123456), int64(123456)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, journal.Truncate(tc.value, 4, 2)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTruncateBoundsEverythingAndSharesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		value := randomValue(rng, 4)
		before := journal.Truncate(value, 1<<20, 1<<20)
		cut := journal.Truncate(value, 5, 3)
		assertBounded(t, cut)
		scribble(cut)
		if diff := cmp.Diff(before, value); diff != "" {
			t.Fatalf("the argument changed (-before +after):\n%s", diff)
		}
	}
}

func assertBounded(t *testing.T, value any) {
	t.Helper()
	switch v := value.(type) {
	case string:
		kept, _, _ := strings.Cut(v, "…")
		if utf8.RuneCountInString(kept) > 5 {
			t.Fatalf("%q is too long", v)
		}
	case []any:
		if len(v) > 4 {
			t.Fatalf("list of %d", len(v))
		}
		for _, item := range v {
			assertBounded(t, item)
		}
	case map[string]any:
		for _, member := range v {
			assertBounded(t, member)
		}
	}
}

// scribble changes every list and object in place.
func scribble(value any) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			scribble(v[i])
			v[i] = "scribbled"
		}
	case map[string]any:
		for name, member := range v {
			scribble(member)
			v[name] = "scribbled"
		}
	}
}

func randomValue(rng *rand.Rand, depth int) any {
	switch kind := rng.IntN(6); {
	case depth > 0 && kind < 2:
		list := make([]any, rng.IntN(8))
		for i := range list {
			list[i] = randomValue(rng, depth-1)
		}
		return list
	case depth > 0 && kind < 4:
		object := map[string]any{}
		for range rng.IntN(5) {
			object[strings.Repeat("k", rng.IntN(9))] = randomValue(rng, depth-1)
		}
		return object
	case kind == 4:
		return rng.Int64()
	}
	return strings.Repeat("ö", rng.IntN(12))
}
