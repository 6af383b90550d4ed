package live

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func (a *app) showRun() *cobra.Command {
	cmd := command.Leaf("show RUN [--activation A] [-o json]", "Read what a run did and is doing", `
Prints the definition of a run, its executions, what is open, and its history from the
first entry on, also the pages that have left its status. With --activation it prints
all that one activation was asked and gave, values and receipt in full; -o json has
that of every activation.

Values that are too large for the status are kept in ConfigMaps, as are the older
pages; what you may not read is left out, with a warning. No repository, forge or
agent is asked.`, `
  axiom run show add-health
  axiom run show add-health --activation 'Planning[1]/plan#1'
  axiom run show add-health -o json | jq '.history[] | select(.receipt) | .receipt'`)
	cmd.Args = exactArgs("the name of a run")
	var activation string
	cmd.Flags().StringVar(&activation, "activation", "", "`ADDRESS` of the activation to print in full")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = a.onRun(func(ctx context.Context, c *cluster, run *api.WorkflowRun) error {
		return a.showRecord(ctx, c, run, activation)
	})
	return cmd
}

// onRun is a command on the run that its argument names.
func (a *app) onRun(do func(ctx context.Context, c *cluster, run *api.WorkflowRun) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		run, err := c.getRun(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, run)
	}
}

// A runAnswer is all there is to read of a run. Values have their place in it,
// wherever they are kept.
type runAnswer struct {
	Run        string             `json:"run"`
	Phase      api.RunPhase       `json:"phase"`
	Outcome    string             `json:"outcome"`
	Git        *gitAnswer         `json:"git,omitempty"`
	Of         string             `json:"composition,omitempty"`
	Sources    []sourceAnswer     `json:"sources"`
	Executions []api.RunExecution `json:"executions"`
	// Frames are the live calls of components.
	Frames []frameAnswer `json:"frames"`
	// Calls are how far repeats and lists of live calls have come.
	Calls []callAnswer `json:"calls"`
	// Open are the activations that are not closed.
	Open []openAnswer `json:"open"`
	// Context of the root.
	Context map[string]any `json:"context"`
	Outputs any            `json:"outputs"`
	// History from the first entry on.
	History []entryAnswer `json:"history"`
	// Total is what the history has; more than are here if pages could not be read.
	Total     int64             `json:"total"`
	Workspace *api.RunWorkspace `json:"workspace,omitempty"`
	// Origins are what it takes to reach the repositories again, by name.
	Origins  map[string]any   `json:"origins"`
	Sessions []api.RunSession `json:"sessions"`
}

// gitAnswer is what a definition in Git is pinned to.
type gitAnswer struct {
	Commit string `json:"commit"`
	Path   string `json:"path"`
	// Digest of the descriptor; empty until the definition was admitted.
	Digest     string             `json:"digest"`
	Components []api.GitComponent `json:"components"`
}

// sourceAnswer is a retained document.
type sourceAnswer struct {
	Path       string `json:"path"`
	SourceHash string `json:"sourceHash"`
	Text       string `json:"text"`
}

// frameAnswer is a live call.
type frameAnswer struct {
	Path      string         `json:"path"`
	Call      string         `json:"call"`
	Component string         `json:"component"`
	Iteration int64          `json:"iteration,omitempty"`
	Item      int64          `json:"item,omitempty"`
	Context   map[string]any `json:"context"`
}

// callAnswer is how far the call of a component node has come.
type callAnswer struct {
	Call  string `json:"call"`
	State any    `json:"state"`
}

// openAnswer is an activation that is not closed, with its intent in a
// supervised run.
type openAnswer struct {
	Activation string         `json:"activation"`
	EnteredOn  string         `json:"enteredOn,omitempty"`
	Title      string         `json:"title,omitempty"`
	Input      any            `json:"input,omitempty"`
	Intent     *api.RunIntent `json:"intent,omitempty"`
	Request    any            `json:"request,omitempty"`
	Observed   any            `json:"observed,omitempty"`
}

// entryAnswer is a closed activation.
type entryAnswer struct {
	Seq         int64            `json:"seq"`
	Activation  string           `json:"activation"`
	Node        string           `json:"node,omitempty"`
	Name        string           `json:"name,omitempty"`
	Type        string           `json:"type,omitempty"`
	Branch      string           `json:"branch,omitempty"`
	Edge        string           `json:"edge,omitempty"`
	Condition   string           `json:"condition,omitempty"`
	EnteredOn   string           `json:"enteredOn,omitempty"`
	CompletedOn string           `json:"completedOn,omitempty"`
	Outcome     string           `json:"outcome"`
	By          string           `json:"by,omitempty"`
	Title       string           `json:"title,omitempty"`
	Attempts    int32            `json:"attempts,omitempty"`
	Error       *api.RunFailure  `json:"error,omitempty"`
	Call        *api.HistoryCall `json:"call,omitempty"`
	Input       any              `json:"input,omitempty"`
	Output      any              `json:"output,omitempty"`
	Receipt     any              `json:"receipt,omitempty"`
}

