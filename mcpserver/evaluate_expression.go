package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

type evaluateInput struct {
	Expression string         `json:"expression" jsonschema:"the text of the CEL expression"`
	Scope      string         `json:"scope" jsonschema:"its place in the workflow: edge-condition, action-input, human-task-title, correlation-subscription-key, correlation-event-key, receive-event-match or receive-event-output"`
	EventID    string         `json:"eventId,omitempty" jsonschema:"id of a real event that the expression shall see"`
	Context    map[string]any `json:"context,omitempty" jsonschema:"the variable context that the expression shall see"`
}

func (t toolbox) addEvaluateExpression(server *mcp.Server) {
	add(t, server, &mcp.Tool{
		Name: "evaluate_expression",
		Description: "Evaluate a CEL expression exactly as a run would, with the context and the event given. " +
			"Check every expression before it goes into the workflow.",
		Annotations: readOnly(),
	}, t.evaluateExpression)
}

func (t toolbox) evaluateExpression(ctx context.Context, input evaluateInput) (string, error) {
	evaluation := openapi.Evaluation{Expression: input.Expression, Scope: input.Scope}
	var err error
	if input.EventID != "" {
		if evaluation.EventID, err = json.Marshal(input.EventID); err != nil {
			return "", fmt.Errorf("encode event id: %w", err)
		}
	}
	if input.Context != nil {
		if evaluation.Context, err = json.Marshal(input.Context); err != nil {
			return "", fmt.Errorf("encode context: %w", err)
		}
	}
	result, err := t.gateway.EvaluateExpression(ctx, evaluation)
	if err != nil {
		return "", err
	}
	if !result.Ok {
		return "ERROR: " + result.Error, nil
	}
	return fmt.Sprintf("OK (%s): %s", result.ValueType, result.ValueJSON), nil
}
