package conformance

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// A trial is one case.
type trial struct {
	name, about string
	needsPods   bool
	run         func(context.Context, *bench) error
}

func cases() []trial {
	return []trial{
		{name: "refusals", about: "admission refuses what is not valid", run: refusals},
		{name: "straight", about: "a run goes from start to end", run: straight},
		{name: "choice", about: "a run takes the edge whose condition holds", run: choice},
		{name: "wait", about: "a run waits, and goes on by itself", run: waits},
		{name: "question", about: "a run asks a person, takes a valid answer once, and notes who gave it", run: question},
		{name: "explicit", about: "a run goes on when a person resumes it, and not before", run: explicit},
		{name: "cancel", about: "a run is cancelled with its open question", run: cancels},
		{name: "script", about: "an action runs a script, whose outputs enter the run", needsPods: true, run: script},
		{name: "failure", about: "a script that fails leads over the error edge", needsPods: true, run: failure},
		{name: "turn", about: "an agent proposes a change, which a person accepts and takes back", needsPods: true, run: turn},
	}
}

// straightFlow has nothing between start and end.
const straightFlow = `
{id: straight, name: Straight, nodes: [
  {id: start, type: start, name: Start, config: {inputs: []}}, {id: end, type: end, name: End, config: {outcome: arrived}}],
 edges: [{id: e1, source: start, target: end}]}`

func refusals(ctx context.Context, b *bench) error {
	task := &api.HumanTask{ObjectMeta: b.meta()}
	task.Spec.HumanContext.Title, task.Spec.ExpiresAfter = "Well?", "tomorrow"
	late := &api.WorkflowRun{ObjectMeta: b.meta()}
	late.Spec.CompositionRef.Name, late.Spec.ActiveDeadline = "any", "tomorrow"
	return errors.Join(
		refused(b.Client.Create(ctx, task, client.DryRunAll), 422, "a task with no duration for expiresAfter"),
		refused(b.Client.Create(ctx, &api.WorkflowRun{ObjectMeta: b.meta()}, client.DryRunAll), 422, "a run of nothing"),
		refused(b.Client.Create(ctx, &api.Turn{ObjectMeta: b.meta()}, client.DryRunAll), 422, "a turn without a message"),
		refused(b.Client.Create(ctx, late, client.DryRunAll), 422, "a run with no duration for activeDeadline"),
	)
}

func straight(ctx context.Context, b *bench) error {
	run, err := b.ends(ctx, straightFlow, "[]")
	switch {
	case err != nil:
		return err
	case run.Status.Outcome != "arrived":
		return fmt.Errorf("the outcome is %q", run.Status.Outcome)
	case run.Status.History.Total != 2 || len(run.Status.History.Entries) != 2:
		return fmt.Errorf("the history has %d entries", run.Status.History.Total)
	}
	return nil
}

func choice(ctx context.Context, b *bench) error {
	run, err := b.ends(ctx, `
{id: choice, name: Choice, nodes: [
  {id: start, type: start, name: Start, config: {inputs: [{name: go, type: boolean, defaultValue: true}]}},
  {id: rest, type: wait, name: Rest, config: {duration: PT0.1S}},
  {id: left, type: end, name: Left, config: {outcome: left}}, {id: right, type: end, name: Right, config: {outcome: right}}],
 edges: [{id: e0, source: start, target: rest},
  {id: e1, source: rest, target: left, condition: "1 > 2", priority: 0}, {id: e2, source: rest, target: right, isDefault: true, priority: 1}]}`, "[]")
	if err == nil && run.Status.Outcome != "right" {
		return fmt.Errorf("the outcome is %q", run.Status.Outcome)
	}
	return err
}

func waits(ctx context.Context, b *bench) error {
	run, err := b.ends(ctx, `
{id: wait, name: Wait, nodes: [
  {id: start, type: start, name: Start, config: {inputs: []}}, {id: rest, type: wait, name: Rest, config: {duration: PT2S}}, {id: end, type: end, name: End}],
 edges: [{id: e1, source: start, target: rest}, {id: e2, source: rest, target: end}]}`, "[]")
	if err != nil {
		return err
	}
	if took := run.Status.FinishedAt.Sub(run.Status.StartedAt.Time); took.Seconds() < 1 {
		return fmt.Errorf("the run waited %s", took)
	}
	return nil
}

