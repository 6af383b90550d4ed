package live

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// A turnAnswer is what came of a turn so far.
type turnAnswer struct {
	Turn           string             `json:"turn"`
	Namespace      string             `json:"namespace"`
	Composition    string             `json:"composition,omitempty"`
	Session        string             `json:"session"`
	State          api.TurnPhase      `json:"state"`
	Reason         string             `json:"reason"`
	Detail         string             `json:"detail"`
	Reply          string             `json:"reply"`
	BaseRevision   string             `json:"baseRevision"`
	ResultRevision string             `json:"resultRevision"`
	Operations     int32              `json:"operations"`
	Summary        string             `json:"summary"`
	Diff           *review.Difference `json:"diff"`
	Items          []itemAnswer       `json:"items"`
	Problems       []api.Problem      `json:"problems"`
	Notices        []string           `json:"notices"`
	Retry          string             `json:"retry"`
	Undo           *undoAnswer        `json:"undo"`
	Usage          *api.Usage         `json:"usage"`

	// changes in full, nil if they could not be read.
	changes *changes
	// next are the commands that lead on, with what they do.
	next []step
}

// A step is a command that leads on.
type step struct{ command, does string }

// undoAnswer is what was taken back.
type undoAnswer struct {
	Restored           []string `json:"restored"`
	Removed            []string `json:"removed"`
	Skipped            []string `json:"skipped"`
	ForClient          []string `json:"forClient"`
	WorkflowRestorable bool     `json:"workflowRestorable"`
	WorkflowRestored   bool     `json:"workflowRestored"`
	// Message is why nothing was taken back; empty if something was.
	Message string `json:"message"`
}

// leftToClient tells whether there is something that the operator did not take
// back, because a client had applied it.
func (u *undoAnswer) leftToClient() bool {
	return len(u.ForClient) > 0 || u.WorkflowRestorable && !u.WorkflowRestored
}

func undoAnswerOf(status *api.TurnStatus) *undoAnswer {
	report := status.Undo
	if report == nil {
		return nil
	}
	message := ""
	if found := apimeta.FindStatusCondition(status.Conditions, api.ConditionUndone); found != nil && turns.IsVain(report) {
		message = found.Message
	}
	return &undoAnswer{
		Message:            message,
		Restored:           command.OrEmpty(report.Restored),
		Removed:            command.OrEmpty(report.Removed),
		Skipped:            command.OrEmpty(report.Skipped),
		ForClient:          command.OrEmpty(report.ForClient),
		WorkflowRestorable: report.WorkflowRestorable,
		WorkflowRestored:   report.WorkflowRestored,
	}
}

// answerOf tells of a turn what its status has.
func answerOf(turn *api.Turn) turnAnswer {
	status := &turn.Status
	answer := turnAnswer{
		Turn: turn.Name, Namespace: turn.Namespace, Session: sessionName(turn),
		State: cmp.Or(status.State, api.TurnPending), Detail: status.Detail, Reply: status.Reply,
		BaseRevision: status.BaseRevision, ResultRevision: status.ResultRevision, Operations: status.Ops,
		Summary: status.Diff, Items: itemAnswers(turn), Problems: command.OrEmpty(status.Problems),
		Notices: command.OrEmpty(status.Notices), Retry: status.Retry, Undo: undoAnswerOf(status), Usage: status.Usage,
	}
	if ref := turn.Spec.CompositionRef; ref != nil {
		answer.Composition = ref.Name
	}
	if found := apimeta.FindStatusCondition(status.Conditions, api.ConditionResolved); found != nil {
		answer.Reason = found.Reason
	}
	return answer
}

// sessionName is the session whose agent works for the turn.
func sessionName(turn *api.Turn) string {
	if turn.Spec.SessionRef != nil {
		return turn.Spec.SessionRef.Name
	}
	return turn.Spec.CompositionRef.Name + "-agent"
}

// complete tells of a turn what its status has and what it refers to. What
// cannot be read is missed, with a warning.
func (a *app) complete(ctx context.Context, c *cluster, turn *api.Turn) turnAnswer {
	answer := answerOf(turn)
	answer.next = a.nextSteps(&answer)
	if ref := turn.Status.ReplyRef; ref != nil {
		reply, err := c.contents().Get(ctx, turn.Namespace, ref.Digest)
		if err != nil {
			a.Complain("warning: the reply is not shown: " + explainContent(err).Error())
		}
		answer.Reply = string(reply)
	}
	if turn.Status.Ops == 0 && len(turn.Status.ItemWrites) == 0 {
		return answer
	}
	found, err := c.changesOf(ctx, turn)
	if err != nil {
		a.Complain("warning: the changes are not shown in full: " + err.Error())
		return answer
	}
	difference := found.difference()
	answer.changes, answer.Diff = found, &difference
	return answer
}

