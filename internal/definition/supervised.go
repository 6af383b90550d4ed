package definition

import (
	"strings"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// CodeSupervisedOnly is the code of a workflow that only a run from Git can execute.
const CodeSupervisedOnly = "SUPERVISED_ONLY"

// UsesSupervised finds the first node of a workflow that only a run from Git can serve.
func UsesSupervised(flow *workflow.Workflow) (node string, found bool) {
	for _, n := range flow.Nodes() {
		if isSupervised(n) {
			return n.ID(), true
		}
	}
	return "", false
}

// isSupervised tells whether a node calls a component, or has a built-in action: their names have a dot, which those of
// action types cannot have.
func isSupervised(node workflow.Node) bool {
	action, _ := node.Config()[memberActionType].(string)
	return node.Kind() == workflow.KindComponent || node.Kind() == workflow.KindAction && strings.Contains(action, ".")
}
