package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
)

var agentContract = action.Contract{Outputs: []action.Field{{Name: "risk", Type: action.TypeNumber, Required: true}}}

func TestJudgeReply(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		contract action.Contract
		text     string
		repair   int32
		outputs  engine.Values
		code     string
		// repairs: the agent is asked for another form.
		repairs bool
	}{
		"good":                      {contract: agentContract, text: `{"risk":7}`, outputs: engine.Values{"risk": int64(7)}},
		"good at last":              {contract: agentContract, text: `{"risk":7}`, repair: 2, outputs: engine.Values{"risk": int64(7)}},
		"any":                       {text: "fine", outputs: engine.Values{"rawOutput": "fine"}},
		"wrong":                     {contract: agentContract, text: "seven", repairs: true},
		"wrong once more":           {contract: agentContract, text: "seven", repair: 1, repairs: true},
		"wrong for ever":            {contract: agentContract, text: "seven", repair: 2, code: action.CodeReplyInvalid},
		"empty":                     {text: " ", code: action.CodeReplyEmpty},
		"too large to be corrected": {contract: agentContract, text: strings.Repeat(" ", action.MaxReply+1), code: action.CodeReplyTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judgeReply(tc.contract, tc.text, tc.repair)
			if diff := cmp.Diff(tc.outputs, got.outputs); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
			code := ""
			if got.failure != nil {
				code = got.failure.Code
				if got.failure.Phase != engine.PhaseExecution || strings.Contains(got.failure.Message, "seven") {
					t.Errorf("failure is %+v", got.failure)
				}
			}
			if code != tc.code || (got.repair != "") != tc.repairs {
				t.Errorf("code %q, repair %q", code, got.repair)
			}
		})
	}
}

