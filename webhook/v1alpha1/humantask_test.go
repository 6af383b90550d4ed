package v1alpha1

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

var asked = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// change is a write by ann of the status before to the status after, to a task
// with one required boolean.
func change(t *testing.T, before, after string) *taskChange {
	t.Helper()
	read := func(text string) map[string]any {
		v, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		object, _ := v.(map[string]any)
		return object
	}
	spec := read(`{"form":{"fields":[{"name":"ok","type":"boolean","required":true}]}}`)
	task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{Name: "t", CreationTimestamp: metav1.NewTime(asked)}}
	status := read(before)
	if closed, isClosed := status["closed"].(map[string]any); isClosed {
		task.Status.Closed = &api.TaskClosed{Reason: api.CloseReason(fmt.Sprint(closed["reason"]))}
	}
	if by, isAnswered := status["answeredBy"].(map[string]any); isAnswered {
		task.Status.AnsweredBy = &api.Answerer{Username: fmt.Sprint(by["username"])}
		task.Status.AnsweredAt = &metav1.Time{Time: asked}
	}
	return &taskChange{
		refusals: refusals{name: "t"}, task: task, spec: spec, before: status, after: read(after),
		user: authenticationv1.UserInfo{Username: "ann", Groups: []string{"staff"}}, now: asked.Add(time.Minute),
	}
}

const stampOfAnn = `"answeredBy":{"username":"ann","groups":["staff"]},"answeredAt":"2026-05-04T10:01:00Z"`

