package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ChangeSetPolicy says who accepts what an agent changed.
// +kubebuilder:validation:Enum=Manual;Automatic
type ChangeSetPolicy string

// Change-set policies.
const (
	// ChangeSetManual leaves the decision to a person.
	ChangeSetManual ChangeSetPolicy = "Manual"
	// ChangeSetAutomatic accepts when the turn ends, if the base still holds.
	ChangeSetAutomatic ChangeSetPolicy = "Automatic"
)

// ItemPolicy says when an agent's action types and tools are written.
// +kubebuilder:validation:Enum=Direct;Staged
type ItemPolicy string

// Item policies.
const (
	// ItemDirect writes items during the turn.
	ItemDirect ItemPolicy = "Direct"
	// ItemStaged keeps items in the turn until it is accepted.
	ItemStaged ItemPolicy = "Staged"
)

// CompositionSpec is a draft: one workflow with its action types and tools.
type CompositionSpec struct {
	// goal in a sentence or two; agents read it.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Goal string `json:"goal,omitempty"`

	// workflow is the document, kept as it is sent: unknown members survive and
	// nothing is defaulted into it. Absent: there is none yet. Up to 512 KiB,
	// 1,000 nodes and 4,000 edges.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Workflow *runtime.RawExtension `json:"workflow,omitempty"`

	// actionTypes are the action types of this draft; they win over library
	// objects of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	ActionTypes []NamedActionType `json:"actionTypes,omitempty"`

	// tools are the tools of this draft.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Tools []NamedTool `json:"tools,omitempty"`

	// triggers start runs of the workflow when events arrive.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Triggers []Trigger `json:"triggers,omitempty"`

	// agent says which agent edits the draft, and under which policies.
	// +optional
	Agent CompositionAgent `json:"agent,omitzero"`

	// revisionHistoryLimit is how many snapshots are kept beside those that runs
	// and turns need; 20 by default.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	RevisionHistoryLimit int32 `json:"revisionHistoryLimit,omitempty"`
}

// Trigger starts one run for each event that it is meant for. It looks at events
// that arrive while it is active, and at each of them once.
type Trigger struct {
	// name of the trigger, unique within the composition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// eventType of the events that it looks at, such as `issue.created`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	EventType string `json:"eventType"`

	// filter is a CEL condition over `event`; a run is started where it is true.
	// Absent: for all events of the type.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Filter string `json:"filter,omitempty"`

	// inputs of the run, by name: text is a CEL expression over `event`, any
	// other value stands for itself.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Inputs *runtime.RawExtension `json:"inputs,omitempty"`

	// dedupeKey is a CEL expression over `event`: of the events with the same key
	// only the first starts a run. Absent: events of one identity count once.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	DedupeKey string `json:"dedupeKey,omitempty"`

	// suspend keeps the trigger from looking at events. Those that arrive
	// meanwhile are lost to it.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// run has settings of the runs that are started.
	// +optional
	Run TriggeredRun `json:"run,omitzero"`
}

