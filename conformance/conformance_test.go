package conformance_test

import (
	"context"
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/conformance"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// A cluster in which nobody works fails every case, and is left as it was found.
func TestNothingPassesWhereNothingWorks(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
	var told []string
	report, err := conformance.Run(t.Context(), conformance.Options{
		Client: c, Clock: clock.RealClock{}, Namespace: "sandbox", Patience: time.Nanosecond, Pods: true,
		Told: func(result conformance.Result) { told = append(told, result.Name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Passed || report.Count(conformance.Failed) != len(report.Cases) || len(told) != len(report.Cases) || len(told) < 10 {
		t.Errorf("report %+v, told %q", report, told)
	}
	for _, list := range []client.ObjectList{&corev1.NamespaceList{}, &api.CompositionList{}, &api.WorkflowRunList{}, &corev1.ConfigMapList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if text, err := namesIn(list); err != nil || strings.Contains(text, "conformance-") || strings.Contains(text, "sandbox") {
			t.Errorf("%v, it leaves %s", err, text)
		}
	}
}

// namesIn are the names of the items of a list.
func namesIn(list client.ObjectList) (string, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		return "", err
	}
	items, _ := object["items"].([]any)
	var names []string
	for _, item := range items {
		metadata, _ := item.(map[string]any)["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		names = append(names, name)
	}
	return strings.Join(names, " "), nil
}

func TestNoNamespaceIsNoReport(t *testing.T) {
	denied := errors.New("denied")
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return denied },
	}).Build()
	report, err := conformance.Run(t.Context(), conformance.Options{Client: c, Clock: clock.RealClock{}, Namespace: "sandbox"})
	if !errors.Is(err, denied) || len(report.Cases) > 0 {
		t.Errorf("got %v, %+v", err, report)
	}
}

func TestJUnit(t *testing.T) {
	report := conformance.Report{StartedAt: "2026-05-04T12:00:00Z", Cases: []conformance.Result{
		{Name: "a", About: "works", Status: conformance.Passed, Seconds: 1.5},
		{Name: "b", About: "breaks", Status: conformance.Failed, Message: `"<no>"`},
		{Name: "c", Status: conformance.Skipped, Message: "needs pods"},
	}}
	text, err := report.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(text), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 3 || suite.Failures != 1 || suite.Skipped != 1 || suite.Cases[0].Name != "a: works" || suite.Cases[0].Failure != nil || suite.Cases[1].Failure.Message != `"<no>"` {
		t.Errorf("got %s", text)
	}
}
