package humantask_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

func TestForm(t *testing.T) {
	t.Parallel()
	task := &api.HumanTask{}
	task.Spec.Form = &api.TaskForm{Fields: []api.FormField{
		{Name: "share", Type: "number", DefaultValue: &runtime.RawExtension{Raw: []byte("7")}},
		{Name: "window", Widget: "select", Options: []api.FormOption{{Label: "Now", Value: "now"}}},
	}}
	want := form.Spec{Fields: []form.Field{
		{Name: "share", Type: "number", Widget: "number", Label: "share", DefaultValue: int64(7)},
		{Name: "window", Type: "string", Widget: "select", Label: "window", Options: []form.Option{{Label: "Now", Value: "now"}}},
	}}
	got, err := humantask.Form(task)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	task.Spec.Form, task.Spec.ResponseSchema = nil, &runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}
	got, err = humantask.Form(task)
	if diff := cmp.Diff(form.Spec{ResponseSchema: map[string]any{"type": "object"}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	task.Spec.ResponseSchema.Raw = []byte(`{`)
	if _, err := humantask.Form(task); err == nil {
		t.Error("a schema that is no JSON is read")
	}
}

func TestIsFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		assignees *api.Assignees
		want      bool
	}{
		"anybody":       {nil, true},
		"nobody":        {&api.Assignees{}, false},
		"the user":      {&api.Assignees{Users: []string{"bob", "ann"}}, true},
		"a group":       {&api.Assignees{Groups: []string{"leads"}}, true},
		"others":        {&api.Assignees{Users: []string{"leads"}, Groups: []string{"ann"}}, false},
		"one of either": {&api.Assignees{Users: []string{"bob"}, Groups: []string{"staff"}}, true},
	} {
		task := &api.HumanTask{Spec: api.HumanTaskSpec{Assignees: tc.assignees}}
		if got := humantask.IsFor(task, "ann", []string{"staff", "leads"}); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]time.Time{"": {}, "PT2H": made.Add(2 * time.Hour), "soon": {}, "PT0S": {}} {
		task := &api.HumanTask{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
		task.Spec.ExpiresAfter = limit
		if got, isLimited := humantask.Expiry(task); !got.Equal(want) || isLimited != !want.IsZero() {
			t.Errorf("%q: got %v, %t", limit, got, isLimited)
		}
	}
}
