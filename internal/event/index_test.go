package event

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/expression"
)

func on(eventKey, subscription string) Receiver {
	return Receiver{Type: "merged", Correlates: true, EventKey: eventKey, SubscriptionKey: subscription}
}

// keyed answers with the keys of an event by expression; others fail.
func keyed(keys map[string]string) func(string) (string, error) {
	return func(eventKey string) (string, error) {
		key, ok := keys[eventKey]
		if !ok {
			return "", errors.New("no such key")
		}
		return ShortKey(key), nil
	}
}

func TestIndexFindsWhoWaits(t *testing.T) {
	t.Parallel()
	var x Index
	long := strings.Repeat("long", 1000)
	x.Put("ns", "a", []Receiver{on("event.ref", "1")})
	x.Put("ns", "b", []Receiver{on("event.ref", "2"), on("event.number", "7")})
	x.Put("ns", "c", []Receiver{{Type: "merged"}})
	x.Put("ns", "d", []Receiver{{Type: "closed"}})
	x.Put("ns", "e", []Receiver{on("event.broken", "1")})
	x.Put("ns", "f", []Receiver{on("event.broken", "2"), on("event.ref", "1")})
	x.Put("ns", "g", []Receiver{on("event.ref", ""), {Type: " "}})
	x.Put("ns", "h", []Receiver{on("event.ref", long)})
	x.Put("elsewhere", "a", []Receiver{on("event.ref", "1")})
	for name, tc := range map[string]struct {
		keys         map[string]string
		runs, failed []string
	}{
		"by one key":               {map[string]string{"event.ref": "1", "event.number": "0"}, []string{"a", "c", "f"}, []string{"e"}},
		"by another":               {map[string]string{"event.ref": "0", "event.number": "7"}, []string{"b", "c"}, []string{"e", "f"}},
		"by both":                  {map[string]string{"event.ref": "2", "event.number": "7"}, []string{"b", "c"}, []string{"e", "f"}},
		"by no key":                {map[string]string{"event.ref": "", "event.number": "", "event.broken": ""}, []string{"c"}, nil},
		"by a long key":            {map[string]string{"event.ref": long, "event.number": "", "event.broken": ""}, []string{"c", "h"}, nil},
		"when nothing can be told": {nil, []string{"c"}, []string{"a", "b", "e", "f", "h"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(Found{Runs: tc.runs, Failed: tc.failed}, x.Find("ns", "merged", keyed(tc.keys))); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIndexForgets(t *testing.T) {
	t.Parallel()
	var x Index
	x.Put("ns", "a", []Receiver{on("event.ref", "1"), on("event.number", "1")})
	x.Put("ns", "a", []Receiver{on("event.ref", "2")})
	find := func(ref string) []string {
		return x.Find("ns", "merged", keyed(map[string]string{"event.ref": ref})).Runs
	}
	if got := find("1"); got != nil {
		t.Errorf("what a run waited for before is found: %v", got)
	}
	if got := find("2"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("what it waits for is not found: %v", got)
	}
	x.Remove("ns", "a")
	x.Remove("ns", "nobody")
	if got := find("2"); got != nil || len(x.topics) != 0 || len(x.waits) != 0 {
		t.Errorf("something is left of the run: %v, %v, %v", got, x.topics, x.waits)
	}
}

func TestAnEventCostsOneEvaluationOfEachDistinctExpression(t *testing.T) {
	t.Parallel()
	const waiting = 10_000
	var x Index
	for i := range waiting {
		x.Put("ns", fmt.Sprintf("run-%05d", i), []Receiver{on(fmt.Sprintf("event.key%d", i%3), strconv.Itoa(i))})
		x.Put("ns", fmt.Sprintf("other-%05d", i), []Receiver{{Type: "closed", Correlates: true, EventKey: fmt.Sprintf("event.other%d", i), SubscriptionKey: "1"}})
	}
	var evaluated []string
	found := x.Find("ns", "merged", func(eventKey string) (string, error) {
		evaluated = append(evaluated, eventKey)
		return "7", nil // run 7 waits for it by key 1
	})
	slices.Sort(evaluated)
	if want := []string{"event.key0", "event.key1", "event.key2"}; !slices.Equal(evaluated, want) {
		t.Errorf("evaluated %v, want each of %v once", evaluated, want)
	}
	if want := []string{"run-00007"}; !slices.Equal(found.Runs, want) {
		t.Errorf("found %v of %d, want %v", found.Runs, waiting, want)
	}
}

func TestIndexAgreesWithLookingAtEverybody(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test wants to be repeated
	var x Index
	waits := map[string][]Receiver{}
	texts, keys := []string{"a", "b", "c"}, []string{"", "1", "2"}
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for range 3000 {
		run := strconv.Itoa(random.IntN(20))
		switch random.IntN(3) {
		case 0:
			delete(waits, run)
			x.Remove("ns", run)
		default:
			var receivers []Receiver
			for range random.IntN(4) {
				receivers = append(receivers, Receiver{
					Type: pick([]string{"t", "u", ""}), Correlates: random.IntN(2) == 0, EventKey: pick(texts), SubscriptionKey: pick(keys),
				})
			}
			waits[run] = receivers
			x.Put("ns", run, receivers)
		}
		given := map[string]string{"a": pick(keys), "b": pick(keys)}
		if diff := cmp.Diff(lookAt(waits, "t", given), x.Find("ns", "t", keyed(given))); diff != "" {
			t.Fatalf("found (-everybody +index):\n%s", diff)
		}
	}
}

// lookAt asks every run in turn.
func lookAt(waits map[string][]Receiver, eventType string, keys map[string]string) Found {
	var found Found
	for run, receivers := range waits {
		meant, failed := false, false
		for _, r := range receivers {
			key, isKnown := keys[r.EventKey]
			switch {
			case r.Type != eventType || r.isHopeless():
			case !r.Correlates:
				meant = true
			case !isKnown:
				failed = true
			case key == r.SubscriptionKey:
				meant = true
			}
		}
		switch {
		case meant:
			found.Runs = append(found.Runs, run)
		case failed:
			found.Failed = append(found.Failed, run)
		}
	}
	slices.Sort(found.Runs)
	slices.Sort(found.Failed)
	return found
}

func TestIndexMayBeUsedByMany(t *testing.T) {
	t.Parallel()
	var x Index
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			run := strconv.Itoa(i)
			for range 200 {
				x.Put("ns", run, []Receiver{on("event.ref", "1")})
				if !slices.Contains(x.Find("ns", "merged", keyed(map[string]string{"event.ref": "1"})).Runs, run) {
					t.Errorf("run %s put itself and is not found", run)
				}
				x.Remove("ns", run)
			}
		})
	}
	all.Wait()
}

func TestKeysAreDerivedOnce(t *testing.T) {
	t.Parallel()
	var keys Keys
	derived := 0
	derive := func(key string, err error) func() (string, error) {
		return func() (string, error) {
			derived++
			return key, err
		}
	}
	if got, err := keys.Of("e", "x", derive("1", nil)); got != "1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := keys.Of("e", "x", derive("2", nil)); got != "1" || err != nil || derived != 1 {
		t.Errorf("asked again: got %q, %v after %d derivations", got, err, derived)
	}
	failure := errors.New("no such key")
	for range 2 {
		if _, err := keys.Of("e", "y", derive("", failure)); !errors.Is(err, failure) {
			t.Errorf("got %v, want the failure", err)
		}
	}
	if derived != 2 {
		t.Errorf("derived %d times, want a failure to be remembered", derived)
	}
	interrupted := fmt.Errorf("%w: %w", expression.ErrInterrupted, context.Canceled)
	if _, err := keys.Of("e", "z", derive("", interrupted)); !errors.Is(err, expression.ErrInterrupted) {
		t.Errorf("got %v, want the interruption", err)
	}
	if got, err := keys.Of("e", "z", derive("3", nil)); got != "3" || err != nil {
		t.Errorf("after an interruption: got %q, %v", got, err)
	}
	keys.Forget("e")
	if got, _ := keys.Of("e", "x", derive("4", nil)); got != "4" {
		t.Errorf("after it was forgotten: got %q", got)
	}
}
