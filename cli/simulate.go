package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/simulate"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A simulateAnswer has an element for each step of the script.
type simulateAnswer []simulate.Element

func (a *app) simulate() *cobra.Command {
	cmd := command.Leaf("simulate -f FILE --script FILE [-o json]", "Play a run of a workflow through by a script", `
Plays a run through as the operator would, without a cluster. The script says what
people, actions and the world around do. It is a list of steps with one member:

  now: 2026-01-01T08:00:00Z       the clock moves here, and by nothing else
  start: {inputs: {ref: r-17}}    the run begins; the inputs may stand by themselves
  complete: {activation: assess#1, output: {score: 3}, attempt: 1, by: ada}
  fail: {activation: assess#1, code: EXIT_CODE, message: exit code 2, attempt: 1, phase: EXECUTION}
  timeOut: {activation: cool-down#1, attempt: 1}
  event: {id: "7", eventSourceId: forge, type: pr.merged, ref: r-17, payload: {base: main}}
  cancel: {reason: not needed any more}
  abort: {code: DEADLINE_EXCEEDED, message: too late}

The clock begins at 2026-01-01T00:00:00Z. An event arrives when its step is played,
is stored, and is offered to every receiver that is parked then or later. attempt is
the current one unless it is given.

A delivery that does not apply is ignored, with the reason of the engine; that is no
failure of the simulation. The exit code is 1 if a step is an error: a start that is
refused, a delivery before the start, a second start, a clock turned back.`, `
  axiom workflow simulate -f release.yaml --script night.yaml
  axiom workflow simulate -f release.yaml --script night.yaml -o json | jq '.[-1].instance.status'`)
	var path, script string
	filenameFlag(cmd, &path, "the workflow")
	fileFlag(cmd, &script, "script", "the script")
	command.Require(cmd, "script")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		doc, err := a.loadObject(path)
		if err != nil {
			return err
		}
		file, err := a.loader.Load(script)
		if err != nil {
			return err
		}
		steps, err := simulate.Read(file)
		if err != nil {
			return err
		}
		definition, _ := engine.New(doc, expression.NewCache()) // its problems are told by the step that starts it
		elements, err := simulate.Run(cmd.Context(), definition, steps)
		if err != nil {
			return fmt.Errorf("simulate run: %w", err)
		}
		answer := simulateAnswer(elements)
		if err := a.Show(answer); err != nil {
			return err
		}
		return command.Verdict(!answer.hasErrors())
	}
	return cmd
}

func (x simulateAnswer) hasErrors() bool {
	return slices.ContainsFunc(x, func(e simulate.Element) bool { return e.Result == simulate.ResultError })
}

func (x simulateAnswer) Tell(p *command.Page) {
	if len(x) == 0 {
		p.Line("the script has no steps")
		return
	}
	for _, e := range x {
		tellElement(p, e)
	}
	last := x[len(x)-1]
	if last.Status == engine.StatusWaiting {
		p.Line("%s", p.Paint(terminal.Bold, "the run waits:"))
		for _, parked := range last.Parked {
			p.Line("  %s", parkedText(p, parked))
		}
	}
}

func tellElement(p *command.Page, e simulate.Element) {
	p.Line("%s  %s  %s", p.Paint(terminal.Dim, fmt.Sprintf("%3d", e.Step)), clockText(e.Now),
		p.Paint(terminal.Bold, strings.TrimSpace(string(e.Verb)+" "+command.Clean(e.About))))
	switch e.Result {
	case simulate.ResultIgnored:
		p.Line("       %s: %s", p.Paint(terminal.Yellow, "ignored"), e.Reason)
	case simulate.ResultError:
		tellStepError(p, e.Error)
	case simulate.ResultOK:
	}
	for _, entry := range e.Closed {
		tellEntry(p, entry)
	}
	for _, parked := range e.Parked {
		if slices.Contains(e.Opened, parked.Activation) {
			p.Line("     %s %s", p.Paint(terminal.Cyan, "▸"), parkedText(p, parked))
		} else if parked.LastError != nil && isAbout(e, parked) {
			p.Line("     %s %s", p.Paint(terminal.Yellow, "↻"), parkedText(p, parked))
		}
	}
	tellEnd(p, e)
}

// isAbout tells whether a step may have left its word with an activation that
// stays open: an attempt that failed, or an event whose match has no value.
func isAbout(e simulate.Element, parked simulate.Parked) bool {
	if e.Verb == simulate.VerbEvent {
		return parked.Kind == workflow.KindReceiveEvent
	}
	return e.Result == simulate.ResultOK && parked.Activation == e.About
}

func tellStepError(p *command.Page, e *simulate.Error) {
	p.Line("       %s: %s: %s", p.Paint(terminal.Red, "error"), e.Code, command.Clean(e.Message))
	for _, problem := range e.Problems {
		p.Line("         %s: %s (%s)", problem.Severity, command.Clean(problem.Message), problem.Code)
	}
}

func tellEntry(p *command.Page, entry engine.Entry) {
	style, mark := terminal.Green, "✓"
	if entry.Outcome != engine.OutcomeCompleted {
		style, mark = terminal.Red, "✗"
	}
	text := fmt.Sprintf("%s  %s", command.Clean(entry.Activation), strings.ToLower(string(entry.Outcome)))
	if entry.By != "" {
		text += " by " + command.Clean(entry.By)
	}
	if entry.Error != nil {
		text += ": " + failureText(entry.Error)
	}
	if len(entry.Output) > 0 {
		text += "  " + p.Paint(terminal.Dim, command.ValueText(entry.Output))
	}
	p.Line("     %s %s", p.Paint(style, mark), text)
}

// tellEnd says how the run ended, behind the step that ended it.
func tellEnd(p *command.Page, e simulate.Element) {
	if !e.Ended {
		return
	}
	text := "the run " + endTexts[e.Status]
	if e.Outcome != "" {
		text += ", outcome " + command.Clean(e.Outcome)
	}
	if e.Failure != nil {
		text += ": " + failureText(e.Failure)
	}
	p.Line("%s", p.Paint(terminal.Bold, text))
}

var endTexts = map[engine.Status]string{
	engine.StatusCompleted: "completed",
	engine.StatusFailed:    "failed",
	engine.StatusCancelled: "was cancelled",
}

func failureText(f *engine.Failure) string {
	parts := []string{f.Code}
	if f.Edge != "" {
		parts = append(parts, "edge "+f.Edge)
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	if f.Message != "" {
		parts = append(parts, f.Message)
	}
	return command.Clean(strings.Join(parts, ": "))
}

// parkedText says who is waited for, and how long.
func parkedText(p *command.Page, parked simulate.Parked) string {
	title := parked.Name
	if parked.Title != "" {
		title = parked.Title
	}
	text := fmt.Sprintf("%s  %s (%s)", command.Clean(parked.Activation), command.Clean(title), parked.Kind)
	if parked.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", parked.Attempt)
	}
	if !parked.NotBefore.IsZero() {
		text += ", not before " + clockText(parked.NotBefore)
	}
	if !parked.Deadline.IsZero() {
		text += ", until " + clockText(parked.Deadline)
	}
	if parked.LastError != nil {
		text += ", after " + failureText(parked.LastError)
	}
	if len(parked.Input) > 0 {
		text += "  " + p.Paint(terminal.Dim, command.ValueText(parked.Input))
	}
	return text
}

func clockText(t time.Time) string {
	return t.Format(time.RFC3339Nano)
}
