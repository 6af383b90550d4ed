package v1alpha1

import (
	"cmp"
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/streamevent"
)

// The mutating door must see a request once: the annotation that it leaves
// would be stale on a second visit.
//
// +kubebuilder:webhook:path=/mutate/compositions,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=Never,timeoutSeconds=10,groups=axiom.apitomy.io,resources=compositions,verbs=create;update,versions=v1alpha1,name=composition.axiom.apitomy.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate/compositions,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=20,groups=axiom.apitomy.io,resources=compositions,verbs=create;update,versions=v1alpha1,name=composition.axiom.apitomy.io,admissionReviewVersions=v1

// compositionDoors are the doors of Composition.
type compositionDoors struct {
	operator    string
	live        client.Reader
	verdicts    verdicts
	expressions *expression.Cache
	clock       clock.PassiveClock
}

// annotate refuses an edit of content that was based on another workflow than
// the live one; then it records the revision that is stored, who edited, and
// since when triggers are active.
func (c compositionDoors) annotate(_ context.Context, req request[api.Composition]) (map[string]string, error) {
	sent := req.after.Annotations
	after, err := contentsOf(req.after, c.verdicts.of(req.after.Spec.Workflow))
	if err != nil {
		// The validating door says what is wrong with it.
		return sent, nil //nolint:nilerr // reported there, with the field
	}
	edited, editor := true, ""
	if !req.isCreate() {
		// Admission lets no unreadable workflow in; should one be there, it must
		// be possible to replace it.
		before, _ := contentsOf(req.before, c.verdicts.of(req.before.Spec.Workflow))
		edited, editor = !before.equal(after), req.before.Annotations[api.AnnotationEditedBy]
		if base := sent[api.AnnotationBaseRevision]; edited && base != "" && base != before.revision {
			return nil, req.conflict("base-revision %s is not the live revision %s", base, cmp.Or(before.revision, "(no workflow)"))
		}
	}
	if edited {
		editor = c.editor(req)
	}
	wanted := copyAnnotations(sent)
	setOrRemove(wanted, api.AnnotationBaseRevision, after.revision)
	setOrRemove(wanted, api.AnnotationEditedBy, editor)
	setOrRemove(wanted, api.AnnotationWrite, c.mark(req))
	setOrRemove(wanted, api.AnnotationTriggersSince, streamevent.NextTriggersSince(req.before, req.after, c.clock.Now()))
	return wanted, nil
}

// mark is that of the operator's latest write: others can neither claim one nor
// take it away.
func (c compositionDoors) mark(req request[api.Composition]) string {
	switch {
	case req.UserInfo.Username == c.operator:
		return req.after.Annotations[api.AnnotationWrite]
	case req.isCreate():
		return ""
	}
	return req.before.Annotations[api.AnnotationWrite]
}

// editor is who changed the content: the caller, unless the operator writes
// what somebody else accepted.
func (c compositionDoors) editor(req request[api.Composition]) string {
	if req.UserInfo.Username == c.operator {
		return cmp.Or(req.after.Annotations[api.AnnotationEditedBy], c.operator)
	}
	return req.UserInfo.Username
}

func (c compositionDoors) validate(ctx context.Context, req request[api.Composition]) ([]string, error) {
	var errs field.ErrorList
	judged := c.verdicts.of(req.after.Spec.Workflow)
	if req.isCreate() || !apiequality.Semantic.DeepEqual(req.before.Spec, req.after.Spec) {
		errs = append(validateComposition(req.after, judged), validateTriggers(req.after, c.expressions)...)
	}
	unknown, err := c.validateTurn(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := req.invalid(append(errs, unknown...)); err != nil {
		return nil, err
	}
	warnings := triggerWarnings(req.after.Spec.Triggers, judged.required)
	if !req.isCreate() && apiequality.Semantic.DeepEqual(req.before.Spec.Workflow, req.after.Spec.Workflow) {
		return warnings, nil
	}
	return slices.Concat(judged.warnings, warnings), nil
}

// validateTurn looks for the turn that a new value of the annotation names.
func (c compositionDoors) validateTurn(ctx context.Context, req request[api.Composition]) (field.ErrorList, error) {
	name := req.after.Annotations[api.AnnotationTurn]
	if name == "" || !req.isCreate() && name == req.before.Annotations[api.AnnotationTurn] {
		return nil, nil
	}
	turn := &api.Turn{}
	// No turn has a name that the API server cannot be asked for.
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		err := client.IgnoreNotFound(c.live.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: name}, turn))
		if err != nil {
			return nil, fault("read turn %s: %w", name, err)
		}
	}
	if turn.Spec.CompositionRef != nil && turn.Spec.CompositionRef.Name == req.name {
		return nil, nil
	}
	path := field.NewPath("metadata", "annotations").Key(api.AnnotationTurn)
	return field.ErrorList{field.Invalid(path, name, "must name a turn of this composition")}, nil
}
