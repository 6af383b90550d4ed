package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/journal/store"
	"github.com/apitomy/axiom-operator/internal/template"
)

const defaultTurnTimeout = 30 * time.Minute

// GetSession tells a runner how to set its agent up.
func (s *Server) GetSession(ctx context.Context, _ server.GetSessionRequestObject) (server.GetSessionResponseObject, error) {
	session := callerOf(ctx).session
	spec, err := s.templateOf(ctx, session)
	if err != nil {
		return nil, err
	}
	position, err := s.journals.Position(ctx, session)
	if err != nil && !errors.Is(err, store.ErrDamaged) { // an agent works without a journal, too
		return nil, fmt.Errorf("read journal position: %w", err)
	}
	return server.GetSession200JSONResponse{
		SystemPrompt:     spec.SystemPrompt,
		AllowedTools:     notNil(spec.AllowedTools),
		ToolNamePatterns: notNil(spec.ToolNamePatterns),
		MCPServers:       serversOf(spec),
		PermissionPolicy: permissionPolicyOf(session),
		TurnTimeout:      turnTimeoutOf(session).String(),
		Capabilities:     notNil(session.Status.Capabilities),
		RunnerSequence:   position.In(session.Status.Attempt),
		Role:             openapi.SessionRole(session.Spec.Role),
	}, nil
}

func serversOf(spec api.SessionTemplateSpec) []openapi.MCPServer {
	servers := make([]openapi.MCPServer, 0, len(spec.MCPServers))
	for _, s := range template.Servers(spec) {
		servers = append(servers, openapi.MCPServer{Name: s.Name, URL: s.URL})
	}
	return servers
}

// permissionPolicyOf: agents inside runs have no tools, so that nothing they do
// can escape the run's admission.
func permissionPolicyOf(session *api.AgentSession) openapi.PermissionPolicy {
	if session.Spec.RunRef != nil {
		return openapi.PermissionPolicyRefuse
	}
	return openapi.PermissionPolicyAllowlist
}

func turnTimeoutOf(session *api.AgentSession) time.Duration {
	if session.Spec.TurnTimeout == nil {
		return defaultTurnTimeout
	}
	return session.Spec.TurnTimeout.Duration
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
