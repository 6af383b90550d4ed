// Package v1alpha1 holds the API types of the group axiom.apitomy.io: drafts of
// workflows and the turns in which an agent edits them, the durable runs of
// those workflows, and what both need around them.
//
// The package is types, markers, conditions and reasons; every rule that needs
// more than a schema lives in the admission webhooks and the pure packages
// they share with the controllers.
//
// +kubebuilder:object:generate=true
// +groupName=axiom.apitomy.io
package v1alpha1
