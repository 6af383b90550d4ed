package crash

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configMap has all that differs from play to play.
func configMap(uid, namespace, hex string, at time.Time) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "r-" + hex, Namespace: namespace, UID: types.UID(uid), ResourceVersion: hex,
			CreationTimestamp: metav1.NewTime(at), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: hex}},
		},
		Data: map[string]string{"of " + uid: "in " + namespace + " since " + at.Format(time.RFC3339Nano), "stays": "deadbeef"},
	}
}

func TestNormalFormsOfTwoPlaysAreEqual(t *testing.T) {
	t.Parallel()
	first := configMap("0b7a1f3e-9d65-4c8a-a5b0-000000000001", "crash-1", "0123456789abcdef", time.Unix(1, 5).UTC())
	second := configMap("0b7a1f3e-9d65-4c8a-a5b0-00000000000f", "crash-2", "fedcba9876543210", time.Unix(99, 0).UTC())
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	one, err := normalForm([]client.Object{first, other}, "crash-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := normalForm([]client.Object{other, second}, "crash-2", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("normal forms (-first +second):\n%s", diff)
	}
}

func TestNormalFormKeepsWhatCounts(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	uid := "0b7a1f3e-9d65-4c8a-a5b0-000000000001"
	changed, _ := configMap(uid, "n", "0123456789abcdef", at).(*corev1.ConfigMap)
	changed.Data["stays"] = "deadcafe"
	forms := make([][]any, 2)
	for i, object := range []client.Object{configMap(uid, "n", "0123456789abcdef", at), changed} {
		var err error
		if forms[i], err = normalForm([]client.Object{object}, "n", nil); err != nil {
			t.Fatal(err)
		}
	}
	if cmp.Equal(forms[0], forms[1]) {
		t.Error("different data has the same normal form")
	}
}

func TestWritesThatCount(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]bool{
		"POST /api/v1/namespaces/n/pods":                                   true,
		"PUT /apis/axiom.apitomy.io/v1alpha1/namespaces/n/turns/t/status":  true,
		"DELETE /api/v1/namespaces/n/secrets/s":                            true,
		"GET /api/v1/namespaces/n/pods":                                    false,
		"POST /apis/events.k8s.io/v1/namespaces/n/events":                  false,
		"POST /api/v1/namespaces/n/events":                                 false,
		"PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/l":           false,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":      false,
		"PATCH /apis/axiom.apitomy.io/v1alpha1/namespaces/n/streamevents/": true,
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := isWrite(req); got != want {
			t.Errorf("%s: got %t, want %t", request, got, want)
		}
	}
}
