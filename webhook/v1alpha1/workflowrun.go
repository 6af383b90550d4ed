package v1alpha1

import (
	"context"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// +kubebuilder:webhook:path=/mutate/workflowruns,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=Never,timeoutSeconds=10,groups=axiom.apitomy.io,resources=workflowruns,verbs=create;update,versions=v1alpha1,name=workflowrun.axiom.apitomy.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate/workflowruns,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=workflowruns,verbs=create;update,versions=v1alpha1,name=workflowrun.axiom.apitomy.io,admissionReviewVersions=v1

// mutableRunMembers of a run's spec; the schema says in which direction.
var mutableRunMembers = []string{"resumeRequests", "cancel", "ttlSecondsAfterFinished"}

// completeRun stamps who makes, resumes and cancels a run, whatever was sent, and writes down
// the policy that a run has by default.
func completeRun(_ context.Context, raw admission.Request) admission.Response {
	req, err := decode[api.WorkflowRun](raw)
	spec, unreadable := memberOf(raw.Object.Raw, "spec")
	if err != nil || unreadable != nil || spec == nil {
		// The schema comes next and names the field.
		return admission.Allowed("")
	}
	response := patchedAnnotations(req.after.Annotations, runAnnotations(req))
	if req.after.Spec.ResumePolicy == "" && (req.isCreate() || req.before.Spec.ResumePolicy != "") {
		response.Patches = append(response.Patches, jsonpatch.NewOperation("add", "/spec/resumePolicy", defaultPolicy(&req.after.Spec)))
	}
	return response
}

// runAnnotations keeps the stamps that are stored, but for what the caller does: to
// make the run, to raise the number of resumes, and to cancel. A number that a run is
// made with asks for no resume.
func runAnnotations(req request[api.WorkflowRun]) map[string]string {
	annotations := copyAnnotations(req.after.Annotations)
	for _, s := range []struct {
		name string
		does bool
	}{
		{api.AnnotationRequestedBy, req.isCreate()},
		{api.AnnotationResumedBy, !req.isCreate() && req.after.Spec.ResumeRequests > req.before.Spec.ResumeRequests},
		{api.AnnotationCancelledBy, req.after.Spec.Cancel && (req.isCreate() || !req.before.Spec.Cancel)},
	} {
		stamp := ""
		switch {
		case s.does:
			stamp = req.UserInfo.Username
		case !req.isCreate():
			stamp = req.before.Annotations[s.name]
		}
		setOrRemove(annotations, s.name, stamp)
	}
	return annotations
}

func defaultPolicy(spec *api.WorkflowRunSpec) api.ResumePolicy {
	if spec.IsExplicit() {
		return api.ResumeExplicit
	}
	return api.ResumeAutomatic
}

// runDoor judges runs.
type runDoor struct {
	scanner *secretscan.Scanner
}

func (d runDoor) validate(_ context.Context, req request[api.WorkflowRun]) ([]string, error) {
	switch {
	case !req.isCreate() && req.before.Spec.Git != nil:
		return unheeded(req), validateSupervisedUnchanged(req)
	case !req.isCreate():
		return nil, validateSpecUnchanged(req.refusals, mutableRunMembers...)
	case req.after.Spec.Git != nil:
		if err := d.validateSupervised(req); err != nil {
			return nil, err
		}
	}
	return nil, req.invalid(validateISODuration(req.after.Spec.ActiveDeadline, field.NewPath("spec", "activeDeadline")))
}

// unheeded warns of a cancel that comes when there is nothing left to cancel.
func unheeded(req request[api.WorkflowRun]) []string {
	phase := req.before.Status.Phase
	if !phase.IsTerminal() || req.before.Spec.Cancel || !req.after.Spec.Cancel {
		return nil
	}
	return []string{fmt.Sprintf("spec.cancel: the run is %s, so there is nothing to cancel", phase)}
}
