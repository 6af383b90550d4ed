package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/template"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// An attempt that an agent makes has a session of its own, named like the pod of a
// script would be, and a turn for each thing that the agent is asked: the prompt,
// and then a request for each reply that is not in the form it should have. The
// run makes session and turns; the turn's controller brings the prompt to the
// agent; the run reads the reply. When the attempt closes, the session is stopped,
// which takes pod and token away. Session and turns stay as the record of what was
// said, and go with the run.

const (
	// childAgentSession is the kind of the child that serves an attempt by an agent.
	childAgentSession = "AgentSession"
	// maxRepairs is how often an agent may correct the form of its reply.
	maxRepairs = 2
)

// Codes of attempts by agents.
const (
	codeUnknownTemplate = "UNKNOWN_SESSION_TEMPLATE"
	codeRenderFailed    = "RENDER_FAILED"
	codeAgentLost       = "AGENT_LOST"
	codeAgentError      = "AGENT_ERROR"
	codeAgentTimeout    = "AGENT_TIMEOUT"
	codeAgentDenied     = "AGENT_TOOL_DENIED"
)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=turns,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=sessiontemplates,verbs=get;list;watch

// runAgents are the sessions of a run and what was said in them.
type runAgents struct {
	// sessions by name.
	sessions map[string]*api.AgentSession
	// turns of each session, by its name, in the order in which they follow each
	// other.
	turns map[string][]*api.Turn
	// replies to the last turn of a session that is completed, by the session's name.
	replies map[string]agentReply
}

// agentReply is a reply held against its contract.
type agentReply struct {
	outputs engine.Values
	// failure of the attempt, nil if there is none.
	failure *engine.Failure
	// repair is what the agent is to be asked next; empty: nothing.
	repair string
}

// uid of a session, empty if it was not seen or lacks its prompt: then it is not
// complete yet.
func (a runAgents) uid(name string) string {
	session := a.sessions[name]
	if session == nil || len(a.turns[name]) == 0 {
		return ""
	}
	return string(session.UID)
}

