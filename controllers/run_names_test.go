package controllers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestRunChildNames(t *testing.T) {
	t.Parallel()
	run := testRun()
	// printf '%s' '5b1e2c34-0000-4000-8000-000000000001/approve#1' | sha256sum
	if got, want := runChildName(run, "approve#1"), "flow-1-8d92e685ac0155d5"; got != want {
		t.Errorf("child: got %s, want %s", got, want)
	}
	if got, want := runAttemptName(run, "approve#1", 2), "flow-1-8d92e685ac0155d5-a2"; got != want {
		t.Errorf("attempt: got %s, want %s", got, want)
	}
}

func TestRunNamesAreNamesOfPods(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", strings.Repeat("a", 42), strings.Repeat("a", 253), strings.Repeat("a", 41) + ".b"} {
		run := testRun(func(run *api.WorkflowRun) { run.Name = name })
		for _, child := range []string{runAttemptName(run, "Ärger #1", 10), runPolicyName(run), runChildName(run, "x#1")} {
			if problems := validation.IsDNS1123Subdomain(child); len(problems) > 0 || len(child) > 63 {
				t.Errorf("%s (%d): %v", child, len(child), problems)
			}
		}
	}
}

func TestRunNamesDifferByRunAndActivation(t *testing.T) {
	t.Parallel()
	other := testRun(func(run *api.WorkflowRun) { run.UID = "other" })
	names := map[string]bool{}
	for _, name := range []string{
		runChildName(testRun(), "a#1"), runChildName(testRun(), "a#2"), runChildName(other, "a#1"), runPolicyName(testRun()),
		runAttemptName(testRun(), "a#1", 1), runAttemptName(testRun(), "a#1", 2),
	} {
		if names[name] {
			t.Errorf("%s names two things", name)
		}
		names[name] = true
	}
}
