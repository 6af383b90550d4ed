package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

// listener is a run of one receive-event node x with this configuration, whose error edge leads to the end lost.
func listener(config string) string {
	return single("receive-event {eventType: t"+config+"}", true)
}

func TestDeliverWithoutMappings(t *testing.T) {
	s := tell(t, listener(""), "{event: old}")
	s.deliver("x#1", "{id: '1', type: t, payload: {a: 1.0}}", noon)
	s.wantStatus(engine.StatusCompleted)
	s.wantContext("{event: {id: '1', type: t, payload: {a: 1}}}")
	e := s.entry("x#1")
	if diff := cmp.Diff(s.in.Context, e.Output); diff != "" || e.By != "1" || e.Outcome != engine.OutcomeCompleted {
		t.Errorf("entry %+v, output (-want +got):\n%s", e, diff)
	}
}

func TestDeliverMappings(t *testing.T) {
	tests := map[string]struct{ outputs, want string }{
		"only mapped keys":           {"[{contextKey: a, expression: event.id}]", "{a: '1', b: 2}"},
		"over the context as it was": {"[{contextKey: a, expression: context.b}, {contextKey: b, expression: event.id}, {contextKey: c, expression: context.b}]", "{a: 2, b: '1', c: 2}"},
		"blank entries skipped":      {"[{contextKey: '', expression: event.}, {contextKey: a, expression: ' '}, {}]", "{b: 2}"},
		"the last of one key":        {"[{contextKey: a, expression: '1'}, {contextKey: a, expression: '2'}]", "{a: 2, b: 2}"},
		"null":                       {"[{contextKey: a, expression: 'null'}]", "{a: null, b: 2}"},
		"an optional without value":  {"[{contextKey: a, expression: 'event.?more'}]", "{a: null, b: 2}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			doc := strings.Replace(listener(", outputs: "+tc.outputs), "event.}", "event.id}", 1)
			s := tell(t, doc, "{b: 2}")
			s.deliver("x#1", "{id: '1', type: t}", noon)
			s.wantContext(tc.want)
			s.wantStatus(engine.StatusCompleted)
		})
	}
}

// What an event brings is there for the edges behind it.
func TestDeliverBeforeAChoice(t *testing.T) {
	doc := flow("s "+from+"\nx receive-event {eventType: t, match: [context.got == null], outputs: [{contextKey: got, expression: event.id}]}\n"+
		"e end {outcome: e}\nf end {outcome: f}", "s x {}\nx e {condition: context.got == '1'}\nx f {isDefault: true}")
	for id, want := range map[string]string{"1": "e", "2": "f"} {
		s := tell(t, doc, "{}")
		s.deliver("x#1", "{id: '"+id+"', type: t}", noon)
		if got := s.def.Outcome(s.last); got != want {
			t.Errorf("event %s leads to %q, want %q", id, got, want)
		}
	}
}

func TestDeliverThatCannotBeMapped(t *testing.T) {
	s := tell(t, listener(", outputs: [{contextKey: a, expression: event.id}, {contextKey: b, expression: event.missing}]"), "{}")
	s.deliver("x#1", "{id: '1', type: t, eventSourceId: forge}", noon)
	s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
	e := s.entry("x#1")
	if e.Error.Phase != engine.PhaseOutputMapping || e.Error.Code != engine.CodeExpressionError || e.Error.Field != "b" || e.Error.Expression != "event.missing" {
		t.Errorf("error = %+v", e.Error)
	}
	if _, merged := s.in.Context["a"]; merged {
		t.Error("something was merged")
	}
	if diff := cmp.Diff([]string{"forge/1"}, s.in.Consumed["x"].IDs); diff != "" {
		t.Errorf("consumed (-want +got):\n%s", diff)
	}

	s = tell(t, listener(""), "{}")
	s.deliver("x#1", "{id: '1', type: t, payload: "+strings.Repeat("x", engine.MaxContextBytes)+"}", noon)
	if e := s.entry("x#1"); e.Error.Phase != engine.PhaseOutputMapping || e.Error.Code != engine.CodeContextTooLarge {
		t.Errorf("error = %+v", e.Error)
	}
}