// questionFlow asks a person for a yes or no.
const questionFlow = `
{id: question, name: Question, nodes: [
  {id: start, type: start, name: Start, config: {inputs: []}},
  {id: ask, type: human-task, name: Go on, config: {description: "Go on?", outputs: [{name: approved, type: boolean, required: true}]}},
  {id: end, type: end, name: End}],
 edges: [{id: e1, source: start, target: ask}, {id: e2, source: ask, target: end}]}`

// asks starts a run that asks, and waits for the question.
func (b *bench) asks(ctx context.Context, how func(*api.WorkflowRun)) (*api.WorkflowRun, *api.HumanTask, error) {
	if _, err := b.compose(ctx, questionFlow, "[]"); err != nil {
		return nil, nil, err
	}
	run := &api.WorkflowRun{ObjectMeta: b.meta()}
	run.Spec.CompositionRef.Name = run.Name
	how(run)
	if err := b.Client.Create(ctx, run); err != nil {
		return nil, nil, fmt.Errorf("create run: %w", err)
	}
	task, err := b.task(ctx, run)
	return run, task, err
}

func question(ctx context.Context, b *bench) error {
	run, task, err := b.asks(ctx, func(*api.WorkflowRun) {})
	if err != nil {
		return err
	}
	if err := refused(b.answer(ctx, task, `{"approved":"perhaps"}`), 422, "an answer of another type"); err != nil {
		return err
	}
	if err := b.answer(ctx, task, `{"approved":true}`); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := refused(b.answer(ctx, task, `{"approved":false}`), 409, "a second answer"); err != nil {
		return err
	}
	if err := b.reaches(ctx, run, api.RunCompleted); err != nil {
		return err
	}
	by := task.Status.AnsweredBy
	for _, entry := range run.Status.History.Entries {
		if entry.Node == "ask" && by != nil && entry.By == by.Username {
			return nil
		}
	}
	return errors.New("the history does not say who answered")
}

func explicit(ctx context.Context, b *bench) error {
	run, task, err := b.asks(ctx, func(run *api.WorkflowRun) { run.Spec.ResumePolicy = api.ResumeExplicit })
	if err != nil {
		return err
	}
	if err := b.answer(ctx, task, `{"approved":true}`); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := b.reaches(ctx, run, api.RunSuspended); err != nil {
		return err
	}
	if err := b.patch(ctx, run, `{"spec":{"resumeRequests":1}}`); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if err := b.reaches(ctx, run, api.RunCompleted); err != nil {
		return err
	}
	if run.Annotations[api.AnnotationResumedBy] == "" {
		return errors.New("nothing says who resumed")
	}
	return nil
}

func cancels(ctx context.Context, b *bench) error {
	run, task, err := b.asks(ctx, func(*api.WorkflowRun) {})
	if err != nil {
		return err
	}
	if err := b.patch(ctx, run, `{"spec":{"cancel":true}}`); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := b.reaches(ctx, run, api.RunCancelled); err != nil {
		return err
	}
	return b.until(ctx, task, func() (bool, string) { return task.Status.Phase == api.TaskCancelled, "the question is still open" })
}

// actionFlow runs the action type work, with a way out for its failure.
const actionFlow = `
{id: action, name: Action, nodes: [
  {id: start, type: start, name: Start, config: {inputs: []}},
  {id: work, type: action, name: Work, config: {actionType: work, inputs: {word: "'seven'"}}},
  {id: end, type: end, name: End, config: {outcome: done}}, {id: lost, type: end, name: Lost, config: {outcome: lost}}],
 edges: [{id: e1, source: start, target: work}, {id: e2, source: work, target: end}, {id: e3, source: work, target: lost, isError: true}]}`

