package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/process"
	"github.com/apitomy/axiom-operator/runner/script"
)

// Variables that the pod of an action sets for the wrapper.
const (
	envAPIURL       = "AXIOM_API_URL"
	envCAFile       = "AXIOM_CA_FILE"
	envAttempt      = "AXIOM_ATTEMPT_ID"
	envAttemptToken = "AXIOM_ATTEMPT_TOKEN"
)

func newScriptCommand() *cobra.Command {
	var interpreter, path string
	cmd := &cobra.Command{
		Use:   "script --interpreter NAME --script FILE",
		Short: "Run the script of an action and report how it ended",
		Long: `Runs a script and sends its exit code and outputs to the gateway, again and
again until they are taken.

The script finds its inputs as a JSON object in the file named by AXIOM_INPUTS
and, where a name is an identifier and a value short enough, in AXIOM_INPUT_<NAME>.
It leaves its outputs as a JSON object in the file named by AXIOM_OUTPUTS. What
it writes to standard output and error passes through, without secrets.

Environment:
  AXIOM_API_URL        the gateway, with the path /api/v1
  AXIOM_ATTEMPT_ID     the attempt, <namespace>/<pod>
  AXIOM_ATTEMPT_TOKEN  the token of the attempt; the script does not see it
  AXIOM_CA_FILE        certificates of the gateway (default: those of the system)
  AXIOM_SECRET_ENV     names of the variables with secret values, by commas

Exit codes:
  0    the result was delivered, whatever it is
  1    it was not
  2    the command line or the environment is wrong
  143  the pod was told to end while the script ran; there is no result`,
		Example: "  axiom-runner script --interpreter bash --script /axiom-io/script",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runScript(cmd, interpreter, path) },
	}
	cmd.Flags().StringVar(&interpreter, "interpreter", "bash", "what runs the script: "+strings.Join(script.Interpreters(), ", "))
	cmd.Flags().StringVar(&path, "script", "", "file with the script")
	return cmd
}

func runScript(cmd *cobra.Command, interpreter, path string) error {
	if path == "" {
		return usageError{errors.New("--script must be given")}
	}
	namespace, pod, ok := strings.Cut(os.Getenv(envAttempt), "/")
	if !ok || namespace == "" || pod == "" {
		return usageError{fmt.Errorf("environment variable %s must be <namespace>/<pod>", envAttempt)}
	}
	if os.Getenv(envAPIURL) == "" || os.Getenv(envAttemptToken) == "" {
		return usageError{fmt.Errorf("environment variables %s and %s must be set", envAPIURL, envAttemptToken)}
	}
	if err := hide(); err != nil {
		return err
	}
	gateway, err := client.New(os.Getenv(envAPIURL), os.Getenv(envAttemptToken), os.Getenv(envCAFile))
	if err != nil {
		return usageError{err}
	}
	children := &process.Children{}
	go children.ReapOrphans(cmd.Context())
	result, err := script.Script{
		Interpreter: interpreter, Path: path, Environ: os.Environ(),
		Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
		Children: children, Grace: script.Grace,
	}.Run(cmd.Context())
	if err != nil {
		return err
	}
	// A result that exists is told until the pod is gone, even after the pod was
	// told to end: the attempt is repeated otherwise.
	return script.Deliver(context.WithoutCancel(cmd.Context()), func(ctx context.Context, result openapi.AttemptResult) error {
		return gateway.PostAttemptResult(ctx, namespace, pod, result)
	}, result)
}
