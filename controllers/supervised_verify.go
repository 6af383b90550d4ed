package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/definition"
)

const (
	// verifyTimeout is how long the remote is asked whether it still has the
	// definition; what is retained serves without it.
	verifyTimeout = 30 * time.Second
	// A definition that does not hold is looked at again between these times.
	firstVerify, lastVerify = 10 * time.Second, 10 * time.Minute
)

// definitionVerdict says why a run may not go on with what is retained.
type definitionVerdict struct {
	reason, message string
}

// reopen reads the definition that a run retains. Before an execution all of it is
// held against what was pinned, what the history tells, and what the remote has.
func (r *SupervisedRunReconciler) reopen(ctx context.Context, run *api.WorkflowRun, isNew bool) (*supervisedPass, *definitionVerdict, error) {
	if known := r.bundles.find(run); known != nil && !isNew {
		return r.newPass(run, known), nil, nil
	}
	sources, verdict, err := r.retained(ctx, run)
	if verdict != nil || err != nil {
		return &supervisedPass{run: run, now: r.Clock.Now()}, verdict, err
	}
	bundle, err := definition.Admit(ctx, definition.Retained(sources), run.Spec.Git.Path, definitionGate{r.Scanner}, r.Expressions)
	if refusal, isRefusal := errors.AsType[*definition.Refusal](err); isRefusal {
		return &supervisedPass{run: run, now: r.Clock.Now()}, changed("the retained definition is not admitted: " + refusal.Error()), nil
	}
	if err != nil {
		return nil, nil, err
	}
	p := r.newPass(run, bundle)
	if !isNew {
		r.bundles.note(run, bundle)
		return p, nil, nil
	}
	if verdict, err := r.checkIdentity(ctx, p); verdict != nil || err != nil {
		return p, verdict, err
	}
	if verdict, err := r.checkRemote(ctx, p, sources); verdict != nil || err != nil {
		return p, verdict, err
	}
	r.bundles.note(run, bundle)
	return p, nil, nil
}

// maxBundles are kept ready at a time.
const maxBundles = 64

// supervisedBundles remembers admitted definitions, which take much longer to admit
// than to look up: within an execution they count as they were when it began. The
// zero value is ready.
type supervisedBundles struct {
	mu    sync.Mutex
	known map[string]*definition.Bundle
}

func (b *supervisedBundles) find(run *api.WorkflowRun) *definition.Bundle {
	if run.Status.Definition == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[run.Status.Definition.Digest]
}

func (b *supervisedBundles) note(run *api.WorkflowRun, bundle *definition.Bundle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= maxBundles {
		b.known = map[string]*definition.Bundle{}
	}
	b.known[run.Status.Definition.Digest] = bundle
}

func changed(message string) *definitionVerdict {
	return &definitionVerdict{reason: api.ReasonDefinitionChanged, message: message}
}

// retained reads the sources, each of which must be what its digest and its Git id
// say.
func (r *SupervisedRunReconciler) retained(ctx context.Context, run *api.WorkflowRun) ([]definition.Source, *definitionVerdict, error) {
	if run.Status.Definition == nil || run.Status.Definition.Descriptor == nil {
		return nil, changed("the status has no definition"), nil
	}
	var sources []definition.Source
	for _, kept := range run.Status.Definition.Sources {
		data, err := r.store().contents().Get(ctx, run.Namespace, kept.Digest)
		if isBeyondRepair(err) {
			return nil, changed("the retained source of " + kept.Path + " is gone or was changed"), nil
		}
		if err != nil {
			return nil, nil, err
		}
		if definition.BlobID(data) != kept.SourceHash {
			return nil, changed("the retained source of " + kept.Path + " is not what was pinned"), nil
		}
		sources = append(sources, definition.Source{Path: kept.Path, Blob: kept.SourceHash, Content: data})
	}
	return sources, nil, nil
}

