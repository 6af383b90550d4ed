package live

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/apitomy/axiom-operator/cli/ask"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// Options of the commands.
type Options struct {
	// Clock tells how long an agent works already.
	Clock clock.WithTicker
	// Console is the terminal of a person who may be asked; what the program was
	// started with when nil.
	Console ask.Console
	// Git carries requests to repositories over HTTP; the default transport when nil.
	Git http.RoundTripper
}

// Commands are the groups of commands that need a cluster, for one call of the
// program.
func Commands(options Options) func(*command.App) []*cobra.Command {
	return func(a *command.App) []*cobra.Command {
		l := &app{App: a, clock: options.Clock, git: options.Git}
		if l.git == nil {
			l.git = http.DefaultTransport
		}
		l.console = options.Console
		if there, isThere := terminal.NewConsole(a.Stdin, a.Stderr); isThere && l.console == nil {
			l.console = there
		}
		groups := []*cobra.Command{l.turn(), l.run(), l.inbox(), l.answerTask(), l.resume(), l.session(), l.template(), l.doctor(), l.conformance(), l.consoleCommand()}
		for _, group := range groups {
			l.access.addFlags(group.PersistentFlags())
		}
		l.addCompletions(groups)
		return groups
	}
}

// app is one call of the program.
type app struct {
	*command.App
	access access
	clock  clock.WithTicker
	git    http.RoundTripper
	// console of the person who calls; nil: a program does.
	console ask.Console
}

// connect makes the connection that the flags ask for.
func (a *app) connect() (*cluster, error) {
	return a.access.connect(a.Version.Version, a.Stderr)
}

// invocation is what a user types to go on with a command of the group, in the
// same namespace.
func (a *app) invocation(words ...string) string {
	text := a.Name() + " " + strings.Join(words, " ")
	if namespace := a.access.overrides.Context.Namespace; namespace != "" {
		text += " -n " + namespace
	}
	return text
}

// A patience is how long a command waits for what it brought about.
type patience struct {
	no      bool
	timeout time.Duration
}

// addFlags declares the flags; what is waited for.
func (p *patience) addFlags(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&p.no, "no-wait", false, "do not wait for "+what)
	p.addTimeout(cmd)
}

func (p *patience) addTimeout(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&p.timeout, "timeout", 0, "give up waiting after a `DURATION` such as 10m; 0 never does")
}

// exactArgs takes so many arguments, and says which are missing.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return fmt.Errorf("%s takes %s, got %s", cmd.CommandPath(), strings.Join(names, " and "), command.Plural(len(args), "argument"))
	}
}