func TestDeliverMatches(t *testing.T) {
	keyed := ", correlationKey: {subscriptionKey: context.num, eventKey: event.ref}"
	tests := map[string]struct {
		config, inputs, event string
		want                  engine.Reason
	}{
		"the type":                        {"", "{}", "{type: t}", ""},
		"another type":                    {"", "{}", "{type: T}", engine.ReasonNotMatched},
		"no type":                         {"", "{}", "{}", engine.ReasonNotMatched},
		"all matches":                     {", match: [event.a == 1, context.num == event.b]", "{num: 2}", "{type: t, a: 1, b: 2}", ""},
		"one match false":                 {", match: [event.a == 1, event.b == 3]", "{}", "{type: t, a: 1, b: 2}", engine.ReasonNotMatched},
		"a match not boolean":             {", match: [event.a]", "{}", "{type: t, a: 'true'}", engine.ReasonNotMatched},
		"a blank match":                   {", match: ['']", "{}", "{type: t}", engine.ReasonNotMatched},
		"a match that fails":              {", match: [event.a == 1]", "{}", "{type: t}", engine.ReasonMatchError},
		"a match behind a false one":      {", match: ['false', event.a == 1]", "{}", "{type: t}", engine.ReasonNotMatched},
		"a match on another type":         {", match: [event.a == 1]", "{}", "{type: u}", engine.ReasonNotMatched},
		"the same key":                    {keyed, "{num: r-1}", "{type: t, ref: r-1}", ""},
		"another key":                     {keyed, "{num: r-1}", "{type: t, ref: r-2}", engine.ReasonNotMatched},
		"a number and its text":           {keyed, "{num: 7}", "{type: t, ref: '7'}", ""},
		"a number however spelt":          {keyed, "{num: 7.0}", "{type: t, ref: 7}", ""},
		"objects by their canonical text": {keyed, "{num: {b: 1, a: 2}}", `{type: t, ref: '{"a":2,"b":1}'}`, ""},
		"two empty keys":                  {keyed, "{num: ''}", "{type: t, ref: ''}", engine.ReasonNotMatched},
		"two null keys":                   {keyed, "{num: null}", "{type: t, ref: null}", engine.ReasonNotMatched},
		"a key that fails":                {keyed, "{num: 1}", "{type: t}", engine.ReasonMatchError},
		"a match that is not looked at":   {keyed + ", match: [event.a == 1]", "{num: 1}", "{type: t, ref: 2}", engine.ReasonNotMatched},
		"a match behind the right key":    {keyed + ", match: [event.a == 1]", "{num: 1}", "{type: t, ref: 1, a: 1}", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tell(t, listener(tc.config), tc.inputs)
			s.deliver("x#1", tc.event, noon)
			if tc.want == "" {
				s.wantStatus(engine.StatusCompleted)
				return
			}
			s.wantReason(tc.want)
			if got := s.branch("x#1").LastError != nil; got != (tc.want == engine.ReasonMatchError) {
				t.Errorf("last error = %+v", s.branch("x#1").LastError)
			}
		})
	}
}

func TestMatchErrorLeavesWord(t *testing.T) {
	s := tell(t, listener(", match: ['true', event.a == 1]"), "{}")
	for range 2 {
		s.deliver("x#1", "{type: t, id: '1'}", noon)
		s.wantReason(engine.ReasonMatchError)
		f := s.branch("x#1").LastError
		if f.Code != engine.CodeExpressionError || f.Field != "match[1]" || f.Activation != "x#1" || !strings.Contains(f.Message, "no such key") {
			t.Errorf("last error = %+v", f)
		}
		if s.in.Step != 1 || len(s.in.Consumed) != 0 {
			t.Errorf("step %d, consumed %v", s.in.Step, s.in.Consumed)
		}
	}
	s.deliver("x#1", "{type: t, id: '1', a: 1}", noon)
	s.wantStatus(engine.StatusCompleted)
}

