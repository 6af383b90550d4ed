package live

import (
	"cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// runStyles set off how a run stands.
var runStyles = map[api.RunPhase]terminal.Style{
	api.RunPending:   terminal.Dim,
	api.RunRunning:   terminal.Cyan,
	api.RunWaiting:   terminal.Yellow,
	api.RunSuspended: terminal.Yellow,
	api.RunCompleted: terminal.Green,
	api.RunFailed:    terminal.Red,
	api.RunCancelled: terminal.Yellow,
}

// Tell implements [command.Answer].
func (x explanation) Tell(p *command.Page) {
	head := p.Paint(runStyles[x.Phase], string(x.Phase))
	if x.Outcome != "" {
		head += "  " + command.Clean(x.Outcome)
	}
	p.Line("run %s: %s", x.Run, head)
	p.Line("  of %s", command.Clean(x.Of))
	if x.Message != "" {
		p.Line("  %s", command.Clean(x.Message))
	}
	section(p, "waits for", len(x.WaitsFor), func(row func(...string)) {
		for _, o := range x.WaitsFor {
			row(o.Activation, o.For, o.detail(), "since "+o.Since)
		}
	})
	section(p, "failures", len(x.Failures), func(row func(...string)) {
		for _, failure := range x.Failures {
			row(cmp.Or(failure.Activation, failure.Node, "run"), failure.Code, failure.Message)
		}
	})
	section(p, "people", len(x.Deeds), func(row func(...string)) {
		for _, d := range x.Deeds {
			row(d.What, cmp.Or(d.By, "unknown"), d.At, d.About)
		}
	})
	if len(x.Next) > 0 {
		p.Line("")
		p.Line("%s", p.Paint(terminal.Bold, "next"))
	}
	for _, s := range x.Next {
		p.Line("  %s  %s", s.Command, p.Paint(terminal.Dim, "# "+s.Does))
	}
}

func (o *obstacle) detail() string {
	text := o.Detail
	if o.AnsweredBy != "" {
		text += ", answered by " + o.AnsweredBy
	}
	if o.Until != "" {
		text += ", until " + o.Until
	}
	return text
}
