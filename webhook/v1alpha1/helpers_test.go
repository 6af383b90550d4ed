package v1alpha1_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// beRefused matches an API error of a code whose message holds all parts.
func beRefused(code int, parts ...string) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(err error) (bool, error) {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return false, nil
		}
		for _, part := range parts {
			if !strings.Contains(status.Status().Message, part) {
				return false, nil
			}
		}
		return int(status.Status().Code) == code, nil
	}).WithMessage(fmt.Sprintf("be refused with %d and a message with %q", code, parts))
}

// blankFlow is a workflow that runs.
const blankFlow = `{"id":"triage","name":"triage",
	"nodes":[{"id":"start-1","type":"start","name":"Start","config":{"inputs":[]}},{"id":"end-1","type":"end","name":"End","config":{}}],
	"edges":[{"id":"edge-1","source":"start-1","target":"end-1","priority":0,"isDefault":true}]}`

func raw(text string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(text)}
}

func rawOf(v any) *runtime.RawExtension {
	GinkgoHelper()
	text, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return &runtime.RawExtension{Raw: text}
}

func document(text string) map[string]any {
	GinkgoHelper()
	v, err := jsonvalue.Decode([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	doc, isObject := v.(map[string]any)
	Expect(isObject).To(BeTrue())
	return doc
}

func revision(text string) string {
	GinkgoHelper()
	rev, err := changeset.Revision(document(text))
	Expect(err).NotTo(HaveOccurred())
	return rev
}

// renamed is the blank workflow with another name.
func renamed(name string) string {
	return strings.Replace(blankFlow, `"name":"triage"`, fmt.Sprintf(`"name":%q`, name), 1)
}

func newComposition(namespace, name, flow string) *api.Composition {
	c := &api.Composition{}
	c.Namespace, c.Name = namespace, name
	if flow != "" {
		c.Spec.Workflow = raw(flow)
	}
	return c
}

// staged makes the composition one that everybody may ask the agent about.
func staged(c *api.Composition) *api.Composition {
	c.Spec.Agent.ItemPolicy = api.ItemStaged
	return c
}

func newTurn(namespace, name, composition string) *api.Turn {
	t := &api.Turn{}
	t.Namespace, t.Name = namespace, name
	t.Spec.CompositionRef = &api.LocalRef{Name: composition}
	t.Spec.Message = "Wait an hour before closing."
	return t
}

// create stores an object for a spec to work on.
func create[T client.Object](ctx context.Context, as person, obj T) T {
	GinkgoHelper()
	Expect(as.Create(ctx, obj)).To(Succeed())
	return obj
}

// setState makes the operator's record of a turn's state.
func setState(ctx context.Context, turn *api.Turn, states ...api.TurnPhase) {
	GinkgoHelper()
	for _, state := range states {
		turn.Status.State = state
		Expect(operator.Status().Update(ctx, turn)).To(Succeed())
	}
}

// mergePatch makes a merge patch of v.
func mergePatch(format string, args ...any) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, args...))
}

// jsonPatch makes a JSON patch.
func jsonPatch(format string, args ...any) client.Patch {
	return client.RawPatch("application/json-patch+json", fmt.Appendf(nil, format, args...))
}

// reload reads an object again.
func reload[T client.Object](ctx context.Context, obj T) T {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

func duration(text string) *metav1.Duration {
	GinkgoHelper()
	d, err := time.ParseDuration(text)
	Expect(err).NotTo(HaveOccurred())
	return &metav1.Duration{Duration: d}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
