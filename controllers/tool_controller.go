package controllers

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/item"
)

// ToolReconciler keeps the verdict on the tools of the library.
type ToolReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Clock dates verdicts.
	Clock clock.PassiveClock
}

// SetupWithManager registers the controller.
func (r *ToolReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.Tool{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// Reconcile judges a tool anew.
func (r *ToolReconciler) Reconcile(ctx context.Context, tool *api.Tool) (ctrl.Result, error) {
	if !tool.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	named := api.NamedTool{Name: tool.Name, ToolSpec: tool.Spec}
	status, err := nextLibraryStatus(libraryItem{
		kind: api.ItemTool, content: named, generation: tool.Generation, problems: item.ToolProblems(named),
	}, tool.Status, r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	updated := tool.DeepCopy()
	updated.Status = *status
	return ctrl.Result{}, reportLibrary(ctx, r.Client, tool, updated, equalStatus(tool.Status, *status))
}
