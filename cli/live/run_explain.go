package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

func (a *app) explainRun() *cobra.Command {
	cmd := command.Leaf("explain RUN [-o json]", "Say why a run is where it is", `
Says what a run waits for and what failed, what to do next, and who did what until
now: who asked for the run, whose draft its workflow is and who accepted it, who
answered its questions, resumed and cancelled it. All of it is read from objects of
the namespace; what you may not read is left out, with a warning.`, `
  axiom run explain release-7
  axiom run explain release-7 -o json | jq -r '.next[].command'`)
	cmd.Args = exactArgs("the name of a run")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = a.onRun(func(ctx context.Context, c *cluster, run *api.WorkflowRun) error {
		return a.Show(a.explain(ctx, c, run))
	})
	return cmd
}

// An explanation is why a run is where it is.
type explanation struct {
	Run       string       `json:"run"`
	Namespace string       `json:"namespace"`
	Phase     api.RunPhase `json:"phase"`
	Outcome   string       `json:"outcome"`
	// Message sums up how the run stands, in the operator's words.
	Message string `json:"message"`
	// Of is the composition, or the document and commit, that is executed.
	Of string `json:"of"`
	// WaitsFor is what keeps the run where it is.
	WaitsFor []obstacle `json:"waitsFor"`
	// Failures are what went wrong, the newest last; also what the workflow made up for.
	Failures []api.RunFailure `json:"failures"`
	// Deeds are what people did, the oldest first.
	Deeds []deed `json:"deeds"`
	// Next are the commands that lead on.
	Next []nextStep `json:"next"`
}

// An obstacle is an open activation.
type obstacle struct {
	Activation string `json:"activation"`
	// For is HumanTask, Event, Timer, Action, Prompt, Effect or Component.
	For string `json:"for"`
	// Detail says what exactly.
	Detail string `json:"detail"`
	Since  string `json:"since"`
	// Until is when it will not wait any longer, RFC 3339; empty: never.
	Until string `json:"until"`
	Task  string `json:"task,omitempty"`
	// AnsweredBy tells of a question whether it has an answer that nobody resumed.
	AnsweredBy string `json:"answeredBy,omitempty"`
}

// A deed is what a person did about the run.
type deed struct {
	// What: asked, accepted, answered, resumed or cancelled.
	What string `json:"what"`
	By   string `json:"by"`
	// At is RFC 3339; empty where nobody noted it.
	At string `json:"at"`
	// About is the activation, turn or trigger.
	About string `json:"about"`
}

// A nextStep is a command with what it does.
type nextStep struct {
	Command string `json:"command"`
	Does    string `json:"does"`
}

// explain reads all that bears on a run. What cannot be read is missed.
func (a *app) explain(ctx context.Context, c *cluster, run *api.WorkflowRun) explanation {
	x := explanation{
		Run: run.Name, Namespace: run.Namespace, Phase: orPending(run.Status.Phase), Outcome: run.Status.Outcome,
		Message: standing(run), Of: definitionOf(run), WaitsFor: []obstacle{}, Failures: []api.RunFailure{}, Deeds: []deed{},
	}
	reader := &recordReader{ctx: ctx, cluster: c, namespace: run.Namespace}
	entries := reader.history(run.Status.History)
	addObstacles(&x, run)
	tasks := c.tasksOf(ctx, x.WaitsFor, reader)
	for i := range x.WaitsFor {
		x.WaitsFor[i].ask(tasks[x.WaitsFor[i].Task])
	}
	addFailures(&x, run, entries)
	x.Deeds = append(x.Deeds, askedFor(run))
	x.Deeds = append(x.Deeds, c.acceptances(ctx, run, reader)...)
	x.Deeds = append(x.Deeds, deedsOf(run, entries, x.WaitsFor, tasks)...)
	x.Next = command.OrEmpty(a.nextOf(&x))
	if reader.failure != nil {
		a.Complain("warning: not everything is told: " + reader.failure.Error())
	}
	return x
}

// standing is what the first condition says that is in the way.
func standing(run *api.WorkflowRun) string {
	for _, kind := range []struct {
		name string
		is   metav1.ConditionStatus
	}{
		{api.ConditionStalled, metav1.ConditionTrue},
		{api.ConditionAccepted, metav1.ConditionFalse},
		{api.ConditionReady, metav1.ConditionTrue},
		{api.ConditionReconciling, metav1.ConditionTrue},
		{api.ConditionReady, metav1.ConditionFalse},
	} {
		for _, condition := range run.Status.Conditions {
			if condition.Type == kind.name && condition.Status == kind.is && condition.Message != "" {
				return condition.Message
			}
		}
	}
	return ""
}

func definitionOf(run *api.WorkflowRun) string {
	if git := run.Spec.Git; git != nil {
		return git.Path + " at " + git.Commit
	}
	of := "composition " + run.Spec.CompositionRef.Name
	if definition := run.Status.Definition; definition != nil && definition.Revision != "" {
		of += " at " + definition.Revision
	}
	return of
}

