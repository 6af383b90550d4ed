package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestCacheCompilesOnce(t *testing.T) {
	cache := NewCache()
	first, err := cache.Compile(ScopeEdgeCondition, "context.n > 1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := cache.Compile(ScopeEdgeCondition, "context.n > 1")
	if err != nil || first != second {
		t.Errorf("compiled again: %v", err)
	}
	if other, err := cache.Compile(ScopeActionInput, "context.n > 1"); err != nil || other == first {
		t.Errorf("shared between scopes: %v", err)
	}
	_, firstErr := cache.Compile(ScopeEdgeCondition, "context.")
	_, secondErr := cache.Compile(ScopeEdgeCondition, "context.")
	if firstErr == nil || !errors.Is(secondErr, firstErr) {
		t.Errorf("failure not remembered: %v, %v", firstErr, secondErr)
	}
}

func TestCacheIsBounded(t *testing.T) {
	blank := func(n int) string { return strings.Repeat(" ", n) } // blank texts compile at once
	t.Run("in programs", func(t *testing.T) {
		cache := NewCache()
		kept, err := cache.Compile(ScopeEdgeCondition, "")
		if err != nil {
			t.Fatal(err)
		}
		dropped, _ := cache.Compile(ScopeEdgeCondition, blank(1))
		for i := range maxCachedPrograms {
			if _, err := cache.Compile(ScopeActionInput, blank(i%64)+"\n"+blank(i/64)); err != nil {
				t.Fatal(err)
			}
			if again, _ := cache.Compile(ScopeEdgeCondition, ""); again != kept {
				t.Fatalf("dropped what was used most recently, after %d", i)
			}
		}
		if got := cache.recent.Len(); got != maxCachedPrograms || len(cache.entries) != got {
			t.Errorf("%d programs and %d entries, want %d", got, len(cache.entries), maxCachedPrograms)
		}
		if again, _ := cache.Compile(ScopeEdgeCondition, blank(1)); again == dropped {
			t.Error("kept what was not used for longest")
		}
	})
	t.Run("in text", func(t *testing.T) {
		cache := NewCache()
		for i := range 10 {
			if _, err := cache.Compile(ScopeEdgeCondition, blank(maxCachedText/4+i)); err != nil {
				t.Fatal(err)
			}
		}
		if got := cache.recent.Len(); got != 3 || cache.text > maxCachedText {
			t.Errorf("%d programs of %d bytes", got, cache.text)
		}
	})
	t.Run("in each text", func(t *testing.T) {
		cache := NewCache()
		if _, err := cache.Compile(ScopeEdgeCondition, blank(maxCachedText+1)); err != nil {
			t.Fatal(err)
		}
		if cache.recent.Len() != 0 || cache.text != 0 {
			t.Errorf("remembers %d programs of %d bytes", cache.recent.Len(), cache.text)
		}
	})
}

func TestCacheAndProgramsAreShared(t *testing.T) {
	cache := NewCache()
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 50 {
				text := fmt.Sprintf("context.items.map(x, x + '%d').join(',')", i%5)
				program, err := cache.Compile(ScopeActionInput, text)
				if err != nil {
					t.Error(err)
					return
				}
				want := fmt.Sprintf("x%[1]d,y%[1]d", i%5)
				if got, err := program.Eval(t.Context(), sample()); err != nil || got != want {
					t.Errorf("worker %d: %v, %v; want %s", worker, got, err, want)
				}
			}
		})
	}
	group.Wait()
}
