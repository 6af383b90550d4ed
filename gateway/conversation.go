package gateway

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/continuity"
)

// maxConversationID bounds the id of a conversation, in characters.
const maxConversationID = 256

// refusals say what a reason means to people.
var refusals = map[string]string{
	api.ReasonLoadUnsupported: "the agent cannot take conversations up again",
	api.ReasonSessionLost:     "the agent does not know the conversation any more",
	api.ReasonSessionDiffers:  "the agent took another conversation up",
	api.ReasonVolumeLost:      "the agent's home is not the one of the conversation",
	api.ReasonPolicyChanged:   "role, image, command, model, instructions or continuity of the agent changed",
}

// OpenConversation decides which conversation a new pod's agent shall have.
func (s *Server) OpenConversation(ctx context.Context, request server.OpenConversationRequestObject) (server.OpenConversationResponseObject, error) {
	who := callerOf(ctx)
	if err := takesPrompts(who.session); err != nil {
		return nil, err
	}
	if failed := request.Body.Failed; failed != "" && !failed.Valid() {
		return nil, invalid("failed must be SessionLost or SessionDiffers")
	}
	agent, err := s.agent(ctx, who.session)
	if err != nil {
		return nil, err
	}
	present := continuity.Present{
		CanLoad: request.Body.CanLoad, Home: request.Body.Home, Policy: agent.digest, Failed: string(request.Body.Failed),
	}
	var answer openapi.Conversation
	err = s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		decision := continuity.Decide(status.AgentSession, present, agent.continuity)
		answer = answerOf(decision, status.AgentSession)
		return recordDecision(status, decision, who.session.Generation), nil
	})
	if err != nil {
		return nil, err
	}
	return server.OpenConversation200JSONResponse(answer), nil
}

func takesPrompts(session *api.AgentSession) error {
	if session.Spec.Role != api.RolePrompt {
		return conflict("Only sessions of role %s are held to a conversation", api.RolePrompt)
	}
	return nil
}

func answerOf(decision continuity.Decision, committed *api.AgentConversation) openapi.Conversation {
	switch decision.Action {
	case continuity.Begin:
		return openapi.Conversation{Action: openapi.ConversationActionBegin}
	case continuity.Load:
		return openapi.Conversation{Action: openapi.ConversationActionLoad, ID: committed.ID}
	default:
		return openapi.Conversation{Action: openapi.ConversationActionRefuse, Reason: decision.Reason}
	}
}

// recordDecision notes what a decision means for the session, and tells whether
// that is news.
func recordDecision(status *api.AgentSessionStatus, decision continuity.Decision, generation int64) (changed bool) {
	set := func(kind string, is metav1.ConditionStatus, reason, message string) bool {
		return apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: message, ObservedGeneration: generation,
		})
	}
	if decision.Action == continuity.Refuse {
		changed = set(api.ConditionSessionRefused, metav1.ConditionTrue, decision.Reason, refusals[decision.Reason])
		return failPrompt(status, api.CodeSessionRefused, decision.Reason+": "+refusals[decision.Reason]) || changed
	}
	if apimeta.FindStatusCondition(status.Conditions, api.ConditionSessionRefused) != nil {
		changed = set(api.ConditionSessionRefused, metav1.ConditionFalse, api.ReasonContinued, "")
	}
	if decision.Action == continuity.Begin && status.AgentSession != nil {
		// What was committed is let go of first: from here on any pod begins anew,
		// and tells its agent what was said, until one has answered.
		status.AgentSession, status.RecapPending = nil, true
		set(api.ConditionSessionRecapped, metav1.ConditionTrue, decision.Reason, refusals[decision.Reason])
		return true
	}
	return changed
}

// failPrompt ends the prompt that waits for an answer, and tells whether there
// was one.
func failPrompt(status *api.AgentSessionStatus, code, detail string) bool {
	prompt := status.Prompt
	if prompt == nil || prompt.State == api.PromptDone {
		return false
	}
	prompt.State, prompt.Attempt = api.PromptDone, status.Attempt
	prompt.Result = failedResult(code, detail)
	return true
}

func failedResult(code, detail string) *api.PromptResult {
	return &api.PromptResult{Outcome: api.OutcomeFailed, Code: code, Detail: cut(detail, maxFailure)}
}

// CommitConversation holds the session to the conversation that its agent began.
func (s *Server) CommitConversation(ctx context.Context, request server.CommitConversationRequestObject) (server.CommitConversationResponseObject, error) {
	who := callerOf(ctx)
	if err := takesPrompts(who.session); err != nil {
		return nil, err
	}
	id := request.Body.ID
	if !isConversationID(id) {
		return nil, invalid("id must have 1 to %d printable characters", maxConversationID)
	}
	if finding := s.secretIn(id); finding != "" {
		return nil, s.denyConversation(ctx, who, finding)
	}
	agent, err := s.agent(ctx, who.session)
	if err != nil {
		return nil, err
	}
	now := metav1.NewTime(s.clock.Now()).Rfc3339Copy()
	err = s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		switch committed := status.AgentSession; {
		case committed == nil:
			status.AgentSession = &api.AgentConversation{ID: id, PolicyDigest: agent.digest, Attempt: status.Attempt, CommittedAt: now}
			return true, nil
		case committed.ID != id:
			return false, conflict("The session is held to another conversation")
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return server.CommitConversation204Response{}, nil
}

func isConversationID(id string) bool {
	isOdd := func(r rune) bool { return !unicode.IsPrint(r) }
	return id != "" && utf8.ValidString(id) && utf8.RuneCountInString(id) <= maxConversationID && !strings.ContainsFunc(id, isOdd)
}

// denyConversation ends the prompt of an agent whose conversation has a name that
// must not be kept.
func (s *Server) denyConversation(ctx context.Context, who caller, finding string) error {
	err := s.updateSession(ctx, who, func(status *api.AgentSessionStatus) (bool, error) {
		return failPrompt(status, api.CodeSecretDetected, finding), nil
	})
	if err != nil {
		return err
	}
	return unprocessable("id: " + finding)
}