func addObstacles(x *explanation, run *api.WorkflowRun) {
	if x.Phase.IsTerminal() {
		return
	}
	add := func(prefix string, instance *api.RunInstance) {
		for i := range instance.ActiveBranches {
			x.WaitsFor = append(x.WaitsFor, obstacleOf(prefix, &instance.ActiveBranches[i], run.Status.Intents))
		}
	}
	if run.Status.Instance != nil {
		add("", run.Status.Instance)
	}
	for i := range run.Status.Frames {
		add(run.Status.Frames[i].Path+"/", &run.Status.Frames[i].Instance)
	}
}

func obstacleOf(prefix string, branch *api.ActiveBranch, intents []api.RunIntent) obstacle {
	o := obstacle{Activation: prefix + branch.Activation, Since: branch.EnteredOn, Until: branch.Deadline, Detail: branch.Title}
	isIts := func(intent api.RunIntent) bool { return intent.Activation == o.Activation }
	if i := slices.IndexFunc(intents, isIts); i >= 0 {
		o.intend(&intents[i])
		return o
	}
	switch child := branch.Child; {
	case child != nil && child.Kind == "HumanTask":
		o.For, o.Task = "HumanTask", child.Name
	case branch.Attempt > 0:
		o.For, o.Detail = "Action", actionDetail(branch)
	case branch.SubscriptionKey != nil:
		o.For, o.Detail = "Event", fmt.Sprintf("an event with the key %q", *branch.SubscriptionKey)
	case branch.Deadline != "":
		o.For = "Timer"
	default:
		o.For = "Component"
	}
	return o
}

