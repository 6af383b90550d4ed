// Package edit writes the operator's and the gateway's edits into a
// composition. It decides what a failed write means, and knows nothing of why
// the edits are made.
package edit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

var errChanged = errors.New("the composition was changed since it was read")

// Write makes the edits on exactly this version of the draft, through a client
// that reads live. When somebody else was faster the error is a conflict; any
// refusal is what the API server has against the content.
func Write(ctx context.Context, c client.Client, comp *api.Composition, edits turns.Edits, options ...client.PatchOption) error {
	patch, err := turns.Patch(comp, edits)
	if err != nil {
		return err
	}
	target := &api.Composition{}
	target.Namespace, target.Name = comp.Namespace, comp.Name
	err = c.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), options...)
	if !apierrors.IsInvalid(err) {
		return err
	}
	// A patch of places that the newer version lacks is refused as invalid,
	// before versions are compared.
	if getErr := c.Get(ctx, client.ObjectKeyFromObject(comp), target); getErr != nil {
		return fmt.Errorf("read composition %s: %w", comp.Name, getErr)
	}
	if target.UID != comp.UID || target.ResourceVersion != comp.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Group: api.GroupVersion.Group, Resource: "compositions"}, comp.Name, errChanged)
	}
	return err
}
