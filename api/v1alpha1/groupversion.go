package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion names this version of the API.
var GroupVersion = schema.GroupVersion{Group: "axiom.apitomy.io", Version: "v1alpha1"}

// SchemeBuilder collects the functions that add this package to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds every kind of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ActionType{}, &ActionTypeList{},
		&AgentSession{}, &AgentSessionList{},
		&Composition{}, &CompositionList{},
		&HumanTask{}, &HumanTaskList{},
		&SessionTemplate{}, &SessionTemplateList{},
		&StreamEvent{}, &StreamEventList{},
		&Tool{}, &ToolList{},
		&Turn{}, &TurnList{},
		&WorkflowRun{}, &WorkflowRunList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