// agentState is a run whose action is open for an agent.
func agentState(t *testing.T) (*runState, engine.ParkedActivation, string) {
	t.Helper()
	state := &runState{run: testRun(), now: runTestNow, definition: testDefinition(t, runTestFlow), agents: map[string]bool{"work": true}}
	plan, err := decideStart(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	commitTo(t, state, plan)
	state.children.agents = runAgents{
		sessions: map[string]*api.AgentSession{}, turns: map[string][]*api.Turn{}, replies: map[string]agentReply{},
	}
	for _, parked := range engine.Parked(state.definition.engine, state.instance) {
		if parked.Activation == "work#1" {
			return state, parked, parked.Child.Name
		}
	}
	t.Fatal("the action is not open")
	return nil, engine.ParkedActivation{}, ""
}

func TestTheIntentNamesWhoDoesTheWork(t *testing.T) {
	t.Parallel()
	state, parked, name := agentState(t)
	if parked.Child.Kind != childAgentSession || name != runAttemptName(state.run, "work#1", 1) {
		t.Errorf("the agent's child is %+v", parked.Child)
	}
	script := startedState(t, runTestFlow)
	if child := runOpenBranch(script.run, "work#1").Child; child.Kind != childPod || child.Name != name {
		t.Errorf("the script's child is %+v", child)
	}
}

func TestAgentDelivery(t *testing.T) {
	t.Parallel()
	ended := func(state api.TurnPhase, code, detail string) *api.Turn {
		turn := &api.Turn{}
		turn.Status = api.TurnStatus{State: state, Code: code, Detail: detail, FinishedAt: timeOf(runTestNow.Add(-time.Second))}
		return turn
	}
	for name, tc := range map[string]struct {
		turns  []*api.Turn
		reply  agentReply
		late   bool
		values engine.Values
		// outcome -1: there is nothing to tell yet.
		outcome runOutcome
		code    string
		message string
	}{
		"not asked yet":                {outcome: -1},
		"working":                      {turns: []*api.Turn{ended(api.TurnWorking, "", "")}, outcome: -1},
		"working, and late":            {turns: []*api.Turn{ended(api.TurnWorking, "", "")}, late: true, outcome: outcomeTimeOut},
		"replied":                      {turns: []*api.Turn{ended(api.TurnCompleted, "", "")}, reply: agentReply{outputs: engine.Values{"a": "b"}}, values: engine.Values{"a": "b"}, outcome: outcomeComplete},
		"replied in the wrong form":    {turns: []*api.Turn{ended(api.TurnCompleted, "", "")}, reply: agentReply{repair: "again"}, outcome: -1},
		"wrong and late":               {turns: []*api.Turn{ended(api.TurnCompleted, "", "")}, reply: agentReply{repair: "again"}, late: true, outcome: outcomeTimeOut},
		"being asked again":            {turns: []*api.Turn{ended(api.TurnCompleted, "", ""), ended(api.TurnWorking, "", "")}, outcome: -1},
		"replied in no form":           {turns: []*api.Turn{ended(api.TurnCompleted, "", "")}, reply: agentReply{failure: &engine.Failure{Code: "REPLY_INVALID", Message: "m"}}, outcome: outcomeFail, code: "REPLY_INVALID", message: "m"},
		"failed":                       {turns: []*api.Turn{ended(api.TurnFailed, "AGENT_ERROR", "d")}, outcome: outcomeFail, code: "AGENT_ERROR", message: "d"},
		"failed, and late":             {turns: []*api.Turn{ended(api.TurnFailed, "AGENT_ERROR", "d")}, late: true, outcome: outcomeFail, code: "AGENT_ERROR", message: "d"},
		"stopped by somebody":          {turns: []*api.Turn{ended(api.TurnCancelled, "", "")}, outcome: outcomeFail, code: codeAgentLost, message: "the agent gave no reply"},
		"refused at the second asking": {turns: []*api.Turn{ended(api.TurnCompleted, "", ""), ended(api.TurnFailed, "AGENT_ERROR", "d")}, outcome: outcomeFail, code: "AGENT_ERROR", message: "d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, parked, child := agentState(t)
			state.children.agents.turns[child], state.children.agents.replies[child] = tc.turns, tc.reply
			if tc.late {
				state.now = parked.Deadline
			}
			d := attemptDelivery(state, parked)
			if d == nil {
				d = &runDelivery{outcome: -1}
			}
			if d.outcome != tc.outcome || d.failure.Code != tc.code || d.failure.Message != tc.message {
				t.Errorf("got %+v", d)
			}
			if diff := cmp.Diff(tc.values, d.values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// An attempt by an agent is complete with its session and its prompt, and wants
// more when its reply has to be corrected.
func TestWhatAnAttemptByAnAgentLacks(t *testing.T) {
	t.Parallel()
	state, parked, name := agentState(t)
	child := &api.ChildRef{Kind: parked.Child.Kind, Name: name}
	agents := state.children.agents
	if !state.children.wants(child) {
		t.Error("without a session")
	}
	agents.sessions[name] = &api.AgentSession{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "s"}}
	if !state.children.wants(child) {
		t.Error("without a prompt")
	}
	agents.turns[name] = []*api.Turn{{}}
	if state.children.wants(child) || state.children.uid(child.Kind, name) != "s" {
		t.Error("with both")
	}
	agents.replies[name] = agentReply{repair: "again"}
	if !state.children.wants(child) {
		t.Error("with a reply in the wrong form")
	}
}

func TestLeftAgents(t *testing.T) {
	t.Parallel()
	stopped, going := &api.AgentSession{}, &api.AgentSession{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: noon}}}
	stopped.Spec.Stopped = true
	agents := runAgents{sessions: map[string]*api.AgentSession{
		"b": {ObjectMeta: metav1.ObjectMeta{Name: "b"}}, "a": {ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		"needed": {}, "stopped": stopped, "going": going,
	}}
	left := leftAgents(agents, map[string]bool{"needed": true})
	if len(left) != 2 || left[0].Name != "a" || left[1].Name != "b" {
		t.Errorf("got %+v", left)
	}
}

func TestNamesOfTurnsFit(t *testing.T) {
	t.Parallel()
	run := testRun(func(run *api.WorkflowRun) { run.Name = strings.Repeat("long-name.", 25) })
	for attempt := range int32(11) {
		if name := runTurnName(run, "work#1", attempt, 2); len(name) > 57 || strings.Contains(name, ".-") {
			t.Errorf("name %q has %d characters", name, len(name))
		}
	}
	if one, two := runTurnName(run, "a#1", 1, 0), runTurnName(run, "b#1", 1, 0); one == two {
		t.Error("two activations share a name")
	}
}

func TestAgentPrompt(t *testing.T) {
	t.Parallel()
	r := &WorkflowRunReconciler{Expressions: runTestExpressions, Client: fake.NewClientBuilder().Build()}
	declared := []action.Field{{Name: "ref", Required: true}, {Name: "n", Type: action.TypeNumber}}
	for name, tc := range map[string]struct{ template, want, code string }{
		"inputs":           {template: "For ${{ inputs.ref }}: ${{ inputs.more }}", want: "For r: [1]"},
		"an absent input":  {template: "${{ inputs.n == null ? 'none' : string(inputs.n) }}", want: "none"},
		"an unknown input": {template: "a\n${{ inputs.x }}", code: codeRenderFailed},
		"no contract":      {template: "", code: codeInputContract},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := engine.Values{"ref": "r", "more": []any{int64(1)}}
			if name == "no contract" {
				input = engine.Values{}
			}
			got, err := r.agentPrompt(t.Context(), action.Type{Inputs: declared, Agent: action.Agent{Prompt: tc.template}}, input)
			code := ""
			if failed, ok := err.(*childError); ok { //nolint:errorlint // it must be the error itself
				code = failed.failure.Code
			}
			if got != tc.want || code != tc.code {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
