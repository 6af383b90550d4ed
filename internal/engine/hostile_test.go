package engine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// What comes from outside may be as bad as JSON can be: it is refused or bounded, and never gets into an instance.
func TestHostileValues(t *testing.T) {
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	decoded := func(text string) engine.Values {
		v, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v.(map[string]any)
	}
	for name, tc := range map[string]struct {
		result engine.Values
		want   string // phase and code, or the context as JSON
	}{
		"5 MiB of text":              {decoded(`{"a":"` + strings.Repeat("x", 5<<20) + `"}`), "OUTPUT_MAPPING/CONTEXT_TOO_LARGE"},
		"300,000 values":             {decoded(`{"a":[` + strings.TrimSuffix(strings.Repeat("1,", jsonvalue.MaxValues-4), ",") + `]}`), "OUTPUT_MAPPING/CONTEXT_TOO_LARGE"},
		"10,000 levels":              {decoded(`{"a":` + deep(jsonvalue.MaxDepth-1) + `}`), "RESULT_VALIDATION/INVALID_RESULT"},
		"a value below 1,001 others": {decoded(`{"a":` + deep(1001) + `}`), "RESULT_VALIDATION/INVALID_RESULT"},
		"a value below 1,000 others": {decoded(`{"a":` + deep(1000) + `}`), `{"a":` + deep(1000) + `}`},
		"numbers beyond int64":       {decoded(`{"a":9223372036854775808,"b":-9223372036854775808}`), `{"a":9223372036854775808,"b":-9223372036854775808}`},
		"a name twice":               {decoded(`{"a":1,"a":2}`), `{"a":2}`},
		"a text of Go without UTF-8": {engine.Values{"a": "\xff"}, "RESULT_VALIDATION/INVALID_RESULT"},
		"numbers in other types":     {engine.Values{"a": json.Number("1e0"), "b": int32(2), "c": 3.0}, `{"a":1,"b":2,"c":3}`},
		"no number in its type":      {engine.Values{"a": json.Number("one")}, "RESULT_VALIDATION/INVALID_RESULT"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, single(act, false), "{}")
			step := engine.Complete(t.Context(), s.def, s.in, s.at("x#1"), tc.result, "", noon)
			if f := step.Instance.Failure; f != nil {
				if got := f.Phase + "/" + f.Code; got != tc.want || len(f.Message) > 2100 {
					t.Errorf("failure %s, want %s", got, tc.want)
				}
				return
			}
			if want := decoded(tc.want); !jsonvalue.Equal(map[string]any(want), map[string]any(step.Instance.Context)) {
				t.Errorf("context %.100v, want %.100v", step.Instance.Context, want)
			}
			if again := decode(t, encode(t, step.Instance)); !reflect.DeepEqual(again, step.Instance) {
				t.Error("the instance does not go through JSON")
			}
		})
	}
}

// A document may nest what no instance could hold.
func TestLiteralInputThatIsTooDeep(t *testing.T) {
	doc := single("action {actionType: a, outputs: [], inputs: {i: "+strings.Repeat("[", 1002)+strings.Repeat("]", 1002)+"}}", true)
	s := tell(t, doc, "{}")
	s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
	if f := s.entry("x#1").Error; f.Phase != engine.PhaseInputResolution || f.Field != "i" {
		t.Errorf("error %+v", f)
	}
}

func TestValuesAreObjects(t *testing.T) {
	for _, text := range []string{"[]", "1", `"x"`, "true", `{"a":1e400}`, `{"a":"\ud800"}`, "{"} {
		if err := json.Unmarshal([]byte(text), new(engine.Values)); err == nil {
			t.Errorf("%s became values", text)
		}
	}
	values := engine.Values{"a": 1}
	if err := json.Unmarshal([]byte("null"), &values); err != nil || values != nil {
		t.Errorf("null became %v, %v", values, err)
	}
}

func TestErrorsOfStartInWords(t *testing.T) {
	for want, err := range map[string]error{
		`input "a": required`:     &engine.InputError{Name: "a", Rule: engine.RuleRequired},
		"definition is not valid": &engine.ProblemsError{},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// A context may end at any moment of taking an event, mapping it and choosing an edge. Either all of it is done or nothing.
func TestInterruptionOfAnEventAtEveryMoment(t *testing.T) {
	s := tell(t, flow("s "+from+"\nx receive-event {eventType: t, correlationKey: {subscriptionKey: context.a, eventKey: event.ref}, "+
		"match: [\"event.m == context.a\", \"event.m > 0\"], outputs: [{contextKey: b, expression: event.m}, {contextKey: c, expression: context.a}]}\n"+
		"h human-task {description: D, title: string(context.b), inputs: {i: context.c}, outputs: []}\ne end {}",
		"s x {}\nx e {condition: context.b == 7}\nx h {condition: context.b == 1, priority: 1}\nx e {isDefault: true, id: last}\nh e {}"), "{a: 1}")
	event := engine.Event{Map: values(t, "{type: t, id: '1', ref: 1, m: 1}"), Arrived: noon}
	deliver := func(ctx *countdown) engine.Step {
		return engine.Deliver(ctx, s.def, s.in, s.at("x#1"), event, noon.Add(time.Second))
	}
	whole := deliver(&countdown{Context: t.Context(), left: 1 << 30})
	if !whole.Applied || len(whole.Opened) != 1 {
		t.Fatalf("step %+v", whole)
	}
	interrupted := 0
	for moment := range 1000 {
		ctx := &countdown{Context: t.Context(), left: moment}
		step := deliver(ctx)
		if step.Applied {
			if diff := cmp.Diff(whole, step); diff != "" {
				t.Fatalf("moment %d (-whole +got):\n%s", moment, diff)
			}
			if ctx.left >= 0 {
				break
			}
			continue
		}
		interrupted++
		if diff := cmp.Diff(engine.Step{Instance: s.in, Reason: engine.ReasonInterrupted}, step); diff != "" {
			t.Fatalf("moment %d (-want +got):\n%s", moment, diff)
		}
	}
	if interrupted < 8 {
		t.Errorf("only %d moments interrupt", interrupted)
	}
}
