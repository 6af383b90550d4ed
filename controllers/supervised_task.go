package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/frames"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// intentTask is the action of a checkpoint's intent.
const intentTask = "human-task"

// taskRequest is a checkpoint's question, evaluated once and retained.
type taskRequest struct {
	HumanContext   api.HumanContext `json:"humanContext"`
	ResponseSchema json.RawMessage  `json:"responseSchema"`
	Assignees      *api.Assignees   `json:"assignees,omitempty"`
}

// intendTask evaluates the question of a checkpoint.
func (r *SupervisedRunReconciler) intendTask(ctx context.Context, p *supervisedPass, parked frames.ParkedActivation) (*engine.Failure, error) {
	component := p.component(parked.Component)
	node, _ := component.Engine().Workflow().Node(parked.Node)
	variables := frames.Context(p.def, p.state, parked.Activation)
	inputs, err := component.ResolveInputs(ctx, parked.Node, variables)
	if err != nil {
		_, failure, err := evaluationFailed(err)
		return failure, err
	}
	branch := api.ActiveBranch{Title: parked.Title}
	request := taskRequest{HumanContext: taskContext(&branch, node, inputs)}
	config := node.Config()
	text, _ := config["description"].(string)
	description, err := component.Render(ctx, text, variables)
	if err != nil {
		_, failure, err := evaluationFailed(err)
		return failure, err
	}
	request.HumanContext.Description = truncate(description, maxTaskDescription)
	schema, err := encodeRunValue(config["responseSchema"])
	if err != nil {
		return nil, err
	}
	request.ResponseSchema = schema
	spec := &api.HumanTaskSpec{}
	if err := setTaskAssignees(spec, config["assignees"]); err != nil {
		return &engine.Failure{Phase: engine.PhaseExecution, Code: codeTaskFailed, Message: "the node's assignees cannot be read"}, nil //nolint:nilerr // the failure is the result
	}
	request.Assignees = spec.Assignees
	if failure := r.gate(asJSON(request)); failure != nil {
		return failure, nil
	}
	fingerprint, err := fingerprintOf(p.run, parked.Activation, request)
	if err != nil {
		return nil, err
	}
	p.seenResumes = true
	return nil, r.intend(ctx, p, api.RunIntent{
		Activation: parked.Activation, Action: intentTask, At: metav1.NewTime(p.now.Truncate(time.Second)),
		Task: runChildName(p.run, parked.Activation), Fingerprint: fingerprint,
	}, request)
}

// fingerprintOf names a question and who asks it, so that no answer serves
// another one.
func fingerprintOf(run *api.WorkflowRun, activation string, request taskRequest) (string, error) {
	data, err := jsonvalue.Canonical(asJSON(map[string]any{
		"runUID": string(run.UID), "activation": activation, "humanContext": request.HumanContext, "responseSchema": request.ResponseSchema,
	}))
	if err != nil {
		return "", fmt.Errorf("encode question: %w", err)
	}
	return content.Digest(data), nil
}

func (r *SupervisedRunReconciler) readTaskRequest(ctx context.Context, run *api.WorkflowRun, intent *api.RunIntent) (taskRequest, error) {
	var request taskRequest
	ref := intent.Request
	err := r.store().readContent(ctx, run.Namespace, &ref, func(data []byte) error { return json.Unmarshal(data, &request) })
	if isBeyondRepair(err) {
		err = &lostValueError{digest: ref.Digest, cause: err}
	}
	return request, err
}

// openTasks makes the tasks of open checkpoints that are not there, also those
// that somebody deleted, and returns all of them by activation.
func (r *SupervisedRunReconciler) openTasks(ctx context.Context, p *supervisedPass) (map[string]*api.HumanTask, error) {
	tasks := map[string]*api.HumanTask{}
	for i := range p.intents {
		intent := &p.intents[i]
		if intent.Action != intentTask {
			continue
		}
		task := &api.HumanTask{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: p.run.Namespace, Name: intent.Task}, task)
		if apierrors.IsNotFound(err) {
			task, err = r.createTask(ctx, p, intent)
		}
		if err != nil {
			return nil, fmt.Errorf("open task %s: %w", intent.Task, err)
		}
		tasks[intent.Activation] = task
	}
	return tasks, nil
}