// last turn of a session, nil if there is none.
func (a runAgents) last(name string) *api.Turn {
	all := a.turns[name]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// trouble says what keeps a session's agent from starting.
func (a runAgents) trouble(name string) string {
	session := a.sessions[name]
	if session == nil || session.Status.Phase != api.SessionStarting {
		return ""
	}
	ready := apimeta.FindStatusCondition(session.Status.Conditions, api.ConditionPodReady)
	if ready == nil {
		return ""
	}
	return ready.Message
}

// gatherAgents reads the run's sessions and turns.
func (r *WorkflowRunReconciler) gatherAgents(ctx context.Context, run *api.WorkflowRun) (runAgents, error) {
	agents := runAgents{sessions: map[string]*api.AgentSession{}, turns: map[string][]*api.Turn{}, replies: map[string]agentReply{}}
	var sessions api.AgentSessionList
	var asked api.TurnList
	for _, list := range []client.ObjectList{&sessions, &asked} {
		if err := r.Client.List(ctx, list, client.InNamespace(run.Namespace), client.MatchingFields{fieldRun: string(run.UID)}); err != nil {
			return agents, fmt.Errorf("list agents of run: %w", err)
		}
	}
	for i := range sessions.Items {
		if session := &sessions.Items[i]; metav1.IsControlledBy(session, run) {
			agents.sessions[session.Name] = session
		}
	}
	for i := range asked.Items {
		turn := &asked.Items[i]
		if turn.Spec.Prompt != nil && turn.Spec.SessionRef != nil && metav1.IsControlledBy(turn, run) {
			name := turn.Spec.SessionRef.Name
			agents.turns[name] = append(agents.turns[name], turn)
		}
	}
	for _, all := range agents.turns {
		slices.SortFunc(all, func(a, b *api.Turn) int { return cmp.Compare(a.Spec.Prompt.Repair, b.Spec.Prompt.Repair) })
	}
	return agents, nil
}

// gatherReplies reads what the agents of open activations replied.
func (r *WorkflowRunReconciler) gatherReplies(ctx context.Context, state *runState) error {
	for _, branch := range state.instance.ActiveBranches {
		if branch.Child == nil || branch.Child.Kind != childAgentSession {
			continue
		}
		turn := state.children.agents.last(branch.Child.Name)
		if turn == nil || turn.Status.State != api.TurnCompleted {
			continue
		}
		reply, err := r.readReply(ctx, turn)
		if err != nil {
			return err
		}
		state.children.agents.replies[branch.Child.Name] = reply
	}
	return nil
}

// readReply reads the reply of a completed turn. What is stored of it may be lost
// or changed, and then no repetition helps.
func (r *WorkflowRunReconciler) readReply(ctx context.Context, turn *api.Turn) (agentReply, error) {
	text := turn.Status.Reply
	var contract action.Contract
	err := r.store().readContent(ctx, turn.Namespace, turn.Status.ReplyRef, func(data []byte) error {
		text = string(data)
		return nil
	})
	if err == nil {
		err = r.store().readContent(ctx, turn.Namespace, turn.Spec.Prompt.Contract, func(data []byte) error { return json.Unmarshal(data, &contract) })
	}
	if isBeyondRepair(err) {
		failure := invalidResult("the reply, or what it had to be, is lost")
		return agentReply{failure: &failure}, nil
	}
	if err != nil {
		return agentReply{}, err
	}
	return judgeReply(contract, text, turn.Spec.Prompt.Repair), nil
}

// judgeReply reads a reply to the prompt, or to a request to repair the one before.
func judgeReply(contract action.Contract, text string, repair int32) agentReply {
	outputs, err := contract.Read(text)
	wrong, isWrong := errors.AsType[*action.ReplyError](err)
	switch {
	case !isWrong:
		return agentReply{outputs: outputs}
	case wrong.Code == action.CodeReplyInvalid && repair < maxRepairs:
		return agentReply{repair: contract.Repair(text, wrong)}
	}
	return agentReply{failure: &engine.Failure{Phase: engine.PhaseExecution, Code: wrong.Code, Message: wrong.Error()}}
}

// agentDelivery is what became of an attempt by an agent, nil while it is under
// way: its reply, else why there is none, else its deadline.
func agentDelivery(state *runState, parked engine.ParkedActivation) *runDelivery {
	name := parked.Child.Name
	turn := state.children.agents.last(name)
	if turn == nil || !turns.IsOver(turn.Status.State) {
		return deadlineDelivery(parked.Deadline, state.now)
	}
	d := &runDelivery{at: state.now, outcome: outcomeFail}
	if turn.Status.FinishedAt != nil {
		d.at = turn.Status.FinishedAt.Time
	}
	if turn.Status.State != api.TurnCompleted {
		d.failure = engine.Failure{
			Phase: engine.PhaseExecution, Code: cmp.Or(turn.Status.Code, codeAgentLost), Message: cmp.Or(turn.Status.Detail, "the agent gave no reply"),
		}
		return d
	}
	reply := state.children.agents.replies[name]
	switch {
	case reply.repair != "":
		return deadlineDelivery(parked.Deadline, state.now)
	case reply.failure != nil:
		d.failure = *reply.failure
	default:
		d.outcome, d.values = outcomeComplete, reply.outputs
	}
	return d
}

// foresee finds out which of the newly parked actions are for agents: the status
// that is committed next names the kind of their child.
func (r *WorkflowRunReconciler) foresee(ctx context.Context, state *runState, plan runPlan) error {
	if plan.instance == nil || state.definition == nil {
		return nil
	}
	state.agents = map[string]bool{}
	for _, branch := range plan.instance.ActiveBranches {
		if branch.Child != nil || state.kindOf(branch.Node) != workflow.KindAction {
			continue
		}
		node, _ := state.definition.engine.Workflow().Node(branch.Node)
		spec, err := r.findAction(ctx, state, state.run.Namespace, runActionType(node.Config()))
		if err != nil {
			return err
		}
		state.agents[branch.Node] = spec != nil && spec.Mode == api.ModeAgent
	}
	return nil
}

// attemptChild is what serves an attempt of an action.
func attemptChild(state *runState, branch *engine.ActiveBranch) *engine.Child {
	child := &engine.Child{Kind: childPod, Name: runAttemptName(state.run, branch.Activation, branch.Attempt)}
	if state.agents[branch.Node] {
		child.Kind = childAgentSession
	}
	return child
}

// createAgent makes the session of an attempt and the turn with its prompt, or, once
// they are there, the turn that follows a reply in the wrong form.
func (r *WorkflowRunReconciler) createAgent(ctx context.Context, state *runState, run *api.WorkflowRun, branch *api.ActiveBranch, input engine.Values) error {
	agents := state.children.agents
	if last := agents.last(branch.Child.Name); last != nil && agents.sessions[branch.Child.Name] != nil {
		return r.createRepair(ctx, run, branch, last, agents.replies[branch.Child.Name].repair)
	}
	node, _ := state.definition.engine.Workflow().Node(branch.Node)
	actionType, err := r.lookUpAction(ctx, state, run.Namespace, runActionType(node.Config()))
	if err != nil {
		return err
	}
	if actionType.RunsScript() {
		return modeChanged(actionType)
	}
	text, err := r.agentPrompt(ctx, actionType, input)
	if err != nil {
		return err
	}
	session, err := r.agentSession(ctx, run, branch, actionType, node)
	if err != nil {
		return err
	}
	refusal := failChild(engine.PhaseExecutorLookup, codeInvalidActionType, "the API server refused the action's agent session")
	if _, err := r.store().create(ctx, run, session, refusal); err != nil {
		return err
	}
	contract := action.Contract{Outputs: actionType.Outputs}
	return r.createTurn(ctx, run, branch, 0, promptTexts{message: contract.Extend(text), contract: &contract})
}

// modeChanged: the status that was committed names a child of another kind, which
// may be there. No attempt has two.
func modeChanged(t action.Type) error {
	return failChild(engine.PhaseExecutorLookup, codeInvalidActionType, "action type %q: its mode changed while the attempt began", t.Name)
}

// agentPrompt checks the inputs and renders the prompt over them. Declared inputs
// that are absent are null in it.
func (r *WorkflowRunReconciler) agentPrompt(ctx context.Context, t action.Type, input engine.Values) (string, error) {
	if failure := contractFailure(engine.PhaseInputResolution, codeInputContract, action.CheckContract(t.Inputs, input)); failure != nil {
		return "", &childError{failure: *failure}
	}
	inputs := map[string]any{}
	for _, f := range t.Inputs {
		inputs[f.Name] = nil
	}
	maps.Copy(inputs, input)
	text, err := action.RenderPrompt(t.Agent.Prompt, func(text string) (any, error) {
		program, err := r.Expressions.Compile(expression.ScopeAgentPrompt, text)
		if err != nil {
			return nil, err
		}
		return program.Eval(ctx, expression.Variables{Inputs: inputs})
	})
	switch {
	case errors.Is(err, expression.ErrInterrupted):
		return "", fmt.Errorf("render prompt: %w", err)
	case err != nil:
		return "", failChild(engine.PhaseExecution, codeRenderFailed, "%v", err)
	}
	return text, nil
}

// agentSession is the session of an attempt. What its turns may take is what the
// node says, so that the attempt's own deadline comes first.
func (r *WorkflowRunReconciler) agentSession(ctx context.Context, run *api.WorkflowRun, branch *api.ActiveBranch, t action.Type, node workflow.Node) (*api.AgentSession, error) {
	name := cmp.Or(t.Agent.SessionTemplate, template.General)
	_, err := ResolveTemplate(ctx, r.Client, run.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, failChild(engine.PhaseExecutorLookup, codeUnknownTemplate, "there is no session template %q", name)
	}
	if err != nil {
		return nil, err
	}
	session := &api.AgentSession{
		ObjectMeta: attemptMeta(run, branch),
		Spec:       api.AgentSessionSpec{TemplateRef: api.LocalRef{Name: name}, RunRef: &api.LocalRef{Name: run.Name}},
	}
	if text, isSet := node.Config()["timeout"].(string); isSet {
		if timeout, err := workflow.ParseDuration(text); err == nil {
			session.Spec.TurnTimeout = &metav1.Duration{Duration: max(timeout, time.Second)}
		}
	}
	return session, nil
}

// createRepair asks for a reply in the right form, once for each reply.
func (r *WorkflowRunReconciler) createRepair(ctx context.Context, run *api.WorkflowRun, branch *api.ActiveBranch, last *api.Turn, text string) error {
	if text == "" {
		return nil
	}
	return r.createTurn(ctx, run, branch, last.Spec.Prompt.Repair+1, promptTexts{message: text, given: last.Spec.Prompt.Contract})
}

// promptTexts are what a turn of a run says.
type promptTexts struct {
	message string
	// contract to be stored, or given, which is stored already.
	contract *action.Contract
	given    *api.ContentRef
}

func (r *WorkflowRunReconciler) createTurn(ctx context.Context, run *api.WorkflowRun, branch *api.ActiveBranch, repair int32, texts promptTexts) error {
	message, err := r.store().contents().Put(ctx, run, []byte(texts.message))
	if err != nil {
		return err
	}
	contract := texts.given
	if texts.contract != nil && !texts.contract.IsOpen() {
		data, err := json.Marshal(texts.contract)
		if err != nil {
			return fmt.Errorf("encode contract: %w", err)
		}
		stored, err := r.store().contents().Put(ctx, run, data)
		if err != nil {
			return err
		}
		contract = &stored
	}
	turn := &api.Turn{
		ObjectMeta: attemptMeta(run, branch),
		Spec: api.TurnSpec{
			SessionRef: &api.LocalRef{Name: branch.Child.Name},
			Prompt: &api.RunPrompt{
				RunRef: api.PromptRun{Name: run.Name, UID: string(run.UID)}, Activation: branch.Activation, Attempt: branch.Attempt, Repair: repair,
				Message: message, Contract: contract,
			},
		},
	}
	turn.Name = runTurnName(run, branch.Activation, branch.Attempt, repair)
	_, err = r.store().create(ctx, run, turn, failChild(engine.PhaseExecution, codeAgentError, "the API server refused the prompt"))
	return err
}

// runTurnNamePart is how much of a run's name stands in the names of its turns,
// which are shorter than others.
const runTurnNamePart = 33

// runTurnName is the name of one of the turns of an attempt.
func runTurnName(run *api.WorkflowRun, activation string, attempt, repair int32) string {
	short := runNamePrefix(run.Name[:min(len(run.Name), runTurnNamePart)])
	return short + runNameDigest(run.UID, activation) + "-a" + strconv.Itoa(int(attempt)) + "-r" + strconv.Itoa(int(repair))
}

// leftAgents are the sessions that no open activation needs and that still could
// work, by name.
func leftAgents(agents runAgents, needed map[string]bool) []*api.AgentSession {
	var left []*api.AgentSession
	for _, name := range slices.Sorted(maps.Keys(agents.sessions)) {
		if session := agents.sessions[name]; !needed[name] && !session.Spec.Stopped && session.DeletionTimestamp.IsZero() {
			left = append(left, session)
		}
	}
	return left
}

// stopAgent has the session's controller take pod and token away, in this order,
// for good.
func (r *WorkflowRunReconciler) stopAgent(ctx context.Context, session *api.AgentSession) error {
	stopped := session.DeepCopy()
	stopped.Spec.Stopped = true
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, stopped, client.MergeFrom(session))); err != nil {
		return fmt.Errorf("stop agent session %s: %w", session.Name, err)
	}
	return nil
}

// promptNews are what a run has to know of a turn: that it is over or gone.
func promptNews() predicate.Predicate {
	isOver := func(object client.Object) bool {
		turn, isTurn := object.(*api.Turn)
		return !isTurn || turns.IsOver(turn.Status.State)
	}
	return predicate.Funcs{
		CreateFunc: func(e ctrlevent.CreateEvent) bool { return isOver(e.Object) },
		UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
			return isOver(e.ObjectOld) != isOver(e.ObjectNew) || isMoved(e.ObjectOld, e.ObjectNew)
		},
	}
}

// agentNews are what a run has to know of a session: what keeps its agent from
// starting, and that it is gone. What it says comes with its turns.
func agentNews() predicate.Predicate {
	trouble := func(object client.Object) string {
		agents := runAgents{sessions: map[string]*api.AgentSession{}}
		agents.sessions[object.GetName()], _ = object.(*api.AgentSession)
		return agents.trouble(object.GetName())
	}
	return predicate.Funcs{
		CreateFunc: func(ctrlevent.CreateEvent) bool { return false },
		UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
			return trouble(e.ObjectOld) != trouble(e.ObjectNew) || isMoved(e.ObjectOld, e.ObjectNew)
		},
	}
}
