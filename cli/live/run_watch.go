package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

// Exit codes of run watch besides those that all commands have.
const (
	exitCancelled = 3
	exitWaits     = 4
	exitTimeout   = 5
)

// A runWatch is how long a run is followed.
type runWatch struct {
	timeout time.Duration
	// toEnd goes on while the run waits for a person.
	toEnd bool
}

func (a *app) watchRun() *cobra.Command {
	cmd := command.Leaf("watch RUN [--to-end] [--timeout DURATION] [-o json]", "Follow a run until it ends or waits for a person", `
Tells of each activation that a run opens and closes, until the run is over or goes on
only when a person does something; then it says what run explain says. With --to-end it
goes on while people are asked.

Whoever stops watching does not stop the run.

Exit codes: 0 completed, 1 failed, 2 there is no answer, 3 cancelled, 4 a person must
answer or resume, 5 the time was up.`, `
  axiom run watch release-7
  axiom run watch release-7 --to-end --timeout 2h -o json | jq -r .outcome`)
	cmd.Args = exactArgs("the name of a run")
	var w runWatch
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "give up waiting after a `DURATION` such as 10m; 0 never does")
	cmd.Flags().BoolVar(&w.toEnd, "to-end", false, "go on while the run waits for a person")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = a.onRun(func(ctx context.Context, c *cluster, run *api.WorkflowRun) error {
		return a.followRun(ctx, c, run, w)
	})
	return cmd
}

// errPatience ends a watch whose time is up.
var errPatience = errors.New("the time is up")

// followRun watches a run, and tells in the end how it stands.
func (a *app) followRun(ctx context.Context, c *cluster, run *api.WorkflowRun, w runWatch) error {
	run, err := a.attendRun(ctx, c, run, w)
	code := exitTimeout
	switch {
	case errors.Is(err, errPatience):
		a.Complain(fmt.Sprintf("gave up waiting after %s; run %s goes on", w.timeout, run.Name))
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("run %s goes on without you: %s", run.Name, a.invocation("run", "watch", run.Name))
	case err != nil:
		return err
	default:
		code = exitOf(run.Status.Phase)
	}
	if err := a.Show(a.explain(ctx, c, run)); err != nil {
		return err
	}
	return command.Exit(code)
}

// exitOf is the exit code for a phase in which a watch ends.
func exitOf(phase api.RunPhase) int {
	switch phase {
	case api.RunCompleted:
		return command.ExitOK
	case api.RunFailed:
		return command.ExitVerdict
	case api.RunCancelled:
		return exitCancelled
	case api.RunPending, api.RunRunning, api.RunWaiting, api.RunSuspended:
	}
	return exitWaits
}

// attendRun watches until there is nothing to wait for, and returns the run as it
// was seen last.
func (a *app) attendRun(ctx context.Context, c *cluster, run *api.WorkflowRun, w runWatch) (*api.WorkflowRun, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, ended := make(chan *api.WorkflowRun), make(chan error, 1)
	go func() { ended <- c.watchRun(watching, run.Name, seen) }()
	progress := a.newRunProgress(run.Name)
	defer progress.erase()
	ticker := a.clock.NewTicker(time.Second)
	defer ticker.Stop()
	begun := a.clock.Now()
	for {
		select {
		case run = <-seen:
			progress.see(run)
		case err := <-ended:
			return run, err
		case <-ticker.C():
			progress.tick()
		}
		if run.Status.Phase.IsTerminal() || !w.toEnd && c.needsPerson(ctx, run) {
			return run, nil
		}
		if w.timeout > 0 && a.clock.Since(begun) >= w.timeout {
			return run, errPatience
		}
	}
}

