package action_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

var verdict = action.Contract{Outputs: []action.Field{
	{Name: "ok", Type: action.TypeBoolean, Required: true, Description: "whether it may go"},
	{Name: "score", Type: action.TypeNumber},
	{Name: "why"},
	{Name: "data", Type: action.TypeObject},
}}

func TestReadReply(t *testing.T) {
	t.Parallel()
	ok := map[string]any{"ok": true}
	for name, tc := range map[string]struct {
		contract action.Contract
		reply    string
		want     map[string]any
		code     string
		faults   []string
	}{
		"any text":                      {reply: " It is fine.\n", want: map[string]any{"rawOutput": " It is fine.\n"}},
		"any text, JSON too":            {reply: `{"ok": true}`, want: map[string]any{"rawOutput": `{"ok": true}`}},
		"nothing":                       {reply: " \n", code: action.CodeReplyEmpty},
		"the longest":                   {reply: strings.Repeat("x", action.MaxReply), want: map[string]any{"rawOutput": strings.Repeat("x", action.MaxReply)}},
		"too long":                      {reply: strings.Repeat("x", action.MaxReply+1), code: action.CodeReplyTooLarge, faults: []string{"the reply has more than 131072 bytes"}},
		"too long on its way":           {reply: "It is…[truncated 700000 bytes]", code: action.CodeReplyTooLarge, faults: []string{"the reply has more than 131072 bytes"}},
		"too long, with a contract":     {contract: verdict, reply: strings.Repeat(" ", action.MaxReply+1), code: action.CodeReplyTooLarge, faults: []string{"the reply has more than 131072 bytes"}},
		"an object":                     {contract: verdict, reply: `{"ok": true}`, want: ok},
		"an object with all":            {contract: verdict, reply: `{"ok": false, "score": 1.0, "why": "w", "data": {"a": []}, "extra": 9007199254740993}`, want: map[string]any{"ok": false, "score": int64(1), "why": "w", "data": map[string]any{"a": []any{}}, "extra": int64(9007199254740993)}},
		"an object without what may be": {contract: verdict, reply: `{"ok": true, "score": null}`, want: map[string]any{"ok": true, "score": nil}},
		"a fence":                       {contract: verdict, reply: "```json\n{\"ok\": true}\n```", want: ok},
		"a fence with room around it":   {contract: verdict, reply: "\n ```json \r\n{\"ok\":\n true}\n\n  ```\n", want: ok},
		"a fence of another language":   {contract: verdict, reply: "```\n{\"ok\": true}\n```", code: action.CodeReplyInvalid, faults: []string{"the reply must be one JSON value and nothing else: "}},
		"words beside it":               {contract: verdict, reply: "Here: {\"ok\": true}", code: action.CodeReplyInvalid, faults: []string{"the reply must be one JSON value and nothing else: "}},
		"words behind the fence":        {contract: verdict, reply: "```json\n{\"ok\": true}\n```\nDone.", code: action.CodeReplyInvalid, faults: []string{"the reply must be one JSON value and nothing else: "}},
		"two fences":                    {contract: verdict, reply: "```json\n{\"ok\": true}\n```\n```json\n{}\n```", code: action.CodeReplyInvalid, faults: []string{"the reply must be one JSON value and nothing else: "}},
		"two values":                    {contract: verdict, reply: `{"ok": true} {}`, code: action.CodeReplyInvalid, faults: []string{"the reply must be one JSON value and nothing else: "}},
		"nothing, with a contract":      {contract: verdict, reply: " ", code: action.CodeReplyInvalid, faults: []string{"the reply is empty; it must be one JSON value"}},
		"a list":                        {contract: verdict, reply: `[true]`, code: action.CodeReplyInvalid, faults: []string{"answer: type"}},
		"no conversion":                 {contract: verdict, reply: `{"ok": "true", "score": "1", "why": 3, "data": []}`, code: action.CodeReplyInvalid, faults: []string{"data: type", "ok: type", "score: type", "why: type"}},
		"what is missing":               {contract: verdict, reply: `{"ok": null}`, code: action.CodeReplyInvalid, faults: []string{"ok: type"}},
		"a name that is there twice":    {contract: verdict, reply: `{"ok": true, "data": {"a": [{"b": 1, "b": 1}]}}`, code: action.CodeReplyInvalid, faults: []string{`the member "b" is there twice`}},
		"equal names in two objects":    {contract: verdict, reply: `{"ok": true, "data": {"ok": {"ok": 1}}, "l": [{"a": 1}, {"a": 1}, "a", "a"]}`, want: map[string]any{"ok": true, "data": map[string]any{"ok": map[string]any{"ok": int64(1)}}, "l": []any{map[string]any{"a": int64(1)}, map[string]any{"a": int64(1)}, "a", "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.contract.Read(tc.reply)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
			checkReplyError(t, err, tc.code, tc.faults)
		})
	}
}

func checkReplyError(t *testing.T, err error, code string, faults []string) {
	t.Helper()
	var wrong *action.ReplyError
	if !errors.As(err, &wrong) {
		if err != nil || code != "" {
			t.Errorf("got %v, want %s", err, code)
		}
		return
	}
	if wrong.Code != code || len(wrong.Faults) != len(faults) {
		t.Fatalf("got %v, want %s %v", err, code, faults)
	}
	for i, fault := range wrong.Faults {
		if !strings.HasPrefix(fault, faults[i]) { // the rest is the decoder's
			t.Errorf("fault %q, want %q", fault, faults[i])
		}
	}
}

func TestFaultsOfAReplyAreBounded(t *testing.T) {
	t.Parallel()
	var many action.Contract
	for i := range 25 {
		many.Outputs = append(many.Outputs, action.Field{Name: "f" + string(rune('a'+i)), Required: true})
	}
	_, err := many.Read(`{}`)
	var wrong *action.ReplyError
	if !errors.As(err, &wrong) || len(wrong.Faults) != 21 || wrong.Faults[20] != "5 more" || wrong.Faults[0] != "fa: required" {
		t.Errorf("got %v", err)
	}
}

func TestContractIsToldToTheAgent(t *testing.T) {
	t.Parallel()
	if got := (action.Contract{}).Extend("Do it."); got != "Do it." {
		t.Errorf("without outputs: %q", got)
	}
	const schema = `{"properties":{"data":{"type":["object","null"]},"ok":{"description":"whether it may go","type":"boolean"},` +
		`"score":{"type":["number","null"]},"why":{"type":["string","null"]}},"required":["ok"],"type":"object"}`
	got := verdict.Extend("Do it.")
	if !strings.HasPrefix(got, "Do it.\n\nYour whole reply must be one JSON value") || !strings.HasSuffix(got, ":\n"+schema) {
		t.Errorf("got %q", got)
	}
	_, err := verdict.Read(`{"score": "high"}`)
	var wrong *action.ReplyError
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	repair := verdict.Repair(`{"score": "high"}`, wrong)
	for _, part := range []string{"Correct its form only", "- ok: required\n- score: type\n", schema, "Your previous reply was:\n{\"score\": \"high\"}"} {
		if !strings.Contains(repair, part) {
			t.Errorf("%q is not in %q", part, repair)
		}
	}
}

// TestAReplyThatIsReadKeepsTheActionsContract holds that what the reply's schema
// takes, the check of outputs takes too, on random contracts and replies.
func TestAReplyThatIsReadKeepsTheActionsContract(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	read := 0
	for range 5000 {
		fields, values := randomContract(random)
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		contract := action.Contract{Outputs: fields}
		outputs, err := contract.Read(string(text))
		if err != nil || contract.IsOpen() {
			continue
		}
		read++
		if violations := action.CheckContract(fields, outputs); len(violations) > 0 {
			t.Fatalf("%s was read under %v, with %v", text, fields, violations)
		}
		if !jsonvalue.Equal(values, outputs) {
			t.Fatalf("%s was read as %v", text, outputs)
		}
	}
	if read < 500 {
		t.Errorf("only %d replies were read", read)
	}
}

// FuzzReadReply holds that no reply breaks the reader, and that a fault repeats
// nothing of it but names.
func FuzzReadReply(f *testing.F) {
	for _, seed := range []string{"", "{}", "```json\n{\"ok\":true}\n```", `{"ok":true,"ok":false}`, `[{"a":1},{"a":[}]`, `{"ok":1e999}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		outputs, err := verdict.Read(reply)
		if (outputs == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", reply, outputs, err)
		}
		var wrong *action.ReplyError
		if err != nil && (!errors.As(err, &wrong) || len(verdict.Repair(reply, wrong)) < len(reply)) {
			t.Fatalf("%q: %v", reply, err)
		}
	})
}
