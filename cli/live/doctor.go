package live

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// A finding says how one part of an installation is.
type finding struct {
	Check string `json:"check"`
	// Status is ok, warning, failure, or unknown for what the caller may not see.
	Status  string `json:"status"`
	Message string `json:"message"`
	// Todo is what would mend it; empty where nothing is wrong.
	Todo string `json:"todo"`
}

// Statuses of findings.
const (
	isFine    = "ok"
	isDoubted = "warning"
	isBroken  = "failure"
	isHidden  = "unknown"
)

func fine(format string, args ...any) finding {
	return finding{Status: isFine, Message: fmt.Sprintf(format, args...)}
}

func doubted(todo, format string, args ...any) finding {
	return finding{Status: isDoubted, Todo: todo, Message: fmt.Sprintf(format, args...)}
}

func broken(todo, format string, args ...any) finding {
	return finding{Status: isBroken, Todo: todo, Message: fmt.Sprintf(format, args...)}
}

// A doctor looks at an installation from outside, with the rights of the caller.
type doctor struct {
	*cluster
	clock clock.PassiveClock
	// home is the namespace of the operator.
	home string
}

func (a *app) doctor() *cobra.Command {
	cmd := command.Leaf("doctor [--operator-namespace NAME] [-o json]", "Check an installation", `
Checks what an installation of Axiom needs to work, and your namespace with it: the
API, admission and its certificate, the operator, its leader and gateway, your rights,
pod security, network policies, and a storage class for the homes of agents. Each
check is a line; what is wrong comes with what to do. It changes nothing: what it
creates to try admission is a dry run.

What you may not see is unknown, and no failure. The exit code is 1 if a check failed.`, `
  axiom doctor
  axiom doctor -n team-a -o json | jq '.checks[] | select(.status == "failure")'`)
	var home string
	cmd.Flags().StringVar(&home, "operator-namespace", "axiom-system", "`NAME` of the namespace that the operator runs in")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		report := (&doctor{cluster: c, clock: a.clock, home: home}).examine(cmd.Context())
		if err := a.Show(report); err != nil {
			return err
		}
		return command.Verdict(report.Healthy)
	}
	return cmd
}

// A diagnosis is what was found, in the order of the checks.
type diagnosis struct {
	Healthy   bool      `json:"healthy"`
	Namespace string    `json:"namespace"`
	Checks    []finding `json:"checks"`
}

// examine makes all checks: one that fails may be the cause of another, but a reader
// sees that better than a program.
func (d *doctor) examine(ctx context.Context) diagnosis {
	result := diagnosis{Healthy: true, Namespace: d.namespace}
	for _, check := range []struct {
		name string
		look func(context.Context) (finding, error)
	}{
		{"api", d.checkAPI},
		{"admission", d.checkAdmission},
		{"certificate", d.checkCertificate},
		{"operator", d.checkOperator},
		{"leader", d.checkLeader},
		{"gateway", d.checkGateway},
		{"network", d.checkNetwork},
		{"rights", d.checkRights},
		{"pod security", d.checkPodSecurity},
		{"storage", d.checkStorage},
	} {
		found, err := check.look(ctx)
		if err != nil {
			found = failedLook(err)
		}
		found.Check = check.name
		result.Healthy = result.Healthy && found.Status != isBroken
		result.Checks = append(result.Checks, found)
	}
	return result
}

// failedLook tells what the caller may not see from what cannot be seen.
func failedLook(err error) finding {
	if apierrors.IsForbidden(err) {
		return finding{Status: isHidden, Message: reasonIn(err.Error()), Todo: "ask somebody who may look"}
	}
	return broken("see whether the cluster is well", "%s", explain(err))
}

// Tell implements [command.Answer].
func (x diagnosis) Tell(p *command.Page) {
	marks := map[string]struct {
		symbol string
		style  terminal.Style
	}{isFine: {"✓", terminal.Green}, isDoubted: {"!", terminal.Yellow}, isBroken: {"✗", terminal.Red}, isHidden: {"?", terminal.Dim}}
	for _, found := range x.Checks {
		mark := marks[found.Status]
		p.Line("%s %-12s  %s", p.Paint(mark.style, mark.symbol), found.Check, command.Clean(found.Message))
		if found.Todo != "" {
			p.Line("  %-12s  %s", "", p.Paint(terminal.Cyan, "→ "+command.Clean(found.Todo)))
		}
	}
}

// worst is the finding that weighs most; the first of equal ones.
func worst(findings ...finding) finding {
	weight := map[string]int{isFine: 0, isHidden: 1, isDoubted: 2, isBroken: 3}
	found := findings[0]
	for _, other := range findings[1:] {
		if cmp.Compare(weight[other.Status], weight[found.Status]) > 0 {
			found = other
		}
	}
	return found
}

// expiresSoon is how long before its end a certificate is worth a word. The operator
// renews its own long before.
const expiresSoon = 14 * 24 * time.Hour
