package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isFresh tells whether an object is stored as it was read. What cannot be
// taken back is not done for a view that a cache kept too long; its next
// version wakes whoever has to look again.
func isFresh(ctx context.Context, live client.Reader, object client.Object) (bool, error) {
	stored, _ := object.DeepCopyObject().(client.Object)
	err := live.Get(ctx, client.ObjectKeyFromObject(object), stored)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s again: %w", object, object.GetName(), err)
	}
	return stored.GetUID() == object.GetUID() && stored.GetResourceVersion() == object.GetResourceVersion(), nil
}
