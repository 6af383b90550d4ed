package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// askingRun waits for the answer to one question.
func askingRun() *api.WorkflowRun {
	return &api.WorkflowRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: types.UID("u")},
		Status: api.WorkflowRunStatus{
			Phase: api.RunSuspended, Intents: []api.RunIntent{{Activation: "a#1", Task: "t", Fingerprint: "f"}},
		},
	}
}

// A scanner without rules cannot tell (supervised 52); doors without a scanner
// cannot either.
func TestSupervised52FailingScannerDenies(t *testing.T) {
	live := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(askingRun()).Build()
	run := manifest("WorkflowRun", `,"metadata":{"name":"r"},"spec":{"git":{"url":"https://example.com/a.git","commit":"`+
		strings.Repeat("0", 40)+`","path":"a.md"},"inputs":{"request":"harmless"}}}`)
	task := manifest("HumanTask", `,"metadata":{"name":"t"},"spec":{"fingerprint":"f","runRef":{"name":"r","uid":"u","activation":"a#1"}}}`)
	answered := func(answer string) string {
		return strings.TrimSuffix(task, "}") + `,"status":{` + answer + `,"answeredBy":{"username":"ann"},"answeredAt":"2026-05-04T10:01:00Z"}}`
	}
	working, err := secretscan.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		scanner   *secretscan.Scanner
		wantsDeny bool
	}{
		"no scanner": {nil, true}, "no rules": {&secretscan.Scanner{}, true}, "a working one": {working, false},
	} {
		handlers := doors(live, Options{Operator: "op", Scanner: tc.scanner})
		answer := write("HumanTask", "ann", task, answered(`"answer":{"ok":"harmless"}`))
		answer.Name = "t"
		failure := write("HumanTask", "ann", task, answered(`"failure":{"reason":"harmless"}`))
		failure.Name = "t"
		for path, response := range map[string]admission.Response{
			"spec.inputs":    handlers["/validate/workflowruns"].Handle(t.Context(), write("WorkflowRun", "ann", "", run)),
			"status.answer":  handlers["/validate/humantasks/status"].Handle(t.Context(), answer),
			"status.failure": handlers["/validate/humantasks/status"].Handle(t.Context(), failure),
		} {
			if response.Allowed == tc.wantsDeny {
				t.Errorf("%s, %s: allowed %t: %v", name, path, response.Allowed, response.Result)
			}
			if tc.wantsDeny && !strings.Contains(response.Result.Message, path+": Invalid value: SECRET_DETECTED: scanner-error") {
				t.Errorf("%s, %s: refused with %q, want the field and the rule", name, path, response.Result.Message)
			}
		}
	}
}

func TestChangedFields(t *testing.T) {
	const same = `{"git":{"url":"u","commit":"c"},"credentials":[{"name":"a"},{"name":"b"}],"inputs":{"n":1}}`
	cases := map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":                 {before: same, after: same},
		"numbers and orders":      {before: same, after: `{"inputs":{"n":1.0},"credentials":[{"name":"b"},{"name":"a"}],"git":{"commit":"c","url":"u"}}`},
		"defaults":                {before: `{"git":{}}`, after: `{"git":{},"resumePolicy":"Explicit","credentials":[]}`},
		"what may change":         {before: `{}`, after: `{"resumeRequests":1,"cancel":true,"ttlSecondsAfterFinished":1}`},
		"a member of git":         {before: same, after: strings.Replace(same, `"u"`, `"v"`, 1), want: []string{"spec.git.url"}},
		"a new member of git":     {before: `{"git":{}}`, after: `{"git":{"credentialsRef":{}}}`, want: []string{"spec.git.credentialsRef"}},
		"no git":                  {before: `{"git":{}}`, after: `{}`, want: []string{"spec.git"}},
		"a list's order":          {before: `{"inputs":{"l":[1,2]}}`, after: `{"inputs":{"l":[2,1]}}`, want: []string{"spec.inputs"}},
		"inputs that are not":     {before: `{"inputs":{}}`, after: `{}`, want: []string{"spec.inputs"}},
		"another policy":          {before: `{}`, after: `{"resumePolicy":"Automatic"}`, want: []string{"spec.resumePolicy"}},
		"members nobody knows of": {before: `{}`, after: `{"z":1,"a":2}`, want: []string{"spec.a", "spec.z"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, err := objectOf([]byte(tc.before))
			if err != nil {
				t.Fatal(err)
			}
			after, err := objectOf([]byte(tc.after))
			if err != nil {
				t.Fatal(err)
			}
			got := changedFields(identity(before), identity(after), field.NewPath("spec"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changedFields() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}
