package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// GitSource pins a definition in a Git repository.
type GitSource struct {
	// url of the repository: https://, ssh:// or user@host:path, without credentials in it.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// commit is the whole id, in lower-case hex digits.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Commit string `json:"commit"`

	// path of the root document in the commit.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// credentialsRef names a labelled Secret to read the repository with.
	// +optional
	CredentialsRef *LocalRef `json:"credentialsRef,omitempty"`
}

// RunCredential is a Secret that the run's effects may use, by an alias.
type RunCredential struct {
	// name that the definition uses for it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// secretRef names a labelled Secret of the namespace.
	// +required
	SecretRef LocalRef `json:"secretRef"`
}

// GitDescriptor is the identity of a definition in Git.
type GitDescriptor struct {
	// version of this form.
	// +required
	Version int32 `json:"version"`

	// kind: git.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Kind string `json:"kind"`

	// objectFormat of the repository: sha1.
	// +required
	// +kubebuilder:validation:MaxLength=16
	ObjectFormat string `json:"objectFormat"`

	// commit that is pinned.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Commit string `json:"commit"`

	// path of the root in it.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// components of the bundle, by name; absent without a bundle.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Components []GitComponent `json:"components,omitempty"`
}

// GitComponent is one member of a bundle.
type GitComponent struct {
	// name by which components call it.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// path of its document in the commit.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// sourceHash is the document's Git blob id.
	// +required
	// +kubebuilder:validation:MaxLength=64
	SourceHash string `json:"sourceHash"`
}

// RetainedSource is a document that the run keeps.
type RetainedSource struct {
	// path of the document in the commit.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// digest of its content, by which it is kept.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`

	// sourceHash is its Git blob id.
	// +required
	// +kubebuilder:validation:MaxLength=64
	SourceHash string `json:"sourceHash"`
}

// ExecutionReason is why a live pass over a run began.
// +kubebuilder:validation:Enum=Started;Resumed;Recovered
type ExecutionReason string

// Reasons of executions.
const (
	ExecutionStarted   ExecutionReason = "Started"
	ExecutionResumed   ExecutionReason = "Resumed"
	ExecutionRecovered ExecutionReason = "Recovered"
)

// ExecutionEnd is how a live pass over a run ended.
// +kubebuilder:validation:Enum=Suspended;Completed;Failed;Cancelled;Interrupted
type ExecutionEnd string

// Ends of executions.
const (
	ExecutionSuspended   ExecutionEnd = "Suspended"
	ExecutionCompleted   ExecutionEnd = "Completed"
	ExecutionFailed      ExecutionEnd = "Failed"
	ExecutionCancelled   ExecutionEnd = "Cancelled"
	ExecutionInterrupted ExecutionEnd = "Interrupted"
)

// RunExecution is one live pass, from start, resume or recovery to the next stop.
type RunExecution struct {
	// number from 1.
	// +required
	Number int64 `json:"number"`

	// reason why it began.
	// +required
	Reason ExecutionReason `json:"reason"`

	// requestedBy is the user who asked for the resume.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`

	// startedAt is when it began.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// endedAt is when it ended.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// ended tells how.
	// +optional
	Ended ExecutionEnd `json:"ended,omitempty"`
}

// WorkspaceRepository is a repository that the run opened.
type WorkspaceRepository struct {
	// name in the run.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// fingerprint is the SHA-256 of its locator.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Fingerprint string `json:"fingerprint"`

	// objectFormat: sha1.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ObjectFormat string `json:"objectFormat,omitempty"`

	// commit that is pinned.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Commit string `json:"commit"`

	// base is the branch it was opened at; empty: a tag or a commit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Base string `json:"base,omitempty"`

	// branches of the run that no worktree is at.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Branches []WorkspaceBranch `json:"branches,omitempty"`

	// origin points to what is needed to reach it again: its locator and the
	// alias of its credentials.
	// +optional
	Origin *ContentRef `json:"origin,omitempty"`
}

// WorkspaceBranch is a branch of the run that no worktree is at.
type WorkspaceBranch struct {
	// name of the branch.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`

	// head is its commit.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Head string `json:"head"`

	// start is the commit that it started at.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Start string `json:"start"`
}

// WorkspacePush is the last push that is recorded of a ref.
type WorkspacePush struct {
	// repository that was pushed to.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Repository string `json:"repository"`

	// ref that was moved.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref"`

	// commit that it is at.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Commit string `json:"commit"`
}

// FiledIssue is an issue that the run filed.
type FiledIssue struct {
	// tracker is the SHA-256 of its URL.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Tracker string `json:"tracker"`

	// key of the finding.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Key string `json:"key"`

	// number of the issue.
	// +required
	Number int64 `json:"number"`
}

