package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/apitomy/axiom-operator/internal/expression"
)

// countingChecker counts the expressions that it is asked about.
type countingChecker struct {
	cache *expression.Cache
	asked int
}

func (c *countingChecker) Check(scope, text string) (string, error) {
	c.asked++
	return c.cache.Check(scope, text)
}

func flow(text string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(text)}
}

const badCondition = `"target":"e","condition":"context.("`

func TestVerdictWarnings(t *testing.T) {
	checker := expression.NewCache()
	condition := flow(strings.Replace(smallFlow, `"target":"e"`, badCondition, 1))
	got := newVerdicts(checker).of(condition).warnings
	if len(got) != 1 || !strings.HasPrefix(got[0], "spec.workflow.edges[x]: INVALID_CONDITION: ") {
		t.Errorf("warnings = %q, want one about the condition", got)
	}
	if got := newVerdicts(nil).of(condition).warnings; got != nil {
		t.Errorf("without a checker: warnings = %q, want none", got)
	}
	if got := newVerdicts(checker).of(nil).warnings; got != nil {
		t.Errorf("without a workflow: warnings = %q, want none", got)
	}
	many := flow(`{"id":"t","name":"t","nodes":[` + strings.TrimSuffix(strings.Repeat(`{"id":"n","type":"robot"},`, 13), ",") + `]}`)
	got = newVerdicts(checker).of(many).warnings
	if len(got) != maxWarnings+1 || got[maxWarnings] != "spec.workflow: 3 more errors" {
		t.Errorf("warnings = %q, want %d and how many are left", got, maxWarnings)
	}
}

func TestWorkflowsAreJudgedOnce(t *testing.T) {
	checker := &countingChecker{cache: expression.NewCache()}
	judges := newVerdicts(checker)
	condition := flow(strings.Replace(smallFlow, `"target":"e"`, badCondition, 1))
	first := judges.of(condition)
	if checker.asked != 1 || first.revision == "" {
		t.Fatalf("asked %d times, revision %q", checker.asked, first.revision)
	}
	again := judges.of(condition.DeepCopy())
	if checker.asked != 1 {
		t.Errorf("asked again about what was judged")
	}
	if diff := cmp.Diff(first, again, cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("the verdict changed (-first +again):\n%s", diff)
	}
	other := flow(strings.Replace(string(condition.Raw), "context.(", "context.)", 1))
	if judges.of(other); checker.asked != 2 {
		t.Errorf("another text was not judged")
	}
}

func TestLargeVerdictsAreNotRemembered(t *testing.T) {
	checker := &countingChecker{cache: expression.NewCache()}
	judges := newVerdicts(checker)
	long := flow(strings.NewReplacer(
		`"target":"e"`, badCondition, `"name":"S"`, `"name":"S","config":{"inputs":[{"name":"`+strings.Repeat("n", maxVerdictBytes)+`","required":true}]}`,
	).Replace(smallFlow))
	for want := range 2 {
		if judged := judges.of(long); len(judged.required) != 1 || checker.asked != want+1 {
			t.Fatalf("round %d: %d required inputs, asked %d times", want, len(judged.required), checker.asked)
		}
	}
	if judges.known.Len() != 0 {
		t.Errorf("%d verdicts are remembered, want none", judges.known.Len())
	}
}
