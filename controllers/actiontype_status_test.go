package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func problems(codes ...string) []api.Problem {
	var found []api.Problem
	for _, code := range codes {
		severity := api.SeverityError
		if strings.HasPrefix(code, "w:") {
			severity, code = api.SeverityWarning, code[2:]
		}
		found = append(found, api.Problem{Severity: severity, Code: code, Path: "p", Message: "m"})
	}
	return found
}

func TestNextLibraryStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		problems []api.Problem
		// want are the statuses of Valid, Ready, Reconciling and Stalled.
		want    string
		message string
	}{
		"fine":                      {nil, "True True False False", ""},
		"only warnings":             {problems("w:MISSING_DESCRIPTION"), "True True False False", ""},
		"an error":                  {problems("MISSING_SCRIPT", "w:UNUSUAL_NAME"), "False False False True", "MISSING_SCRIPT at p: m"},
		"something missing":         {problems("UNKNOWN_SECRET"), "False False True False", "UNKNOWN_SECRET at p: m"},
		"both":                      {problems("UNKNOWN_SECRET", "INVALID_ENV_NAME", "INVALID_MODE"), "False False False True", "UNKNOWN_SECRET at p: m (and 2 more)"},
		"more than a status takes":  {problems(strings.Split(strings.Repeat("E ", 80)+"E", " ")...), "False False False True", "E at p: m (and 80 more)"},
		"two that others can mend":  {problems("UNKNOWN_SECRET", "UNKNOWN_SESSION_TEMPLATE"), "False False True False", "UNKNOWN_SECRET at p: m (and 1 more)"},
		"a warning beside the wait": {problems("UNKNOWN_SECRET", "w:X"), "False False True False", "UNKNOWN_SECRET at p: m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := libraryItem{kind: api.ItemTool, content: api.NamedTool{Name: "t"}, generation: 4, problems: tc.problems}
			status, err := nextLibraryStatus(it, api.LibraryStatus{}, runTestNow)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range status.Conditions {
				got = append(got, string(c.Status))
				if c.ObservedGeneration != 4 || c.Reason == "" {
					t.Errorf("condition %+v", c)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" || status.Conditions[0].Message != tc.message {
				t.Errorf("conditions %s, message %q", diff, status.Conditions[0].Message)
			}
			if len(status.Problems) > 64 || status.ObservedGeneration != 4 || status.ContentRevision == "" {
				t.Errorf("status is %+v", status)
			}
			again, err := nextLibraryStatus(it, *status, runTestNow.Add(time.Hour))
			if err != nil || !equalStatus(*status, *again) {
				t.Errorf("a second look says something else: %+v (%v)", again, err)
			}
		})
	}
}

// A missing Secret is looked for soon at first, and then ever less often.
func TestNextLook(t *testing.T) {
	t.Parallel()
	for since, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 5 * time.Second: 5 * time.Second, time.Minute: time.Minute, 24 * time.Hour: 10 * time.Minute,
	} {
		status := &api.LibraryStatus{Problems: problems("UNKNOWN_SECRET"), Conditions: []metav1.Condition{{
			Type: api.ConditionValid, LastTransitionTime: metav1.NewTime(runTestNow.Add(-since)),
		}}}
		if got := nextLook(status, runTestNow); got != want {
			t.Errorf("after %s it looks in %s, want %s", since, got, want)
		}
	}
	if got := nextLook(&api.LibraryStatus{Problems: problems("UNKNOWN_SESSION_TEMPLATE")}, runTestNow); got != 0 {
		t.Errorf("a template is looked for in %s, but its watch tells", got)
	}
}
