package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// requestValues are a JSON object that keeps its integers.
type requestValues map[string]any

// UnmarshalJSON reads integers as such.
func (v *requestValues) UnmarshalJSON(data []byte) error {
	decoded, err := jsonvalue.Decode(data)
	if err != nil {
		return err
	}
	*v, _ = decoded.(map[string]any)
	return nil
}

// requestSchema is a JSON Schema, or none.
type requestSchema struct{ value any }

// MarshalJSON writes the schema.
func (s requestSchema) MarshalJSON() ([]byte, error) { return encodeRunValue(s.value) }

// UnmarshalJSON reads integers as such.
func (s *requestSchema) UnmarshalJSON(data []byte) error {
	var err error
	s.value, err = jsonvalue.Decode(data)
	return err
}

// actionRequest is what an action was asked, evaluated once and retained.
type actionRequest struct {
	Action      string        `json:"action"`
	Inputs      requestValues `json:"inputs,omitempty"`
	Prompt      string        `json:"prompt,omitempty"`
	Body        string        `json:"body,omitempty"`
	Schema      requestSchema `json:"schema"`
	Repairs     int           `json:"repairs,omitempty"`
	Allow       []string      `json:"allow,omitempty"`
	Include     []string      `json:"include,omitempty"`
	Exclude     []string      `json:"exclude,omitempty"`
	Method      string        `json:"method,omitempty"`
	Require2xx  bool          `json:"require2xx,omitempty"`
	Credentials string        `json:"credentials,omitempty"`
	// Head is the commit that a push sends.
	Head string `json:"head,omitempty"`

	// at is the intent's second.
	at time.Time
}

// text of an input, empty if it has none.
func (q *actionRequest) text(name string) string {
	text, _ := q.Inputs[name].(string)
	return text
}

