package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActionMode is how an action type runs.
// An unknown mode is a problem of the item, not a refusal: drafts may be invalid.
// +kubebuilder:validation:MaxLength=64
type ActionMode string

// Action modes.
const (
	// ModeScript runs a script in a pod.
	ModeScript ActionMode = "script"
	// ModeNode is another name for ModeScript: code, not an agent.
	ModeNode ActionMode = "node"
	// ModeAgent asks an agent.
	ModeAgent ActionMode = "agent"
)

// Interpreters of scripts.
const (
	InterpreterBash   = "bash"
	InterpreterNode   = "node"
	InterpreterPython = "python"
)

// ScriptAction is a script and what runs it.
type ScriptAction struct {
	// interpreter: bash (default), node or python.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Interpreter string `json:"interpreter,omitempty"`

	// scriptTemplate is the script, run as it stands: inputs arrive in the file
	// named by AXIOM_INPUTS and in variables AXIOM_INPUT_<NAME>; outputs are the
	// JSON object written to the file named by AXIOM_OUTPUTS.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	ScriptTemplate string `json:"scriptTemplate,omitempty"`

	// image with the interpreter; the operator's default for it when empty.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
}

// AgentAction is a prompt for an agent.
type AgentAction struct {
	// promptTemplate may contain `${{ CEL }}` over the variable `inputs`.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	PromptTemplate string `json:"promptTemplate,omitempty"`

	// sessionTemplate names a SessionTemplate.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SessionTemplate string `json:"sessionTemplate,omitempty"`
}

// ActionEnvVar is one environment variable of a script. Names are judged as
// problems of the item, since drafts may be invalid.
type ActionEnvVar struct {
	// name of the variable, an identifier that does not begin with AXIOM_.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// value is a literal.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Value string `json:"value,omitempty"`

	// secretKeyRef names a key of a Secret labelled `axiom.apitomy.io/credential: "true"`.
	// +optional
	SecretKeyRef *ActionKeyRef `json:"secretKeyRef,omitempty"`
}

// ActionKeyRef names a key of a Secret; blank members are problems of the item.
type ActionKeyRef struct {
	// name of the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key within it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ActionTypeSpec is the contract of an action and how it runs.
type ActionTypeSpec struct {
	// description for people and agents.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// mode: script (also called node) or agent.
	// +optional
	Mode ActionMode `json:"mode,omitempty"`

	// script of mode script.
	// +optional
	Script ScriptAction `json:"script,omitzero"`

	// agent of mode agent.
	// +optional
	Agent AgentAction `json:"agent,omitzero"`

	// env of the script.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Env []ActionEnvVar `json:"env,omitempty"`

	// inputs that the action needs, checked before the work.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Inputs []ContractField `json:"inputs,omitempty"`

	// outputs that the action gives, checked after the work.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Outputs []ContractField `json:"outputs,omitempty"`
}

// NamedActionType is an action type of a composition.
type NamedActionType struct {
	// name within the composition.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$`
	Name string `json:"name"`

	ActionTypeSpec `json:",inline"`
}

// LibraryStatus is the operator's verdict on a library object.
type LibraryStatus struct {
	// conditions: Valid, Ready, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// contentRevision names the content.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ContentRevision string `json:"contentRevision,omitempty"`

	// problems of the item, errors first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Problems []Problem `json:"problems,omitempty"`
}

// ActionType is a library entry: an action that workflows of the namespace may use.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=axiom
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problems[0].code`,description="The worst problem"
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ActionType struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the contract and how it runs.
	// +required
	Spec ActionTypeSpec `json:"spec"`

	// status is the operator's verdict.
	// +optional
	Status LibraryStatus `json:"status,omitzero"`
}

// ActionTypeList is a list of action types.
// +kubebuilder:object:root=true
type ActionTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ActionType `json:"items"`
}
