package v1alpha1

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// object is a pointer to a kind of the API.
type object[T any] interface {
	*T
	client.Object
}

// request is one write with its objects decoded.
type request[T any] struct {
	refusals
	// before is what is stored; nil on creation.
	before *T
	// after is what the caller wants to be stored.
	after *T
}

// isCreate tells whether the object does not exist yet.
func (r request[T]) isCreate() bool {
	return r.before == nil
}

// validate judges a request: an error refuses it. One that is no API status
// counts as a fault of the server.
type validate[T any] func(ctx context.Context, req request[T]) (warnings []string, err error)

// annotate returns the annotations that the object shall have.
type annotate[T any] func(ctx context.Context, req request[T]) (map[string]string, error)

// validating makes a door of f.
func validating[T any, P object[T]](f validate[T]) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, raw admission.Request) admission.Response {
		req, err := decode[T, P](raw)
		if err != nil {
			return refused(apierrors.NewBadRequest(err.Error()))
		}
		if err := withinSize(raw); err != nil {
			return refused(err)
		}
		warnings, err := f(ctx, req)
		if err != nil {
			return refused(err)
		}
		return admission.Allowed("").WithWarnings(warnings...)
	})
}

// annotating makes a door of f.
func annotating[T any, P object[T]](f annotate[T]) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, raw admission.Request) admission.Response {
		req, err := decode[T, P](raw)
		if err != nil {
			// The schema comes next and names the field; what it lets through the
			// validating door refuses.
			return admission.Allowed("")
		}
		annotations, err := f(ctx, req)
		if err != nil {
			return refused(err)
		}
		return patchedAnnotations(P(req.after).GetAnnotations(), annotations)
	})
}

// decode reads the kind that the API server registered the door for, as it
// would: by exact names, integers as such.
func decode[T any, P object[T]](raw admission.Request) (request[T], error) {
	req := request[T]{refusals: refusals{Request: raw}, after: new(T)}
	if err := utiljson.Unmarshal(raw.Object.Raw, P(req.after)); err != nil {
		return req, fmt.Errorf("decode %s: %w", raw.Kind.Kind, err)
	}
	// The name of a creation may have been generated, and is in the object alone.
	req.name = P(req.after).GetName()
	if raw.Operation == admissionv1.Create {
		return req, nil
	}
	req.before = new(T)
	if err := utiljson.Unmarshal(raw.OldObject.Raw, P(req.before)); err != nil {
		return req, fmt.Errorf("decode stored %s: %w", raw.Kind.Kind, err)
	}
	return req, nil
}

// refusals makes the errors that a request is refused with.
type refusals struct {
	admission.Request
	name string
}

// invalid is 422 with all errs, or nil without any.
func (r refusals) invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}, r.name, errs)
}

// unprocessable is 422 with a message of its own, where the usual one would
// repeat values.
func (r refusals) unprocessable(message string, causes []metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: message,
		Details: &metav1.StatusDetails{Group: r.Kind.Group, Kind: r.Kind.Kind, Name: r.name, Causes: causes},
	}}
}

// conflict is 409: the request does not suit the state that things are in.
func (r refusals) conflict(format string, args ...any) error {
	return apierrors.NewConflict(r.resource(), r.name, fmt.Errorf(format, args...))
}

// forbidden is 403: somebody else might do it.
func (r refusals) forbidden(format string, args ...any) error {
	return apierrors.NewForbidden(r.resource(), r.name, fmt.Errorf(format, args...))
}

// missing is 404 for an object that the request depends on.
func (r refusals) missing(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: r.Resource.Group, Resource: resource}, name)
}

// nothing is 404 for a request that finds nothing to work on.
func (r refusals) nothing(format string, args ...any) error {
	err := apierrors.NewNotFound(r.resource(), r.name)
	err.ErrStatus.Message = fmt.Sprintf(format, args...)
	return err
}

func (r refusals) resource() schema.GroupResource {
	return schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
}

// fault hides the status of an error that the door's own reads and writes met:
// it is not the caller's.
func fault(format string, args ...any) error {
	return apierrors.NewInternalError(fmt.Errorf(format, args...))
}
