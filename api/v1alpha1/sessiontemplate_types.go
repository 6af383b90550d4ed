package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPServer is a server whose tools a session's agent may use: a built-in
// alias in `name` alone, or a name with the URL of a streamable HTTP server.
type MCPServer struct {
	// name of the server, or `@axiom-workbench`, `@axiom-assistant`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// url of a streamable HTTP server within `egress`; none for a built-in.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
}

// SessionTemplateSpec says how an agent session is set up.
// +kubebuilder:validation:XValidation:rule="!has(self.role) || !has(self.mcpServers) || size(self.mcpServers) == 0",message="`mcpServers` must be empty for role Prompt",fieldPath=".mcpServers"
// +kubebuilder:validation:XValidation:rule="!has(self.role) || !has(self.allowedTools) || size(self.allowedTools) == 0",message="`allowedTools` must be empty for role Prompt",fieldPath=".allowedTools"
// +kubebuilder:validation:XValidation:rule="!has(self.role) || !has(self.toolNamePatterns) || size(self.toolNamePatterns) == 0",message="`toolNamePatterns` must be empty for role Prompt",fieldPath=".toolNamePatterns"
// +kubebuilder:validation:XValidation:rule="has(self.role) || !has(self.continuity)",message="`continuity` may be set for role Prompt only",fieldPath=".continuity"
// +kubebuilder:validation:XValidation:rule="has(self.role) || !has(self.homeSize)",message="`homeSize` may be set for role Prompt only",fieldPath=".homeSize"
type SessionTemplateSpec struct {
	// displayName for people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`

	// description for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// role Prompt: agents that answer the prompts of supervised runs and have no
	// tools. Without it, a template is for all other sessions.
	// +optional
	Role SessionRole `json:"role,omitempty"`

	// continuity of conversations of role Prompt; Strict by default.
	// +optional
	Continuity Continuity `json:"continuity,omitempty"`

	// homeSize of the volume that an agent of role Prompt has as its home; 1Gi by
	// default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="`homeSize` must be positive"
	HomeSize *resource.Quantity `json:"homeSize,omitempty"`

	// systemPrompt goes ahead of the first prompt; `{{reference}}` and
	// `{{changesetReference}}` are replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	SystemPrompt string `json:"systemPrompt"`

	// welcomeMessage is shown to people first; the agent never sees it.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	WelcomeMessage string `json:"welcomeMessage,omitempty"`

	// runtime of the agent's pod.
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

	// mcpServers of the session.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	MCPServers []MCPServer `json:"mcpServers,omitempty"`

	// allowedTools are exact names, or `Bash(<prefix> *)`.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=256
	AllowedTools []string `json:"allowedTools,omitempty"`

	// toolNamePatterns read a tool's name from a title: regular expressions
	// with groups `server` and `tool`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	ToolNamePatterns []string `json:"toolNamePatterns,omitempty"`

	// capabilities belong to built-in templates only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=0
	// +kubebuilder:validation:items:MaxLength=63
	Capabilities []string `json:"capabilities,omitempty"`
}

// SessionTemplate sets up agent sessions of its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=axiom
// +kubebuilder:printcolumn:name="Display name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['axiom-workbench', 'axiom-config-assistant', 'general-assistant', 'subject-assistant'])",message="`metadata.name` must not be that of a built-in template"
type SessionTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the template.
	// +required
	Spec SessionTemplateSpec `json:"spec"`
}

// SessionTemplateList is a list of session templates.
// +kubebuilder:object:root=true
type SessionTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SessionTemplate `json:"items"`
}
