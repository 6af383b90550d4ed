package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// definitionRetry is when a definition that cannot be had is asked for again.
const definitionRetry = 10 * time.Second

// begin admits a run and starts it, or refuses it for good.
func (r *SupervisedRunReconciler) begin(ctx context.Context, run *api.WorkflowRun) (time.Duration, error) {
	p := &supervisedPass{run: run, now: r.Clock.Now()}
	if run.Spec.Cancel {
		return 0, r.end(ctx, p, api.RunCancelled, string(api.RunCancelled), "the run was cancelled before it began")
	}
	isLost, err := r.hasChildren(ctx, run)
	if err != nil {
		return 0, err
	}
	if isLost {
		p.stalled, p.stalledMessage = api.ReasonStatusLost, "the run has children but its status is gone; it does not start over"
		return 0, r.commit(ctx, p)
	}
	if !workspace.IsCommitID(run.Spec.Git.Commit) {
		return 0, r.end(ctx, p, api.RunFailed, api.ReasonInvalidDefinition, workspace.CodeObjectFormatUnsupported+": this version reads repositories of the object format sha1")
	}
	bundle, err := r.admit(ctx, run)
	refusal, isRefusal := errors.AsType[*definition.Refusal](err)
	switch {
	case isRefusal:
		return 0, r.end(ctx, p, api.RunFailed, reasonOf(refusal), refusal.Error())
	case err != nil:
		return r.awaitDefinition(ctx, p, err)
	}
	p = r.newPass(run, bundle)
	if err := r.retain(ctx, p); err != nil {
		return 0, err
	}
	return 0, r.start(ctx, p)
}

// hasChildren tells whether a run that says nothing of itself has begun before.
func (r *SupervisedRunReconciler) hasChildren(ctx context.Context, run *api.WorkflowRun) (bool, error) {
	for _, list := range []client.ObjectList{&api.HumanTaskList{}, &api.TurnList{}, &api.AgentSessionList{}} {
		err := r.Live.List(ctx, list, client.InNamespace(run.Namespace), client.MatchingLabels{api.LabelRun: string(run.UID)}, client.Limit(1))
		if err != nil {
			return false, fmt.Errorf("list children: %w", err)
		}
		if hasItems(list) {
			return true, nil
		}
	}
	return false, nil
}

func hasItems(list client.ObjectList) bool {
	switch l := list.(type) {
	case *api.HumanTaskList:
		return len(l.Items) > 0
	case *api.TurnList:
		return len(l.Items) > 0
	case *api.AgentSessionList:
		return len(l.Items) > 0
	}
	return false
}

func reasonOf(refusal *definition.Refusal) string {
	if refusal.Code == definition.CodeInputsInvalid {
		return api.ReasonInvalidInputs
	}
	return api.ReasonInvalidDefinition
}

// end finishes a run that never began.
func (r *SupervisedRunReconciler) end(ctx context.Context, p *supervisedPass, phase api.RunPhase, reason, message string) error {
	status := p.run.Status.DeepCopy()
	now := metav1.NewTime(p.now).Rfc3339Copy()
	status.ObservedGeneration, status.Phase, status.FinishedAt = p.run.Generation, phase, &now
	set := runConditions{conditions: &status.Conditions, generation: p.run.Generation, now: now}
	set.set(api.ConditionAccepted, metav1.ConditionFalse, reason, message)
	set.set(api.ConditionWaiting, metav1.ConditionFalse, string(phase), "")
	set.set(api.ConditionReconciling, metav1.ConditionFalse, string(phase), "")
	set.set(api.ConditionStalled, statusOf(phase == api.RunFailed), string(phase), message)
	set.set(api.ConditionReady, metav1.ConditionFalse, string(phase), message)
	committed := p.run.DeepCopy()
	committed.Status = *status
	if err := r.Client.Status().Update(ctx, committed); err != nil {
		return fmt.Errorf("update run status: %w", err)
	}
	announceRun(r.Recorder, p.run, committed)
	return nil
}

// awaitDefinition waits for a repository that cannot be read now. It says why in a
// word, without what the other side said.
func (r *SupervisedRunReconciler) awaitDefinition(ctx context.Context, p *supervisedPass, err error) (time.Duration, error) {
	var why string
	wait := definitionRetry
	if failure := failureOf(err); failure != nil {
		why = failure.Error()
	} else if reason, after, isUnavailable := workspace.Unavailable(err); isUnavailable {
		why, wait = string(reason), max(wait, after)
	} else {
		return 0, err
	}
	p.awaits = "the definition's repository cannot be read: " + why
	return wait, r.commit(ctx, p)
}

// admit fetches the commit and admits what the run names.
func (r *SupervisedRunReconciler) admit(ctx context.Context, run *api.WorkflowRun) (*definition.Bundle, error) {
	tree, done, err := r.fetchDefinition(ctx, run)
	if err != nil {
		return nil, err
	}
	defer done()
	bundle, err := definition.Admit(ctx, tree, run.Spec.Git.Path, definitionGate{r.Scanner}, r.Expressions)
	if err != nil {
		return nil, err
	}
	inputs, err := inputsOf(run)
	if err != nil {
		return nil, err
	}
	if refusal := bundle.CheckInputs(inputs); refusal != nil {
		return nil, refusal
	}
	return bundle, nil
}