func (a *app) showRecord(ctx context.Context, c *cluster, run *api.WorkflowRun, activation string) error {
	reader := &recordReader{ctx: ctx, cluster: c, namespace: run.Namespace, activation: activation}
	if activation == "" {
		reader.wantsOutputs, reader.wantsAll = true, a.Format() == command.JSON
	}
	answer := reader.read(run)
	if reader.failure != nil {
		a.Complain("warning: not everything is shown: " + reader.failure.Error())
	}
	if activation == "" {
		return a.Show(answer)
	}
	one, isThere := answer.only(activation)
	if !isThere {
		return fmt.Errorf("run %s has no activation %s", run.Name, activation)
	}
	return a.Show(one)
}

// only is what there is to read of one activation.
func (x runAnswer) only(activation string) (one activationAnswer, isThere bool) {
	one = activationAnswer{Run: x.Run, Activation: activation, Entries: []entryAnswer{}}
	for _, open := range x.Open {
		if open.Activation == activation {
			one.Open = &open
		}
	}
	for _, entry := range x.History {
		if entry.Activation == activation {
			one.Entries = append(one.Entries, entry)
		}
	}
	return one, one.Open != nil || len(one.Entries) > 0
}

// An activationAnswer is all there is to read of one activation. A call of a
// component has an entry for each frame that it opened, too.
type activationAnswer struct {
	Run        string        `json:"run"`
	Activation string        `json:"activation"`
	Open       *openAnswer   `json:"open,omitempty"`
	Entries    []entryAnswer `json:"entries"`
}

// A recordReader puts together what a run keeps in its status and outside of it.
type recordReader struct {
	ctx       context.Context //nolint:containedctx // it lives as long as one reading
	cluster   *cluster
	namespace string
	// wantsAll is for every value there is, wantsOutputs for those of the root.
	wantsAll, wantsOutputs bool
	// activation whose values are wanted; empty: none in particular.
	activation string
	// failure is the first thing that could not be read.
	failure error
}

// isWanted tells of an activation whether its values are.
func (r *recordReader) isWanted(activation string) bool {
	return r.wantsAll || activation == r.activation
}

func (r *recordReader) read(run *api.WorkflowRun) runAnswer {
	status := &run.Status
	answer := runAnswer{
		Run: run.Name, Phase: orPending(status.Phase), Outcome: status.Outcome, Of: run.Spec.CompositionRef.Name,
		Executions: command.OrEmpty(status.Executions), Context: map[string]any{}, Sources: []sourceAnswer{}, Frames: []frameAnswer{}, Open: []openAnswer{},
		Calls: []callAnswer{}, Origins: map[string]any{},
		Total: status.History.Total, Workspace: status.Workspace, Sessions: command.OrEmpty(status.Sessions),
	}
	r.addDefinition(run, &answer)
	r.addProgress(status, &answer)
	if status.Instance != nil {
		answer.Context = r.context(status.Instance)
		answer.Open = append(answer.Open, r.open("", status.Instance, status.Intents)...)
	}
	for i := range status.Frames {
		frame := &status.Frames[i]
		answer.Frames = append(answer.Frames, frameAnswer{
			Path: frame.Path, Call: frame.Call, Component: frame.Component, Iteration: frame.Iteration, Item: frame.Item,
			Context: r.context(&frame.Instance),
		})
		answer.Open = append(answer.Open, r.open(frame.Path+"/", &frame.Instance, status.Intents)...)
	}
	if r.wantsOutputs {
		answer.Outputs = r.value(status.Outputs, status.OutputsRef)
	}
	for _, entry := range r.history(status.History) {
		answer.History = append(answer.History, r.entry(&entry))
	}
	answer.History = command.OrEmpty(answer.History)
	return answer
}

func (r *recordReader) addDefinition(run *api.WorkflowRun, answer *runAnswer) {
	if run.Spec.Git == nil {
		return
	}
	answer.Git = &gitAnswer{Commit: run.Spec.Git.Commit, Path: run.Spec.Git.Path, Components: []api.GitComponent{}}
	definition := run.Status.Definition
	if definition == nil {
		return
	}
	answer.Git.Digest = definition.Digest
	if definition.Descriptor != nil {
		answer.Git.Components = command.OrEmpty(definition.Descriptor.Components)
	}
	if !r.wantsAll {
		return
	}
	for _, source := range definition.Sources {
		answer.Sources = append(answer.Sources, sourceAnswer{
			Path: source.Path, SourceHash: source.SourceHash, Text: string(r.bytes(source.Digest)),
		})
	}
}

// addProgress adds what only the steps to come need.
func (r *recordReader) addProgress(status *api.WorkflowRunStatus, answer *runAnswer) {
	if !r.wantsAll {
		return
	}
	for _, call := range status.Calls {
		answer.Calls = append(answer.Calls, callAnswer{Call: call.Call, State: r.value(call.State, call.StateRef)})
	}
	if status.Workspace == nil {
		return
	}
	for _, repository := range status.Workspace.Repositories {
		answer.Origins[repository.Name] = r.content(repository.Origin)
	}
}