// checkIdentity holds the bundle against the recorded descriptor, and the history
// against the bundle.
func (r *SupervisedRunReconciler) checkIdentity(ctx context.Context, p *supervisedPass) (*definitionVerdict, error) {
	descriptor := p.bundle.Descriptor(p.run.Spec.Git.Commit)
	digest := descriptor.Digest()
	recorded, err := gitDescriptor(descriptor)
	if err != nil {
		return nil, err
	}
	if digest != p.run.Status.Definition.Digest || !apiequality.Semantic.DeepEqual(recorded, p.run.Status.Definition.Descriptor) {
		return changed("the bundle is not the one that was pinned"), nil
	}
	entries, err := r.wholeHistory(ctx, p.run)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Call == nil {
			continue
		}
		component, known := p.bundle.Component(entry.Call.Component)
		if !known || component.Path != entry.Call.SourcePath || component.Blob != entry.Call.SourceHash {
			return &definitionVerdict{
				reason: api.ReasonHistoryDisagrees, message: fmt.Sprintf("history entry %d calls what the bundle does not have", entry.Seq),
			}, nil
		}
	}
	return nil, nil
}

// wholeHistory reads all entries, pages included, newest page first.
func (r *SupervisedRunReconciler) wholeHistory(ctx context.Context, run *api.WorkflowRun) ([]api.HistoryEntry, error) {
	entries := run.Status.History.Entries
	for name := run.Status.History.Page; name != ""; {
		data, err := r.store().contents().Named(ctx, run.Namespace, name)
		if isBeyondRepair(err) {
			return nil, &lostValueError{digest: name, cause: err}
		}
		if err != nil {
			return nil, err
		}
		var page api.HistoryPage
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, fmt.Errorf("read history page: %w", err)
		}
		entries = append(entries, page.Entries...)
		name = page.Previous
	}
	return entries, nil
}

// checkRemote compares with the remote where it can be reached.
func (r *SupervisedRunReconciler) checkRemote(ctx context.Context, p *supervisedPass, sources []definition.Source) (*definitionVerdict, error) {
	p.source = api.ReasonRetained
	asking, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	// What was fetched before says nothing of what the remote has now.
	if err := r.askForDefinition(asking, p.run); err != nil {
		return nil, ctx.Err() // what is retained serves
	}
	tree, done, err := r.fetchDefinition(asking, p.run)
	if err != nil {
		return nil, ctx.Err() // as above
	}
	defer done()
	for _, source := range sources {
		entry, found, err := tree.Entry(asking, source.Path)
		if err != nil {
			return nil, ctx.Err()
		}
		if !found || entry.Blob != source.Blob {
			return changed("the remote has another source of " + source.Path + " in the pinned commit"), nil
		}
	}
	p.source = api.ReasonRemote
	return nil, nil
}

// refuseDefinition tells why the run does not go on, changes nothing else in it,
// and looks again.
func (r *SupervisedRunReconciler) refuseDefinition(ctx context.Context, p *supervisedPass, verdict *definitionVerdict) (time.Duration, error) {
	status := p.run.Status.DeepCopy()
	set := runConditions{conditions: &status.Conditions, generation: p.run.Generation, now: metav1.NewTime(p.now).Rfc3339Copy()}
	set.set(api.ConditionAccepted, metav1.ConditionFalse, verdict.reason, verdict.message)
	refused := p.run.DeepCopy()
	refused.Status = *status
	if !apiequality.Semantic.DeepEqual(p.run.Status.Conditions, status.Conditions) {
		if err := r.Client.Status().Update(ctx, refused); err != nil {
			return 0, fmt.Errorf("update run status: %w", err)
		}
		r.tellWarning(refused, verdict.reason, "Verify", verdict.message)
	}
	since := time.Duration(0)
	for _, condition := range refused.Status.Conditions {
		if condition.Type == api.ConditionAccepted {
			since = p.now.Sub(condition.LastTransitionTime.Time)
		}
	}
	return min(max(since, firstVerify), lastVerify), nil
}
