package controllers

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/item"
)

// ActionTypeReconciler keeps the verdict on the action types of the library: what
// is wrong with each by itself, and with what it refers to.
type ActionTypeReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server. Of Secrets it reads one by its name, and of that
	// the metadata.
	Live client.Reader
	// Clock dates verdicts.
	Clock clock.PassiveClock
	// Expressions compiles the placeholders of prompts.
	Expressions *expression.Cache
}

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=actiontypes;tools;sessiontemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=actiontypes/status;tools/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// SetupWithManager registers the controller.
func (r *ActionTypeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.ActionType{}).
		Watches(&api.SessionTemplate{}, handler.EnqueueRequestsFromMapFunc(r.usersOf), builder.WithPredicates(comesOrGoes())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// comesOrGoes passes over changes: only whether an object exists is of interest.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(ctrlevent.UpdateEvent) bool { return false }}
}

// usersOf finds the action types that refer to a session template.
func (r *ActionTypeReconciler) usersOf(ctx context.Context, object client.Object) []reconcile.Request {
	list := &api.ActionTypeList{}
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Action types could not be listed", "namespace", object.GetNamespace())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.Agent.SessionTemplate == object.GetName() {
			requests = append(requests, requestFor(object.GetNamespace(), list.Items[i].Name))
		}
	}
	return requests
}

// Reconcile judges an action type anew. One that refers to a Secret that is not
// there is looked at again after a while: nothing tells when a Secret comes, since
// the operator neither lists nor watches them.
func (r *ActionTypeReconciler) Reconcile(ctx context.Context, library *api.ActionType) (ctrl.Result, error) {
	if !library.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	named := api.NamedActionType{Name: library.Name, ActionTypeSpec: library.Spec}
	around, failed := r.surroundings(ctx, library.Namespace)
	problems := item.ActionTypeProblems(named, around)
	if err := failed(); err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	status, err := nextLibraryStatus(libraryItem{
		kind: api.ItemActionType, content: named, generation: library.Generation, problems: problems,
	}, library.Status, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	updated := library.DeepCopy()
	updated.Status = *status
	if err := reportLibrary(ctx, r.Client, library, updated, equalStatus(library.Status, *status)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: nextLook(status, now)}, nil
}

// surroundings look at what an action type refers to. The first error makes the
// whole look void; it is there once the problems are.
func (r *ActionTypeReconciler) surroundings(ctx context.Context, namespace string) (around action.Surroundings, failed func() error) {
	var firstErr error
	found := func(err error) bool {
		if client.IgnoreNotFound(err) != nil {
			firstErr = cmp.Or(firstErr, err)
		}
		return err == nil
	}
	return action.Surroundings{
		CheckPrompt: item.PromptCheck(r.Expressions),
		HasSessionTemplate: func(name string) bool {
			_, err := ResolveTemplate(ctx, r.Client, namespace, name)
			return found(err)
		},
		HasCredential: func(name string) bool {
			if !isObjectName(name) {
				return false
			}
			secret := &metav1.PartialObjectMetadata{}
			secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			return found(wrap("look at secret", r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret))) &&
				api.IsCredential(secret)
		},
	}, func() error { return firstErr }
}

// isObjectName tells whether an object can have the name. The API server must not
// be asked for any other, which drafts may hold.
func isObjectName(name string) bool {
	return len(validation.IsDNS1123Subdomain(name)) == 0
}

const (
	// firstLook and lastLook are the shortest and the longest time after which an
	// action type is looked at again that refers to a missing Secret.
	firstLook = 5 * time.Second
	lastLook  = 10 * time.Minute
)

// nextLook is when to look again for a Secret: soon at first, and then as late as
// it has been missing for so far.
func nextLook(status *api.LibraryStatus, now time.Time) time.Duration {
	if !hasProblem(status.Problems, "UNKNOWN_SECRET") {
		return 0
	}
	return min(max(firstLook, now.Sub(validSince(status))), lastLook)
}