func script(ctx context.Context, b *bench) error {
	run, err := b.ends(ctx, actionFlow, `
- name: work
  mode: script
  inputs: [{name: word, type: string, required: true}]
  outputs: [{name: said, type: string, required: true}]
  script: {interpreter: bash, scriptTemplate: 'printf ''{"said": "%s"}'' "$AXIOM_INPUT_word" > "$AXIOM_OUTPUTS"'}`)
	if err != nil {
		return err
	}
	for _, entry := range run.Status.History.Entries {
		if entry.Node == "work" && entry.Output != nil && string(entry.Output.Raw) == `{"said":"seven"}` {
			return nil
		}
	}
	return errors.New("what the script put out is not in the history")
}

func failure(ctx context.Context, b *bench) error {
	run, err := b.ends(ctx, actionFlow, `
- name: work
  mode: script
  inputs: [{name: word, type: string, required: true}]
  script: {interpreter: bash, scriptTemplate: exit 7}`)
	if err == nil && run.Status.Outcome != "lost" {
		return fmt.Errorf("the outcome is %q", run.Status.Outcome)
	}
	return err
}

// playbook has the scripted agent rename the end.
const playbook = `
turns:
- steps:
  - call: {tool: get_composition, save: comp}
  - call:
      tool: propose_workflow_changes
      args:
        changeSet:
          id: cs-1
          baseRevision: ${comp.workflowRevision}
          summary: Rename
          ops: [{op: updateNode, id: end, patch: {name: Finished}}]
      expect: "^APPLIED"
  - say: It is called Finished now.
`

func turn(ctx context.Context, b *bench) error {
	book := &corev1.ConfigMap{ObjectMeta: b.meta(), Data: map[string]string{"playbook.yaml": playbook}}
	if err := b.Client.Create(ctx, book); err != nil {
		return fmt.Errorf("create playbook: %w", err)
	}
	comp, err := b.compose(ctx, straightFlow, "[]", func(comp *api.Composition) {
		comp.Spec.Agent.Runtime.PlaybookRef = &api.KeyRef{Name: book.Name, Key: "playbook.yaml"}
	})
	if err != nil {
		return err
	}
	asked := &api.Turn{ObjectMeta: b.meta()}
	asked.Spec.CompositionRef, asked.Spec.Message = &api.LocalRef{Name: comp.Name}, "Rename the end."
	if err := b.Client.Create(ctx, asked); err != nil {
		return fmt.Errorf("create turn: %w", err)
	}
	before := string(comp.Spec.Workflow.Raw)
	for _, step := range []struct {
		patch string
		state api.TurnPhase
	}{
		{"", api.TurnAwaitingResolution}, {`{"spec":{"resolution":"Accepted"}}`, api.TurnApplied}, {`{"spec":{"undo":true}}`, api.TurnUndone},
	} {
		if step.patch != "" {
			if err := b.patch(ctx, asked, step.patch); err != nil {
				return fmt.Errorf("change turn: %w", err)
			}
		}
		if err := b.comesTo(ctx, asked, step.state); err != nil {
			return err
		}
		if err := b.Client.Get(ctx, client.ObjectKeyFromObject(comp), comp); err != nil {
			return fmt.Errorf("read composition: %w", err)
		}
		if isChanged := string(comp.Spec.Workflow.Raw) != before; isChanged != (step.state == api.TurnApplied) {
			return fmt.Errorf("when the turn is %s the workflow is changed: %t", step.state, isChanged)
		}
	}
	return nil
}

// comesTo waits for a state of a turn.
func (b *bench) comesTo(ctx context.Context, asked *api.Turn, state api.TurnPhase) error {
	return b.until(ctx, asked, func() (bool, string) {
		switch asked.Status.State {
		case state:
			return true, ""
		case api.TurnFailed, api.TurnStale, api.TurnRefused, api.TurnCancelled, api.TurnRejected:
			return false, ""
		default:
			return false, fmt.Sprintf("the turn is %q, not %s", asked.Status.State, state)
		}
	})
}
