// Command axiom-runner is what runs inside the pods of agent sessions and of
// actions. It holds the flags and the wiring; what happens is decided in the
// packages under runner.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/runner"
	"github.com/apitomy/axiom-operator/runner/script"
)

// Exit codes.
const (
	exitOK         = 0
	exitError      = 1
	exitUsage      = 2
	exitNotStarted = 3
	exitAgentEnded = 4
	exitGone       = 5
	exitStopped    = 128 + int(syscall.SIGTERM)
)

// terminationLog is where a container leaves its last words for its pod's
// status.
const terminationLog = "/dev/termination-log"

// usageError is a command line or an environment that cannot be right.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	root := newRootCommand()
	// Only what is asked for goes to standard output: it may be a connection.
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(os.Stderr, "axiom-runner: %s\n", err)
	leaveLastWords(err)
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case isA[usageError](err):
		return exitUsage
	case isA[*runner.StartError](err):
		return exitNotStarted
	case isA[*runner.EndError](err):
		return exitAgentEnded
	case errors.Is(err, runner.ErrSessionGone), errors.Is(err, runner.ErrRefused):
		return exitGone
	case errors.Is(err, script.ErrStopped):
		return exitStopped
	default:
		return exitError
	}
}

func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// leaveLastWords writes to the termination log where there is one, which is in
// a pod only.
func leaveLastWords(err error) {
	file, openErr := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if openErr != nil {
		return
	}
	// Nobody is left to tell if it cannot be written.
	_, _ = file.WriteString(err.Error())
	_ = file.Close()
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "axiom-runner -- COMMAND [ARGUMENT...]",
		Short: "Run an agent for an Axiom session",
		Long: `Runs an agent that speaks the Agent Client Protocol on its standard input and
output, gives it the prompts of one session, and brings what it says to the
gateway. It is meant to be the first process of the agent's container.

Environment:
  AXIOM_API_URL          the gateway, with the path /api/v1
  AXIOM_SESSION_ID       the session, <namespace>/<name>
  AXIOM_SESSION_TOKEN    the token of this pod
  AXIOM_SESSION_ATTEMPT  the number of this pod among those of the session, if known
  AXIOM_CA_FILE          certificates of the gateway (default: those of the system)
  AXIOM_COMPOSITION_ID   the composition that the session is bound to, if any
  AXIOM_MCP_COMMAND      the MCP server (default: axiom-mcp beside this program)
  AXIOM_SECRET_ENV       names of the variables with secret values, by commas

The agent gets the rest of the environment. Secret values never reach the
gateway, nor the log.

Exit codes:
  0  the pod was told to end
  1  something else went wrong
  2  the command line or the environment is wrong
  3  the agent could not be started
  4  the agent's program ended
  5  the session has no use for this pod any more`,
		Example:       "  axiom-runner -- /usr/local/bin/agent --acp",
		Args:          agentArgs,
		RunE:          runAgent,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newScriptedCommand(), newScriptCommand(), newInstallCommand())
	return root
}

// agentArgs wants the agent's command line behind a double dash, so that none
// of its flags is taken for one of the runner's.
func agentArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("the command of the agent must be given after --")}
	}
	if cmd.ArgsLenAtDash() != 0 {
		return usageError{fmt.Errorf("unknown command %q; the command of an agent goes after --", args[0])}
	}
	return nil
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}
