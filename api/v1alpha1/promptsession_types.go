package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SessionRole is what sessions are for that do not serve people.
// +kubebuilder:validation:Enum=Prompt
type SessionRole string

// RolePrompt is for the prompts of supervised runs: the agent answers them and does
// nothing else; it has no tools and sees no files but its own.
const RolePrompt SessionRole = "Prompt"

// Continuity says what becomes of a conversation that cannot be taken up again.
// +kubebuilder:validation:Enum=Strict;Recap
type Continuity string

const (
	// ContinuityStrict has the prompt refused. It is the default.
	ContinuityStrict Continuity = "Strict"
	// ContinuityRecap has another conversation begin with what was said before.
	ContinuityRecap Continuity = "Recap"
)

// Reasons why a conversation cannot be taken up, or cannot begin.
const (
	// ReasonLoadUnsupported: the agent cannot take conversations up again.
	ReasonLoadUnsupported = "LoadUnsupported"
	// ReasonSessionLost: the agent does not know the conversation any more.
	ReasonSessionLost = "SessionLost"
	// ReasonSessionDiffers: the agent took another conversation up.
	ReasonSessionDiffers = "SessionDiffers"
	// ReasonVolumeLost: the agent's home is not the one of the conversation.
	ReasonVolumeLost = "VolumeLost"
	// ReasonPolicyChanged: agent, model or instructions are not those of the
	// conversation.
	ReasonPolicyChanged = "PolicyChanged"
	// ReasonContinued: the conversation goes on.
	ReasonContinued = "Continued"
)

// AgentConversation is the conversation that a session is held to, committed
// before the first thing is said in it.
type AgentConversation struct {
	// id that the agent gave it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id"`

	// policyDigest is that of role, image, command, model, instructions and
	// continuity as they were then.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	PolicyDigest string `json:"policyDigest"`

	// attempt is the pod in which it began.
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt"`

	// committedAt is when.
	// +required
	CommittedAt metav1.Time `json:"committedAt"`
}

// Codes of prompts of supervised runs that fail without the agent's doing.
const (
	// CodeSessionRefused: the conversation could not be taken up; nothing was said.
	CodeSessionRefused = "SESSION_REFUSED"
	// CodeSecretDetected: the agent's words held a secret; nothing of them is kept.
	CodeSecretDetected = "SECRET_DETECTED"
)