func TestJudgePerson(t *testing.T) {
	nobody := &api.Assignees{}
	const given = `{"answer":{"ok":true},"answeredBy":{"username":"bea"},"answeredAt":"2026-05-04T10:00:00Z"}`
	cases := map[string]struct {
		before, after string
		prepare       func(*taskChange)
		wantCode      int
		want          string
	}{
		"nothing":                         {before: `{"phase":"AwaitingInput"}`, after: `{"phase":"AwaitingInput"}`},
		"an answer":                       {before: `{}`, after: `{"answer":{"ok":true},` + stampOfAnn + `}`},
		"a failure":                       {before: `{}`, after: `{"failure":{"reason":"r"},` + stampOfAnn + `}`},
		"an answer without a status":      {before: `null`, after: `{"answer":{"ok":true},` + stampOfAnn + `}`},
		"another path":                    {before: `{}`, after: `{"phase":"Failed"}`, wantCode: 403, want: "status.phase: only `answer` and `failure`"},
		"another path before eligibility": {before: `{}`, after: `{"phase":"Failed","answer":1}`, prepare: func(c *taskChange) { c.task.Spec.Assignees = nobody }, wantCode: 403, want: "status.phase"},
		"somebody else's stamp":           {before: `{}`, after: `{"answer":{"ok":true},"answeredBy":{"username":"bea"},"answeredAt":"2026-05-04T10:01:00Z"}`, wantCode: 403, want: "status.answeredBy"},
		"a stamp without an answer":       {before: `{}`, after: `{` + stampOfAnn + `}`, wantCode: 403, want: "status.answeredAt"},
		"the loss of a stamp":             {before: given, after: `{"answer":{"ok":true}}`, wantCode: 403, want: "status.answeredAt"},
		"who is not asked":                {before: `{}`, after: `{"answer":{"ok":true},` + stampOfAnn + `}`, prepare: func(c *taskChange) { c.task.Spec.Assignees = nobody }, wantCode: 403, want: `user "ann" is not among the assignees`},
		"eligibility before the state":    {before: given, after: strings.Replace(given, "true", "false", 1), prepare: func(c *taskChange) { c.task.Spec.Assignees = nobody }, wantCode: 403, want: "assignees"},
		"a second answer":                 {before: given, after: strings.Replace(given, "true", "false", 1), wantCode: 409, want: "already answered by bea at 2026-05-04T10:00:00Z"},
		"an answer beside a failure":      {before: `{"failure":{"reason":"r"},"answeredBy":{"username":"bea"}}`, after: `{"failure":{"reason":"r"},"answer":1,"answeredBy":{"username":"bea"}}`, wantCode: 409, want: "already failed by bea"},
		"the state before the content":    {before: `{"closed":{"reason":"Expired"}}`, after: `{"closed":{"reason":"Expired"},"answer":7,` + stampOfAnn + `}`, wantCode: 409, want: "the task is closed: Expired"},
		"what is being deleted":           {before: `{}`, after: `{"answer":{"ok":true},` + stampOfAnn + `}`, prepare: func(c *taskChange) { c.task.DeletionTimestamp = &metav1.Time{} }, wantCode: 409, want: "being deleted"},
		"what has just expired":           {before: `{}`, after: `{"answer":{"ok":true},` + stampOfAnn + `}`, prepare: func(c *taskChange) { c.task.Spec.ExpiresAfter = "PT1M" }, wantCode: 409, want: "expired: its time passed at 2026-05-04T10:01:00Z"},
		"what expires in a nanosecond":    {before: `{}`, after: `{"answer":{"ok":true},` + stampOfAnn + `}`, prepare: func(c *taskChange) { c.task.Spec.ExpiresAfter = "PT1M0.000000001S" }},
		"answer and failure":              {before: `{}`, after: `{"answer":{"ok":true},"failure":{"reason":"r"},` + stampOfAnn + `}`, wantCode: 422, want: "exactly one of `answer` and `failure`"},
		"an answer of null":               {before: `{}`, after: `{"answer":null}`, wantCode: 422, want: "exactly one of `answer` and `failure`"},
		"a blank reason":                  {before: `{}`, after: `{"failure":{"reason":"\t"},` + stampOfAnn + `}`, wantCode: 422, want: "status.failure.reason"},
		"no reason":                       {before: `{}`, after: `{"failure":{},` + stampOfAnn + `}`, wantCode: 422, want: "status.failure.reason"},
		"false as an answer":              {before: `{}`, after: `{"answer":false,` + stampOfAnn + `}`, wantCode: 422, want: "answer: type"},
		"an answer of the wrong type":     {before: `{}`, after: `{"answer":{"ok":"yes"},` + stampOfAnn + `}`, wantCode: 422, want: "ok: type"},
		"an answer that is too large":     {before: `{}`, after: `{"answer":{"ok":true,"x":"` + strings.Repeat("x", form.MaxAnswerBytes-17) + `"},` + stampOfAnn + `}`, wantCode: 422, want: "has 65537 bytes of JSON, the limit is 65536"},
		"an answer that is just not":      {before: `{}`, after: `{"answer":{"ok":true,"x":"` + strings.Repeat("x", form.MaxAnswerBytes-18) + `"},` + stampOfAnn + `}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := change(t, tc.before, tc.after)
			if tc.prepare != nil {
				tc.prepare(c)
			}
			checkRefusal(t, c.judgePerson(), tc.wantCode, tc.want)
		})
	}
}

// checkRefusal wants an API error of a code, 0 for none, with a text.
func checkRefusal(t *testing.T, err error, wantCode int, want string) {
	t.Helper()
	if wantCode == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %v, want an API error of code %d", err, wantCode)
	}
	if code := int(status.Status().Code); code != wantCode || !strings.Contains(status.Status().Message, want) {
		t.Errorf("got %d %q, want %d with %q", code, status.Status().Message, wantCode, want)
	}
}

func TestJudgeOperator(t *testing.T) {
	const given = `"answer":1,"answeredBy":{"username":"bea"},"answeredAt":"2026-05-04T10:00:00Z"`
	const closed = `"closed":{"reason":"Expired"}`
	cases := map[string]struct {
		before, after string
		wantCode      int
		want          string
	}{
		"the phase":                  {before: `{}`, after: `{"phase":"Completed"}`},
		"a beside-the-answer change": {before: `{` + given + `}`, after: `{"phase":"Completed",` + given + `}`},
		"a first close":              {before: `{}`, after: `{` + closed + `}`},
		"an answer":                  {before: `{}`, after: `{"answer":1}`, wantCode: 403, want: "status.answer"},
		"a failure":                  {before: `{}`, after: `{"failure":{"reason":"r"}}`, wantCode: 403, want: "status.failure"},
		"a stamp":                    {before: `{}`, after: `{"answeredBy":{"username":"x"}}`, wantCode: 403, want: "status.answeredBy"},
		"the loss of everything":     {before: `{` + given + `}`, after: `null`, wantCode: 403, want: "status.answer"},
		"a close after an answer":    {before: `{` + given + `}`, after: `{` + given + `,` + closed + `}`, wantCode: 409, want: "already answered by bea"},
		"another close":              {before: `{` + closed + `}`, after: `{"closed":{"reason":"Cancelled"}}`, wantCode: 409, want: "already closed: Expired"},
		"a task open again":          {before: `{` + closed + `}`, after: `{}`, wantCode: 409, want: "already closed: Expired"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checkRefusal(t, change(t, tc.before, tc.after).judgeOperator(), tc.wantCode, tc.want)
		})
	}
}

func TestFreshStamp(t *testing.T) {
	c := change(t, `{}`, `{}`)
	c.user = authenticationv1.UserInfo{Username: "ann", UID: "u1", Groups: make([]string, maxStampGroups+1)}
	by, _ := c.freshStamp()[memberAnsweredBy].(map[string]any)
	groups, _ := by["groups"].([]any)
	if by["uid"] != "u1" || len(groups) != maxStampGroups {
		t.Errorf("freshStamp() has uid %v and %d groups, want u1 and %d", by["uid"], len(groups), maxStampGroups)
	}
	c.user = authenticationv1.UserInfo{Username: "ann"}
	if diff := cmp.Diff(map[string]any{"username": "ann"}, c.freshStamp()[memberAnsweredBy]); diff != "" {
		t.Errorf("freshStamp() mismatch (-want +got):\n%s", diff)
	}
}

func TestValidateTask(t *testing.T) {
	cases := map[string]struct {
		spec api.HumanTaskSpec
		want []string
	}{
		"a title is enough": {spec: api.HumanTaskSpec{HumanContext: api.HumanContext{Title: "T"}}},
		"a whole question": {spec: api.HumanTaskSpec{
			HumanContext: api.HumanContext{Title: "T", References: []api.LabelledURL{{URL: "http://example.com"}}},
			Form:         &api.TaskForm{Fields: []api.FormField{{Name: "a"}, {Name: "A"}}},
			ExpiresAfter: "P1DT0.5S",
		}},
		"a schema": {spec: api.HumanTaskSpec{
			HumanContext:   api.HumanContext{Title: "T"},
			ResponseSchema: &runtime.RawExtension{Raw: []byte(`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`)},
		}},
		"everything wrong": {
			spec: api.HumanTaskSpec{
				HumanContext: api.HumanContext{Title: "\u3000", References: []api.LabelledURL{{URL: "/x"}, {URL: "https:///x"}}},
				Form:         &api.TaskForm{Fields: []api.FormField{{Name: "a"}, {Name: "a"}, {Name: " "}}},
				ExpiresAfter: "-P1D",
			},
			want: []string{
				"spec.humanContext.title: Required value: must not be blank",
				`spec.humanContext.references[0].url: Invalid value: "/x": must be an absolute URL with http or https`,
				`spec.humanContext.references[1].url: Invalid value: "https:///x": must be an absolute URL with http or https`,
				`spec.expiresAfter: Invalid value: "-P1D": must be positive`,
				`spec.form.fields[1].name: Duplicate value: "a"`,
				"spec.form.fields[2].name: Required value: must not be blank",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(validateTask(&tc.spec, field.NewPath("spec")))); diff != "" {
				t.Errorf("validateTask() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}