func TestSubscriptionKeyIsEvaluatedOnEntry(t *testing.T) {
	s := tell(t, listener(", correlationKey: {subscriptionKey: context.a, eventKey: event.id}"), "{a: [1, 2.50]}")
	if got := s.branch("x#1").SubscriptionKey; got != "[1,2.5]" {
		t.Errorf("subscription key %q", got)
	}
	s = tell(t, listener(", correlationKey: {subscriptionKey: context.missing, eventKey: event.id}"), "{}")
	if e := s.entry("x#1"); e.Error.Phase != engine.PhaseInputResolution || e.Error.Field != "subscriptionKey" {
		t.Errorf("error = %+v", e.Error)
	}
	s.wantHistory("s#1 Completed", "x#1 Failed", "lost#1 Completed")
}

func TestSubscriptionKeyIsBounded(t *testing.T) {
	for size, want := range map[int]string{4 << 10: "", 4<<10 + 1: "the key is of 4097 bytes, over 4096"} {
		s := tell(t, listener(", correlationKey: {subscriptionKey: context.a, eventKey: event.id}"), "{a: "+strings.Repeat("k", size)+"}")
		if want == "" {
			s.branch("x#1")
			continue
		}
		if e := s.entry("x#1"); e.Error.Code != engine.CodeExpressionError || e.Error.Field != "subscriptionKey" || e.Error.Message != want {
			t.Errorf("error = %+v", e.Error)
		}
	}
}

func TestSince(t *testing.T) {
	created := noon.Add(-time.Hour + 300*time.Millisecond)
	now := noon.Add(700 * time.Millisecond)
	for lookback, since := range map[string]time.Time{
		"":                      noon.Add(-time.Hour),
		", lookback: run-start": noon.Add(-time.Hour),
		", lookback: none":      noon,
		", lookback: PT10M":     noon.Add(-10 * time.Minute),
		", lookback: P1D":       noon.Add(-time.Hour),
		", lookback: PT0.8S":    noon.Add(-time.Second),
	} {
		t.Run(lookback, func(t *testing.T) {
			def := define(t, listener(lookback))
			step, err := engine.StartRun(t.Context(), def, nil, created, now)
			if err != nil {
				t.Fatal(err)
			}
			if got := step.Instance.ActiveBranches[0].Since; got != since {
				t.Fatalf("since %v, want %v", got, since)
			}
			s := &story{t: t, def: def, now: now}
			s.take(step)
			s.deliver("x#1", "{type: t, id: '1'}", since.Add(-1))
			s.wantReason(engine.ReasonNotMatched)
			s.deliver("x#1", "{type: t, id: '1'}", since)
			s.wantStatus(engine.StatusCompleted)
		})
	}
}

const hearing = `
s start {inputs: []}
x receive-event {eventType: t}
w wait {duration: PT0S}
e end {}`

// relisten is a run that hears again and again.
func relisten() string {
	return flow(hearing, "s x {}\nx w {}\nw x {condition: 'true'}\nw e {isDefault: true}")
}

func TestEventIsConsumedOnce(t *testing.T) {
	s := tell(t, relisten(), "{}")
	event := "{type: t, id: '1', eventSourceId: a}"
	s.deliver("x#1", event, noon)
	s.deliver("x#1", event, noon)
	s.wantReason(engine.ReasonStaleActivation)
	s.timeOut("w#1")
	s.wantOpen("x#2")
	s.deliver("x#2", event, noon)
	s.wantReason(engine.ReasonConsumed)
	s.deliver("x#2", "{type: u, id: '1', eventSourceId: a}", noon)
	s.wantReason(engine.ReasonConsumed)
	s.deliver("x#2", "{type: t, id: '1', eventSourceId: b}", noon)
	s.wantOpen("w#2")
}

