package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SubjectKind is a kind of object that a session may be about.
// +kubebuilder:validation:Enum=ActionType;AgentSession;Composition;HumanTask;SessionTemplate;StreamEvent;Tool;Turn;WorkflowRun
type SubjectKind string

// Subject is the object of this group, in the session's namespace, that a
// session is about. Its manifest precedes the first prompt.
type Subject struct {
	// kind of the object.
	// +required
	Kind SubjectKind `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// AgentSessionSpec is one agent conversation.
// +kubebuilder:validation:XValidation:rule="!(has(self.compositionRef) && has(self.runRef))",message="at most one of `compositionRef` and `runRef` may be set"
// +kubebuilder:validation:XValidation:rule="has(self.compositionRef) == has(oldSelf.compositionRef) && has(self.runRef) == has(oldSelf.runRef)",message="`compositionRef` and `runRef` must not change"
// +kubebuilder:validation:XValidation:rule="has(self.subject) == has(oldSelf.subject)",message="`subject` must not change",fieldPath=".subject"
// +kubebuilder:validation:XValidation:rule="has(self.role) == has(oldSelf.role)",message="`role` must not change"
// +kubebuilder:validation:XValidation:rule="!has(self.role) || has(self.runRef)",message="`role` may be set with `runRef` only",fieldPath=".role"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.stopped) || !oldSelf.stopped || (has(self.stopped) && self.stopped)",message="`stopped` must stay true once it is",fieldPath=".stopped"
type AgentSessionSpec struct {
	// templateRef names a built-in or a SessionTemplate of the namespace.
	// +required
	TemplateRef LocalRef `json:"templateRef"`

	// compositionRef binds the session to a composition; only the operator sets it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`compositionRef` must not change"
	CompositionRef *LocalRef `json:"compositionRef,omitempty"`

	// runRef binds the session to a run; only the operator sets it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`runRef` must not change"
	RunRef *LocalRef `json:"runRef,omitempty"`

	// role Prompt: the session takes the prompts of a supervised run; only the
	// operator sets it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`role` must not change"
	Role SessionRole `json:"role,omitempty"`

	// subject is what the conversation is about.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`subject` must not change"
	Subject *Subject `json:"subject,omitempty"`

	// runtime of the agent's pod; unset members come from the template.
	// +optional
	Runtime RuntimeSpec `json:"runtime,omitzero"`

	// modelSecretRef names a labelled Secret whose keys become the agent's environment.
	// +optional
	ModelSecretRef *LocalRef `json:"modelSecretRef,omitempty"`

	// egress lists the only ways out of the pod besides the gateway and DNS.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Egress []EgressRule `json:"egress,omitempty"`

	// turnTimeout ends a turn that works longer; 30m by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="`turnTimeout` must be a duration such as '30m', and must be positive"
	TurnTimeout *metav1.Duration `json:"turnTimeout,omitempty"`

	// idleTimeout suspends an idle session; 30m by default, 0s never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="`idleTimeout` must be a duration such as '30m', and must not be negative"
	IdleTimeout *metav1.Duration `json:"idleTimeout,omitempty"`

	// stopped ends the session for good: pod and token go, the journal stays.
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// suspended takes pod and token away until the next prompt is queued; only the
	// operator sets it.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// SessionPhase of an agent session.
// +kubebuilder:validation:Enum=Pending;Starting;Ready;Working;Suspended;Failed;Stopped
type SessionPhase string

// Phases of an agent session.
const (
	SessionPending   SessionPhase = "Pending"
	SessionStarting  SessionPhase = "Starting"
	SessionReady     SessionPhase = "Ready"
	SessionWorking   SessionPhase = "Working"
	SessionSuspended SessionPhase = "Suspended"
	SessionFailed    SessionPhase = "Failed"
	SessionStopped   SessionPhase = "Stopped"
)

// PromptState of a session's prompt.
// +kubebuilder:validation:Enum=Queued;Delivered;Lost;Done
type PromptState string

// States of a prompt.
const (
	// PromptQueued: no runner acknowledged it yet.
	PromptQueued PromptState = "Queued"
	// PromptDelivered: a runner acknowledged it and the agent works.
	PromptDelivered PromptState = "Delivered"
	// PromptLost: the pod that acknowledged it is gone; the turn decides whether
	// it is queued again.
	PromptLost PromptState = "Lost"
	// PromptDone: its result is recorded.
	PromptDone PromptState = "Done"
)

// PromptOutcome is how a prompt ended.
// +kubebuilder:validation:Enum=Completed;Interrupted;Failed
type PromptOutcome string

// Outcomes of a prompt.
const (
	OutcomeCompleted   PromptOutcome = "Completed"
	OutcomeInterrupted PromptOutcome = "Interrupted"
	OutcomeFailed      PromptOutcome = "Failed"
)

// PromptResult is what the runner reported of a prompt.
type PromptResult struct {
	// outcome of the prompt.
	// +required
	Outcome PromptOutcome `json:"outcome"`

	// stopReason of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	StopReason string `json:"stopReason,omitempty"`

	// code of a failure that the operator found itself.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code,omitempty"`

	// detail of a failure.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Detail string `json:"detail,omitempty"`

	// reply is the agent's last text, unless it is kept by ref.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Reply string `json:"reply,omitempty"`

	// replyRef points to the reply when it is larger than 4 KiB.
	// +optional
	ReplyRef *ContentRef `json:"replyRef,omitempty"`

	// usage of the prompt.
	// +optional
	Usage *Usage `json:"usage,omitempty"`
}

