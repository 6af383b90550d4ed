package workflow_test

import (
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// What the reference tells of is what validation looks at: it finds fault with a
// value that no member takes. The outcome of an end is taken as it is.
func TestValidationKnowsTheMembers(t *testing.T) {
	for _, kind := range workflow.Kinds() {
		for _, member := range kind.Members() {
			if kind == workflow.KindEnd {
				continue
			}
			t.Run(string(kind)+"/"+member.Name, func(t *testing.T) {
				if !complains(kind, map[string]any{member.Name: 7}, member.Name) {
					t.Errorf("a number passes as %s", member.Name)
				}
			})
		}
	}
}

// A member said to be required is missed when it is not there.
func TestValidationMissesRequiredMembers(t *testing.T) {
	for _, kind := range workflow.Kinds() {
		for _, member := range kind.Members() {
			if strings.HasSuffix(member.Form, "; required") && !complains(kind, map[string]any{}, member.Name) {
				t.Errorf("%s of %s is not missed", member.Name, kind)
			}
		}
	}
}

// complains tells whether a node with the configuration has a problem that names
// the member.
func complains(kind workflow.Kind, config map[string]any, member string) bool {
	doc := workflow.Blank("x")
	node := map[string]any{"id": "n-1", "type": string(kind), "name": "N", "config": config}
	doc["nodes"] = append(doc["nodes"].([]any), node)
	for _, problem := range workflow.Validate(doc, nil) {
		if problem.NodeID == "n-1" && strings.Contains(problem.Message, member) {
			return true
		}
	}
	return false
}
