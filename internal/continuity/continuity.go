// Package continuity decides whether an agent may go on with the conversation
// that its session is held to. It knows what was committed and what is the case
// now; it knows nothing of pods, volumes or protocols.
package continuity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Policy is what an agent is. A conversation is with one agent: another one
// would read its past as its own.
type Policy struct {
	// Role of the session.
	Role api.SessionRole
	// ImageDigest of the agent's image, `sha256:` and 64 hex digits.
	ImageDigest string
	// Command that starts the agent, with its arguments.
	Command []string
	// Model is the environment in which the agent chooses its model: literal values,
	// and for those of Secrets where they are.
	Model map[string]string
	// Instructions that go ahead of the first prompt.
	Instructions string
	// Continuity of the session's template; empty is Strict.
	Continuity api.Continuity
}

// Digest of the policy's canonical form, `sha256:` and 64 hex digits.
func (p Policy) Digest() (string, error) {
	command := make([]any, len(p.Command))
	for i, word := range p.Command {
		command[i] = word
	}
	model := make(map[string]any, len(p.Model))
	for name, value := range p.Model {
		model[name] = value
	}
	if p.Continuity == "" {
		p.Continuity = api.ContinuityStrict
	}
	data, err := jsonvalue.Canonical(map[string]any{
		"role": string(p.Role), "imageDigest": p.ImageDigest, "command": command, "model": model,
		"instructionsDigest": digestOf([]byte(p.Instructions)), "continuity": string(p.Continuity),
	})
	if err != nil {
		return "", fmt.Errorf("encode policy: %w", err)
	}
	return digestOf(data), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Present is what a new pod finds.
type Present struct {
	// CanLoad tells whether the agent can take conversations up again.
	CanLoad bool
	// Home is the id of the conversation that the agent's home belongs to; empty if
	// it belongs to none.
	Home string
	// Policy is the digest of the present policy.
	Policy string
	// Failed is why the agent did not take the conversation up: ReasonSessionLost,
	// ReasonSessionDiffers, or empty if it was not asked to yet.
	Failed string
}

// Action is what a pod's runner has to do.
type Action int

const (
	// Begin a new conversation.
	Begin Action = iota
	// Load the one that was committed.
	Load
	// Refuse the prompt: nothing may be said.
	Refuse
)

// Decision on a conversation.
type Decision struct {
	Action Action
	// Reason of a refusal, or of a new conversation in the place of the one that
	// was committed; else empty.
	Reason string
}

// Decide about a session that is held to the conversation, nil before the first.
func Decide(committed *api.AgentConversation, now Present, mode api.Continuity) Decision {
	reason := obstacle(committed, now)
	switch {
	case reason == "" && committed == nil:
		return Decision{Action: Begin}
	case reason == "":
		return Decision{Action: Load}
	case mode == api.ContinuityRecap:
		return Decision{Action: Begin, Reason: reason}
	}
	return Decision{Action: Refuse, Reason: reason}
}

// obstacle is what keeps a conversation from going on, or a first one from
// beginning, which must be one that can go on later.
func obstacle(committed *api.AgentConversation, now Present) string {
	switch {
	case committed == nil && !now.CanLoad:
		return api.ReasonLoadUnsupported
	case committed == nil:
		return ""
	case now.Policy != committed.PolicyDigest:
		return api.ReasonPolicyChanged
	case now.Home != committed.ID:
		return api.ReasonVolumeLost
	case !now.CanLoad:
		return api.ReasonLoadUnsupported
	}
	return now.Failed
}