// nextSteps are what a person may do about a turn.
func (a *app) nextSteps(x *turnAnswer) []step {
	switch {
	case x.State == api.TurnPending, x.State == api.TurnWorking:
		return []step{{a.invocation("turn", "watch", x.Turn), "follow it"}}
	case x.State == api.TurnAwaitingResolution:
		return []step{
			{a.invocation("turn", "accept", x.Turn), "apply it"},
			{a.invocation("turn", "reject", x.Turn), "leave it"},
		}
	case x.State == api.TurnUndone && x.Undo != nil && x.Undo.leftToClient():
		return []step{{a.invocation("turn", "export", x.Turn, "--undo"), "what you applied is yours to take back"}}
	case x.Retry != "":
		return []step{{a.invocation("turn", "watch", x.Retry), "the agent was asked again"}}
	}
	return nil
}

// isGood tells whether the turn came to a good end, or to none yet.
func (x turnAnswer) isGood() bool {
	switch x.State {
	case api.TurnFailed, api.TurnRejected, api.TurnStale, api.TurnRefused, api.TurnCancelled:
		return false
	default:
		return true
	}
}

// Tell implements [command.Answer].
func (x turnAnswer) Tell(p *command.Page) {
	if x.Reply != "" {
		for line := range strings.Lines(x.Reply) {
			p.Line("%s", command.Clean(strings.TrimRight(line, "\r\n")))
		}
		p.Line("")
	}
	x.tellChanges(p)
	for _, problem := range x.Problems {
		p.Line("%s", problemLine(p, problem))
	}
	for _, notice := range x.Notices {
		p.Line("%s: %s", p.Paint(terminal.Yellow, "notice"), command.Clean(notice))
	}
	x.tellState(p)
}

func (x turnAnswer) tellChanges(p *command.Page) {
	switch {
	case x.changes != nil:
		x.changes.Tell(p)
	case x.Summary != "":
		for line := range strings.Lines(x.Summary) {
			p.Line("%s", command.Clean(strings.TrimRight(line, "\n")))
		}
	default:
		return
	}
	p.Line("")
}

func problemLine(p *command.Page, problem api.Problem) string {
	style := terminal.Yellow
	if problem.Severity == api.SeverityError {
		style = terminal.Red
	}
	text := p.Paint(style, string(problem.Severity)) + ": "
	if problem.Path != "" {
		text += p.Paint(terminal.Cyan, command.Clean(problem.Path)) + ": "
	}
	return text + command.Clean(problem.Message) + " " + p.Paint(terminal.Dim, "("+command.Clean(problem.Code)+")")
}

// stateStyles set off how a turn stands.
var stateStyles = map[api.TurnPhase]terminal.Style{
	api.TurnPending:            terminal.Dim,
	api.TurnWorking:            terminal.Cyan,
	api.TurnAwaitingResolution: terminal.Yellow,
	api.TurnApplied:            terminal.Green,
	api.TurnCompleted:          terminal.Green,
	api.TurnUndone:             terminal.Green,
	api.TurnFailed:             terminal.Red,
	api.TurnStale:              terminal.Red,
	api.TurnRefused:            terminal.Red,
	api.TurnRejected:           terminal.Yellow,
	api.TurnCancelled:          terminal.Yellow,
}

func (x turnAnswer) tellState(p *command.Page) {
	p.Line("turn %s: %s%s", x.Turn, p.Paint(stateStyles[x.State], string(x.State)), x.explanation())
	if x.Undo != nil {
		x.Undo.tell(p)
	}
	for _, s := range x.next {
		p.Line("  %s  %s", s.command, p.Paint(terminal.Dim, "# "+s.does))
	}
}

// explanation is why the turn stands as it does, behind its state.
func (x turnAnswer) explanation() string {
	switch {
	case x.State == api.TurnAwaitingResolution:
		return ", " + x.waiting() + " to be decided on"
	case x.State == api.TurnApplied && x.ResultRevision != "":
		return ", the workflow is now " + x.ResultRevision
	case x.Detail != "":
		return ", " + command.Clean(x.Detail)
	}
	return ""
}

// waiting counts what waits for a decision.
func (x turnAnswer) waiting() string {
	var parts []string
	if x.Operations > 0 {
		parts = append(parts, command.Plural(int(x.Operations), "workflow change"))
	}
	items := 0
	for _, item := range x.Items {
		if item.Staged {
			items++
		}
	}
	if items > 0 {
		parts = append(parts, command.Plural(items, "item"))
	}
	return strings.Join(parts, " and ")
}

func (u *undoAnswer) tell(p *command.Page) {
	if u.Message != "" {
		p.Line("  %s: %s", p.Paint(terminal.Red, "nothing was taken back"), command.Clean(u.Message))
	}
	switch {
	case u.WorkflowRestored:
		p.Line("  restored  workflow")
	case u.WorkflowRestorable:
		p.Line("  for you   workflow")
	}
	for _, list := range []struct {
		does  string
		items []string
	}{{"restored", u.Restored}, {"removed", u.Removed}, {"skipped", u.Skipped}, {"for you", u.ForClient}} {
		for _, item := range slices.Sorted(slices.Values(list.items)) {
			p.Line("  %-8s  %s", list.does, command.Clean(item))
		}
	}
}