func inputsOf(run *api.WorkflowRun) (map[string]any, error) {
	if run.Spec.Inputs == nil {
		return map[string]any{}, nil
	}
	decoded, err := jsonvalue.Decode(run.Spec.Inputs.Raw)
	if err != nil {
		return nil, fmt.Errorf("decode inputs: %w", err)
	}
	inputs, _ := decoded.(map[string]any)
	return inputs, nil
}

// definitionRemote is the way to the definition's repository.
func (r *SupervisedRunReconciler) definitionRemote(ctx context.Context, run *api.WorkflowRun) (*workspace.Remote, remotes.Locator, error) {
	secret := ""
	if run.Spec.Git.CredentialsRef != nil {
		secret = run.Spec.Git.CredentialsRef.Name
	}
	return r.gitRemote(ctx, run, run.Spec.Git.URL, secret)
}

// askForDefinition tells whether the definition's repository answers.
func (r *SupervisedRunReconciler) askForDefinition(ctx context.Context, run *api.WorkflowRun) error {
	remote, _, err := r.definitionRemote(ctx, run)
	if err != nil {
		return err
	}
	_, err = remote.List(ctx)
	return err
}

// fetchDefinition is the tree of the pinned commit, and what gives it back.
func (r *SupervisedRunReconciler) fetchDefinition(ctx context.Context, run *api.WorkflowRun) (definition.Tree, func(), error) {
	remote, locator, err := r.definitionRemote(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	base, err := r.Bases.Open(ctx, workspace.Key{Scope: run.Namespace, Fingerprint: locator.Fingerprint(), Commit: run.Spec.Git.Commit}, remote)
	if err != nil {
		return nil, nil, err
	}
	objects := workspace.NewObjects(base)
	root, err := objects.CommitTree(run.Spec.Git.Commit)
	if err == nil {
		var tree workspace.Tree
		if tree, err = objects.TreeAt(root); err == nil {
			return definitionTree{tree}, func() { _ = base.Close() }, nil
		}
	}
	_ = base.Close()
	return nil, nil, err
}

// retain keeps every source, and notes what the run is.
func (r *SupervisedRunReconciler) retain(ctx context.Context, p *supervisedPass) error {
	descriptor := p.bundle.Descriptor(p.run.Spec.Git.Commit)
	digest := descriptor.Digest()
	inputs, err := inputsOf(p.run)
	if err != nil {
		return err
	}
	canonical, err := jsonvalue.Canonical(inputs)
	if err != nil {
		return fmt.Errorf("encode inputs: %w", err)
	}
	kept := &api.RunDefinition{Digest: digest, InputDigest: content.Digest(canonical)}
	if kept.Descriptor, err = gitDescriptor(descriptor); err != nil {
		return err
	}
	for _, source := range p.bundle.Sources() {
		ref, err := r.store().contents().Put(ctx, p.run, source.Content)
		if err != nil {
			return err
		}
		kept.Sources = append(kept.Sources, api.RetainedSource{Path: source.Path, Digest: ref.Digest, SourceHash: source.Blob})
	}
	p.definition, p.source = kept, api.ReasonRemote
	return nil
}

func gitDescriptor(d definition.Descriptor) (*api.GitDescriptor, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode descriptor: %w", err)
	}
	var out api.GitDescriptor
	return &out, json.Unmarshal(data, &out)
}

// start enters the root in the first execution.
func (r *SupervisedRunReconciler) start(ctx context.Context, p *supervisedPass) error {
	inputs, err := inputsOf(p.run)
	if err != nil {
		return err
	}
	step, err := frames.Start(ctx, p.def, inputs, p.run.CreationTimestamp.Time, p.now)
	if err != nil {
		return fmt.Errorf("start run: %w", err)
	}
	number := p.openNext(api.ExecutionStarted, "")
	p.seenResumes = true
	if err := p.take(ctx, step, receiptOf{}); err != nil {
		return err
	}
	if err := r.prepare(ctx, p); err != nil {
		return err
	}
	if err := r.commit(ctx, p); err != nil {
		return err
	}
	r.executions.note(p.run.UID, number)
	return nil
}

// definitionTree shows a commit to the admission of definitions.
type definitionTree struct{ tree workspace.Tree }

// Entry is what stands at a path.
func (t definitionTree) Entry(_ context.Context, path string) (definition.Entry, bool, error) {
	data, id, kind, err := t.tree.Blob(path, definition.MaxSource+1)
	if failure := failureOf(err); failure != nil && failure.Code == workspace.CodeFileTooLarge {
		return definition.Entry{Mode: definition.File, Blob: id, Size: definition.MaxSource + 1}, true, nil
	}
	if err != nil {
		return definition.Entry{}, false, err
	}
	modes := map[workspace.Kind]definition.Mode{
		workspace.KindFile: definition.File, workspace.KindExecutable: definition.Executable, workspace.KindDirectory: definition.Directory,
		workspace.KindLink: definition.Symlink, workspace.KindSubmodule: definition.Submodule,
	}
	mode, found := modes[kind]
	return definition.Entry{Mode: mode, Blob: id, Size: int64(len(data)), Content: data}, found, nil
}

// framesOf is a bundle as the engine of calls takes it.
func framesOf(bundle *definition.Bundle, programs *expression.Cache) frames.Definition {
	def := frames.Definition{Root: framedComponent{bundle.Root()}, Components: map[string]frames.Component{}, Expressions: programs}
	for _, component := range bundle.Components() {
		def.Components[component.Name] = framedComponent{component}
	}
	return def
}
