package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToolParameter is one parameter of a tool.
type ToolParameter struct {
	// name, an identifier.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// type: string, number or boolean; string when empty.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`

	// required parameters must be given.
	// +optional
	Required bool `json:"required,omitempty"`

	// description for agents.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// ToolSpec is a script that an agent may call with parameters.
type ToolSpec struct {
	// description for agents.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// parameters arrive as AXIOM_PARAM_<NAME> and in the file AXIOM_PARAMS.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Parameters []ToolParameter `json:"parameters,omitempty"`

	// interpreter: bash (default), node or python.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Interpreter string `json:"interpreter,omitempty"`

	// scriptTemplate is the script, run as it stands.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	ScriptTemplate string `json:"scriptTemplate,omitempty"`

	// labels group tools.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	Labels []string `json:"labels,omitempty"`
}

// NamedTool is a tool of a composition.
type NamedTool struct {
	// name within the composition.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$`
	Name string `json:"name"`

	ToolSpec `json:",inline"`
}

// Tool is a library entry: a script that agents of the namespace may call.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=axiom
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problems[0].code`,description="The worst problem"
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Tool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the tool.
	// +required
	Spec ToolSpec `json:"spec"`

	// status is the operator's verdict.
	// +optional
	Status LibraryStatus `json:"status,omitzero"`
}

// ToolList is a list of tools.
// +kubebuilder:object:root=true
type ToolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tool `json:"items"`
}
