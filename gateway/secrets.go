package gateway

import (
	"encoding/json"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// secretIn returns rule and place of the first secret in the texts, empty if there
// is none. A text that is JSON is also looked at as the value that it stands for:
// an escape hides nothing.
func (s *Server) secretIn(texts ...string) string {
	for _, text := range texts {
		if hit := s.scanner.Text(text); hit != nil {
			return hit.String()
		}
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			continue
		}
		if hit := s.scanner.Value(value); hit != nil {
			return hit.String()
		}
	}
	return ""
}

// gateResult makes a failure of a result with a secret in it, of which nothing is
// kept. The texts of sessions for people are theirs.
func (s *Server) gateResult(session *api.AgentSession, result *api.PromptResult, reply string) (*api.PromptResult, string) {
	if session.Spec.Role != api.RolePrompt {
		return result, reply
	}
	if finding := s.secretIn(reply, result.Detail, result.StopReason); finding != "" {
		return failedResult(api.CodeSecretDetected, finding), ""
	}
	return result, reply
}

// typesOfPrompts are the events that a session of role Prompt keeps by name.
var typesOfPrompts = map[string]bool{
	journal.TypeSessionInit: true, journal.TypeSessionEnded: true, journal.TypeAssistantText: true,
	"thinking": true, "plan": true, "tool_use": true, "tool_progress": true, "tool_result": true,
	"permission_request": true, "permission_resolved": true, "turn_complete": true, "session_error": true,
}

// otherEvent stands for all others.
const otherEvent = "unhandled_event"

// withoutTexts leaves of events what happened and when, and no word of the agent:
// what it says is kept as the reply of a turn, behind the gate, or not at all.
func withoutTexts(batch []journal.Entry) []journal.Entry {
	for i := range batch {
		event := &batch[i].Event
		if !typesOfPrompts[event.Type] {
			event.Type = otherEvent
		}
		kept := map[string]any{}
		for name, value := range event.Data {
			switch value.(type) {
			case bool, int64, float64, json.Number:
				kept[name] = value
			}
		}
		event.Data = kept
	}
	return batch
}