func (r *SupervisedRunReconciler) createTask(ctx context.Context, p *supervisedPass, intent *api.RunIntent) (*api.HumanTask, error) {
	request, err := r.readTaskRequest(ctx, p.run, intent)
	if err != nil {
		return nil, err
	}
	if err := r.mayMutate(ctx, p); err != nil {
		return nil, err
	}
	task := &api.HumanTask{
		ObjectMeta: supervisedMeta(p.run, intent.Task, intent.Activation),
		Spec: api.HumanTaskSpec{
			RunRef:       &api.TaskRunRef{Name: p.run.Name, UID: string(p.run.UID), Activation: intent.Activation},
			HumanContext: request.HumanContext,
			Assignees:    request.Assignees,
			Fingerprint:  intent.Fingerprint,
		},
	}
	if task.Spec.ResponseSchema, err = runRawJSON(request.ResponseSchema); err != nil {
		return nil, fmt.Errorf("encode response schema: %w", err)
	}
	if err := r.Client.Create(ctx, task); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	return task, nil
}

// claimed is what the answered checkpoints of a run come to.
type claimed struct {
	activation string
	served     served
}

// claims reads the answers. A refusal means that one does not fit its question,
// and nothing is claimed.
func (r *SupervisedRunReconciler) claims(ctx context.Context, p *supervisedPass, tasks map[string]*api.HumanTask) (claims []claimed, refusal string, err error) {
	for i := range p.intents {
		intent := &p.intents[i]
		task := tasks[intent.Activation]
		if task == nil || task.Status.Answer == nil && task.Status.Failure == nil {
			continue
		}
		request, err := r.readTaskRequest(ctx, p.run, intent)
		if err != nil {
			return nil, "", err
		}
		answered, err := r.claim(p, intent, request, task)
		if err != nil {
			return nil, intent.Activation + ": " + err.Error(), nil //nolint:nilerr // the refusal is the result
		}
		claims = append(claims, claimed{activation: intent.Activation, served: answered})
	}
	return claims, "", nil
}

// claim holds one answer against the retained question. An error says, without a
// value, why it is refused.
func (r *SupervisedRunReconciler) claim(p *supervisedPass, intent *api.RunIntent, request taskRequest, task *api.HumanTask) (served, error) {
	if err := r.checkAsked(p, intent, request, task); err != nil {
		return served{}, err
	}
	receipt := map[string]any{"task": task.Name, "taskUID": string(task.UID), "user": task.Status.AnsweredBy.Username}
	if task.Status.Failure != nil {
		failed := failedWith(codeTaskFailed, "the task cannot be done")
		failed.receipt = receipt
		return failed, nil
	}
	values, err := r.readAnswer(request, task)
	if err != nil {
		return served{}, err
	}
	receipt["answer"] = content.Digest(task.Status.Answer.Raw)
	done := completed(values, receipt)
	done.by = task.Status.AnsweredBy.Username
	return done, nil
}

// checkAsked tells whether a task is the one that the run asked.
func (r *SupervisedRunReconciler) checkAsked(p *supervisedPass, intent *api.RunIntent, request taskRequest, task *api.HumanTask) error {
	fingerprint, err := fingerprintOf(p.run, intent.Activation, request)
	switch {
	case err != nil:
		return err
	case !metav1.IsControlledBy(task, p.run) || task.Spec.RunRef == nil || task.Spec.RunRef.Activation != intent.Activation:
		return errors.New("the task is not this run's")
	case fingerprint != intent.Fingerprint || task.Spec.Fingerprint != intent.Fingerprint:
		return errors.New("the task asks another question")
	case task.Status.AnsweredBy == nil:
		return errors.New("nobody is said to have answered")
	}
	return nil
}

// readAnswer is what an answer leaves in the context.
func (r *SupervisedRunReconciler) readAnswer(request taskRequest, task *api.HumanTask) (map[string]any, error) {
	answer, err := jsonvalue.Decode(task.Status.Answer.Raw)
	if err != nil {
		return nil, errors.New("the answer is no JSON")
	}
	if hit := r.Scanner.Value(answer); hit != nil {
		return nil, hit
	}
	schema, err := jsonvalue.Decode(request.ResponseSchema)
	if err != nil {
		return nil, errors.New("the question's schema is no JSON")
	}
	values, wrong := form.Accept(form.Spec{ResponseSchema: schema}, answer)
	if len(wrong) > 0 {
		return nil, wrong[0]
	}
	return values, nil
}

// voidTasks closes the tasks of a run that ended.
func (r *SupervisedRunReconciler) voidTasks(ctx context.Context, run *api.WorkflowRun) error {
	var tasks api.HumanTaskList
	if err := r.Live.List(ctx, &tasks, client.InNamespace(run.Namespace), client.MatchingLabels{api.LabelRun: string(run.UID)}); err != nil {
		return fmt.Errorf("list tasks: %w", err)
	}
	var errs []error
	for i := range tasks.Items {
		if task := &tasks.Items[i]; metav1.IsControlledBy(task, run) && humantask.IsOpen(task) {
			errs = append(errs, r.store().closeTask(ctx, run, task, metav1.NewTime(r.Clock.Now()).Rfc3339Copy()))
		}
	}
	return errors.Join(errs...)
}
