package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/reply"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	codeSessionAgentMismatch = "SESSION_AGENT_MISMATCH"
	// promptNamePart is how much of a run's name stands in the names of its turns
	// and sessions.
	promptNamePart = 36
)

// supervisedName is the name of a session or turn of a run.
func supervisedName(run *api.WorkflowRun, about string) string {
	return runNamePrefix(run.Name[:min(len(run.Name), promptNamePart)]) + runNameDigest(run.UID, about)
}

// supervisedTurnName is the name of a prompt's turn, or of one of its repairs.
func supervisedTurnName(run *api.WorkflowRun, activation string, repair int32) string {
	return supervisedName(run, activation) + "-r" + strconv.Itoa(int(repair))
}

// chooseSession finds the session of a prompt, or notes that there will be one. A
// name means one agent for the whole run.
func (r *SupervisedRunReconciler) chooseSession(p *supervisedPass, intent *api.RunIntent, request *actionRequest) *engine.Failure {
	name, agent := request.text("session"), request.text("agent")
	if err := checkName("session", name); err != nil {
		failure := asFailure(err)
		failure.Phase = engine.PhaseInputResolution
		return failure
	}
	for _, known := range p.sessions {
		if known.Name != name {
			continue
		}
		if known.Agent != agent {
			return &engine.Failure{Phase: engine.PhaseExecution, Code: codeSessionAgentMismatch, Message: "session " + name + " has another agent"}
		}
		intent.Session = known.Session
		return nil
	}
	intent.Session = supervisedName(p.run, "session/"+name)
	p.sessions = append(p.sessions, api.RunSession{Name: name, Session: intent.Session, Agent: agent})
	return nil
}

// servePrompt brings a prompt to its agent and reads the reply. It makes one turn
// for the prompt, and one for each reply in the wrong form.
func (r *SupervisedRunReconciler) servePrompt(ctx context.Context, p *supervisedPass, intent *api.RunIntent, request *actionRequest) (served, error) {
	contract := reply.Contract{Schema: request.Schema.value}
	message := contract.Extend(request.Prompt)
	for repair := int32(0); ; repair++ {
		turn, err := r.promptTurn(ctx, p, intent, repair)
		if err != nil {
			return served{}, err
		}
		if turn == nil {
			return r.ask(ctx, p, intent, request, questionTexts{message: message, contract: contract, repair: repair})
		}
		if !metav1.IsControlledBy(turn, p.run) {
			return failedWith(codeNameTaken, turn.Name+" exists and is not of this run"), nil
		}
		if !turns.IsOver(turn.Status.State) {
			return served{}, nil
		}
		if turn.Status.State != api.TurnCompleted {
			r.noteRefusal(ctx, p, intent.Session)
			return failedWith(cmp.Or(turn.Status.Code, codeAgentLost), cmp.Or(turn.Status.Detail, "the agent gave no reply")), nil
		}
		text, err := r.replyOf(ctx, turn)
		if err != nil {
			return served{}, err
		}
		judged := contract.Judge(text, reply.Attempts{Made: int(repair), Allowed: request.Repairs}, r.Scanner.CheckValue)
		switch {
		case judged.Failure != nil:
			return failedWith(judged.Failure.Code, "the reply is not what was asked for"), nil //nolint:nilerr // the failure is the result
		case judged.Repair != "":
			message = judged.Repair
			continue
		}
		return completed(map[string]any{"reply": judged.Value}, map[string]any{
			"session": intent.Session, "turn": turn.Name, "repairs": int64(repair), "deliveries": int64(turn.Status.Deliveries),
			"replyDigest": content.Digest([]byte(text)),
		}), nil
	}
}

func (r *SupervisedRunReconciler) promptTurn(ctx context.Context, p *supervisedPass, intent *api.RunIntent, repair int32) (*api.Turn, error) {
	turn := &api.Turn{}
	name := client.ObjectKey{Namespace: p.run.Namespace, Name: supervisedTurnName(p.run, intent.Activation, repair)}
	err := r.Live.Get(ctx, name, turn)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a turn that is not there is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read turn %s: %w", name.Name, err)
	}
	return turn, nil
}

func (r *SupervisedRunReconciler) replyOf(ctx context.Context, turn *api.Turn) (string, error) {
	text := turn.Status.Reply
	err := r.store().readContent(ctx, turn.Namespace, turn.Status.ReplyRef, func(data []byte) error {
		text = string(data)
		return nil
	})
	return text, err
}

// questionTexts are what one turn of a prompt says.
type questionTexts struct {
	message  string
	contract reply.Contract
	repair   int32
}

