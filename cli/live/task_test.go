package live

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestPatchOfAnAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		reply     taskReply
		isFailure bool
		want      string
		fail      string
	}{
		"whole, nulls and large numbers included": {
			reply: taskReply{whole: ` {"n": 12345678901234567890, "none": null} `},
			want:  `[{"op":"add","path":"/status/answer","value":{"n":12345678901234567890,"none":null}}]`,
		},
		"field by field": {
			reply: taskReply{texts: []string{"response=Go=ahead", "note="}, values: []string{"proceed=true", "none=null"}},
			want:  `[{"op":"add","path":"/status/answer","value":{"none":null,"note":"","proceed":true,"response":"Go=ahead"}}]`,
		},
		"a failure": {
			reply: taskReply{failure: "no time"}, isFailure: true,
			want: `[{"op":"add","path":"/status/failure","value":{"reason":"no time"}}]`,
		},
		"a failure without a reason": {isFailure: true, want: `[{"op":"add","path":"/status/failure","value":{"reason":""}}]`},
		"no JSON":                    {reply: taskReply{whole: "sesame"}, fail: "--answer is no JSON"},
		"two values":                 {reply: taskReply{whole: "{} {}"}, fail: "--answer is no JSON"},
		"nothing":                    {fail: "--answer is no JSON"},
		"a field without a value":    {reply: taskReply{texts: []string{"sesame"}}, fail: "--field takes NAME=VALUE"},
		"a field that is no JSON":    {reply: taskReply{values: []string{"a=sesame"}}, fail: "--field-json a is no JSON: put text into --field"},
		"a field twice":              {reply: taskReply{texts: []string{"a=1"}, values: []string{"a=2"}}, fail: "field a is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := tc.reply.patch(tc.isFailure)
			if tc.fail != "" {
				if err == nil || err.Error() != tc.fail {
					t.Errorf("got %v, want %s", err, tc.fail)
				}
				return
			}
			if err != nil || string(patch) != tc.want {
				t.Errorf("got %s, %v, want %s", patch, err, tc.want)
			}
		})
	}
}

// Admission, which stamps, is not here: the tasks have what it would leave.
func TestAnAnswerTellsOfTheResumeItNeeds(t *testing.T) {
	supervised, plain := &api.HumanTask{}, &api.HumanTask{}
	supervised.Namespace, supervised.Name, plain.Namespace, plain.Name = "ns", "ask", "ns", "form"
	supervised.Spec.Fingerprint, supervised.Spec.RunRef = "sha256:f", &api.TaskRunRef{Name: "r"}
	for _, task := range []*api.HumanTask{supervised, plain} {
		task.Status.AnsweredBy, task.Status.Phase = &api.Answerer{Username: "ann"}, api.TaskCompleted
	}
	d := newDesk(t)
	d.cluster.WithWatch = fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(supervised, plain).
		WithStatusSubresource(&api.HumanTask{}).Build()
	for name, want := range map[string]string{
		"ask":  "answered task ask as ann\n  run r takes it at a resume: axiom resume r\n",
		"form": "answered task form as ann\n",
	} {
		a, out := hears()
		if err := a.giveAnswer(t.Context(), d.cluster, name, []byte(`[{"op":"add","path":"/status/answer","value":{"proceed":"sesame"}}]`)); err != nil {
			t.Fatal(err)
		}
		if out.String() != want || strings.Contains(out.String(), "sesame") {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
	a, _ := hears()
	if err := a.giveAnswer(t.Context(), d.cluster, "gone", []byte(`[]`)); err == nil || err.Error() != "there is no task gone in namespace ns" {
		t.Errorf("got %v of a task that is not there", err)
	}
}
