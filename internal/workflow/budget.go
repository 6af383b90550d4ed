package workflow

import "github.com/apitomy/axiom-operator/internal/jsonvalue"

// Budgets of a document.
const (
	// MaxDocumentBytes bounds the compact JSON of a document.
	MaxDocumentBytes = 512 << 10
	// MaxNodes bounds its nodes.
	MaxNodes = 1000
	// MaxEdges bounds its edges.
	MaxEdges = 4000
)

var budgetRules = errorRules("INVALID_WORKFLOW", "WORKFLOW_TOO_LARGE", "TOO_MANY_NODES", "TOO_MANY_EDGES")

// checkBudgets comes before everything else, so that nothing else has to fear a large document.
func checkBudgets(doc any) []Problem {
	r := report{rules: budgetRules}
	raw, ok := doc.(map[string]any)
	if !ok {
		r.document("INVALID_WORKFLOW", "a workflow must be an object")
		return r.problems()
	}
	r.budget("WORKFLOW_TOO_LARGE", "bytes of JSON", jsonvalue.Size(doc), MaxDocumentBytes)
	r.budget("TOO_MANY_NODES", "nodes", len(list(raw["nodes"])), MaxNodes)
	r.budget("TOO_MANY_EDGES", "edges", len(list(raw["edges"])), MaxEdges)
	return r.problems()
}

func (r *report) budget(code, what string, figure, limit int) {
	if figure > limit {
		r.document(code, "the workflow has %d %s, the limit is %d", figure, what, limit)
	}
}
