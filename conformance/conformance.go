// Package conformance holds an installation of Axiom to what it promises, as somebody
// would who has nothing but the API: it makes a namespace, has runs, questions, actions
// and agents work in it, and looks at what the objects say.
//
// It decides what an installation must do in the small: that admission judges, that runs
// go through their nodes, and that what people decide comes to pass. It knows nothing of
// how the operator does it, and talks to nothing but the API server.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a run of the suite.
type Options struct {
	// Client has the rights of whoever asks. Its scheme knows the API and the core of
	// Kubernetes.
	Client client.Client
	Clock  clock.WithTicker
	// Namespace to work in. It is made, and deleted in the end, unless it is there.
	Namespace string
	// Patience for each thing that is waited for.
	Patience time.Duration
	// Pods tells whether the installation may start pods: without, what needs scripts
	// or agents is skipped.
	Pods bool
	// Told is called with each result as it comes; may be nil.
	Told func(Result)
}

// Statuses of results.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// A Result is how one case went.
type Result struct {
	Name string `json:"name"`
	// About says what the case holds the installation to.
	About   string  `json:"about"`
	Status  string  `json:"status"`
	Seconds float64 `json:"seconds"`
	// Message says what went wrong, or why the case was skipped.
	Message string `json:"message"`
}

// A Report is how the installation did.
type Report struct {
	Passed    bool     `json:"passed"`
	Namespace string   `json:"namespace"`
	StartedAt string   `json:"startedAt"`
	Cases     []Result `json:"cases"`
	// Leftovers says what could not be cleaned up; empty: nothing.
	Leftovers string `json:"leftovers"`
}

// Count is how many cases have the status.
func (r Report) Count(status string) int {
	n := 0
	for _, result := range r.Cases {
		if result.Status == status {
			n++
		}
	}
	return n
}

// Run makes all cases, each on objects of its own, and cleans up. The error says why
// there could be no report.
func Run(ctx context.Context, o Options) (Report, error) {
	report := Report{Passed: true, Namespace: o.Namespace, StartedAt: o.Clock.Now().UTC().Format(time.RFC3339), Cases: []Result{}}
	isOurs, err := o.enter(ctx)
	if err != nil {
		return report, err
	}
	for _, c := range cases() {
		result := o.try(ctx, c)
		report.Passed = report.Passed && result.Status != Failed
		report.Cases = append(report.Cases, result)
		if o.Told != nil {
			o.Told(result)
		}
	}
	if err := o.leave(context.WithoutCancel(ctx), isOurs); err != nil {
		report.Leftovers = err.Error()
	}
	return report, ctx.Err()
}

// enter makes the namespace, unless it is there.
func (o Options) enter(ctx context.Context) (isOurs bool, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: o.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	err = o.Client.Create(ctx, namespace)
	if err == nil {
		return true, nil
	}
	if failed := o.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); failed != nil {
		return false, fmt.Errorf("make namespace %s: %w", o.Namespace, err)
	}
	return false, nil
}

// leave deletes the namespace that was made, and of another all that the cases made.
func (o Options) leave(ctx context.Context, isOurs bool) error {
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	var errs []error
	for _, kind := range made() {
		err := o.Client.DeleteAllOf(ctx, kind, client.InNamespace(o.Namespace), client.MatchingLabels{label: "true"})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	if isOurs {
		errs = append(errs, o.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}))
	}
	return errors.Join(errs...)
}

// label is on all that the cases make.
const label = "axiom.apitomy.io/conformance"

// errSkipped ends a case that cannot be made here.
var errSkipped = errors.New("needs pods")

func (o Options) try(ctx context.Context, c trial) Result {
	begun := o.Clock.Now()
	result := Result{Name: c.name, About: c.about, Status: Passed}
	err := errSkipped
	if o.Pods || !c.needsPods {
		err = c.run(ctx, &bench{Options: o, name: c.name})
	}
	switch {
	case errors.Is(err, errSkipped):
		result.Status, result.Message = Skipped, err.Error()
	case err != nil:
		result.Status, result.Message = Failed, err.Error()
	}
	result.Seconds = o.Clock.Since(begun).Seconds()
	return result
}
