package live

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var turnsResource = schema.GroupResource{Group: "axiom.apitomy.io", Resource: "turns"}

func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Name: "t", Kind: "turns"},
	}}
}

func TestRefusals(t *testing.T) {
	const door = `admission webhook "turn.axiom.apitomy.io" denied the request: `
	for name, tc := range map[string]struct {
		err  error
		want *refusal
	}{
		"a conflict": {
			statusError(409, metav1.StatusReasonConflict, door+`Operation cannot be fulfilled on turns.axiom.apitomy.io "t": An AI turn is already running: u`),
			&refusal{409, "Conflict", "An AI turn is already running: u"},
		},
		"an invalid member": {
			statusError(422, metav1.StatusReasonInvalid, `Turn.axiom.apitomy.io "t" is invalid: spec.message: Required value`),
			&refusal{422, "Invalid", "spec.message: Required value"},
		},
		"a right that lacks": {
			apierrors.NewForbidden(turnsResource, "t", errors.New(`User "bob" cannot patch resource "turns"`)),
			&refusal{403, "Forbidden", `User "bob" cannot patch resource "turns"`},
		},
		"a target that lacks": {
			statusError(404, metav1.StatusReasonNotFound, door+`compositions.axiom.apitomy.io "gone" not found`),
			&refusal{404, "NotFound", `compositions.axiom.apitomy.io "gone" not found`},
		},
		"a wrapped one":        {fmt.Errorf("create: %w", statusError(413, metav1.StatusReasonRequestEntityTooLarge, "too large")), &refusal{413, "RequestEntityTooLarge", "too large"}},
		"a kind that is not":   {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}}, nil},
		"a server that is ill": {statusError(500, metav1.StatusReasonInternalError, "no"), nil},
		"too much at once":     {apierrors.NewTooManyRequests("later", 1), nil},
		"no server":            {errors.New("dial"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, refusalOf(tc.err)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplanations(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a kind that is not": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Message: "the server could not find the requested resource"}},
			"the cluster does not serve axiom.apitomy.io/v1alpha1: is Axiom installed there? (the server could not find the requested resource)",
		},
		"an object that is not": {apierrors.NewNotFound(turnsResource, "t"), `turns.axiom.apitomy.io "t" not found`},
		"somebody unknown":      {apierrors.NewUnauthorized("Unauthorized"), "the cluster does not know who you are: log in again (Unauthorized)"},
		"no server": {
			&url.Error{Op: "Get", URL: "https://h/apis", Err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}},
			"reach cluster: dial tcp: connection refused",
		},
		"anything else": {errors.New("x"), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			got := explain(tc.err)
			if got.Error() != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if !strings.HasPrefix(tc.want, "reach") && !errors.Is(got, tc.err) {
				t.Error("the cause is lost")
			}
		})
	}
}
