// Package script runs the script of an action attempt and makes a result of
// how it ended.
//
// Inputs reach the script as a file and, where a name and a value allow it, as
// variables; its outputs are the JSON object that it leaves in another file.
// What it writes elsewhere passes through. The result holds the exit code, and
// the outputs only if the code is 0 and they are what they have to be, without
// the values of secret variables.
//
// The package knows nothing of what actions mean or where results go.
package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/process"
	"github.com/apitomy/axiom-operator/runner/redact"
)

const (
	// EnvInputs names the file of the inputs.
	EnvInputs = "AXIOM_INPUTS"
	// EnvOutputs names the file of the outputs.
	EnvOutputs = "AXIOM_OUTPUTS"

	// envToken is the wrapper's own.
	envToken = "AXIOM_ATTEMPT_TOKEN"

	reservedPrefix = "AXIOM_"
	// exitNotFound is how a shell reports a program that is not there.
	exitNotFound = 127
	// Grace is how long a script may take to end when its pod does.
	Grace = 10 * time.Second
)

// codeNoInterpreter is the error of a script whose interpreter is not in the
// image.
const codeNoInterpreter = "EXIT_CODE"

// ErrStopped means that the pod was told to end while the script ran. There is
// no result then: the script did not come to its own end.
var ErrStopped = errors.New("the script was stopped")

// interpreters lists the programs that may run a script, in order.
var interpreters = map[string][]string{
	"bash":   {"bash"},
	"node":   {"node"},
	"python": {"python3", "python"},
}

// Interpreters returns the names of the interpreters, sorted.
func Interpreters() []string {
	names := make([]string, 0, len(interpreters))
	for name := range interpreters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Script is what to run.
type Script struct {
	// Interpreter is one of [Interpreters], Path the file with the script.
	Interpreter, Path string
	// Environ is the environment of the pod. The script gets it without the
	// variables meant for the wrapper.
	Environ []string
	// Stdout and Stderr take what the script writes, without secrets.
	Stdout, Stderr io.Writer
	// Children are the processes that the script is to be one of.
	Children *process.Children
	// Grace is how long it may take to end when it is told to.
	Grace time.Duration
}

// Run runs the script to its end. The error is that of an attempt that could
// not be made, or [ErrStopped].
func (s Script) Run(ctx context.Context) (openapi.AttemptResult, error) {
	names, ok := interpreters[s.Interpreter]
	if !ok {
		return openapi.AttemptResult{}, fmt.Errorf("interpreter %q is none of %s", s.Interpreter, strings.Join(Interpreters(), ", "))
	}
	environ, err := s.environment()
	if err != nil {
		return openapi.AttemptResult{}, err
	}
	program, ok := lookPath(names)
	if !ok {
		return failed(exitNotFound, codeNoInterpreter, fmt.Sprintf(
			"the image has no %s, which is what %s scripts run with", strings.Join(names, " and no "), s.Interpreter)), nil
	}
	code, err := s.execute(ctx, program, environ)
	if err != nil {
		return openapi.AttemptResult{}, err
	}
	if code != 0 {
		return openapi.AttemptResult{ExitCode: int32(code)}, nil
	}
	return readOutputs(valueOf(s.Environ, EnvOutputs), redact.New(s.credentials())), nil
}

// credentials are the values that no output may carry out of the pod: those of
// the variables that the pod names as secret, and the wrapper's own token. A name
// that only sounds secret is no reason to change an output.
func (s Script) credentials() []string {
	values := []string{valueOf(s.Environ, envToken)}
	for name := range strings.SplitSeq(valueOf(s.Environ, redact.SecretNames), ",") {
		values = append(values, valueOf(s.Environ, name))
	}
	return values
}

// Poster sends the result of the attempt, repeating it while the gateway is
// away.
type Poster func(context.Context, openapi.AttemptResult) error

// Deliver sends a result. One that is larger on its way than the gateway takes
// is reported as such: the attempt is over in any case.
func Deliver(ctx context.Context, post Poster, result openapi.AttemptResult) error {
	err := post(ctx, result)
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusRequestEntityTooLarge && result.Outputs != nil {
		return post(ctx, failed(result.ExitCode, CodeResultTooLarge, "the outputs are larger than the gateway takes"))
	}
	return err
}

func lookPath(names []string) (string, bool) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

func failed(exitCode int32, code, message string) openapi.AttemptResult {
	return openapi.AttemptResult{ExitCode: exitCode, Error: &openapi.AttemptError{Code: code, Message: message}}
}

// environment is the pod's, without the variables of the wrapper but with
// those of the inputs.
func (s Script) environment() ([]string, error) {
	var environ []string
	for _, variable := range s.Environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, reservedPrefix) || name == EnvInputs || name == EnvOutputs {
			environ = append(environ, variable)
		}
	}
	path := valueOf(s.Environ, EnvInputs)
	if path == "" {
		return environ, nil
	}
	inputs, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read inputs: %w", err)
	}
	variables, err := inputVariables(inputs)
	if err != nil {
		return nil, fmt.Errorf("read inputs: %w", err)
	}
	return append(environ, variables...), nil
}

func valueOf(environ []string, wanted string) string {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); name == wanted {
			return value
		}
	}
	return ""
}

// execute runs the program and returns its exit code.
func (s Script) execute(ctx context.Context, program string, environ []string) (int, error) {
	secrets := redact.New(redact.FromEnvironment(s.Environ))
	stdout, stderr := secrets.Writer(s.Stdout), secrets.Writer(s.Stderr)
	started, err := s.Children.Start(process.Command{
		Args: []string{program, s.Path}, Env: environ, Stdout: stdout, Stderr: stderr,
	})
	if err != nil {
		return 0, err
	}
	select {
	case <-started.Exited():
	case <-ctx.Done():
		s.stop(started)
		return 0, ErrStopped
	}
	return started.ExitCode(), errors.Join(stdout.Flush(), stderr.Flush())
}

func (s Script) stop(started *process.Process) {
	started.Terminate()
	timer := time.NewTimer(s.Grace)
	defer timer.Stop()
	select {
	case <-started.Exited():
	case <-timer.C:
		started.Kill()
		<-started.Exited()
	}
}
