package gateway_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/item"
)

// operate plays the operator's controller of compositions: what a draft holds
// gets its status and its snapshot.
func (w *world) operate() {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	versions, err := k8s.Watch(ctx, &api.CompositionList{}, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range versions.ResultChan() {
			if comp, ok := event.Object.(*api.Composition); ok {
				_ = observe(ctx, comp) // whoever was faster wakes it again
			}
		}
	}()
	DeferCleanup(func() {
		stop()
		<-ended
	})
}

func observe(ctx context.Context, comp *api.Composition) error {
	if comp.Status.ObservedGeneration == comp.Generation && comp.Status.Snapshot != "" {
		return nil
	}
	views, err := item.Of(comp, nil)
	if err != nil {
		return err
	}
	comp.Status.Items = nil
	var entries []any
	for _, view := range views {
		comp.Status.Items = append(comp.Status.Items, api.ItemStatus{
			Type: view.Type, Name: view.Name, ContentRevision: view.Revision, Valid: view.IsValid(), LastAuthor: api.AuthorUser,
		})
		entries = append(entries, map[string]any{"type": view.Type, "name": view.Name, "contentRevision": view.Revision, "author": "user"})
	}
	snapshot := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: comp.Namespace, Name: fmt.Sprintf("%s-%d", comp.Name, comp.Generation),
			Labels:          map[string]string{api.LabelComposition: comp.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(comp, api.GroupVersion.WithKind("Composition"))},
		},
		Revision: comp.Generation,
		Data:     runtime.RawExtension{Raw: []byte(compactJSON(map[string]any{"generation": comp.Generation, "items": entries}))},
	}
	if err := k8s.Create(ctx, snapshot); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	comp.Status.ObservedGeneration, comp.Status.Snapshot = comp.Generation, snapshot.Name
	return k8s.Status().Update(ctx, comp)
}

// observed waits until what the draft holds is recorded.
func (w *world) observed(comp *api.Composition) *api.Composition {
	GinkgoHelper()
	var now *api.Composition
	Eventually(func(g Gomega) {
		now = reload(w, comp)
		g.Expect(now.Status.ObservedGeneration).To(Equal(now.Generation))
	}).Should(Succeed())
	return now
}

// edit has a person change a draft.
func (w *world) edit(comp *api.Composition, how func(*api.Composition)) *api.Composition {
	GinkgoHelper()
	Eventually(func() error {
		now := reload(w, comp)
		how(now)
		return k8s.Update(w.ctx, now)
	}).Should(Succeed())
	return w.observed(comp)
}

func keyOf(w *world, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}