// intend says what a supervised run does about the activation.
func (o *obstacle) intend(intent *api.RunIntent) {
	parts := []string{intent.Action}
	switch {
	case intent.Task != "":
		o.For, o.Task, parts = "HumanTask", intent.Task, []string{o.Detail}
	case intent.Session != "":
		o.For = "Prompt"
		parts = append(parts, "session "+intent.Session)
	default:
		o.For = "Effect"
	}
	if intent.Attempts > 1 {
		parts = append(parts, command.Plural(int(intent.Attempts), "attempt"))
	}
	parts = append(parts, intent.Reason)
	if intent.Deadline != nil {
		o.Until = intent.Deadline.UTC().Format(time.RFC3339)
	}
	o.Detail = strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

func actionDetail(branch *api.ActiveBranch) string {
	detail := fmt.Sprintf("attempt %d", branch.Attempt)
	if branch.LastError != nil {
		detail += ", the one before failed with " + branch.LastError.Code
	}
	if branch.NotBefore != "" && branch.Child == nil {
		detail += ", not before " + branch.NotBefore
	}
	return detail
}

// ask adds to a question what its task says; nil: that could not be read.
func (o *obstacle) ask(task *api.HumanTask) {
	if task == nil {
		return
	}
	o.Detail = cmp.Or(task.Spec.HumanContext.Title, o.Detail)
	if end, isLimited := humantask.Expiry(task); isLimited {
		o.Until = end.UTC().Format(time.RFC3339)
	}
	if by := task.Status.AnsweredBy; by != nil {
		o.AnsweredBy = by.Username
	}
}

// tasksOf are the tasks of the obstacles that are there, by name.
func (c *cluster) tasksOf(ctx context.Context, obstacles []obstacle, reader *recordReader) map[string]*api.HumanTask {
	tasks := map[string]*api.HumanTask{}
	for _, o := range obstacles {
		if o.Task == "" {
			continue
		}
		task := &api.HumanTask{}
		err := c.Get(ctx, client.ObjectKey{Namespace: reader.namespace, Name: o.Task}, task)
		switch {
		case err == nil:
			tasks[o.Task] = task
		case !isMissing(err): // one that is not made yet is no failure
			reader.miss(explain(err))
		}
	}
	return tasks
}

func addFailures(x *explanation, run *api.WorkflowRun, entries []api.HistoryEntry) {
	for _, entry := range entries {
		if entry.Error == nil {
			continue
		}
		failure := *entry.Error
		failure.Node, failure.Activation = cmp.Or(failure.Node, entry.Node), cmp.Or(failure.Activation, entry.Activation)
		x.Failures = append(x.Failures, failure)
	}
	if run.Status.Instance == nil || run.Status.Instance.Failure == nil {
		return
	}
	last := *run.Status.Instance.Failure
	isTold := func(f api.RunFailure) bool { return f.Code == last.Code && f.Activation == last.Activation }
	if !slices.ContainsFunc(x.Failures, isTold) {
		x.Failures = append(x.Failures, last)
	}
}

// askedFor is who made the run, or what started it.
func askedFor(run *api.WorkflowRun) deed {
	d := deed{What: "asked", By: run.Annotations[api.AnnotationRequestedBy], At: timeText(&run.CreationTimestamp)}
	if trigger := run.Annotations[api.AnnotationTrigger]; trigger != "" {
		d.About = "trigger " + trigger
	}
	return d
}

// A draftRecord is a draft of a composition and who made what of it.
type draftRecord struct {
	Workflow *runtime.RawExtension `json:"workflow"`
	Items    []struct {
		Type     api.ItemType `json:"type"`
		Author   api.Author   `json:"author"`
		Username string       `json:"username"`
		Turn     string       `json:"turn"`
		// ContentRevision is empty when the item was removed.
		ContentRevision string `json:"contentRevision"`
	} `json:"items"`
}

// pinnedDraft is the draft that a run of a composition is pinned to.
func (c *cluster) pinnedDraft(ctx context.Context, run *api.WorkflowRun) (draftRecord, error) {
	record, name := draftRecord{}, run.Status.Definition.Snapshot
	snapshot := &appsv1.ControllerRevision{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, snapshot); err != nil {
		return record, fmt.Errorf("read snapshot %s: %w", name, explain(err))
	}
	if err := json.Unmarshal(snapshot.Data.Raw, &record); err != nil {
		return record, fmt.Errorf("decode snapshot %s: %w", name, err)
	}
	return record, nil
}

// acceptances are whose draft the workflow of the run was.
func (c *cluster) acceptances(ctx context.Context, run *api.WorkflowRun, reader *recordReader) []deed {
	definition := run.Status.Definition
	if definition == nil || definition.Snapshot == "" {
		return nil
	}
	record, err := c.pinnedDraft(ctx, run)
	if err != nil {
		reader.miss(err)
		return nil
	}
	var deeds []deed
	for _, item := range record.Items {
		if item.Type != api.ItemWorkflow || item.ContentRevision == "" {
			continue
		}
		d := deed{What: "wrote", By: item.Username, About: "the workflow"}
		if item.Author == api.AuthorAI {
			d.What, d.About = "accepted", "the workflow of turn "+item.Turn
		}
		deeds = append(deeds, d)
	}
	return deeds
}

// deedsOf are the answers, resumes and the cancellation, in the order of time.
func deedsOf(run *api.WorkflowRun, entries []api.HistoryEntry, obstacles []obstacle, tasks map[string]*api.HumanTask) []deed {
	deeds := slices.Concat(answersOf(entries, obstacles, tasks), resumesOf(run))
	slices.SortStableFunc(deeds, func(x, y deed) int {
		if x.At == "" || y.At == "" { // what has no time came last
			return cmp.Compare(len(y.At), len(x.At))
		}
		return cmp.Compare(x.At, y.At)
	})
	if by := run.Annotations[api.AnnotationCancelledBy]; by != "" {
		deeds = append(deeds, deed{What: "cancelled", By: by})
	}
	return deeds
}

func answersOf(entries []api.HistoryEntry, obstacles []obstacle, tasks map[string]*api.HumanTask) []deed {
	var deeds []deed
	for _, entry := range entries {
		if entry.By != "" && entry.Type == "human-task" {
			deeds = append(deeds, deed{What: "answered", By: entry.By, At: entry.CompletedOn, About: entry.Activation})
		}
	}
	for _, o := range obstacles {
		if o.AnsweredBy != "" {
			deeds = append(deeds, deed{What: "answered", By: o.AnsweredBy, At: timeText(tasks[o.Task].Status.AnsweredAt), About: o.Activation})
		}
	}
	return deeds
}

// resumesOf are the resumes that an execution notes, and one that none has yet.
func resumesOf(run *api.WorkflowRun) []deed {
	var deeds []deed
	isNoted := false
	for _, execution := range run.Status.Executions {
		if execution.RequestedBy != "" {
			isNoted = true
			deeds = append(deeds, deed{
				What: "resumed", By: execution.RequestedBy, At: timeText(&execution.StartedAt), About: fmt.Sprintf("execution %d", execution.Number),
			})
		}
	}
	if by := run.Annotations[api.AnnotationResumedBy]; by != "" && (!isNoted || run.Spec.ResumeRequests > run.Status.ObservedResumeRequests) {
		deeds = append(deeds, deed{What: "resumed", By: by, About: fmt.Sprintf("request %d", run.Spec.ResumeRequests)})
	}
	return deeds
}

func timeText(at *metav1.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// nextOf are the commands that lead on from where the run is.
func (a *app) nextOf(x *explanation) []nextStep {
	var steps []nextStep
	isAnswered := false
	for _, o := range x.WaitsFor {
		switch {
		case o.AnsweredBy != "":
			isAnswered = true
		case o.Task != "":
			steps = append(steps, nextStep{a.invocation("answer", o.Task), "answer it"})
		}
	}
	switch {
	case x.Phase == api.RunSuspended:
		does := "then go on"
		if isAnswered || len(steps) == 0 {
			does = "go on with what was answered"
		}
		steps = append(steps, nextStep{a.invocation("resume", x.Run), does})
	case x.Phase == api.RunFailed && len(x.Failures) > 0 && x.Failures[len(x.Failures)-1].Activation != "":
		activation := x.Failures[len(x.Failures)-1].Activation
		steps = append(steps, nextStep{a.invocation("run", "show", x.Run, "--activation", "'"+activation+"'"), "see what it was asked, and gave"})
	case !x.Phase.IsTerminal() && len(steps) == 0:
		steps = append(steps, nextStep{a.invocation("run", "watch", x.Run), "follow it"})
	}
	return steps
}
