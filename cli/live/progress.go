package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/cli/transcript"
	"github.com/apitomy/axiom-operator/internal/journal"
)

// progress tells, line by line, what happens in a turn. On a terminal there is a
// line below that changes all the time.
type progress struct {
	statusLine
	clock clock.PassiveClock
	turn  string

	// now is the state that was told last, since when.
	now   api.TurnPhase
	since time.Time
	// changes and tool are what the line below tells.
	changes int
	tool    string
	// last is the number of the newest event; isIn tells whether the events are
	// about this turn.
	last int64
	isIn bool
}

func (a *app) newProgress(turn string) *progress {
	return &progress{statusLine: a.newStatusLine(), clock: a.clock, turn: turn, since: a.clock.Now()}
}

// line writes a line that stays.
func (p *progress) line(format string, args ...any) {
	p.erase()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
	p.tick()
}

// see tells of what a watch saw.
func (p *progress) see(s sighting) {
	switch {
	case s.turn != nil:
		p.state(s.turn)
	case s.line != nil:
		p.event(*s.line)
	case s.blind != nil:
		p.line("axiom: warning: what the agent does is not shown: %s", command.Clean(s.blind.Error()))
	}
}

// state tells that the turn has another state.
func (p *progress) state(turn *api.Turn) {
	p.changes = len(turn.Status.ChangeSets)
	state := cmp.Or(turn.Status.State, api.TurnPending)
	if state == p.now {
		return
	}
	p.now, p.since, p.tool = state, p.clock.Now(), ""
	p.line("turn %s: %s", p.turn, p.palette.Paint(stateStyles[state], string(state)))
}

// event tells what the agent does for this turn. Events are numbered, and a number
// counts once.
func (p *progress) event(line journal.Line) {
	if line.Number <= p.last {
		return
	}
	p.last = line.Number
	if line.Type == journal.TypeUserMessage {
		p.isIn = command.TextOf(line.Data["turn"]) == p.turn
	}
	if !p.isIn {
		return
	}
	if tool := transcript.Tool(line.Event); tool != "" {
		p.tool = tool
		p.line("  %s", p.palette.Paint(terminal.Cyan, tool))
	}
	if outcome := transcript.Outcome(line.Event); outcome != "" {
		style := terminal.Dim
		if line.Data["isError"] == true {
			style = terminal.Red
		}
		p.line("    %s", p.palette.Paint(style, outcome))
	}
}

// tick writes the line below anew.
func (p *progress) tick() {
	if !p.isLive || p.now == "" {
		return
	}
	parts := []string{fmt.Sprintf("%s %s", p.now, p.clock.Since(p.since).Truncate(time.Second))}
	if p.tool != "" {
		parts = append(parts, p.tool)
	}
	if p.changes > 0 {
		parts = append(parts, command.Plural(p.changes, "change set"))
	}
	p.rewrite(strings.Join(parts, " · "))
}

// close takes the line below away.
func (p *progress) close() {
	p.erase()
}