// ask makes the session if there is none, then the turn.
func (r *SupervisedRunReconciler) ask(ctx context.Context, p *supervisedPass, intent *api.RunIntent, request *actionRequest, texts questionTexts) (served, error) {
	if refusal, err := r.ensureSession(ctx, p, intent, request.text("agent")); refusal != nil || err != nil {
		return asServed(refusal), err
	}
	if err := r.mayMutate(ctx, p); err != nil {
		return served{}, err
	}
	message, err := r.store().contents().Put(ctx, p.run, []byte(texts.message))
	if err != nil {
		return served{}, err
	}
	var contract *api.ContentRef
	if !texts.contract.IsOpen() {
		data, err := json.Marshal(texts.contract)
		if err != nil {
			return served{}, fmt.Errorf("encode contract: %w", err)
		}
		stored, err := r.store().contents().Put(ctx, p.run, data)
		if err != nil {
			return served{}, err
		}
		contract = &stored
	}
	turn := &api.Turn{
		ObjectMeta: supervisedMeta(p.run, supervisedTurnName(p.run, intent.Activation, texts.repair), intent.Activation),
		Spec: api.TurnSpec{
			SessionRef: &api.LocalRef{Name: intent.Session},
			Prompt: &api.RunPrompt{
				RunRef: api.PromptRun{Name: p.run.Name, UID: string(p.run.UID)}, Activation: intent.Activation, Repair: texts.repair,
				Message: message, Contract: contract, Deadline: intent.Deadline,
			},
		},
	}
	_, err = r.store().create(ctx, p.run, turn, failChild(engine.PhaseExecution, codeAgentError, "the API server refused the prompt"))
	if err == nil {
		countTurn(p.sessions, intent.Session)
	}
	return asServedChild(err)
}

func supervisedMeta(run *api.WorkflowRun, name, activation string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       run.Namespace,
		Labels:          map[string]string{api.LabelRun: string(run.UID)},
		Annotations:     map[string]string{api.AnnotationActivation: activation},
		OwnerReferences: []metav1.OwnerReference{runReference(run)},
	}
}

// ensureSession makes the session of a prompt, or wakes the one that rests.
func (r *SupervisedRunReconciler) ensureSession(ctx context.Context, p *supervisedPass, intent *api.RunIntent, agent string) (*engine.Failure, error) {
	template, err := ResolveTemplate(ctx, r.Client, p.run.Namespace, agent)
	if apierrors.IsNotFound(err) {
		return &engine.Failure{Phase: engine.PhaseExecutorLookup, Code: codeUnknownTemplate, Message: "there is no session template of the agent's name"}, nil
	}
	if err != nil {
		return nil, err
	}
	if template.Role != api.RolePrompt {
		return &engine.Failure{Phase: engine.PhaseExecutorLookup, Code: codeUnknownTemplate, Message: "the agent's session template has not the role Prompt"}, nil
	}
	session := &api.AgentSession{
		ObjectMeta: supervisedMeta(p.run, intent.Session, ""),
		Spec:       api.AgentSessionSpec{TemplateRef: api.LocalRef{Name: agent}, RunRef: &api.LocalRef{Name: p.run.Name}, Role: api.RolePrompt},
	}
	session.Annotations = nil
	_, err = r.store().create(ctx, p.run, session, failChild(engine.PhaseExecution, codeAgentError, "the API server refused the agent's session"))
	if impossible, isImpossible := asChildError(err); isImpossible {
		return &impossible.failure, nil
	}
	return nil, err
}

// noteRefusal copies to the run why a session could not be taken up again.
func (r *SupervisedRunReconciler) noteRefusal(ctx context.Context, p *supervisedPass, name string) {
	session := &api.AgentSession{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: p.run.Namespace, Name: name}, session); err != nil {
		return // the turn's code says what happened
	}
	if refused := apimeta.FindStatusCondition(session.Status.Conditions, api.ConditionSessionRefused); refused != nil && refused.Status == metav1.ConditionTrue {
		p.refusedSession = refused.Reason
	}
}

// countTurn notes that a session had one more turn. One that is made twice, after a
// crash, counts once more: the count is for people.
func countTurn(sessions []api.RunSession, session string) {
	if i := slices.IndexFunc(sessions, func(s api.RunSession) bool { return s.Session == session }); i >= 0 {
		sessions[i].Turns++
	}
}

func asServed(failure *engine.Failure) served {
	if failure == nil {
		return served{}
	}
	return served{isOver: true, failure: failure}
}

// asServedChild turns what keeps a child from ever being made into a failure.
func asServedChild(err error) (served, error) {
	if impossible, isImpossible := asChildError(err); isImpossible {
		return served{isOver: true, failure: &impossible.failure}, nil
	}
	return served{}, err
}
