package v1alpha1

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// +kubebuilder:webhook:path=/validate/humantasks,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=humantasks,verbs=create;update,versions=v1alpha1,name=humantask.axiom.apitomy.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/mutate/humantasks/status,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=Never,timeoutSeconds=10,groups=axiom.apitomy.io,resources=humantasks/status,verbs=update,versions=v1alpha1,name=humantask-status.axiom.apitomy.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate/humantasks/status,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=humantasks/status,verbs=update,versions=v1alpha1,name=humantask-status.axiom.apitomy.io,admissionReviewVersions=v1

// taskDoors are the doors of HumanTask.
type taskDoors struct {
	operator string
	live     client.Reader
	scanner  *secretscan.Scanner
	clock    clock.PassiveClock
}

func (h taskDoors) validate(_ context.Context, req request[api.HumanTask]) ([]string, error) {
	if !req.isCreate() {
		return nil, validateSpecUnchanged(req.refusals)
	}
	if req.UserInfo.Username != h.operator {
		if req.after.Spec.RunRef != nil {
			return nil, req.forbidden("spec.runRef: only the operator may set it")
		}
		if req.after.Spec.Fingerprint != "" {
			return nil, req.forbidden("spec.fingerprint: only the operator may set it")
		}
	}
	return nil, req.invalid(validateTask(&req.after.Spec, field.NewPath("spec")))
}

// validateTask judges a question: that it can be read, answered and waited for.
func validateTask(spec *api.HumanTaskSpec, path *field.Path) field.ErrorList {
	about := path.Child("humanContext")
	errs := slices.Concat(
		validateNotBlank(spec.HumanContext.Title, about.Child("title")),
		validateReferences(spec.HumanContext.References, about.Child("references")),
		validateSchema(spec.ResponseSchema, path.Child("responseSchema")),
		validateISODuration(spec.ExpiresAfter, path.Child("expiresAfter")),
	)
	if spec.Form != nil {
		errs = append(errs, validateFields(spec.Form.Fields, path.Child("form", "fields"))...)
	}
	return errs
}

func validateReferences(references []api.LabelledURL, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, reference := range references {
		if !isWebURL(reference.URL) {
			errs = append(errs, field.Invalid(path.Index(i).Child("url"), reference.URL, "must be an absolute URL with http or https"))
		}
	}
	return errs
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func validateFields(fields []api.FormField, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]bool, len(fields))
	for i, f := range fields {
		name := path.Index(i).Child("name")
		errs = append(errs, validateNotBlank(f.Name, name)...)
		if seen[f.Name] {
			errs = append(errs, field.Duplicate(name, f.Name))
		}
		seen[f.Name] = true
	}
	return errs
}

func validateSchema(raw *runtime.RawExtension, path *field.Path) field.ErrorList {
	if raw == nil {
		return nil
	}
	schema, err := jsonvalue.Decode(raw.Raw)
	if err == nil {
		err = form.CheckSchema(schema)
	}
	if err != nil {
		reason := fmt.Sprintf("must be a JSON Schema 2020-12 that refers to nothing outside itself: %v", err)
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, reason)}
	}
	return nil
}
