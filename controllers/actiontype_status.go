package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// libraryItem is an object of the library and what is wrong with it.
type libraryItem struct {
	kind api.ItemType
	// content with its name, as a composition would hold it.
	content    any
	generation int64
	problems   []api.Problem
}

// waitingCodes are of problems that are mended by what somebody else makes.
var waitingCodes = []string{"UNKNOWN_SESSION_TEMPLATE", "UNKNOWN_SECRET"}

// nextLibraryStatus is the verdict on an object of the library. Health tools read
// it as failed if only an edit helps, and as on its way if something is missing
// beside it.
func nextLibraryStatus(it libraryItem, before api.LibraryStatus, now time.Time) (*api.LibraryStatus, error) {
	content, err := turns.ContentOf(it.kind, it.content)
	if err != nil {
		return nil, fmt.Errorf("read library object: %w", err)
	}
	status := before.DeepCopy()
	status.ObservedGeneration, status.ContentRevision = it.generation, content.Revision
	status.Problems = it.problems[:min(len(it.problems), maxProblems)]
	if len(status.Problems) == 0 {
		status.Problems = nil
	}
	set := runConditions{conditions: &status.Conditions, generation: it.generation, now: metav1.NewTime(now).Rfc3339Copy()}
	isValid := item.IsValid(it.problems)
	reason, message := api.ReasonValid, ""
	if !isValid {
		reason, message = api.ReasonProblems, libraryMessage(it.problems)
	}
	isWaiting := !isValid && !slices.ContainsFunc(it.problems, needsEdit)
	set.set(api.ConditionValid, statusOf(isValid), reason, message)
	set.set(api.ConditionReady, statusOf(isValid), reason, message)
	set.set(api.ConditionReconciling, statusOf(isWaiting), reason, message)
	set.set(api.ConditionStalled, statusOf(!isValid && !isWaiting), reason, message)
	return status, nil
}

func needsEdit(p api.Problem) bool {
	return p.Severity == api.SeverityError && !slices.Contains(waitingCodes, p.Code)
}

// libraryMessage is the first error, and how many there are beside it.
func libraryMessage(problems []api.Problem) string {
	first, others := "", 0
	for _, p := range problems {
		switch {
		case p.Severity != api.SeverityError:
		case first == "":
			first = fmt.Sprintf("%s at %s: %s", p.Code, p.Path, p.Message)
		default:
			others++
		}
	}
	if others > 0 {
		return fmt.Sprintf("%s (and %d more)", first, others)
	}
	return first
}

func hasProblem(problems []api.Problem, code string) bool {
	return slices.ContainsFunc(problems, func(p api.Problem) bool { return p.Code == code })
}

// validSince is how long the verdict has been what it is.
func validSince(status *api.LibraryStatus) time.Time {
	if valid := apimeta.FindStatusCondition(status.Conditions, api.ConditionValid); valid != nil {
		return valid.LastTransitionTime.Time
	}
	return time.Time{}
}

// reportLibrary writes a status that says something new.
func reportLibrary(ctx context.Context, c client.Client, before, updated client.Object, isSame bool) error {
	if isSame {
		return nil
	}
	if err := client.IgnoreNotFound(c.Status().Update(ctx, updated)); err != nil {
		return fmt.Errorf("update status of %s: %w", before.GetName(), err)
	}
	return nil
}
