package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// Tell implements [command.Answer].
func (x runAnswer) Tell(p *command.Page) {
	p.Line("%s  %s", p.Paint(terminal.Bold, x.Run), joined(string(x.Phase), x.Outcome))
	x.tellDefinition(p)
	x.tellExecutions(p)
	section(p, "frames", len(x.Frames), func(row func(...string)) {
		for _, frame := range x.Frames {
			row(frame.Path, frame.Component, roundOf(frame.Iteration, frame.Item))
		}
	})
	section(p, "open", len(x.Open), func(row func(...string)) {
		for _, open := range x.Open {
			row(open.Activation, open.EnteredOn, open.waitsFor())
		}
	})
	section(p, "history", len(x.History), func(row func(...string)) {
		for _, entry := range x.History {
			row(strconv.FormatInt(entry.Seq, 10), entry.Activation, entry.CompletedOn, entry.Outcome, entry.remark())
		}
	})
	if x.Outputs != nil {
		p.Line("")
		tellValue(p, "outputs", x.Outputs)
	}
}

func (x runAnswer) tellDefinition(p *command.Page) {
	if x.Git == nil {
		p.Line("  of composition %s", command.Clean(x.Of))
		return
	}
	p.Line("  of %s at %s", command.Clean(x.Git.Path), command.Clean(x.Git.Commit))
	section(p, "components", len(x.Git.Components), func(row func(...string)) {
		for _, component := range x.Git.Components {
			row(component.Name, component.Path, component.SourceHash)
		}
	})
}

func (x runAnswer) tellExecutions(p *command.Page) {
	section(p, "executions", len(x.Executions), func(row func(...string)) {
		for _, execution := range x.Executions {
			reason := string(execution.Reason)
			if execution.RequestedBy != "" {
				reason += " by " + execution.RequestedBy
			}
			ended := "goes on"
			if execution.EndedAt != nil {
				ended = string(execution.Ended) + " " + execution.EndedAt.UTC().Format(time.RFC3339)
			}
			row(strconv.FormatInt(execution.Number, 10), reason, execution.StartedAt.UTC().Format(time.RFC3339), ended)
		}
	})
}

// section is a table under a heading; nothing without rows.
func section(p *command.Page, heading string, rows int, tell func(row func(...string))) {
	if rows == 0 {
		return
	}
	p.Line("")
	p.Line("%s", p.Paint(terminal.Bold, heading))
	table := tabwriter.NewWriter(&p.Builder, 0, 0, 2, ' ', 0)
	tell(func(cells ...string) {
		for i, cell := range cells {
			cells[i] = command.Clean(cell)
		}
		_, _ = fmt.Fprintln(table, "  "+strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	})
	_ = table.Flush()
}

// joined leaves out what is empty.
func joined(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, command.Clean(part))
		}
	}
	return strings.Join(kept, "  ")
}

func roundOf(iteration, item int64) string {
	switch {
	case iteration > 0:
		return fmt.Sprintf("iteration %d", iteration)
	case item > 0:
		return fmt.Sprintf("item %d", item)
	}
	return ""
}

// waitsFor is what keeps an activation open, as far as it is known.
func (x openAnswer) waitsFor() string {
	if x.Intent == nil {
		return x.Title
	}
	parts := []string{x.Intent.Action}
	if x.Intent.Task != "" {
		parts = append(parts, "task "+x.Intent.Task)
	}
	if x.Intent.Session != "" {
		parts = append(parts, "session "+x.Intent.Session)
	}
	if x.Intent.Attempts > 0 {
		parts = append(parts, command.Plural(int(x.Intent.Attempts), "attempt"))
	}
	if x.Intent.Reason != "" {
		parts = append(parts, x.Intent.Reason)
	}
	return strings.Join(parts, ", ")
}

// remark is what a line of the history says beyond the outcome.
func (x entryAnswer) remark() string {
	switch {
	case x.Error != nil:
		return x.Error.Code
	case x.Call != nil:
		return strings.TrimSpace("calls " + x.Call.Component + " " + roundOf(x.Call.Iteration, x.Call.Item))
	case x.By != "":
		return "by " + x.By
	}
	return ""
}

// Tell implements [command.Answer].
func (x activationAnswer) Tell(p *command.Page) {
	p.Line("%s  of run %s", p.Paint(terminal.Bold, command.Clean(x.Activation)), x.Run)
	for _, entry := range x.Entries {
		entry.tell(p)
	}
	if x.Open != nil {
		x.Open.tell(p)
	}
}

func (x entryAnswer) tell(p *command.Page) {
	p.Line("")
	p.Line("entry %d  %s", x.Seq, joined(x.Type, x.Outcome, x.EnteredOn, x.CompletedOn, x.remark()))
	if x.Error != nil {
		tellValue(p, "error", x.Error)
	}
	if x.Call != nil {
		tellValue(p, "call", x.Call)
	}
	tellValue(p, "input", x.Input)
	tellValue(p, "output", x.Output)
	tellValue(p, "receipt", x.Receipt)
}

func (x openAnswer) tell(p *command.Page) {
	p.Line("")
	p.Line("open  %s", joined(x.EnteredOn, x.waitsFor()))
	tellValue(p, "input", x.Input)
	if x.Intent != nil {
		tellValue(p, "intent", x.Intent)
	}
	tellValue(p, "request", x.Request)
	tellValue(p, "observed", x.Observed)
}

// tellValue shows a value in full; nothing without one.
func tellValue(p *command.Page, name string, v any) {
	if v == nil {
		return
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("  ", "  ")
	if err := encoder.Encode(v); err != nil {
		p.Line("%s  …", name)
		return
	}
	p.Line("%s", name)
	for line := range strings.Lines(text.String()) {
		p.Line("  %s", command.Clean(strings.TrimRight(strings.TrimPrefix(line, "  "), "\n")))
	}
}
