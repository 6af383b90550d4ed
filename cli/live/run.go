package live

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

func (a *app) run() *cobra.Command {
	cmd := command.Group("run", "Start, follow, read and cancel runs", `
A run is one execution of a definition that does not change: of a composition, or of
documents in Git at one commit. What it does is in its history, and what it needs is
kept with it; whoever may read ConfigMaps sees that in full.

Exit codes: 0 success, 1 the wish was refused, or the run is over, 2 there is no
answer. Those of watch tell how the run stands.`)
	cmd.AddCommand(a.createRun(), a.watchRun(), a.explainRun(), a.showRun(), a.graphRun(), a.cancelRun())
	return cmd
}

func (c *cluster) getRun(ctx context.Context, name string) (*api.WorkflowRun, error) {
	run := &api.WorkflowRun{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, run)
	if isMissing(err) {
		return nil, fmt.Errorf("there is no run %s in namespace %s", name, c.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read run: %w", explain(err))
	}
	return run, nil
}

// A wishAnswer is what came of a wish about a run.
type wishAnswer struct {
	Run                    string       `json:"run"`
	Phase                  api.RunPhase `json:"phase"`
	ResumeRequests         int64        `json:"resumeRequests"`
	ObservedResumeRequests int64        `json:"observedResumeRequests"`
	Cancel                 bool         `json:"cancel"`
	// Done tells whether the wish was put down.
	Done bool `json:"done"`
	// Message is what was done, or why nothing was.
	Message string `json:"message"`
	// Notices are what the wish depends on.
	Notices []string `json:"notices"`
}

// Tell implements [command.Answer].
func (x wishAnswer) Tell(p *command.Page) {
	color := terminal.Green
	if !x.Done {
		color = terminal.Red
	}
	p.Line("%s", p.Paint(color, command.Clean(x.Message)))
	for _, notice := range x.Notices {
		p.Line("  %s", command.Clean(notice))
	}
}

// answerWish tells of a run as it is now.
func (a *app) answerWish(run *api.WorkflowRun, done bool, message string, notices ...string) error {
	err := a.Show(wishAnswer{
		Run: run.Name, Phase: run.Status.Phase, ResumeRequests: run.Spec.ResumeRequests,
		ObservedResumeRequests: run.Status.ObservedResumeRequests, Cancel: run.Spec.Cancel,
		Done: done, Message: message, Notices: command.OrEmpty(notices),
	})
	if err != nil {
		return err
	}
	return command.Verdict(done)
}

func (a *app) resume() *cobra.Command {
	cmd := command.Leaf("resume RUN [-o json]", "Ask for the resume of a run", `
Asks for the resume of a run that goes on only when somebody says so: every run of a
definition in Git, and those of compositions with the policy Explicit. It adds one to
spec.resumeRequests, and the operator notes who asked.

A resume takes what was answered until then. Without an answer it changes nothing, and
an answer that comes later needs a resume of its own.

The exit code is 1 if the run is over, or goes on by itself.`, `
  axiom resume add-health
  axiom resume add-health -o json | jq .resumeRequests`)
	cmd.Args = exactArgs("the name of a run")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.resumeRun(cmd.Context(), c, args[0])
	}
	return cmd
}

func (a *app) resumeRun(ctx context.Context, c *cluster, name string) error {
	run, err := c.getRun(ctx, name)
	switch {
	case err != nil:
		return err
	case run.Status.Phase.IsTerminal():
		return a.answerWish(run, false, fmt.Sprintf("run %s is %s: there is nothing to resume", name, run.Status.Phase))
	case run.Spec.Cancel:
		return a.answerWish(run, false, fmt.Sprintf("run %s is being cancelled: there is nothing to resume", name))
	case !run.Spec.IsExplicit():
		return a.answerWish(run, false, fmt.Sprintf("run %s goes on by itself: its policy is %s", name, api.ResumeAutomatic))
	}
	if run, err = c.requestResume(ctx, run); err != nil {
		return a.tellRefusal(refusedAnswer{Run: name}, err)
	}
	message := fmt.Sprintf("asked for resume %d of run %s, which is %s", run.Spec.ResumeRequests, name, orPending(run.Status.Phase))
	return a.answerWish(run, true, message, c.openQuestions(ctx, run)...)
}

// requestResume adds one to the requests of a run, also when others do at the
// same time: each request counts.
func (c *cluster) requestResume(ctx context.Context, run *api.WorkflowRun) (*api.WorkflowRun, error) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := run.DeepCopy()
		run.Spec.ResumeRequests++
		err := c.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return nil
		}
		fresh := &api.WorkflowRun{}
		if failed := c.Get(ctx, client.ObjectKeyFromObject(before), fresh); failed != nil {
			return failed
		}
		run = fresh
		return err
	})
	return run, err
}

// openQuestions are the tasks that a resume depends on; those that cannot be
// read are left out.
func (c *cluster) openQuestions(ctx context.Context, run *api.WorkflowRun) []string {
	var notices []string
	for _, intent := range run.Status.Intents {
		if intent.Task == "" {
			continue
		}
		task := &api.HumanTask{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: intent.Task}, task); err != nil {
			continue
		}
		if by := task.Status.AnsweredBy; by != nil {
			notices = append(notices, fmt.Sprintf("task %s was answered by %s", task.Name, by.Username))
			continue
		}
		notices = append(notices, fmt.Sprintf("task %s has no answer yet; one that comes later needs another resume", task.Name))
	}
	return notices
}

// orPending is the phase of a run that the operator has not looked at yet, too.
func orPending(phase api.RunPhase) api.RunPhase {
	if phase == "" {
		return api.RunPending
	}
	return phase
}

func (a *app) cancelRun() *cobra.Command {
	cmd := command.Leaf("cancel RUN [-o json]", "Cancel a run", `
Ends a run for good. Its pods and open questions go; what it did elsewhere, such as
branches and pull requests, stays.

The exit code is 1 if the run is over already.`, `
  axiom run cancel add-health`)
	cmd.Args = exactArgs("the name of a run")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.endRun(cmd.Context(), c, args[0])
	}
	return cmd
}

func (a *app) endRun(ctx context.Context, c *cluster, name string) error {
	run, err := c.getRun(ctx, name)
	if err != nil {
		return err
	}
	if phase := run.Status.Phase; phase.IsTerminal() {
		return a.answerWish(run, false, fmt.Sprintf("run %s is %s: there is nothing to cancel", name, phase))
	}
	if err := c.Patch(ctx, run, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`))); err != nil {
		return a.tellRefusal(refusedAnswer{Run: name}, err)
	}
	return a.answerWish(run, true, fmt.Sprintf("asked for run %s, which is %s, to be cancelled", name, orPending(run.Status.Phase)))
}
