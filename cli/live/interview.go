package live

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/ask"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

// askAnswer has the person at the console answer a task, and gives the answer.
func (a *app) askAnswer(ctx context.Context, name string) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	return a.interview(ctx, c, name)
}

func (a *app) interview(ctx context.Context, c *cluster, name string) error {
	task, err := c.getTask(ctx, name)
	if err != nil {
		return err
	}
	if reason := closedBecause(task, a.clock.Now()); reason != "" {
		err := a.Show(refusedAnswer{Task: name, Refused: &refusal{
			Code: http.StatusConflict, Reason: string(metav1.StatusReasonConflict), Message: reason,
		}})
		if err != nil {
			return err
		}
		return command.ErrVerdict
	}
	spec, err := humantask.Form(task)
	if err != nil {
		return fmt.Errorf("read what task %s asks: %w", name, err)
	}
	palette := terminal.PaletteFor(a.Stderr, a.Getenv)
	introduceTask(a.console, palette, task)
	interview := ask.Interview{Console: a.console, Palette: palette, IsSecret: secretscan.IsSecretName}
	answer, err := interview.Fill(ctx, spec)
	if err != nil {
		return fmt.Errorf("answer task %s: %w", name, err)
	}
	patch, err := replyPatch("answer", answer)
	if err != nil {
		return err
	}
	return a.giveAnswer(ctx, c, name, patch)
}

func (c *cluster) getTask(ctx context.Context, name string) (*api.HumanTask, error) {
	task := &api.HumanTask{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, task)
	if isMissing(err) {
		return nil, fmt.Errorf("there is no task %s in namespace %s", name, c.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read task: %w", explain(err))
	}
	return task, nil
}

// closedBecause says why a task cannot be answered; empty if it can.
func closedBecause(task *api.HumanTask, now time.Time) string {
	if !humantask.IsOpen(task) {
		switch by := task.Status.AnsweredBy; {
		case by != nil:
			return "answered by " + by.Username
		case task.Status.Closed != nil:
			return strings.TrimSuffix("closed: "+string(task.Status.Closed.Reason)+", "+task.Status.Closed.Message, ", ")
		}
		return "the task is not open"
	}
	if end, isLimited := humantask.Expiry(task); isLimited && !now.Before(end) {
		return "its time passed at " + end.UTC().Format(time.RFC3339)
	}
	return ""
}

// introduceTask shows what the task is about before its fields are asked for.
func introduceTask(console ask.Console, palette terminal.Palette, task *api.HumanTask) {
	about := task.Spec.HumanContext
	console.Say(palette.Paint(terminal.Bold, command.Clean(about.Title)))
	for line := range strings.Lines(about.Description) {
		console.Say("  " + command.Clean(strings.TrimRight(line, "\r\n")))
	}
	for _, detail := range about.Details {
		console.Say("  " + palette.Paint(terminal.Dim, command.Clean(detail.Label)+":") + " " + command.Clean(detail.Value))
	}
	for _, reference := range about.References {
		console.Say("  " + palette.Paint(terminal.Dim, command.Clean(reference.Label)+":") + " " + palette.Paint(terminal.Cyan, command.Clean(reference.URL)))
	}
}
