package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Resolution is a person's decision on a finished turn.
// +kubebuilder:validation:Enum=Applied;Accepted;Rejected;Stale
type Resolution string

// Resolutions.
const (
	// ResolutionApplied: the client applied the change set itself.
	ResolutionApplied Resolution = "Applied"
	// ResolutionAccepted: the operator shall apply it.
	ResolutionAccepted Resolution = "Accepted"
	// ResolutionRejected: it shall not be applied.
	ResolutionRejected Resolution = "Rejected"
	// ResolutionStale: the client could not apply it.
	ResolutionStale Resolution = "Stale"
)

// Selection is what the person was looking at.
type Selection struct {
	// nodes selected, by id.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=1024
	Nodes []string `json:"nodes,omitempty"`

	// edges selected, by id.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=1024
	Edges []string `json:"edges,omitempty"`
}

// PromptRun names the run that asks.
type PromptRun struct {
	// name of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
}

// RunPrompt is what a run asks an agent. Its texts are kept as content.
type RunPrompt struct {
	// runRef names the run.
	// +required
	RunRef PromptRun `json:"runRef"`

	// activation of the run that asks, such as `assess#1`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Activation string `json:"activation"`

	// attempt of the activation, from 1; absent where activations have none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// repair numbers the requests to correct the form of a reply; 0 is the prompt itself.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	Repair int32 `json:"repair,omitempty"`

	// message points to the text.
	// +required
	Message ContentRef `json:"message"`

	// contract points to what the reply must be; absent: any text.
	// +optional
	Contract *ContentRef `json:"contract,omitempty"`

	// deadline is the last moment for the reply, whatever the session allows a turn;
	// absent: what it allows.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// TurnSpec is one message to an agent, and later what a person decides about its outcome.
// +kubebuilder:validation:XValidation:rule="has(self.compositionRef) != has(self.sessionRef)",message="exactly one of `compositionRef` and `sessionRef` must be set"
// +kubebuilder:validation:XValidation:rule="has(self.message) != has(self.prompt)",message="exactly one of `message` and `prompt` must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.prompt) || has(self.sessionRef)",message="`prompt` may be set for sessions only",fieldPath=".prompt"
// +kubebuilder:validation:XValidation:rule="has(self.prompt) == has(oldSelf.prompt)",message="`prompt` must not change",fieldPath=".prompt"
// +kubebuilder:validation:XValidation:rule="has(self.compositionRef) == has(oldSelf.compositionRef) && has(self.sessionRef) == has(oldSelf.sessionRef)",message="`compositionRef` and `sessionRef` must not change"
// +kubebuilder:validation:XValidation:rule="has(self.selection) == has(oldSelf.selection)",message="`selection` must not change",fieldPath=".selection"
// +kubebuilder:validation:XValidation:rule="has(self.retryOf) == has(oldSelf.retryOf)",message="`retryOf` must not change",fieldPath=".retryOf"
// +kubebuilder:validation:XValidation:rule="(has(self.newConversation) && self.newConversation) == (has(oldSelf.newConversation) && oldSelf.newConversation)",message="`newConversation` must not change",fieldPath=".newConversation"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.resolution) || has(self.resolution)",message="`resolution` must not be cleared once it is set",fieldPath=".resolution"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.interrupt) || !oldSelf.interrupt || (has(self.interrupt) && self.interrupt)",message="`interrupt` must stay true once it is",fieldPath=".interrupt"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.undo) || !oldSelf.undo || (has(self.undo) && self.undo)",message="`undo` must stay true once it is",fieldPath=".undo"
type TurnSpec struct {
	// compositionRef names the composition that the agent shall work on.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`compositionRef` must not change"
	CompositionRef *LocalRef `json:"compositionRef,omitempty"`

	// sessionRef names a free-standing session that shall be asked.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`sessionRef` must not change"
	SessionRef *LocalRef `json:"sessionRef,omitempty"`

	// message to the agent, passed on byte for byte.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`message` must not change"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^\\\\s]')",message="`message` must not be blank"
	Message string `json:"message,omitempty"`

	// prompt is what a run asks; only the operator sets it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`prompt` must not change"
	Prompt *RunPrompt `json:"prompt,omitempty"`

	// selection is what the person was looking at.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`selection` must not change"
	Selection *Selection `json:"selection,omitempty"`

	// newConversation makes the agent forget the conversation first.
	// +optional
	NewConversation bool `json:"newConversation,omitempty"`

	// resolution is a person's decision, once.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`resolution` must not change once it is set"
	Resolution Resolution `json:"resolution,omitempty"`

	// interrupt asks the agent to stop; what was accepted is kept.
	// +optional
	Interrupt bool `json:"interrupt,omitempty"`

	// undo takes the turn's changes back.
	// +optional
	Undo bool `json:"undo,omitempty"`

	// retryOf names the stale turn that this one repeats; only the operator sets it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`retryOf` must not change"
	RetryOf string `json:"retryOf,omitempty"`
}

// TurnPhase is the state of a turn.
// +kubebuilder:validation:Enum=Pending;Working;AwaitingResolution;Completed;Applied;Rejected;Stale;Failed;Refused;Cancelled;Undone
type TurnPhase string

// States of a turn.
const (
	TurnPending            TurnPhase = "Pending"
	TurnWorking            TurnPhase = "Working"
	TurnAwaitingResolution TurnPhase = "AwaitingResolution"
	TurnCompleted          TurnPhase = "Completed"
	TurnApplied            TurnPhase = "Applied"
	TurnRejected           TurnPhase = "Rejected"
	TurnStale              TurnPhase = "Stale"
	TurnFailed             TurnPhase = "Failed"
	TurnRefused            TurnPhase = "Refused"
	TurnCancelled          TurnPhase = "Cancelled"
	TurnUndone             TurnPhase = "Undone"
)

// AcceptedChangeSet is a change set that entered the working workflow.
type AcceptedChangeSet struct {
	// id chosen by the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ID string `json:"id,omitempty"`

	// ops is the number of operations.
	// +optional
	Ops int32 `json:"ops,omitempty"`

	// revision of the working workflow after it.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Revision string `json:"revision"`

	// content is the change set itself, unless it is kept by ref.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Content *runtime.RawExtension `json:"content,omitempty"`

	// ref points to the change set when it is larger than 4 KiB.
	// +optional
	Ref *ContentRef `json:"ref,omitempty"`
}

// ItemAction is what a turn did to an item.
// +kubebuilder:validation:Enum=Created;Updated;Removed
type ItemAction string

// Item actions.
const (
	ItemCreated ItemAction = "Created"
	ItemUpdated ItemAction = "Updated"
	ItemRemoved ItemAction = "Removed"
)

// ItemWriteState tells how far a turn's write of an item got.
// +kubebuilder:validation:Enum=Intended;Written
type ItemWriteState string

// States of an item's write.
const (
	// ItemIntended: nobody has confirmed that the draft holds it. A staged item
	// stays so until the operator accepts the turn.
	ItemIntended ItemWriteState = "Intended"
	// ItemWritten: the operator wrote it into the draft.
	ItemWritten ItemWriteState = "Written"
)

// ItemContent points to one content of an item.
type ItemContent struct {
	// revision names the content.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Revision string `json:"revision"`

	// digest of the stored content: JSON text, owned by the turn.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`
}

// ConfirmedWrite is an earlier write of a turn that is known to be in the draft.
type ConfirmedWrite struct {
	// action of the turn so far.
	// +required
	Action ItemAction `json:"action"`

	// after is what it left; absent after a removal.
	// +optional
	After *ItemContent `json:"after,omitempty"`
}

// ItemWrite is what a turn did to one item. There is one for each item: `before`
// is that of the first write, `after` that of the last.
type ItemWrite struct {
	// type of the item.
	// +required
	Type ItemType `json:"type"`

	// name of the item.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// action of the whole turn: an item that it created and then changed is created.
	// +required
	Action ItemAction `json:"action"`

	// before is the content ahead of the turn's first write; absent: there was none.
	// +optional
	Before *ItemContent `json:"before,omitempty"`

	// after is the content that the turn leaves; absent: the item is removed.
	// +optional
	After *ItemContent `json:"after,omitempty"`

	// staged items wait in the turn until it is accepted.
	// +optional
	Staged bool `json:"staged,omitempty"`

	// state of the last write.
	// +required
	State ItemWriteState `json:"state"`

	// replaces is the live revision that an intended direct write counts on; empty:
	// the item must not exist. Gone once the write is confirmed.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Replaces string `json:"replaces,omitempty"`

	// confirmed is the turn's write before an intended one; absent when that is
	// its first.
	// +optional
	Confirmed *ConfirmedWrite `json:"confirmed,omitempty"`
}

// UndoReport is what came of the wish to take a turn back. Items are written
// `<type>/<name>`, sorted.
type UndoReport struct {
	// restored items have the content again that they had ahead of the turn.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	Restored []string `json:"restored,omitempty"`

	// removed items did not exist ahead of the turn.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	Removed []string `json:"removed,omitempty"`

	// skipped items were edited after the turn.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=65
	// +kubebuilder:validation:items:MaxLength=320
	Skipped []string `json:"skipped,omitempty"`

	// forClient are items that a client wrote, which takes them back itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	ForClient []string `json:"forClient,omitempty"`

	// workflowBefore is the workflow ahead of the turn; absent when there was none,
	// or when the turn did not touch it.
	// +optional
	WorkflowBefore *ContentRef `json:"workflowBefore,omitempty"`

	// workflowRestorable is true when nobody edited the workflow after the turn.
	// +optional
	WorkflowRestorable bool `json:"workflowRestorable,omitempty"`

	// workflowRestored is true when the operator took the workflow back itself.
	// +optional
	WorkflowRestored bool `json:"workflowRestored,omitempty"`
}

// Usage sums what an agent used. Figures that were not reported are absent.
type Usage struct {
	// turns counted.
	// +optional
	Turns int64 `json:"turns,omitempty"`

	// inputTokens read by the model.
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`

	// outputTokens written by the model.
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`

	// costUSD in decimal notation.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	CostUSD string `json:"costUSD,omitempty"`

	// duration of the agent's work.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// TurnStatus is what came of a turn.
type TurnStatus struct {
	// conditions: Ready, Started, AgentDone, Resolved, Undone.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state, for people.
	// +optional
	State TurnPhase `json:"state,omitempty"`

	// detail explains a state that is not the ordinary one.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Detail string `json:"detail,omitempty"`

	// code names why the prompt of a run failed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code,omitempty"`

	// number of the turn among those of its composition, in the order in which
	// they started; none before the start.
	// +optional
	Number int64 `json:"number,omitempty"`

	// baseRevision of the workflow at the start; empty when there was none.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	BaseRevision string `json:"baseRevision,omitempty"`

	// base points to the workflow at the start.
	// +optional
	Base *ContentRef `json:"base,omitempty"`

	// workingRevision is the base with all accepted change sets.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	WorkingRevision string `json:"workingRevision,omitempty"`

	// changeSets accepted so far, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ChangeSets []AcceptedChangeSet `json:"changeSets,omitempty"`

	// ops counts the operations of the accepted change sets.
	// +optional
	Ops int32 `json:"ops,omitempty"`

	// rejectedProposals counts change sets that were refused.
	// +optional
	RejectedProposals int32 `json:"rejectedProposals,omitempty"`

	// changeSet is the turn's combined change set, unless it is kept by ref.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	ChangeSet *runtime.RawExtension `json:"changeSet,omitempty"`

	// changeSetRef points to the combined change set when it is larger than 4 KiB.
	// +optional
	ChangeSetRef *ContentRef `json:"changeSetRef,omitempty"`

	// resultRevision is the workflow's revision once the combined change set is applied.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ResultRevision string `json:"resultRevision,omitempty"`

	// diff tells people what the change set does.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Diff string `json:"diff,omitempty"`

	// itemPolicy that the turn works under: the composition's when it started.
	// +optional
	ItemPolicy ItemPolicy `json:"itemPolicy,omitempty"`

	// itemWrites are the items that the turn wrote or staged.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ItemWrites []ItemWrite `json:"itemWrites,omitempty"`

	// retry is the turn that repeats this one, which ended stale.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Retry string `json:"retry,omitempty"`

	// undo is what came of the wish to take the turn back.
	// +optional
	Undo *UndoReport `json:"undo,omitempty"`

	// problems of the working workflow when the agent ended.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Problems []Problem `json:"problems,omitempty"`

	// reply is the agent's last text, unless it is kept by ref.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Reply string `json:"reply,omitempty"`

	// replyRef points to the reply when it is larger than 4 KiB.
	// +optional
	ReplyRef *ContentRef `json:"replyRef,omitempty"`

	// notices are the operator's own words to the person.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=4096
	Notices []string `json:"notices,omitempty"`

	// postedNotices counts those of the notices that are in the session's journal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	PostedNotices int32 `json:"postedNotices,omitempty"`

	// prompt points to what was sent.
	// +optional
	Prompt *ContentRef `json:"prompt,omitempty"`

	// deliveries counts how often an agent got the prompt of a run; it gets it again
	// when its pod ends before the reply is stored.
	// +optional
	Deliveries int32 `json:"deliveries,omitempty"`

	// restarts counts pods that were replaced during the turn.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`

	// usage of this turn.
	// +optional
	Usage *Usage `json:"usage,omitempty"`

	// startedAt is when the turn claimed its target.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is when the agent's part ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// Turn is one message to an agent and what came of it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=axiom
// +kubebuilder:printcolumn:name="For",type=string,JSONPath=`.spec['compositionRef','sessionRef'].name`,description="The composition or session"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ops",type=integer,JSONPath=`.status.ops`,description="Operations of the accepted change sets"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= (has(self.spec.retryOf) ? 63 : 57)",message="`metadata.name` must be at most 57 characters"
type Turn struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the message and the decision.
	// +required
	Spec TurnSpec `json:"spec"`

	// status is what came of it.
	// +optional
	Status TurnStatus `json:"status,omitzero"`
}

// TurnList is a list of turns.
// +kubebuilder:object:root=true
type TurnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Turn `json:"items"`
}