// context is that of the root or a frame.
func (r *recordReader) context(instance *api.RunInstance) map[string]any {
	values := map[string]any{}
	if !r.wantsAll {
		return values
	}
	if inline, isObject := r.value(instance.Context, nil).(map[string]any); isObject {
		values = inline
	}
	for key, ref := range instance.ContextRefs {
		values[key] = r.value(nil, &ref)
	}
	return values
}

// open are the activations of an instance, whose addresses begin with a prefix.
func (r *recordReader) open(prefix string, instance *api.RunInstance, intents []api.RunIntent) []openAnswer {
	var list []openAnswer
	for i := range instance.ActiveBranches {
		branch := &instance.ActiveBranches[i]
		open := openAnswer{Activation: prefix + branch.Activation, EnteredOn: branch.EnteredOn, Title: branch.Title}
		wanted := r.isWanted(open.Activation)
		if wanted {
			open.Input = r.value(branch.Input, branch.InputRef)
		}
		isIts := func(intent api.RunIntent) bool { return intent.Activation == open.Activation }
		if i := slices.IndexFunc(intents, isIts); i >= 0 {
			open.Intent = &intents[i]
			if wanted {
				open.Request, open.Observed = r.content(&open.Intent.Request), r.content(open.Intent.Observed)
			}
		}
		list = append(list, open)
	}
	return list
}

// history is every entry from the first on that can be read.
func (r *recordReader) history(history api.RunHistory) []api.HistoryEntry {
	pages := [][]api.HistoryEntry{history.Entries}
	for name := history.Page; name != ""; {
		page := api.HistoryPage{}
		data, err := r.cluster.contents().Named(r.ctx, r.namespace, name)
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		if err != nil {
			r.fail(err)
			break
		}
		pages = append(pages, page.Entries)
		name = page.Previous
	}
	slices.Reverse(pages)
	return slices.Concat(pages...)
}

func (r *recordReader) entry(entry *api.HistoryEntry) entryAnswer {
	answer := entryAnswer{
		Seq: entry.Seq, Activation: entry.Activation, Node: entry.Node, Name: entry.Name, Type: entry.Type,
		Branch: entry.Branch, Edge: entry.Edge, Condition: entry.Condition, EnteredOn: entry.EnteredOn, CompletedOn: entry.CompletedOn, Outcome: entry.Outcome, By: entry.By, Title: entry.Title,
		Attempts: entry.Attempts, Error: entry.Error, Call: entry.Call,
	}
	if !r.isWanted(entry.Activation) {
		return answer
	}
	answer.Input = r.value(entry.Input, entry.InputRef)
	answer.Output = r.value(entry.Output, entry.OutputRef)
	answer.Receipt = r.receipt(r.value(entry.Receipt, entry.ReceiptRef))
	return answer
}

// value is kept inline or outside; nil if it is neither.
func (r *recordReader) value(inline *runtime.RawExtension, ref *api.ValueRef) any {
	switch {
	case ref != nil:
		return r.stored(ref.Digest)
	case inline != nil:
		return r.decoded(inline.Raw)
	}
	return nil
}

// content is a value that is kept outside; nil if there is none.
func (r *recordReader) content(ref *api.ContentRef) any {
	if ref == nil || ref.Digest == "" {
		return nil
	}
	return r.stored(ref.Digest)
}

// stored is the JSON value of a digest, or the text if it is none.
func (r *recordReader) stored(digest string) any {
	data := r.bytes(digest)
	if data == nil {
		return nil
	}
	return textOrValue(data)
}

func textOrValue(data []byte) any {
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return string(data)
	}
	return value
}

func (r *recordReader) decoded(data []byte) any {
	value, err := jsonvalue.Decode(data)
	if err != nil {
		r.fail(fmt.Errorf("decode value: %w", err))
	}
	return value
}

// receipt puts values into the places that name them by digest. What a receipt
// names and nobody kept stays a digest.
func (r *recordReader) receipt(v any) any {
	switch v := v.(type) {
	case string:
		if value, isKept := r.named(v); isKept {
			return map[string]any{"digest": v, "value": value}
		}
	case []any:
		for i := range v {
			v[i] = r.receipt(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = r.receipt(v[name])
		}
	}
	return v
}

// digestForm is that of the names of retained values.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// named is the value that a text names, if it is a digest and the value is kept.
func (r *recordReader) named(text string) (value any, isKept bool) {
	if !digestForm.MatchString(text) {
		return nil, false
	}
	data, err := r.cluster.contents().Get(r.ctx, r.namespace, text)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			r.fail(err)
		}
		return nil, false
	}
	return textOrValue(data), true
}

// fail keeps the first failure, of what is kept in ConfigMaps.
func (r *recordReader) fail(err error) {
	r.miss(explainContent(err))
}

// miss keeps the first failure.
func (r *recordReader) miss(err error) {
	if r.failure == nil {
		r.failure = err
	}
}

// bytes is a content; nil if it cannot be read.
func (r *recordReader) bytes(digest string) []byte {
	data, err := r.cluster.contents().Get(r.ctx, r.namespace, digest)
	if err != nil {
		r.fail(err)
	}
	return data
}
