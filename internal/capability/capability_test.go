package capability_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/capability"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  []string
	}{
		"known names, sorted":       {[]any{"validation-feedback", "composition", "config-items"}, []string{"composition", "config-items", "validation-feedback"}},
		"typed names":               {[]string{"config-items"}, []string{"config-items"}},
		"a name twice":              {[]string{"composition", "composition"}, []string{"composition"}},
		"unknown names":             {[]string{"root", "composition", "Composition", ""}, []string{"composition"}},
		"elements that are no text": {[]any{1, nil, []any{"composition"}, map[string]any{}, "composition"}, []string{"composition"}},
		"nothing":                   {nil, []string{}},
		"an empty list":             {[]any{}, []string{}},
		"a text":                    {"composition", []string{}},
		"an object":                 {map[string]any{"composition": true}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, capability.Parse(tc.value).Names()); diff != "" {
				t.Errorf("names differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingGrantsNothing(t *testing.T) {
	for _, name := range append(capability.Known(), "", "root") {
		if (capability.Set{}).Has(name) {
			t.Errorf("nothing grants %q", name)
		}
	}
}

func TestACallerCannotChangeASet(t *testing.T) {
	set := capability.Parse([]string{"composition"})
	set.Names()[0], capability.Known()[0] = "root", "root"
	if !set.Has("composition") || capability.Known()[0] != "composition" {
		t.Error("what was given out is shared")
	}
	if grown := set.With("config-items"); !grown.Has("config-items") || set.Has("config-items") {
		t.Error("a set changed in place")
	}
}

// FuzzParse holds reading to its promise: it takes anything, keeps what is
// known, and what it prints reads as the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`["composition","x"]`, `[["composition"]]`, `{}`, `null`, `[1e400]`, `"config-items"`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var value any
		if json.Unmarshal(data, &value) != nil {
			value = string(data)
		}
		check(t, value)
	})
}

func TestAnySelectionRoundTrips(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pool := append(capability.Known(), "", "root", "composition ", "CONFIG-ITEMS")
	for range 1000 {
		list := make([]any, random.IntN(8))
		for i := range list {
			list[i] = pool[random.IntN(len(pool))]
		}
		set := check(t, list)
		for _, name := range pool {
			isWanted := slices.Contains(list, any(name)) && slices.Contains(capability.Known(), name)
			if set.Has(name) != isWanted {
				t.Fatalf("%v grants %q: %t", list, name, set.Has(name))
			}
		}
	}
}

func check(t *testing.T, value any) capability.Set {
	t.Helper()
	set := capability.Parse(value)
	names := set.Names()
	if names == nil || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Fatalf("%v reads as %#v", value, names)
	}
	printed, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	var again any
	if err := json.Unmarshal(printed, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, capability.Parse(again).Names()); diff != "" {
		t.Fatalf("%s reads as another set (-want +got):\n%s", printed, diff)
	}
	return set
}
