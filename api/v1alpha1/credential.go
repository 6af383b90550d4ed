package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IsCredential tells whether the owner of a Secret said, by its label, that pods
// may have it.
func IsCredential(secret metav1.Object) bool {
	return secret.GetLabels()[LabelCredential] == "true"
}
