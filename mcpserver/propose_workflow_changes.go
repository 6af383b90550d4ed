package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type proposeInput struct {
	ChangeSet map[string]any `json:"changeSet" jsonschema:"{id, baseRevision, summary, ops}: ops is a list of operations, applied in order, all or none; baseRevision is the workflowRevision of get_composition, or the revision that the last change set gave"`
}

func (t toolbox) addProposeWorkflowChanges(server *mcp.Server) {
	closed := false
	addBound(t, server, &mcp.Tool{
		Name: "propose_workflow_changes",
		Description: "Change the workflow with a change set. It is applied as a whole, and the answer has the new revision to base " +
			"the next one on, with the problems that the workflow has now; or it is rejected, and the answer says which operation is to " +
			"blame and why. The user's own workflow changes only when the turn is accepted.",
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: &closed},
	}, t.proposeWorkflowChanges)
}

func (t toolbox) proposeWorkflowChanges(ctx context.Context, input proposeInput) (string, error) {
	changeSet, err := json.Marshal(input.ChangeSet)
	if err != nil {
		return "", fmt.Errorf("encode change set: %w", err)
	}
	result, err := t.gateway.ProposeWorkflowChanges(ctx, t.namespace, t.name, changeSet)
	if err != nil {
		return "", err
	}
	return formatProposal(result), nil
}

func formatProposal(result *openapi.ProposalResult) string {
	if result.Applied {
		return lines("APPLIED. New revision: "+result.ContentRevision, openapi.ProblemLines(result.Problems))
	}
	rejection := result.Error
	if rejection == nil { // the gateway always says why
		rejection = &openapi.Rejection{Code: "unknown", Reason: "no reason was given"}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "REJECTED (%s", rejection.Code)
	if rejection.OpIndex != nil {
		fmt.Fprintf(&text, " at op %d", *rejection.OpIndex)
	}
	fmt.Fprintf(&text, "): %s", rejection.Reason)
	return text.String()
}