// texts of an input that is a list.
func (q *actionRequest) texts(name string) []string {
	list, _ := q.Inputs[name].([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		if text, isText := item.(string); isText {
			texts = append(texts, text)
		}
	}
	return texts
}

// named is the name of what an input stands for: an output of the action that
// opened it, or the name itself.
func (q *actionRequest) named(input string) string {
	if object, isObject := q.Inputs[input].(map[string]any); isObject {
		name, _ := object["name"].(string)
		return name
	}
	return q.text(input)
}

// textList is a list of texts as JSON.
func textList(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// asJSON is a value as it would be read from JSON.
func asJSON(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	decoded, err := jsonvalue.Decode(data)
	if err != nil {
		return nil
	}
	return decoded
}

// prepare writes the intents of what was just entered. What cannot be asked for
// fails its activation, which may enter others.
func (r *SupervisedRunReconciler) prepare(ctx context.Context, p *supervisedPass) error {
	for {
		parked, failure, err := r.prepareOne(ctx, p)
		if err != nil || parked == "" {
			return err
		}
		if failure == nil {
			continue
		}
		step := frames.Fail(ctx, p.def, p.state, engine.Address{Activation: parked, Attempt: 1}, *failure, p.now)
		if err := p.take(ctx, step, receiptOf{}); err != nil {
			return err
		}
	}
}

// prepareOne looks for one open activation without an intent and gives it one.
func (r *SupervisedRunReconciler) prepareOne(ctx context.Context, p *supervisedPass) (activation string, failure *engine.Failure, err error) {
	for _, parked := range frames.Parked(p.def, p.state) {
		if p.intent(parked.Activation) != nil {
			continue
		}
		switch parked.Kind {
		case workflow.KindAction:
			failure, err = r.intendAction(ctx, p, parked)
		case workflow.KindHumanTask:
			failure, err = r.intendTask(ctx, p, parked)
		default:
			continue
		}
		return parked.Activation, failure, err
	}
	return "", nil, nil
}

func (r *SupervisedRunReconciler) intendAction(ctx context.Context, p *supervisedPass, parked frames.ParkedActivation) (*engine.Failure, error) {
	component := p.component(parked.Component)
	action, known := component.ActionConfig(parked.Node)
	if !known {
		return &engine.Failure{Phase: engine.PhaseExecutorLookup, Code: codeUnknownActionType, Message: "the node has no action"}, nil
	}
	request, failure, err := r.evaluate(ctx, p, component, action, parked)
	if failure != nil || err != nil {
		return failure, err
	}
	intent := api.RunIntent{Activation: parked.Activation, Action: action.Action, At: metav1.NewTime(p.now.Truncate(time.Second))}
	deadline := metav1.NewTime(p.now.Add(action.Timeout)).Rfc3339Copy()
	intent.Deadline = &deadline
	if failure := p.fix(&intent, request); failure != nil {
		return failure, nil
	}
	if action.Action == definition.ActionAgentPrompt {
		if failure := r.chooseSession(p, &intent, request); failure != nil {
			return failure, nil
		}
	}
	return nil, r.intend(ctx, p, intent, request)
}

// intend retains a request and adds the intent that names it.
func (r *SupervisedRunReconciler) intend(ctx context.Context, p *supervisedPass, intent api.RunIntent, request any) error {
	data, err := encodeRunValue(request)
	if err != nil {
		return err
	}
	ref, err := r.store().contents().Put(ctx, p.run, data)
	if err != nil {
		return err
	}
	intent.Request = ref
	p.intents = append(p.intents, intent)
	return nil
}

// fix sets what the request is about now, and by which key it is one effect.
func (p *supervisedPass) fix(intent *api.RunIntent, request *actionRequest) *engine.Failure {
	intent.Key = intent.Activation
	switch request.Action {
	case definition.ActionRepositoryOpen, definition.ActionWorktreeOpen:
		intent.Key = request.text("name")
	case definition.ActionGitPush, definition.ActionPullRequestUpsert:
		tree, kept, err := p.branchOf(request)
		if err != nil {
			return asFailure(err)
		}
		request.Head = tree.Head
		intent.Key = kept.Fingerprint + " refs/heads/" + tree.Branch
	case definition.ActionIssueUpsert:
		intent.Key = content.Digest([]byte(request.text("tracker"))) + " " + truncate(request.text("key"), maxIssueKey)
	}
	return nil
}

const maxIssueKey = 63

func asFailure(err error) *engine.Failure {
	if failure := failureOf(err); failure != nil {
		return &engine.Failure{Phase: engine.PhaseExecution, Code: failure.Code, Message: failure.Message}
	}
	return &engine.Failure{Phase: engine.PhaseExecution, Code: effect.CodeInputContract, Message: err.Error()}
}

// evaluate is the whole request of an action, with its texts rendered and held
// against the contract and the secret gate.
func (r *SupervisedRunReconciler) evaluate(ctx context.Context, p *supervisedPass, component *definition.Component, action definition.ActionConfig, parked frames.ParkedActivation) (*actionRequest, *engine.Failure, error) {
	variables := frames.Context(p.def, p.state, parked.Activation)
	inputs, err := component.ResolveInputs(ctx, parked.Node, variables)
	if err != nil {
		return evaluationFailed(err)
	}
	request := &actionRequest{
		Action: action.Action, Inputs: requestValues(inputs), Repairs: action.Reply.Repairs, Schema: requestSchema{action.Reply.Schema},
		Allow: action.Allow, Include: action.Include, Exclude: action.Exclude, Method: action.Method, Require2xx: action.Require2xx,
		Credentials: action.Credentials,
	}
	for reference, text := range map[string]*string{action.Prompt: &request.Prompt, action.Body: &request.Body} {
		if reference == "" {
			continue
		}
		if *text, err = component.Render(ctx, reference, variables); err != nil {
			return evaluationFailed(err)
		}
	}
	return request, r.gate(asJSON(request)), nil
}

// evaluationFailed tells a failure of what was evaluated from an error that says
// nothing of it.
func evaluationFailed(err error) (*actionRequest, *engine.Failure, error) {
	if failure, isFailure := errors.AsType[*definition.Failure](err); isFailure {
		return nil, &failure.Failure, nil
	}
	return nil, nil, fmt.Errorf("evaluate request: %w", err)
}

// gate fails what must not be retained.
func (r *SupervisedRunReconciler) gate(value any) *engine.Failure {
	if hit := r.Scanner.Value(value); hit != nil {
		return &engine.Failure{Phase: engine.PhaseExecution, Code: effect.CodeSecretDetected, Message: hit.String()}
	}
	return nil
}

// readRequest returns what an intent asks for.
func (r *SupervisedRunReconciler) readRequest(ctx context.Context, run *api.WorkflowRun, intent *api.RunIntent) (*actionRequest, error) {
	var request actionRequest
	ref := intent.Request
	err := r.store().readContent(ctx, run.Namespace, &ref, func(data []byte) error { return json.Unmarshal(data, &request) })
	if isBeyondRepair(err) {
		return nil, &lostValueError{digest: ref.Digest, cause: err}
	}
	request.at = intent.At.Time
	return &request, err
}
