package expression_test

import (
	"slices"
	"testing"

	"github.com/apitomy/axiom-operator/internal/expression"
)

func TestPromptsSeeInputsAndNothingElse(t *testing.T) {
	t.Parallel()
	cache := expression.NewCache()
	program, err := cache.Compile(expression.ScopeAgentPrompt, "inputs.ref + ' ' + string(inputs.n)")
	if err != nil {
		t.Fatal(err)
	}
	got, err := program.Eval(t.Context(), expression.Variables{Inputs: map[string]any{"ref": "r", "n": int64(2)}})
	if err != nil || got != "r 2" {
		t.Errorf("got %v (%v)", got, err)
	}
	for _, text := range []string{"context.ref", "event.id"} {
		if _, err := cache.Compile(expression.ScopeAgentPrompt, text); err == nil {
			t.Errorf("%s compiles in a prompt", text)
		}
	}
	if _, err := cache.Compile(expression.ScopeActionInput, "inputs.ref"); err == nil {
		t.Error("inputs compiles in a workflow")
	}
	if _, known := expression.ParseScope(string(expression.ScopeAgentPrompt)); known || slices.Contains(expression.Scopes(), expression.ScopeAgentPrompt) {
		t.Error("a prompt is a place of workflow documents")
	}
}
