package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// EvaluateExpression evaluates an expression for somebody who is writing it.
func (s *Server) EvaluateExpression(
	ctx context.Context, request server.EvaluateExpressionRequestObject,
) (server.EvaluateExpressionResponseObject, error) {
	scope, known := expression.ParseScope(request.Body.Scope)
	switch {
	case strings.TrimSpace(request.Body.Expression) == "":
		return nil, invalid("The expression is blank")
	case !known:
		return nil, invalid("Unknown scope; use one of %s", scopeNames())
	}
	asked, err := s.variables(ctx, callerOf(ctx).namespace, request.Body)
	if unusable, ok := errors.AsType[*unusableError](err); ok {
		return server.EvaluateExpression200JSONResponse{Error: unusable.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	asked.Expression, asked.Scope = request.Body.Expression, scope
	result := expression.Evaluate(ctx, s.expressions, asked)
	return server.EvaluateExpression200JSONResponse{
		Ok: result.OK, ValueJSON: result.ValueJSON, ValueType: openapi.ValueType(result.ValueType), Error: result.Error,
	}, nil
}

func scopeNames() string {
	var names []string
	for _, scope := range expression.Scopes() {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// unusableError reports a variable that is not fit for evaluation. That is an
// answer, not a failure of the request.
type unusableError struct{ reason string }

// Error implements error.
func (e *unusableError) Error() string { return e.reason }

// variables are what the expression shall see.
func (s *Server) variables(ctx context.Context, namespace string, body *openapi.Evaluation) (expression.Request, error) {
	values, err := decodeOptional(body.Context)
	if err != nil {
		return expression.Request{}, &unusableError{fmt.Sprintf("context cannot be read: %s", err)}
	}
	id, err := decodeOptional(body.EventID)
	if err != nil || id == nil {
		return expression.Request{Context: values}, err
	}
	event, err := s.event(ctx, namespace, id)
	if err != nil {
		return expression.Request{}, err
	}
	return expression.Request{Context: values, Event: event}, nil
}

// decodeOptional decodes a member that may be absent or null.
func decodeOptional(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	return jsonvalue.Decode(raw)
}

// event returns the map of the event with the id, which may be any JSON value.
func (s *Server) event(ctx context.Context, namespace string, id any) (map[string]any, error) {
	name, isText := id.(string)
	if !isText || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, &unusableError{"eventId is not the id of an event"}
	}
	event := &api.StreamEvent{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, event)
	if apierrors.IsNotFound(err) {
		return nil, &unusableError{fmt.Sprintf("event %s not found", name)}
	}
	if err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	return streamevent.Map(event)
}
