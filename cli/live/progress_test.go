package live

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/journal"
)

// play lets a turn begin, use a tool, and end.
func play(p *progress, clock *clocktesting.FakePassiveClock) {
	seen := func(state api.TurnPhase, changeSets int) {
		turn := &api.Turn{}
		turn.Status.State, turn.Status.ChangeSets = state, make([]api.AcceptedChangeSet, changeSets)
		p.see(sighting{turn: turn})
	}
	wait := func(d time.Duration) {
		clock.SetTime(clock.Now().Add(d))
		p.tick()
	}
	number := int64(0)
	happens := func(kind string, data map[string]any) {
		number++
		line := journal.Line{Number: number, Event: journal.Event{Type: kind, Data: data}}
		p.see(sighting{line: &line})
		p.see(sighting{line: &line}) // an event counts once
	}
	seen("", 0)
	wait(2 * time.Second)
	happens("user_message", map[string]any{"turn": "earlier"})
	happens("tool_use", map[string]any{"name": "of_another_turn"})
	seen(api.TurnWorking, 0)
	happens("user_message", map[string]any{"turn": "t"})
	happens("tool_use", map[string]any{"name": "mcp__workbench__get_composition"})
	wait(90 * time.Second)
	happens("tool_result", map[string]any{"stdout": "HTTP 503: later", "isError": true})
	seen(api.TurnWorking, 1)
	wait(time.Second)
	p.see(sighting{blind: errors.New("no\nright")})
	seen(api.TurnFailed, 1)
	happens("user_message", map[string]any{"turn": "later"})
	happens("tool_use", map[string]any{"name": "of_another_turn"})
	p.close()
}

func newTestProgress(w *bytes.Buffer) (*progress, *clocktesting.FakePassiveClock) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	return &progress{statusLine: statusLine{w: w}, clock: clock, turn: "t", since: clock.Now()}, clock
}

func TestProgressInAFile(t *testing.T) {
	var out bytes.Buffer
	p, clock := newTestProgress(&out)
	play(p, clock)
	const want = `turn t: Pending
turn t: Working
  get_composition
    HTTP 503: later
axiom: warning: what the agent does is not shown: no right
turn t: Failed
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// On a terminal the last line is written over, and nothing of it is left.
func TestProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p, clock := newTestProgress(&out)
	p.isLive, p.palette = true, terminal.Colours()
	play(p, clock)
	const erase = "\r\x1b[K"
	dim := func(text string) string { return "\x1b[2m" + text + "\x1b[0m" }
	want := erase + "turn t: \x1b[2mPending\x1b[0m\n" + erase + dim("Pending 0s") +
		erase + dim("Pending 2s") +
		erase + "turn t: \x1b[36mWorking\x1b[0m\n" + erase + dim("Working 0s") +
		erase + "  \x1b[36mget_composition\x1b[0m\n" + erase + dim("Working 0s · get_composition") +
		erase + dim("Working 1m30s · get_composition") +
		erase + "    \x1b[31mHTTP 503: later\x1b[0m\n" + erase + dim("Working 1m30s · get_composition") +
		erase + dim("Working 1m31s · get_composition · 1 change set") +
		erase + "axiom: warning: what the agent does is not shown: no right\n" + erase + dim("Working 1m31s · get_composition · 1 change set") +
		erase + "turn t: \x1b[31mFailed\x1b[0m\n" + erase + dim("Failed 0s · 1 change set") +
		erase
	if got := out.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestALineThatWouldBeBrokenIsCut(t *testing.T) {
	var out bytes.Buffer
	p, _ := newTestProgress(&out)
	p.isLive, p.now, p.tool = true, api.TurnWorking, strings.Repeat("ö", 200)
	p.tick()
	if got := utf8.RuneCountInString(strings.TrimPrefix(out.String(), "\r\x1b[K")); got != 78 {
		t.Errorf("%d characters", got)
	}
}
