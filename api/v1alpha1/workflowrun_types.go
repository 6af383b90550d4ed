package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CompositionSource pins the workflow of a composition.
type CompositionSource struct {
	// name of the composition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// revision of the workflow; absent: the live one.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Revision string `json:"revision,omitempty"`
}

// ResumePolicy says whether a run goes on by itself.
// +kubebuilder:validation:Enum=Automatic;Explicit
type ResumePolicy string

// Resume policies.
const (
	// ResumeAutomatic applies answers, events and timers as they come.
	ResumeAutomatic ResumePolicy = "Automatic"
	// ResumeExplicit holds them until a person asks for the resume.
	ResumeExplicit ResumePolicy = "Explicit"
)

// WorkflowRunSpec is one execution. Only resumeRequests, cancel and
// ttlSecondsAfterFinished may change. Of a definition in Git admission names all
// that was changed at once, so the rules leave its runs alone.
// +kubebuilder:validation:XValidation:rule="has(self.compositionRef) != has(self.git) || (oldSelf.hasValue() && has(oldSelf.value().git))",optionalOldSelf=true,message="exactly one of `compositionRef` and `git` must be given",fieldPath=".compositionRef",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="has(oldSelf.git) || has(self.inputs) == has(oldSelf.inputs)",message="`inputs` must not change",fieldPath=".inputs"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.git) || (has(self.resumePolicy) ? self.resumePolicy : 'Automatic') == (has(oldSelf.resumePolicy) ? oldSelf.resumePolicy : 'Automatic')",message="`resumePolicy` must not change",fieldPath=".resumePolicy"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.git) || (has(self.activeDeadline) == has(oldSelf.activeDeadline) && (!has(self.activeDeadline) || self.activeDeadline == oldSelf.activeDeadline))",message="`activeDeadline` must not change",fieldPath=".activeDeadline"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",message="`cancel` must stay true once it is",fieldPath=".cancel"
// +kubebuilder:validation:XValidation:rule="(has(self.resumeRequests) ? self.resumeRequests : 0) >= (has(oldSelf.resumeRequests) ? oldSelf.resumeRequests : 0)",message="`resumeRequests` must not shrink",fieldPath=".resumeRequests"
type WorkflowRunSpec struct {
	// compositionRef names the composition whose workflow runs; exactly one of it
	// and git is set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`compositionRef` must not change"
	CompositionRef CompositionSource `json:"compositionRef,omitzero"`

	// git pins the definition of a supervised run.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// credentials that the definition's effects may use, by alias.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Credentials []RunCredential `json:"credentials,omitempty"`

	// inputs of the start node, by name.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Inputs *runtime.RawExtension `json:"inputs,omitempty"`

	// resumePolicy: Automatic, which is the default for compositions, or Explicit,
	// which is the default, and all there is, for definitions in Git.
	// +optional
	ResumePolicy ResumePolicy `json:"resumePolicy,omitempty"`

	// activeDeadline is an ISO 8601 duration from the start, waiting included.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ActiveDeadline string `json:"activeDeadline,omitempty"`

	// resumeRequests grows by one for each resume a person asks for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ResumeRequests int64 `json:"resumeRequests,omitempty"`

	// cancel ends the run.
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// ttlSecondsAfterFinished deletes the run that long after its end; absent: it is kept.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// IsExplicit tells whether a person asks for each resume.
func (s *WorkflowRunSpec) IsExplicit() bool {
	return s.Git != nil || s.ResumePolicy == ResumeExplicit
}

// RunPhase of a run.
// +kubebuilder:validation:Enum=Pending;Running;Waiting;Suspended;Completed;Failed;Cancelled
type RunPhase string

// Phases of a run.
const (
	RunPending   RunPhase = "Pending"
	RunRunning   RunPhase = "Running"
	RunWaiting   RunPhase = "Waiting"
	RunSuspended RunPhase = "Suspended"
	RunCompleted RunPhase = "Completed"
	RunFailed    RunPhase = "Failed"
	RunCancelled RunPhase = "Cancelled"
)

// IsTerminal tells whether the run is over for good.
func (p RunPhase) IsTerminal() bool {
	return p == RunCompleted || p == RunFailed || p == RunCancelled
}

// ValueRef points to a value kept in an immutable ConfigMap.
type ValueRef struct {
	// digest of the value's JSON as it is stored.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`

	// configMap that holds it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// bytes of it.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// RunDefinition is what a run executes, pinned.
type RunDefinition struct {
	// snapshot is the ControllerRevision that holds a composition's workflow.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Snapshot string `json:"snapshot,omitempty"`

	// revision of the workflow in it.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Revision string `json:"revision,omitempty"`

	// descriptor is the identity of a definition in Git.
	// +optional
	Descriptor *GitDescriptor `json:"descriptor,omitempty"`

	// digest of the descriptor.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`

	// inputDigest is that of the inputs as given.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	InputDigest string `json:"inputDigest,omitempty"`

	// sources that are retained, the root first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=33
	Sources []RetainedSource `json:"sources,omitempty"`
}

// RunFailure is why a run, an attempt or a node failed.
type RunFailure struct {
	// phase of the node in which it failed.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Phase string `json:"phase"`

	// code of the failure.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`

	// node that failed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Node string `json:"node,omitempty"`

	// activation that failed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Activation string `json:"activation,omitempty"`

	// edge that was looked at.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Edge string `json:"edge,omitempty"`

	// expression that failed.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`

	// field that is meant.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Field string `json:"field,omitempty"`

	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// ChildRef names the object that serves an activation.
type ChildRef struct {
	// kind of the child: HumanTask or Pod.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the child, made from the run's UID and the activation.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the child once it was seen.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// ActiveBranch is one open activation.
type ActiveBranch struct {
	// branch of the run: `root`, a fork's child or what follows a join.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Branch string `json:"branch"`

	// node that is visited.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Node string `json:"node"`

	// activation is the visit, such as `approve#1`.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Activation string `json:"activation"`

	// edge that led here.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Edge string `json:"edge,omitempty"`

	// condition of that edge.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Condition string `json:"condition,omitempty"`

	// enteredOn is when, RFC 3339.
	// +required
	// +kubebuilder:validation:MaxLength=64
	EnteredOn string `json:"enteredOn"`

	// input of the node, resolved once.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Input *runtime.RawExtension `json:"input,omitempty"`

	// inputRef points to an input that is kept outside.
	// +optional
	InputRef *ValueRef `json:"inputRef,omitempty"`

	// title of a human task.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Title string `json:"title,omitempty"`

	// attempt of an action, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// notBefore is when the attempt may start, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NotBefore string `json:"notBefore,omitempty"`

	// deadline of the visit or attempt, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Deadline string `json:"deadline,omitempty"`

	// subscriptionKey that an event must have.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	SubscriptionKey *string `json:"subscriptionKey,omitempty"`

	// since is the earliest arrival of an event that counts, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Since string `json:"since,omitempty"`

	// lastError is the failure of the attempt before, or of a match.
	// +optional
	LastError *RunFailure `json:"lastError,omitempty"`

	// child that serves the activation: the intent, written before the child is created.
	// +optional
	Child *ChildRef `json:"child,omitempty"`
}

// ConsumedEvents of one receive-event node.
type ConsumedEvents struct {
	// ids taken, newest last.
	// +optional
	// +listType=atomic
	IDs []string `json:"ids,omitempty"`

	// arrivals of those events, in the same order, RFC 3339.
	// +optional
	// +listType=atomic
	Arrivals []string `json:"arrivals,omitempty"`

	// floor is the arrival of the newest event that was forgotten, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Floor string `json:"floor,omitempty"`
}

// RunInstance is the engine's state of the run; one status update commits one step of it.
type RunInstance struct {
	// status: waiting, completed, failed or cancelled.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Status string `json:"status"`

	// step counts applied steps.
	// +optional
	Step int64 `json:"step,omitempty"`

	// startedOn is the run's creation, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	StartedOn string `json:"startedOn,omitempty"`

	// visits counts activations by node.
	// +optional
	Visits map[string]int64 `json:"visits,omitempty"`

	// activeBranches are the open activations, in the order they were entered.
	// +optional
	// +listType=atomic
	ActiveBranches []ActiveBranch `json:"activeBranches,omitempty"`

	// joinArrivals are the edges that reached a join that is not complete, by node.
	// +optional
	JoinArrivals map[string][]string `json:"joinArrivals,omitempty"`

	// consumed events by receive-event node.
	// +optional
	Consumed map[string]ConsumedEvents `json:"consumed,omitempty"`

	// context of the run: its values by key.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Context *runtime.RawExtension `json:"context,omitempty"`

	// contextRefs point to the values that are kept outside, by key.
	// +optional
	ContextRefs map[string]ValueRef `json:"contextRefs,omitempty"`

	// failure that ended the run.
	// +optional
	Failure *RunFailure `json:"failure,omitempty"`

	// outcome of the end node that was reached.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Outcome string `json:"outcome,omitempty"`
}

// HistoryEntry is one closed activation; it never changes.
type HistoryEntry struct {
	// seq from 1, without gaps.
	// +required
	Seq int64 `json:"seq"`

	// activation that closed.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Activation string `json:"activation"`

	// node that was visited.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Node string `json:"node,omitempty"`

	// name of the node.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Name string `json:"name,omitempty"`

	// type of the node.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`

	// branch of the run.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Branch string `json:"branch,omitempty"`

	// edge that led to the node.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Edge string `json:"edge,omitempty"`

	// condition of that edge.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Condition string `json:"condition,omitempty"`

	// enteredOn is when the visit began, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	EnteredOn string `json:"enteredOn,omitempty"`

	// completedOn is when it ended, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CompletedOn string `json:"completedOn,omitempty"`

	// outcome: Completed, TimedOut, Failed or Cancelled.
	// +required
	// +kubebuilder:validation:Enum=Completed;TimedOut;Failed;Cancelled
	Outcome string `json:"outcome"`

	// title of a human task.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Title string `json:"title,omitempty"`

	// input of the node.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Input *runtime.RawExtension `json:"input,omitempty"`

	// inputRef points to an input larger than 4 KiB.
	// +optional
	InputRef *ValueRef `json:"inputRef,omitempty"`

	// output of the node, as it entered the context.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Output *runtime.RawExtension `json:"output,omitempty"`

	// outputRef points to an output larger than 4 KiB.
	// +optional
	OutputRef *ValueRef `json:"outputRef,omitempty"`

	// attempts of an action.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// error that closed it.
	// +optional
	Error *RunFailure `json:"error,omitempty"`

	// by is the user or the event that closed it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`

	// call of a frame that was opened.
	// +optional
	Call *HistoryCall `json:"call,omitempty"`

	// receipt of an effect, a prompt or an answer.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Receipt *runtime.RawExtension `json:"receipt,omitempty"`

	// receiptRef points to a receipt larger than 4 KiB.
	// +optional
	ReceiptRef *ValueRef `json:"receiptRef,omitempty"`
}

// RunHistory holds what closed; older entries are in pages.
type RunHistory struct {
	// total entries, pages included.
	// +optional
	Total int64 `json:"total,omitempty"`

	// page is the ConfigMap of the newest page; each names the one before it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Page string `json:"page,omitempty"`

	// entries not yet in a page, oldest first, at most 64. Each has seq, activation, node, name, type, branch, edge,
	// condition, enteredOn, completedOn, outcome, title, input, output, attempts, error and by. Only the operator writes
	// them, so the schema leaves it at that: to judge each again with every step would cost more than the step.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Entries []HistoryEntry `json:"entries,omitempty"`
}

// HistoryPage is a page of a run's history, as its ConfigMap holds it.
// +kubebuilder:object:generate=false
type HistoryPage struct {
	// Previous is the ConfigMap of the page before; empty: there is none.
	Previous string `json:"previous,omitempty"`
	// From and To are the first and the last entry's seq.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Entries, oldest first.
	Entries []HistoryEntry `json:"entries"`
}

// WorkflowRunStatus is the run as it stands.
type WorkflowRunStatus struct {
	// conditions: Accepted, Waiting, Reconciling, Stalled, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase, for people.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`

	// definition that is executed, pinned.
	// +optional
	Definition *RunDefinition `json:"definition,omitempty"`

	// currentNode is what is open, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	CurrentNode string `json:"currentNode,omitempty"`

	// waitsFor says what sort of thing the run waits for, for people; absent while
	// it works, and at its end.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WaitsFor string `json:"waitsFor,omitempty"`

	// outcome of the end node that was reached.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Outcome string `json:"outcome,omitempty"`

	// observedResumeRequests is the last resume request that was honoured.
	// +optional
	ObservedResumeRequests int64 `json:"observedResumeRequests,omitempty"`

	// startedAt is when the first node was entered.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is when the run ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// traceId of the run's one trace, whichever operator carries the run; made from its UID.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TraceID string `json:"traceId,omitempty"`

	// instance is the engine's state: status, step, visits, activeBranches, joinArrivals, consumed, context, contextRefs,
	// failure and outcome. Only the operator writes it, as with the history's entries.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Instance *RunInstance `json:"instance,omitempty"`

	// history of closed activations.
	// +optional
	History RunHistory `json:"history,omitzero"`

	// executions of a supervised run, the newest 16, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Executions []RunExecution `json:"executions,omitempty"`

	// frames are the live calls of components, in the order they were opened: path, call, component, iteration or item,
	// and instance. Only the operator writes them, as with the instance.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Frames []RunFrame `json:"frames,omitempty"`

	// calls are how far repeats and lists of live calls have come.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Calls []RunCallState `json:"calls,omitempty"`

	// opened counts the frames that each component node opened in each frame, by their common address.
	// +optional
	Opened map[string]int64 `json:"opened,omitempty"`

	// intents of open activations.
	// +optional
	// +listType=atomic
	Intents []RunIntent `json:"intents,omitempty"`

	// workspace is what the run has of Git.
	// +optional
	Workspace *RunWorkspace `json:"workspace,omitempty"`

	// sessions of the run's agents.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sessions []RunSession `json:"sessions,omitempty"`

	// outputs of a supervised run's root, by name.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Outputs *runtime.RawExtension `json:"outputs,omitempty"`

	// outputsRef points to outputs that are kept outside.
	// +optional
	OutputsRef *ValueRef `json:"outputsRef,omitempty"`
}

// WorkflowRun is one durable execution of one immutable definition.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=wfr,categories=axiom
// +kubebuilder:printcolumn:name="Composition",type=string,JSONPath=`.spec.compositionRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.currentNode`,description="What is open"
// +kubebuilder:printcolumn:name="Waits for",type=string,JSONPath=`.status.waitsFor`,description="What the run waits for"
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.spec.git.commit`,description="Of a definition in Git"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkflowRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to run.
	// +required
	Spec WorkflowRunSpec `json:"spec"`

	// status is the run as it stands. Only the operator writes it, and always as a whole.
	// +optional
	// +structType=atomic
	Status WorkflowRunStatus `json:"status,omitzero"`
}

// WorkflowRunList is a list of runs.
// +kubebuilder:object:root=true
type WorkflowRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkflowRun `json:"items"`
}
