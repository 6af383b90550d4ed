package reply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/reply"
)

var errSecret = errors.New("some rule at some place")

func pass(any) error { return nil }

// gate finds one word.
func gate(value any) error {
	text, err := jsonvalue.StringForm(value)
	if err != nil || strings.Contains(text, "sesame") {
		return errSecret
	}
	return nil
}

func contract(t testing.TB, schema string) reply.Contract {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return reply.Contract{Schema: value}
}

const verdictSchema = `{"type":"object","additionalProperties":false,"required":["passed"],"properties":{"passed":{"$ref":"#/$defs/flag"},` +
	`"list":{"type":"array","items":{"type":"string"}},"n":{"type":"integer","default":3}},"$defs":{"flag":{"type":"boolean"}}}`

func TestRead(t *testing.T) {
	t.Parallel()
	verdict, number, text := contract(t, verdictSchema), contract(t, `{"type":"number"}`), reply.Contract{}
	long := strings.Repeat("x", reply.MaxSize)
	for name, tc := range map[string]struct {
		contract reply.Contract
		text     string
		want     any
		wrong    string
	}{
		"any text":              {text, " a\n", " a\n", ""},
		"no text":               {text, " \n", nil, "REPLY_EMPTY"},
		"the longest":           {text, long, long, ""},
		"a byte more":           {text, long + "x", nil, "REPLY_TOO_LARGE: the reply has more than 131072 bytes"},
		"cut off":               {verdict, "{…[truncated 5 bytes]", nil, "REPLY_TOO_LARGE: the reply has more than 131072 bytes"},
		"nothing is filled in":  {verdict, `{"passed":true}`, map[string]any{"passed": true}, ""},
		"a fence":               {verdict, "\n```json\n{\"passed\":true}\n```\n", map[string]any{"passed": true}, ""},
		"no object":             {number, "1.0", int64(1), ""},
		"two fences":            {number, "```json\n1\n```\n```json\n1\n```", nil, "REPLY_INVALID: the reply must be one JSON value and nothing else: decode value: data after the value"},
		"nothing where it must": {number, "", nil, "REPLY_INVALID: the reply is empty; it must be one JSON value"},
		"a name twice":          {verdict, `{"passed":true,"passed":true}`, nil, `REPLY_INVALID: the member "passed" is there twice`},
		"a name twice, escaped": {verdict, `{"passed":true,"p\u0061ssed":true}`, nil, `REPLY_INVALID: the member "passed" is there twice`},
		"no conversion":         {verdict, `{"passed":"true"}`, nil, "REPLY_INVALID: passed: type"},
		"paths and rules":       {verdict, `{"list":["a",2],"x":1}`, nil, "REPLY_INVALID: list[1]: type; passed: required; x: additionalProperties"},
		"the whole":             {verdict, `[]`, nil, "REPLY_INVALID: answer: type"},
	} {
		got, err := tc.contract.Read(tc.text)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if fmt.Sprint(err) != tc.wrong && (err != nil || tc.wrong != "") {
			t.Errorf("%s: %v, want %s", name, err, tc.wrong)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{verdictSchema, `true`, `{"$ref":"#/$defs/a","$defs":{"a":{}}}`} {
		if err := contract(t, schema).Check(); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
	for _, schema := range []string{`{"type":"text"}`, `{"$ref":"https://example.com/a"}`, `{"$ref":"other.json"}`, `1`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`} {
		if contract(t, schema).Check() == nil {
			t.Errorf("%s passes", schema)
		}
	}
	if err := (reply.Contract{}).Check(); err != nil {
		t.Errorf("any text: %v", err)
	}
	for repairs, isSound := range map[int64]bool{-1: false, 0: true, 5: true, 6: false} {
		if err := reply.CheckRepairs(repairs); (err == nil) != isSound {
			t.Errorf("%d repairs: %v", repairs, err)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	verdict := contract(t, verdictSchema)
	for name, tc := range map[string]struct {
		contract reply.Contract
		text     string
		attempts reply.Attempts
		gate     reply.Gate
		want     string
	}{
		"a value":                       {verdict, `{"passed":true}`, reply.Attempts{}, pass, "value"},
		"a repair":                      {verdict, `{}`, reply.Attempts{Made: 1, Allowed: 2}, pass, "repair"},
		"supervised 31: no more of it":  {verdict, `{}`, reply.Attempts{Made: 2, Allowed: 2}, pass, "REPLY_INVALID: passed: required"},
		"empty is not repaired":         {reply.Contract{}, ``, reply.Attempts{Allowed: 2}, pass, "REPLY_EMPTY"},
		"a secret is not repaired":      {verdict, `{"a":"sesame"}`, reply.Attempts{Allowed: 2}, gate, "SECRET_DETECTED"},
		"a secret spelt differently":    {verdict, `{"a":"s\u0065same"}`, reply.Attempts{Allowed: 2}, gate, "SECRET_DETECTED"},
		"supervised 52: without a gate": {reply.Contract{}, "a", reply.Attempts{}, nil, "SECRET_DETECTED"},
	} {
		got := tc.contract.Judge(tc.text, tc.attempts, tc.gate)
		outcome := "value"
		switch {
		case got.Failure != nil:
			outcome = got.Failure.Error()
		case got.Repair != "":
			outcome = "repair"
		}
		if outcome != tc.want || (outcome == "value") != (got.Value != nil) {
			t.Errorf("%s: %s with %v, want %s", name, outcome, got.Value, tc.want)
		}
	}
	if err := reply.CheckSecret("sesame", gate); !errors.Is(err, errSecret) {
		t.Errorf("error %v does not hold that of the gate", err)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	if got := (reply.Contract{}).Extend("Do it."); got != "Do it." {
		t.Errorf("any text: %q", got)
	}
	number := contract(t, `{"type":"number","title":"<a & b>"}`)
	const block = "Your whole reply must be one JSON value, bare or in a single json fence, that is valid for this JSON Schema:\n" +
		`{"title":"<a & b>","type":"number"}`
	if diff := cmp.Diff("Do it.\n\n"+block, number.Extend("Do it.")); diff != "" {
		t.Error(diff)
	}
	repair := number.Judge(`"x"`, reply.Attempts{Allowed: 1}, pass).Repair
	for _, part := range []string{"Correct its form only: do not analyse anew", "\n- answer: type\n", block, "\nYour previous reply was:\n\"x\""} {
		if !strings.Contains(repair, part) {
			t.Errorf("%q is not in %q", part, repair)
		}
	}
}

// Nothing panics, and what is accepted is what the standard library reads.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"a":1}`, "```json\n[1.5]\n```", `{"a":{"b":1,"b":2}}`, "{", `"\ud800"`} {
		f.Add(text)
	}
	c := reply.Contract{Schema: map[string]any{}}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := c.Read(text)
		if err != nil {
			return
		}
		body := strings.TrimSpace(text)
		if inner, isFenced := strings.CutPrefix(body, "```json"); isFenced {
			body = strings.TrimSuffix(inner, "```")
		}
		var want any
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatalf("%q was accepted: %v", text, err)
		}
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var again any
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("%q (-standard library +got):\n%s", text, diff)
		}
	})
}
