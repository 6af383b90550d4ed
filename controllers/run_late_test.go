package controllers

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestARunThatTheCacheShowsLateIsBehind(t *testing.T) {
	t.Parallel()
	version := func(text string) *api.WorkflowRun {
		return testRun(func(run *api.WorkflowRun) { run.ResourceVersion = text })
	}
	var commits runCommits
	if commits.isBehind(version("1")) {
		t.Error("behind though nothing was written")
	}
	commits.begin(version("").UID, &api.WorkflowRunStatus{})
	commits.end(version("99"), nil)
	for text, want := range map[string]bool{"98": true, "9": true, "99": false, "100": false, "odd": true} {
		if got := commits.isBehind(version(text)); got != want {
			t.Errorf("version %s: got %t, want %t", text, got, want)
		}
	}
	commits.end(version("101"), errors.New("no answer"))
	if commits.isBehind(version("100")) {
		t.Error("behind a write of which nothing is known")
	}
}

func TestAChildIsUnexpectedUnlessItsRunWaitsForIt(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	waiting := testRun(func(run *api.WorkflowRun) {
		run.ResourceVersion = "7"
		run.Status.Instance = &api.RunInstance{ActiveBranches: []api.ActiveBranch{{Activation: "ask#1", Child: &api.ChildRef{Name: "c"}}}}
	})
	finished := waiting.DeepCopy()
	finished.Status.FinishedAt = &metav1.Time{Time: runTestNow}
	later := waiting.DeepCopy()
	later.ResourceVersion = "8"
	over := finished.DeepCopy()
	over.ResourceVersion = "8"
	another := waiting.DeepCopy()
	another.UID = "another"
	child := func(name string) client.Object {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: waiting.Namespace, Name: name}}
		config.OwnerReferences = []metav1.OwnerReference{runReference(waiting)}
		return config
	}
	for name, tc := range map[string]struct {
		// cached is the run that the cache has, written what this process wrote last.
		cached, written *api.WorkflowRun
		child           string
		want            bool
	}{
		"its run waits for it":                              {waiting, nil, "c", false},
		"its run waits for that which it is for":            {waiting, nil, "c-in", false},
		"its run waits for another":                         {waiting, nil, "d", true},
		"its run is over":                                   {finished, nil, "c", true},
		"its run is gone":                                   {nil, nil, "c", true},
		"a run of the same name waits":                      {another, nil, "c", true},
		"its run is over, which the cache shows later":      {waiting, over, "c", true},
		"its run waits for it, which the cache shows later": {finished, later, "c", false},
	} {
		r := &WorkflowRunReconciler{}
		objects := fake.NewClientBuilder().WithScheme(scheme)
		if tc.cached != nil {
			objects.WithObjects(tc.cached)
		}
		r.Client = objects.Build()
		if tc.written != nil {
			r.commits.begin(tc.written.UID, &tc.written.Status)
			r.commits.end(tc.written, nil)
		}
		if got := r.unexpected().Create(ctrlevent.CreateEvent{Object: child(tc.child)}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
