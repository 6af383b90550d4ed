package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EventActor caused an event.
type EventActor struct {
	// login of the actor at the source.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Login string `json:"login"`

	// displayName for people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`

	// avatarUrl of a picture.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	AvatarURL string `json:"avatarUrl,omitempty"`

	// url of the actor's page.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
}

// StreamEventSpec is one event from outside, immutable.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`spec` must not change: events are immutable"
type StreamEventSpec struct {
	// id of the event; with eventSourceId it is its identity.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`

	// type of the event, such as `pr.merged`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`

	// source that sent it, such as `github` or a CloudEvents source.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Source string `json:"source,omitempty"`

	// eventSourceId is the ingest source that took it in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	EventSourceID string `json:"eventSourceId"`

	// ref is what the event is about, such as the URL of a pull request.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Ref string `json:"ref,omitempty"`

	// timestamp given by the sender, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Timestamp string `json:"timestamp,omitempty"`

	// actor who caused it.
	// +optional
	Actor *EventActor `json:"actor,omitempty"`

	// payload, up to 256 KiB.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Payload *runtime.RawExtension `json:"payload,omitempty"`
}

// DeliveryOutcome is what came of trying an event on an activation.
// +kubebuilder:validation:Enum=Completed;Error
type DeliveryOutcome string

// Outcomes of deliveries.
const (
	DeliveryCompleted DeliveryOutcome = "Completed"
	DeliveryError     DeliveryOutcome = "Error"
)

// MaxDeliveries is how many deliveries an event keeps, the last ones.
const MaxDeliveries = 50

// EventDelivery tells of one activation that the event was tried on.
type EventDelivery struct {
	// run that waited.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run"`

	// uid of that run.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// activation that waited.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Activation string `json:"activation"`

	// outcome: Completed, or Error when it could not be told whether the event is
	// meant.
	// +required
	Outcome DeliveryOutcome `json:"outcome"`

	// message of an error.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// at is when the activation closed; of an error, since when event and
	// activation both were there.
	// +required
	At metav1.Time `json:"at"`
}

// TriggerOutcome is what a trigger made of an event.
// +kubebuilder:validation:Enum=NotMatched;Started;Duplicate;Failed
type TriggerOutcome string

// Outcomes of triggers.
const (
	// TriggerNotMatched: the event is not meant.
	TriggerNotMatched TriggerOutcome = "NotMatched"
	// TriggerStarted: the event started a run.
	TriggerStarted TriggerOutcome = "Started"
	// TriggerDuplicate: an equal event had started the run before.
	TriggerDuplicate TriggerOutcome = "Duplicate"
	// TriggerFailed: an expression failed, or the run was refused.
	TriggerFailed TriggerOutcome = "Failed"
)

// EventTrigger is what one trigger made of the event, for good.
type EventTrigger struct {
	// uid of the composition.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// trigger of that composition.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Trigger string `json:"trigger"`

	// composition that has it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Composition string `json:"composition"`

	// generation of the composition when the event was looked at.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// outcome: NotMatched, Started, Duplicate or Failed.
	// +required
	Outcome TriggerOutcome `json:"outcome"`

	// run that was started by this event or an equal one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run,omitempty"`

	// message of a failure.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// at is when.
	// +required
	At metav1.Time `json:"at"`
}

// StreamEventStatus tells people where the event went.
type StreamEventStatus struct {
	// conditions: Ready, True once triggers have seen the event.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// triggers that looked at the event; none looks twice.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +listMapKey=trigger
	// +kubebuilder:validation:MaxItems=1000
	Triggers []EventTrigger `json:"triggers,omitempty"`

	// deliveries are the last 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Deliveries []EventDelivery `json:"deliveries,omitempty"`
}

// StreamEvent is one event from outside, kept for a while.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=se,categories=axiom
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:selectablefield:JSONPath=`.spec.eventSourceId`
// +kubebuilder:selectablefield:JSONPath=`.spec.ref`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.eventSourceId`
// +kubebuilder:printcolumn:name="Ref",type=string,JSONPath=`.spec.ref`,description="What the event is about"
// +kubebuilder:printcolumn:name="Completed",type=string,JSONPath=`.status.deliveries[?(@.outcome=="Completed")].run`,description="Runs that took the event"
// +kubebuilder:printcolumn:name="Started",type=string,JSONPath=`.status.triggers[?(@.outcome=="Started")].run`,description="Runs that the event started"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StreamEvent struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the event.
	// +required
	Spec StreamEventSpec `json:"spec"`

	// status tells where it went.
	// +optional
	Status StreamEventStatus `json:"status,omitzero"`
}

// StreamEventList is a list of stream events.
// +kubebuilder:object:root=true
type StreamEventList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StreamEvent `json:"items"`
}
