package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TaskRunRef names the activation that asks.
type TaskRunRef struct {
	// name of the run.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the run.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// activation of the run, such as `approve#1`.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Activation string `json:"activation"`
}

// LabelledValue is a line that a person reads.
type LabelledValue struct {
	// label of the line.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Label string `json:"label"`

	// value in text form.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Value string `json:"value,omitempty"`
}

// LabelledURL is a link that a person may follow.
type LabelledURL struct {
	// label of the link.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Label string `json:"label"`

	// url, absolute, http or https.
	// +required
	// +kubebuilder:validation:MaxLength=8192
	URL string `json:"url"`
}

// HumanContext is what a person needs to know to answer.
type HumanContext struct {
	// title in one line.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Title string `json:"title"`

	// description of what is asked.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	Description string `json:"description,omitempty"`

	// details are facts, by label.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Details []LabelledValue `json:"details,omitempty"`

	// references are links, by label.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	References []LabelledURL `json:"references,omitempty"`
}

// FormOption is one choice of a select field.
type FormOption struct {
	// label for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Label string `json:"label,omitempty"`

	// value that is answered.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// FormField is one field of the answer.
type FormField struct {
	// name of the answer's member.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`

	// type: string, number, boolean, object; anything else takes any value.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`

	// widget that suits it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Widget string `json:"widget,omitempty"`

	// label for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Label string `json:"label,omitempty"`

	// description for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// required fields must be answered.
	// +optional
	Required bool `json:"required,omitempty"`

	// defaultValue that a form starts with; it never answers by itself.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	DefaultValue *runtime.RawExtension `json:"defaultValue,omitempty"`

	// options of the widget `select`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Options []FormOption `json:"options,omitempty"`
}

// TaskForm describes the answer field by field.
type TaskForm struct {
	// fields in the order to ask for them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Fields []FormField `json:"fields,omitempty"`
}

// Assignees are the only ones who may answer.
type Assignees struct {
	// users by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=1024
	Users []string `json:"users,omitempty"`

	// groups by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=1024
	Groups []string `json:"groups,omitempty"`
}

// HumanTaskSpec is a typed question to a person, immutable.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="`spec` must not change: tasks are immutable"
// +kubebuilder:validation:XValidation:rule="!(has(self.form) && has(self.responseSchema))",message="at most one of `form` and `responseSchema` may be set"
type HumanTaskSpec struct {
	// runRef names the activation that asks; only the operator sets it.
	// +optional
	RunRef *TaskRunRef `json:"runRef,omitempty"`

	// humanContext is what a person needs to know to answer.
	// +required
	HumanContext HumanContext `json:"humanContext"`

	// form describes the answer field by field.
	// +optional
	Form *TaskForm `json:"form,omitempty"`

	// responseSchema describes the answer as a JSON Schema 2020-12, up to 64 KiB.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	ResponseSchema *runtime.RawExtension `json:"responseSchema,omitempty"`

	// assignees are the only ones who may answer; absent: whoever may patch the
	// status; present but empty: nobody.
	// +optional
	Assignees *Assignees `json:"assignees,omitempty"`

	// fingerprint of the question of a supervised run; only the operator sets it.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Fingerprint string `json:"fingerprint,omitempty"`

	// expiresAfter is an ISO 8601 duration from creation, such as P2D.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ExpiresAfter string `json:"expiresAfter,omitempty"`
}

// TaskFailure is a person's statement that the task cannot be done.
type TaskFailure struct {
	// reason for it.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Reason string `json:"reason"`
}

// Answerer is who answered, as admission saw it.
type Answerer struct {
	// username of the person.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Username string `json:"username"`

	// uid of the person, if the authenticator knows one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	UID string `json:"uid,omitempty"`

	// groups of the person.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Groups []string `json:"groups,omitempty"`
}

// CloseReason is why a task was closed without an answer.
// +kubebuilder:validation:Enum=Expired;Cancelled
type CloseReason string

// Close reasons.
const (
	CloseExpired   CloseReason = "Expired"
	CloseCancelled CloseReason = "Cancelled"
)

// TaskClosed is the end of a task without an answer.
type TaskClosed struct {
	// reason: Expired or Cancelled.
	// +required
	Reason CloseReason `json:"reason"`

	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// at is when.
	// +required
	At metav1.Time `json:"at"`
}

// TaskPhase of a human task.
// +kubebuilder:validation:Enum=AwaitingInput;Completed;Failed;Expired;Cancelled
type TaskPhase string

// Phases of a human task.
const (
	TaskAwaitingInput TaskPhase = "AwaitingInput"
	TaskCompleted     TaskPhase = "Completed"
	TaskFailed        TaskPhase = "Failed"
	TaskExpired       TaskPhase = "Expired"
	TaskCancelled     TaskPhase = "Cancelled"
)

// HumanTaskStatus holds the answer, which a person writes, and the rest, which
// the operator and admission write.
type HumanTaskStatus struct {
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type: Ready, status: "False", reason: AwaitingInput, message: "waits for an answer", observedGeneration: 1, lastTransitionTime: "1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// answer to the question, kept as it was sent.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Answer *runtime.RawExtension `json:"answer,omitempty"`

	// failure says that the task cannot be done, and why.
	// +optional
	Failure *TaskFailure `json:"failure,omitempty"`

	// answeredBy is stamped by admission.
	// +optional
	AnsweredBy *Answerer `json:"answeredBy,omitempty"`

	// answeredAt is stamped by admission.
	// +optional
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`

	// closed tells why nobody can answer any more.
	// +optional
	Closed *TaskClosed `json:"closed,omitempty"`

	// phase, for people.
	// +optional
	// +kubebuilder:default=AwaitingInput
	Phase TaskPhase `json:"phase,omitempty"`

	// observedGeneration of the spec that this status describes.
	// +optional
	// +kubebuilder:default=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// HumanTask is a typed question to a person. The answer is a patch of its
// status: `kubectl patch ht NAME --subresource=status --type=merge -p
// '{"status":{"answer":{…}}}'`.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ht,categories=axiom
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.humanContext.title`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="Users",type=string,JSONPath=`.spec.assignees.users`,description="Who may answer; none and no groups: whoever may patch the status"
// +kubebuilder:printcolumn:name="Groups",type=string,JSONPath=`.spec.assignees.groups`,description="Whose members may answer"
// +kubebuilder:printcolumn:name="Expires after",type=string,JSONPath=`.spec.expiresAfter`,description="How long after its creation"
// +kubebuilder:printcolumn:name="Answered by",type=string,JSONPath=`.status.answeredBy.username`
// +kubebuilder:printcolumn:name="Activation",type=string,JSONPath=`.spec.runRef.activation`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type HumanTask struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the question.
	// +required
	Spec HumanTaskSpec `json:"spec"`

	// status holds the answer. It begins as that of an open task, without a write.
	// +optional
	// +kubebuilder:default={}
	Status HumanTaskStatus `json:"status,omitzero"`
}

// HumanTaskList is a list of human tasks.
// +kubebuilder:object:root=true
type HumanTaskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HumanTask `json:"items"`
}
