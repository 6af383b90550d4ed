package v1alpha1

import (
	"bytes"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestWhatIsTooLargeIsRefusedWithTheFigure(t *testing.T) {
	t.Parallel()
	sized := func(bytesCount int) (req admission.Request) {
		req.Object.Raw = bytes.Repeat([]byte(" "), bytesCount)
		return req
	}
	if err := withinSize(sized(maxObject)); err != nil {
		t.Errorf("at the limit: got %v", err)
	}
	err := withinSize(sized(maxObject + 1))
	if !apierrors.IsRequestEntityTooLargeError(err) {
		t.Fatalf("got %v, want an error of size", err)
	}
	if want := "Request entity too large: the object has 1310721 bytes, at most 1310720 can be stored"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if response := refused(err); response.Result.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got code %d", response.Result.Code)
	}
}