// TriggeredRun is what a trigger's runs are given beside their inputs.
type TriggeredRun struct {
	// resumePolicy of the runs: Automatic (default) or Explicit.
	// +optional
	ResumePolicy ResumePolicy `json:"resumePolicy,omitempty"`

	// activeDeadline of the runs, an ISO 8601 duration.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ActiveDeadline string `json:"activeDeadline,omitempty"`

	// ttlSecondsAfterFinished deletes the runs that long after their end; absent:
	// they are kept.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// CompositionAgent configures the agent of a composition.
type CompositionAgent struct {
	// template is a built-in or a SessionTemplate of the namespace;
	// axiom-workbench by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Template string `json:"template,omitempty"`

	// runtime of the agent's pod; unset members come from the template, then
	// from the operator's flags.
	// +optional
	Runtime RuntimeSpec `json:"runtime,omitzero"`

	// modelSecretRef names a Secret labelled `axiom.apitomy.io/credential:
	// "true"` whose keys become the agent's environment.
	// +optional
	ModelSecretRef *LocalRef `json:"modelSecretRef,omitempty"`

	// egress lists the only ways out of the pod besides the gateway and DNS.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Egress []EgressRule `json:"egress,omitempty"`

	// changeSetPolicy: Manual (default) leaves each turn's change set to a
	// person, Automatic accepts it when the turn ends.
	// +optional
	// +kubebuilder:default=Manual
	ChangeSetPolicy ChangeSetPolicy `json:"changeSetPolicy,omitempty"`

	// itemPolicy: Direct (default) writes action types and tools during the
	// turn, Staged with its acceptance.
	// +optional
	// +kubebuilder:default=Direct
	ItemPolicy ItemPolicy `json:"itemPolicy,omitempty"`

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
}

// TurnState of a composition.
// +kubebuilder:validation:Enum=idle;ai-working
type TurnState string

// Turn states of a composition.
const (
	TurnStateIdle    TurnState = "idle"
	TurnStateWorking TurnState = "ai-working"
)

// ItemType is a sort of item.
// +kubebuilder:validation:Enum=workflow;action-type;tool
type ItemType string

// Item types.
const (
	ItemWorkflow   ItemType = "workflow"
	ItemActionType ItemType = "action-type"
	ItemTool       ItemType = "tool"
)

// Author of an item's content.
// +kubebuilder:validation:Enum=user;ai
type Author string

// Authors.
const (
	AuthorUser Author = "user"
	AuthorAI   Author = "ai"
)

// ItemStatus is what is known of one item.
type ItemStatus struct {
	// type of the item.
	// +required
	Type ItemType `json:"type"`

	// name of the item.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// contentRevision names the item's content.
	// +required
	// +kubebuilder:validation:MaxLength=71
	ContentRevision string `json:"contentRevision"`

	// valid is true when the item has no error.
	// +required
	Valid bool `json:"valid"`

	// problems of the item, errors first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Problems []Problem `json:"problems,omitempty"`

	// lastAuthor wrote the present content.
	// +optional
	LastAuthor Author `json:"lastAuthor,omitempty"`

	// lastTurn is the turn that wrote it, if an agent did.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LastTurn string `json:"lastTurn,omitempty"`
}

// Claim is a turn's hold on its composition while it works.
type Claim struct {
	// turn that holds the composition.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Turn string `json:"turn"`

	// uid of that turn.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// baseRevision is the workflow revision that was live at the claim; empty: none.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	BaseRevision string `json:"baseRevision,omitempty"`

	// baseDigest is the digest of the stored base document.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	BaseDigest string `json:"baseDigest,omitempty"`

	// sinceGeneration is the composition's generation at the start of the turn
	// before; edits after it are news to the agent.
	// +optional
	SinceGeneration int64 `json:"sinceGeneration,omitempty"`
}

// MaxTriggerFailures is how many failures a composition shows of each trigger.
const MaxTriggerFailures = 5

// TriggerFailure is an event that a trigger could not start a run for.
type TriggerFailure struct {
	// event that was looked at.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Event string `json:"event"`

	// message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// generation of the composition at that time.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// at is when.
	// +required
	At metav1.Time `json:"at"`
}

// TriggerStatus is what is known of one trigger.
type TriggerStatus struct {
	// name of the trigger.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// since is when the trigger became active: it looks at events that arrived
	// then or later. Absent while it is suspended.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// failures are the last ones, newest first, of events that are still stored.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Failures []TriggerFailure `json:"failures,omitempty"`
}

// CompositionStatus is what the operator observed of a composition.
type CompositionStatus struct {
	// conditions: Ready, Valid, AgentReady, TurnPending, Reconciled, and
	// TriggersReady where there are triggers.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// workflowRevision names the live workflow's content; empty when there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	WorkflowRevision string `json:"workflowRevision,omitempty"`

	// items in the order workflow, action types, tools, each by name.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=201
	Items []ItemStatus `json:"items,omitempty"`

	// problemsTruncated is true when more than 64 problems were found.
	// +optional
	ProblemsTruncated bool `json:"problemsTruncated,omitempty"`

	// triggers in the order of spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Triggers []TriggerStatus `json:"triggers,omitempty"`

	// turnState tells whether an agent works on the draft.
	// +optional
	TurnState TurnState `json:"turnState,omitempty"`

	// currentTurn is the turn that works.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CurrentTurn string `json:"currentTurn,omitempty"`

	// pendingTurn waits for a person's decision.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PendingTurn string `json:"pendingTurn,omitempty"`

	// lastTurnStartedAt is when the latest turn claimed the composition.
	// +optional
	LastTurnStartedAt *metav1.MicroTime `json:"lastTurnStartedAt,omitempty"`

	// lastTurnGeneration is the composition's generation at that moment.
	// +optional
	LastTurnGeneration int64 `json:"lastTurnGeneration,omitempty"`

	// turnCount counts the turns that claimed the composition.
	// +optional
	TurnCount int64 `json:"turnCount,omitempty"`

	// claim is the hold of the turn that works.
	// +optional
	Claim *Claim `json:"claim,omitempty"`

	// session is the composition's AgentSession.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Session string `json:"session,omitempty"`

	// snapshot is the newest ControllerRevision of the composition.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Snapshot string `json:"snapshot,omitempty"`

	// observedTurn is the turn annotation that this status describes; only an
	// update that brings another value was made by a turn.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ObservedTurn string `json:"observedTurn,omitempty"`
}

// Composition is a draft workflow that people and an agent edit together.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=comp,categories=axiom
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`,description="Whether no item has an error"
// +kubebuilder:printcolumn:name="Turn",type=string,JSONPath=`.status.turnState`,description="Whether an agent works on the draft"
// +kubebuilder:printcolumn:name="Pending",type=string,JSONPath=`.status.pendingTurn`,description="The turn that waits for a decision"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.workflowRevision`,description="Content revision of the workflow"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Composition struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the draft.
	// +required
	Spec CompositionSpec `json:"spec"`

	// status is what the operator observed.
	// +optional
	Status CompositionStatus `json:"status,omitzero"`
}

// CompositionList is a list of compositions.
// +kubebuilder:object:root=true
type CompositionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Composition `json:"items"`
}
