package live

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/conformance"
)

// junit is the output for build servers.
const junit = "junit"

func (a *app) conformance() *cobra.Command {
	cmd := command.Leaf("conformance [--in NAMESPACE] [--no-pods] [-o json|junit]", "Hold an installation to what it promises", `
Has runs, questions, scripts and an agent work in a namespace of their own, and holds
what the objects say against what an installation promises. It needs the right to make
a namespace, or one that is there already, and to edit in it.

It cleans up. With --no-pods nothing is done that starts a pod: no script, no agent.

The exit code is 1 if a case failed.`, `
  axiom conformance
  axiom conformance --in sandbox -o junit > conformance.xml`)
	o := conformance.Options{Pods: true}
	noPods := false
	cmd.Flags().StringVar(&o.Namespace, "in", "axiom-conformance", "`NAMESPACE` to work in; it is made, and deleted in the end, unless it is there")
	cmd.Flags().DurationVar(&o.Patience, "patience", 3*time.Minute, "`DURATION` that each thing may take")
	cmd.Flags().BoolVar(&noPods, "no-pods", false, "skip what starts a pod")
	a.AddOutput(cmd, command.Text, command.JSON, junit)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		o.Client, o.Clock, o.Pods, o.Told = c, a.clock, !noPods, a.tellCase
		report, err := conformance.Run(cmd.Context(), o)
		if err != nil {
			return fmt.Errorf("check conformance: %w", explain(err))
		}
		return a.showReport(report)
	}
	return cmd
}

// tellCase tells of a case as soon as it is over, where the report is not for people
// alone.
func (a *app) tellCase(result conformance.Result) {
	if a.Format() == "" || a.Format() == command.Text {
		return
	}
	_, _ = fmt.Fprintf(a.Stderr, "%-10s %s\n", result.Name, result.Status)
}

// A conformanceAnswer is a report for people.
type conformanceAnswer struct{ conformance.Report }

// Tell implements [command.Answer].
func (x conformanceAnswer) Tell(p *command.Page) {
	marks := map[string]string{
		conformance.Passed: p.Paint(terminal.Green, "✓"), conformance.Failed: p.Paint(terminal.Red, "✗"), conformance.Skipped: p.Paint(terminal.Dim, "–"),
	}
	for _, result := range x.Cases {
		p.Line("%s %-10s  %s  %s", marks[result.Status], result.Name, result.About, p.Paint(terminal.Dim, fmt.Sprintf("%.1fs", result.Seconds)))
		if result.Message != "" {
			p.Line("  %-10s  %s", "", command.Clean(result.Message))
		}
	}
	p.Line("")
	p.Line("%d passed, %d failed, %d skipped", x.Count(conformance.Passed), x.Count(conformance.Failed), x.Count(conformance.Skipped))
	if x.Leftovers != "" {
		p.Line("%s: %s", p.Paint(terminal.Yellow, "not everything was cleaned up"), command.Clean(x.Leftovers))
	}
}

func (a *app) showReport(report conformance.Report) error {
	if a.Format() == junit {
		text, err := report.JUnit()
		if err != nil {
			return err
		}
		if err := a.Print(text); err != nil {
			return err
		}
		return command.Verdict(report.Passed)
	}
	if err := a.Show(conformanceAnswer{report}); err != nil {
		return err
	}
	return command.Verdict(report.Passed)
}