// WorkspaceTree is a worktree: a commit and two Git trees.
type WorkspaceTree struct {
	// name in the run.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// repository it belongs to.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Repository string `json:"repository"`

	// branch it is on.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Branch string `json:"branch"`

	// head is the branch's commit.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Head string `json:"head"`

	// indexTree is what is staged.
	// +required
	// +kubebuilder:validation:MaxLength=64
	IndexTree string `json:"indexTree"`

	// workTree is what the files are.
	// +required
	// +kubebuilder:validation:MaxLength=64
	WorkTree string `json:"workTree"`

	// start is the commit that the branch started at.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Start string `json:"start,omitempty"`
}

// WorkspacePack is a pack of objects that one action made, in parts of at most
// 512 KiB.
type WorkspacePack struct {
	// parts in order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Parts []ContentRef `json:"parts"`
}

// RunWorkspace is what a run has of Git.
type RunWorkspace struct {
	// repositories that are open.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Repositories []WorkspaceRepository `json:"repositories,omitempty"`

	// worktrees that are open.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Worktrees []WorkspaceTree `json:"worktrees,omitempty"`

	// packs of the run's own objects, oldest first.
	// +optional
	// +listType=atomic
	Packs []WorkspacePack `json:"packs,omitempty"`

	// bytes of all packs.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// pushes that are recorded, one for each ref.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Pushes []WorkspacePush `json:"pushes,omitempty"`

	// issues that were filed, one for each tracker and key.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Issues []FiledIssue `json:"issues,omitempty"`
}

// RunIntent is an activation that was entered: what is asked, by whom it is
// served, and how far that has come. It goes when the activation closes.
type RunIntent struct {
	// activation in full, such as `Implementation[2]/observe[1]/prompt#1`.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Activation string `json:"activation"`

	// action that is performed, or human-task.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Action string `json:"action"`

	// key names the effect: equal keys are one effect.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`

	// request that was evaluated, once.
	// +required
	Request ContentRef `json:"request"`

	// at is the second that results carry.
	// +required
	At metav1.Time `json:"at"`

	// deadline of the activation.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// attempts so far to observe the effect.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// reason why the effect is not observed completely.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// marked is when a create was about to leave whose outcome is not known.
	// +optional
	Marked *metav1.Time `json:"marked,omitempty"`

	// absentSince is since when nothing was seen of a marked create.
	// +optional
	AbsentSince *metav1.Time `json:"absentSince,omitempty"`

	// observed is what was seen before the create that is marked.
	// +optional
	Observed *ContentRef `json:"observed,omitempty"`

	// task of a checkpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Task string `json:"task,omitempty"`

	// fingerprint of a checkpoint's question.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Fingerprint string `json:"fingerprint,omitempty"`

	// session that answers a prompt.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Session string `json:"session,omitempty"`
}

// RunSession is an agent session of the run.
type RunSession struct {
	// name in the run.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// session is the AgentSession's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Session string `json:"session"`

	// agent is its template.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Agent string `json:"agent"`

	// turns that were made in it.
	// +optional
	Turns int32 `json:"turns,omitempty"`
}

// RunFrame is one live call of a component.
type RunFrame struct {
	// path of the frame, such as `Implementation[2]/observe[1]`.
	// +required
	Path string `json:"path"`

	// call is the activation in the caller that opened it.
	// +required
	Call string `json:"call"`

	// component that is called.
	// +required
	Component string `json:"component"`

	// iteration of a repeat, from 1.
	// +optional
	Iteration int64 `json:"iteration,omitempty"`

	// item of a forEach, from 1.
	// +optional
	Item int64 `json:"item,omitempty"`

	// instance is the engine's state of it.
	// +required
	Instance RunInstance `json:"instance"`
}

// RunCallState is how far the call of a component node has come.
type RunCallState struct {
	// call is the activation of the component node, in full.
	// +required
	Call string `json:"call"`

	// state of repeat and forEach.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	State *runtime.RawExtension `json:"state,omitempty"`

	// stateRef points to a state that is kept outside.
	// +optional
	StateRef *ValueRef `json:"stateRef,omitempty"`
}

// HistoryCall tells of a frame that was opened.
type HistoryCall struct {
	// path of the frame.
	// +required
	Path string `json:"path"`

	// component that is called.
	// +required
	Component string `json:"component"`

	// sourcePath of its document.
	// +required
	SourcePath string `json:"sourcePath"`

	// sourceHash is the document's Git blob id.
	// +required
	SourceHash string `json:"sourceHash"`

	// iteration of a repeat, from 1.
	// +optional
	Iteration int64 `json:"iteration,omitempty"`

	// item of a forEach, from 1.
	// +optional
	Item int64 `json:"item,omitempty"`
}