func TestIdentitiesDoNotRunTogether(t *testing.T) {
	s := tell(t, relisten(), "{}")
	for i, event := range []string{
		"{type: t, id: b/c, eventSourceId: a}", "{type: t, id: c, eventSourceId: a/b}", "{type: t, id: c, eventSourceId: 'a%2Fb'}", "{type: t, id: c}",
	} {
		s.deliver(fmt.Sprintf("x#%d", i+1), event, noon)
		s.wantOpen(fmt.Sprintf("w#%d", i+1))
		s.timeOut(fmt.Sprintf("w#%d", i+1))
	}
}

func TestOtherNodesTakeTheSameEvent(t *testing.T) {
	s := tell(t, flow("s "+from+"\nx "+hear+"\nz receive-event {eventType: t, match: ['true']}\ne end {}", "s x {}\nx z {}\nz e {}"), "{}")
	s.deliver("x#1", "{type: t, id: '1'}", noon)
	s.deliver("z#1", "{type: t, id: '1'}", noon)
	s.wantStatus(engine.StatusCompleted)
}

func TestConsumedIsBounded(t *testing.T) {
	s := tell(t, relisten(), "{}")
	hear := func(i int, id string, arrived time.Time) {
		t.Helper()
		s.deliver(fmt.Sprintf("x#%d", i), "{type: t, id: "+id+"}", arrived)
		s.wantOpen(fmt.Sprintf("w#%d", i))
		s.timeOut(fmt.Sprintf("w#%d", i))
	}
	for i := 1; i <= 64; i++ {
		hear(i, fmt.Sprintf("i%d", i), noon.Add(time.Duration(i)*time.Second))
	}
	if c := s.in.Consumed["x"]; len(c.IDs) != 64 || !c.Floor.IsZero() {
		t.Fatalf("consumed = %v", c)
	}
	hear(65, "i65", noon.Add(65*time.Second))
	c := s.in.Consumed["x"]
	if len(c.IDs) != 65 || c.Floor != noon.Add(time.Second) {
		t.Fatalf("%d ids, floor %v", len(c.IDs), c.Floor)
	}
	hear(66, "i66", noon.Add(66*time.Second))
	if c := s.in.Consumed["x"]; len(c.IDs) != 65 || c.IDs[0] != "/i2" || c.Floor != noon.Add(2*time.Second) {
		t.Fatalf("%d ids from %s, floor %v", len(c.IDs), c.IDs[0], c.Floor)
	}
	s.deliver("x#67", "{type: t, id: i2}", noon.Add(2*time.Second))
	s.wantReason(engine.ReasonConsumed)
	s.deliver("x#67", "{type: t, id: new}", noon.Add(2*time.Second-1))
	s.wantReason(engine.ReasonConsumed)
	hear(67, "new", noon.Add(2*time.Second+time.Millisecond))
	s.deliver("x#68", "{type: t, id: new}", noon.Add(2*time.Second))
	s.wantReason(engine.ReasonConsumed)
}

// Events that all arrive in one second are all remembered, since nothing else tells them apart.
func TestConsumedWithinOneSecond(t *testing.T) {
	s := tell(t, relisten(), "{}")
	for i := 1; i <= 80; i++ {
		s.deliver(fmt.Sprintf("x#%d", i), fmt.Sprintf("{type: t, id: i%d}", i), noon)
		s.timeOut(fmt.Sprintf("w#%d", i))
	}
	for i := 1; i <= 80; i++ {
		s.deliver("x#81", fmt.Sprintf("{type: t, id: i%d}", i), noon)
		s.wantReason(engine.ReasonConsumed)
	}
	if c := s.in.Consumed["x"]; len(c.IDs) != 80 || c.Floor != noon {
		t.Errorf("%d ids, floor %v", len(c.IDs), c.Floor)
	}
}