func (c *cluster) watchRun(ctx context.Context, name string, seen chan<- *api.WorkflowRun) error {
	return follow(ctx, c, &api.WorkflowRunList{}, name, func(run *api.WorkflowRun, isGone bool) error {
		if isGone {
			return fmt.Errorf("run %s was deleted", name)
		}
		select {
		case seen <- run:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// needsPerson tells whether a run goes on only when a person answers or resumes. One
// that somebody answered or resumed just now goes on by itself.
func (c *cluster) needsPerson(ctx context.Context, run *api.WorkflowRun) bool {
	switch run.Status.Phase {
	case api.RunSuspended:
		return run.Spec.ResumeRequests <= run.Status.ObservedResumeRequests
	case api.RunWaiting:
		return c.asks(ctx, run)
	default:
		return false
	}
}

// asks tells whether a task of the run is open. One that cannot be read may be.
func (c *cluster) asks(ctx context.Context, run *api.WorkflowRun) bool {
	if run.Status.Instance == nil {
		return false
	}
	for _, branch := range run.Status.Instance.ActiveBranches {
		if branch.Child == nil || branch.Child.Kind != "HumanTask" {
			continue
		}
		task := &api.HumanTask{}
		err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: branch.Child.Name}, task)
		if err == nil && humantask.IsOpen(task) || err != nil && !isMissing(err) {
			return true
		}
	}
	return false
}

// runProgress tells, line by line, what a run does.
type runProgress struct {
	statusLine
	clock clock.PassiveClock
	run   string

	phase api.RunPhase
	since time.Time
	// total of the history that was told, and what is open.
	total int64
	open  []string
	// isIn: there was a first look, which tells of the present alone.
	isIn bool
}

func (a *app) newRunProgress(run string) *runProgress {
	return &runProgress{statusLine: a.newStatusLine(), clock: a.clock, run: run, since: a.clock.Now()}
}

func (p *runProgress) line(format string, args ...any) {
	p.erase()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// see tells what is new about a run.
func (p *runProgress) see(run *api.WorkflowRun) {
	status := &run.Status
	if p.isIn {
		p.closed(status.History)
	}
	p.opened(status)
	p.isIn, p.total = true, status.History.Total
	if phase := orPending(status.Phase); phase != p.phase {
		p.phase, p.since = phase, p.clock.Now()
		p.line("run %s: %s", p.run, p.palette.Paint(runStyles[phase], string(phase)))
	}
	p.tick()
}

// closed tells of what closed since; what has left the status for a page by now is
// counted.
func (p *runProgress) closed(history api.RunHistory) {
	fresh := history.Total - p.total
	if missed := fresh - int64(len(history.Entries)); missed > 0 {
		p.line("  … %s", command.Plural(int(missed), "more activation"))
		fresh = int64(len(history.Entries))
	}
	for _, entry := range history.Entries[int64(len(history.Entries))-max(fresh, 0):] {
		symbol, style := "✓", terminal.Green
		switch entry.Outcome {
		case "Failed":
			symbol, style = "✗", terminal.Red
		case "TimedOut", "Cancelled":
			symbol, style = "–", terminal.Yellow
		}
		remark := strings.ToLower(entry.Outcome)
		if entry.Error != nil {
			remark += " " + entry.Error.Code
		}
		if entry.By != "" {
			remark += " by " + entry.By
		}
		p.line("  %s %s", p.palette.Paint(style, symbol), joined(entry.Activation, entry.Name, remark))
	}
}

// opened tells of what was not open before.
func (p *runProgress) opened(status *api.WorkflowRunStatus) {
	var open []string
	look := func(prefix string, instance *api.RunInstance) {
		for _, branch := range instance.ActiveBranches {
			name := prefix + branch.Activation
			if branch.Attempt > 1 {
				name += fmt.Sprintf(", attempt %d", branch.Attempt)
			}
			open = append(open, name)
			if !slices.Contains(p.open, name) {
				p.line("  %s %s", p.palette.Paint(terminal.Cyan, "▸"), joined(name, branch.Title))
			}
		}
	}
	if status.Instance != nil && !status.Phase.IsTerminal() {
		look("", status.Instance)
		for i := range status.Frames {
			look(status.Frames[i].Path+"/", &status.Frames[i].Instance)
		}
	}
	p.open = open
}

// tick writes the line below anew.
func (p *runProgress) tick() {
	if p.phase == "" {
		return
	}
	parts := append([]string{fmt.Sprintf("%s %s", p.phase, p.clock.Since(p.since).Truncate(time.Second))}, p.open...)
	p.rewrite(command.Clean(strings.Join(parts, " · ")))
}
