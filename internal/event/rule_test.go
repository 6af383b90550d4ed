package event

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/expression"
)

var expressions = expression.NewCache()

func TestRuleProblems(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range MaxRuleInputs + 1 {
		many[strings.Repeat("x", i+1)] = int64(i)
	}
	for name, tc := range map[string]struct {
		rule Rule
		want []string
	}{
		"an empty rule": {Rule{}, nil},
		"a full rule": {Rule{
			Filter: "event.payload.base == 'main'", DedupeKey: "event.ref",
			Inputs: map[string]any{"ref": "event.ref", "depth": int64(2), "tags": []any{"not CEL {"}},
		}, nil},
		"a filter that may be a condition": {Rule{Filter: "event.payload.ok"}, nil},
		"a filter that is none":            {Rule{Filter: "'yes'"}, []string{"filter must be a condition, and is of type string"}},
		"a filter that does not compile":   {Rule{Filter: "event.ref =="}, []string{"filter must be an expression over event: 1:"}},
		"a filter that sees a context":     {Rule{Filter: "context.ref == event.ref"}, []string{"filter must be an expression over event: 1:1: undeclared reference to 'context'"}},
		"a filter that is too long":        {Rule{Filter: strings.Repeat(" ", 8193)}, []string{"filter must be an expression over event: it has 8193 bytes"}},
		"inputs that do not compile, in order": {
			Rule{Inputs: map[string]any{"b": "1 +", "a": " ", "c": "event.x"}},
			[]string{`inputs[a] must not be blank; literal text is written as "'text'"`, "inputs[b] must be an expression over event: 1:"},
		},
		"too many inputs":             {Rule{Inputs: many}, []string{"inputs must have at most 64 members, and has 65"}},
		"a key that does not compile": {Rule{DedupeKey: "event."}, []string{"dedupeKey must be an expression over event: 1:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := tc.rule.Problems(expressions)
			if len(problems) != len(tc.want) {
				t.Fatalf("got %+v, want %v", problems, tc.want)
			}
			for i, p := range problems {
				at := p.Field
				if p.Input != "" {
					at += "[" + p.Input + "]"
				}
				if got := at + " " + p.Rule; !strings.HasPrefix(got, tc.want[i]) {
					t.Errorf("got %q, want %q", got, tc.want[i])
				}
			}
		})
	}
}

func TestRuleApplies(t *testing.T) {
	t.Parallel()
	event := map[string]any{"id": "e1", "ref": "pr-7", "payload": map[string]any{"base": "main", "n": int64(3), "big": strings.Repeat("x", 200<<10)}}
	for name, tc := range map[string]struct {
		rule Rule
		want *Start
		fail string
	}{
		"to all events without a filter": {Rule{}, &Start{Inputs: map[string]any{}}, ""},
		"to those that its filter takes": {
			Rule{Filter: "event.payload.base == 'main'", Inputs: map[string]any{"ref": "event.ref", "next": "event.payload.n + 1", "depth": int64(2), "null": nil}},
			&Start{Inputs: map[string]any{"ref": "pr-7", "next": int64(4), "depth": int64(2), "null": nil}}, "",
		},
		"not to others":                           {Rule{Filter: "event.payload.base == 'next'", Inputs: map[string]any{"x": "event.missing"}}, nil, ""},
		"not where its filter is not a boolean":   {Rule{Filter: "event.payload.base"}, nil, ""},
		"once for a key":                          {Rule{DedupeKey: "event.payload.n"}, &Start{Inputs: map[string]any{}, Key: "3"}, ""},
		"once for a long key":                     {Rule{DedupeKey: "event.payload.big"}, &Start{Inputs: map[string]any{}, Key: ShortKey(strings.Repeat("x", 200<<10))}, ""},
		"never with a filter that fails":          {Rule{Filter: "event.payload.missing == 1"}, nil, "filter: "},
		"never with an input that fails":          {Rule{Inputs: map[string]any{"a": "event.ref", "b": "event.actor.login"}}, nil, "inputs.b: "},
		"never with a key that fails":             {Rule{DedupeKey: "event.actor"}, nil, "dedupeKey: "},
		"never with an empty key":                 {Rule{DedupeKey: "event.?ref.orValue('') == '' ? event.ref : ''"}, nil, "dedupeKey: must not be empty"},
		"never with more inputs than a run takes": {Rule{Inputs: map[string]any{"a": "event.payload.big", "b": "event.payload.big"}}, nil, "inputs: they have"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.rule.Apply(t.Context(), expressions, event)
			if tc.fail != "" {
				var faulty *RuleError
				if !errors.As(err, &faulty) || !strings.HasPrefix(err.Error(), tc.fail) {
					t.Errorf("got error %v, want %q", err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInterruptionIsNotTheRulesFault(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, rule := range []Rule{{Filter: "true"}, {Inputs: map[string]any{"a": "1"}}, {DedupeKey: "'k'"}} {
		_, err := rule.Apply(ctx, expressions, map[string]any{})
		var faulty *RuleError
		if !errors.Is(err, expression.ErrInterrupted) || errors.As(err, &faulty) {
			t.Errorf("%+v: got %v", rule, err)
		}
	}
}

func TestRuleMisses(t *testing.T) {
	t.Parallel()
	rule := Rule{Inputs: map[string]any{"a": "event.a", "b": nil}}
	if diff := cmp.Diff([]string{"b", "c"}, rule.Missing([]string{"c", "b", "a"})); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}