// SessionPrompt is the prompt that a session works on, or worked on last.
type SessionPrompt struct {
	// sequence numbers the session's prompts, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`

	// id is the turn's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`

	// turnUID is the turn's UID; another turn of that name has another prompt.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TurnUID string `json:"turnUID,omitempty"`

	// ref points to the text.
	// +required
	Ref ContentRef `json:"ref"`

	// state of the prompt.
	// +required
	State PromptState `json:"state"`

	// attempt is the pod that acknowledged it.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// queuedAt is when it was queued last; the agent's start is measured from it.
	// +optional
	QueuedAt *metav1.Time `json:"queuedAt,omitempty"`

	// restarts counts how often the prompt was queued again after a loss.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`

	// effect is true once the agent drafted a library item for this prompt: it is
	// not given to another pod then.
	// +optional
	Effect bool `json:"effect,omitempty"`

	// newConversation makes the agent forget the conversation first.
	// +optional
	NewConversation bool `json:"newConversation,omitempty"`

	// cancel asks the agent to stop.
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// cancelledAt is when it was asked; an agent that goes on loses its pod.
	// +optional
	CancelledAt *metav1.Time `json:"cancelledAt,omitempty"`

	// result once it is done.
	// +optional
	Result *PromptResult `json:"result,omitempty"`
}

// SessionJournal tells which part of a session's journal is kept.
type SessionJournal struct {
	// chunks that are stored.
	// +optional
	Chunks int32 `json:"chunks,omitempty"`

	// firstSeq is the number of the oldest event that is kept.
	// +optional
	FirstSeq int64 `json:"firstSeq,omitempty"`

	// lastSeq is the number of the newest event.
	// +optional
	LastSeq int64 `json:"lastSeq,omitempty"`
}

// AppliedItem tells who put a draft into the library.
type AppliedItem struct {
	// by is the user.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by"`

	// at is when.
	// +required
	At metav1.Time `json:"at"`

	// resourceVersion of the library object after it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// SessionItem is a library object that an agent drafts.
type SessionItem struct {
	// type of the item; never a workflow.
	// +required
	Type ItemType `json:"type"`

	// name of the item.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// contentRevision names the draft's content.
	// +required
	// +kubebuilder:validation:MaxLength=71
	ContentRevision string `json:"contentRevision"`

	// digest of the stored content: canonical JSON, owned by the session.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`

	// base is the resource version of the library object of that name when the
	// draft was first put; empty: there was none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Base string `json:"base,omitempty"`

	// valid is true when the draft has no error.
	// +required
	Valid bool `json:"valid"`

	// problems of the draft, errors first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Problems []Problem `json:"problems,omitempty"`

	// applied tells who put the draft into the library; absent until somebody does.
	// +optional
	Applied *AppliedItem `json:"applied,omitempty"`
}

// AgentSessionStatus is what the operator and the gateway know of a session.
type AgentSessionStatus struct {
	// conditions: Ready, PodReady, WithinLimit; of role Prompt also SessionRefused
	// and SessionRecapped.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase, for people.
	// +optional
	Phase SessionPhase `json:"phase,omitempty"`

	// capabilities of the session, sorted; always present once observed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Capabilities []string `json:"capabilities"`

	// attempt counts pods so far.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// failedStarts counts pods in a row that ended before they were ready.
	// +optional
	FailedStarts int32 `json:"failedStarts,omitempty"`

	// tokenHash is the SHA-256 of the live pod's token; absent without one.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	TokenHash string `json:"tokenHash,omitempty"`

	// podUID is the UID of the live attempt's pod once it was seen; a pod that was
	// seen and is missing is lost.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`

	// readyAttempt is the newest pod whose runner announced an initialised agent.
	// +optional
	ReadyAttempt int32 `json:"readyAttempt,omitempty"`

	// currentTurn works in this session.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CurrentTurn string `json:"currentTurn,omitempty"`

	// agentSession is the conversation that a session of role Prompt is held to;
	// absent before the first.
	// +optional
	AgentSession *AgentConversation `json:"agentSession,omitempty"`

	// prompt that the session works on, or worked on last.
	// +optional
	Prompt *SessionPrompt `json:"prompt,omitempty"`

	// lastFailure tells why the latest pod was lost or could not start.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	LastFailure string `json:"lastFailure,omitempty"`

	// recapPending: the next prompt tells the agent what was said before its pod
	// began.
	// +optional
	RecapPending bool `json:"recapPending,omitempty"`

	// journal of the session; absent while nothing was said.
	// +optional
	Journal *SessionJournal `json:"journal,omitempty"`

	// items that the agent drafts for the library.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Items []SessionItem `json:"items,omitempty"`

	// usage over all pods.
	// +optional
	Usage *Usage `json:"usage,omitempty"`

	// startedAt is when the live attempt began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// lastActivityAt is the last sign of the agent, at most one write a minute.
	// +optional
	LastActivityAt *metav1.Time `json:"lastActivityAt,omitempty"`

	// lastHeartbeatAt is when the runner last said that it is alive while a prompt
	// was outstanding, at most one write a minute; a runner that falls silent is
	// lost.
	// +optional
	LastHeartbeatAt *metav1.Time `json:"lastHeartbeatAt,omitempty"`
}

// AgentSession is one agent conversation: a pod, a token and what was said.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=as,categories=axiom
// +kubebuilder:selectablefield:JSONPath=`.status.tokenHash`
// +kubebuilder:printcolumn:name="For",type=string,JSONPath=`.spec['compositionRef','runRef'].name`,description="The composition or run it belongs to"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Turn",type=string,JSONPath=`.status.currentTurn`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.attempt`,description="Pods so far"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AgentSession struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the session.
	// +required
	Spec AgentSessionSpec `json:"spec"`

	// status is what is known of it.
	// +optional
	Status AgentSessionStatus `json:"status,omitzero"`
}

// AgentSessionList is a list of agent sessions.
// +kubebuilder:object:root=true
type AgentSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentSession `json:"items"`
}
