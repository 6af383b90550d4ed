package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalRef names an object of the same namespace.
type LocalRef struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// KeyRef names a key of a ConfigMap or Secret of the same namespace.
type KeyRef struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// key within its data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// ContentRef points to a value kept in an immutable ConfigMap whose name is
// made from the digest.
type ContentRef struct {
	// digest is the SHA-256 of the value's JSON text, or of the text.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`

	// size in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Size int64 `json:"size,omitempty"`
}

// Severity tells whether a problem keeps an item from running.
// +kubebuilder:validation:Enum=error;warning
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one finding about an item.
type Problem struct {
	// severity: an error keeps the item from running, a warning does not.
	// +required
	Severity Severity `json:"severity"`

	// path of what is meant, such as `nodes[assess]` or `content`.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// code names the rule.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`

	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// EnvVar is one environment variable of an agent or script: a literal or a key
// of a labelled Secret.
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.secretKeyRef))",message="at most one of `value` and `secretKeyRef` may be set"
// +kubebuilder:validation:XValidation:rule="!self.name.startsWith('AXIOM_') && !self.name.startsWith('LD_')",message="`name` must not begin with 'AXIOM_' or 'LD_'",fieldPath=".name"
type EnvVar struct {
	// name of the variable, an identifier; `AXIOM_…` and `LD_…` are kept for the operator.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// value is a literal.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Value string `json:"value,omitempty"`

	// secretKeyRef names a key of a Secret labelled `axiom.apitomy.io/credential: "true"`.
	// +optional
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty"`
}

// RuntimeSpec says in what an agent runs. Nothing else of its pod can be set.
type RuntimeSpec struct {
	// image with the agent; unset, the template's, else the operator's own.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// command starts an agent that speaks the Agent Client Protocol on its stdio.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`

	// args are appended to the command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`

	// env is the agent's own environment.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`

	// resources of the agent container; unset requests are 100m and 256Mi,
	// unset limits 1 CPU and 1Gi.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// imagePullSecrets of the pod.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []LocalRef `json:"imagePullSecrets,omitempty"`

	// nodeSelector of the pod.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// runtimeClassName of the pod, for stronger isolation.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// playbookRef names a key of a ConfigMap with a playbook; the scripted agent
	// then plays it in the operator's image, and image and command are ignored.
	// +optional
	PlaybookRef *KeyRef `json:"playbookRef,omitempty"`
}

// EgressRule opens one way out of an agent pod beside the gateway and cluster DNS.
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != (has(self.podSelector) || has(self.namespaceSelector))",message="exactly one of `cidr` and the selectors must be set"
type EgressRule struct {
	// cidr of the destination, such as 203.0.113.0/24.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="`cidr` must be a CIDR block"
	CIDR string `json:"cidr,omitempty"`

	// namespaceSelector of the destination's namespace.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// podSelector of the destination.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// port, TCP.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// ContractField is one declared input or output of an action type.
type ContractField struct {
	// name, an identifier.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// type: string, number, boolean or object; string when empty.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`

	// required fields must be present and not null.
	// +optional
	Required bool `json:"required,omitempty"`

	// description for people and agents.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}
