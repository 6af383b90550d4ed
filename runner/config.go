package runner

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/apitomy/axiom-operator/runner/redact"
)

// Variables of the environment that the pod sets for the runner.
const (
	EnvAPIURL        = "AXIOM_API_URL"
	EnvToken         = "AXIOM_SESSION_TOKEN"
	EnvCAFile        = "AXIOM_CA_FILE"
	EnvSession       = "AXIOM_SESSION_ID"
	EnvAttempt       = "AXIOM_SESSION_ATTEMPT"
	EnvComposition   = "AXIOM_COMPOSITION_ID"
	EnvMCPCommand    = "AXIOM_MCP_COMMAND"
	envAssistant     = "AXIOM_ASSISTANT_SESSION_ID"
	reservedPrefix   = "AXIOM_"
	protocolVersion  = 1
	runnerClientName = "axiom-runner"
)

// Environment is what the pod tells the runner.
type Environment struct {
	// APIURL of the gateway, with the path /api/v1.
	APIURL string
	// Token of the session's live pod.
	Token string
	// CAFile holds the certificates of the gateway; empty means the system's.
	CAFile string
	// Namespace and Name of the session.
	Namespace, Name string
	// Attempt is the number of this pod among those of the session; 0 if the
	// pod does not tell.
	Attempt int
	// Composition is the namespace and name of the composition that the session
	// is bound to; empty without one.
	Composition string
	// Home of the agent, absolute.
	Home string
	// MCPCommand is the program of the MCP server.
	MCPCommand string
	// Agent is the environment for the agent: the pod's without what is meant
	// for the runner.
	Agent []string
	// Secrets are the values that must not leave the pod, the token among them.
	Secrets []string
}

// ParseEnvironment reads an environment of the form NAME=value.
func ParseEnvironment(environ []string) (Environment, error) {
	given := make(map[string]string, len(environ))
	var agent []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		given[name] = value
		if !strings.HasPrefix(name, reservedPrefix) {
			agent = append(agent, variable)
		}
	}
	for _, name := range []string{EnvAPIURL, EnvToken, EnvSession} {
		if given[name] == "" {
			return Environment{}, fmt.Errorf("environment variable %s must be set", name)
		}
	}
	namespace, name, ok := strings.Cut(given[EnvSession], "/")
	if !ok || namespace == "" || name == "" {
		return Environment{}, fmt.Errorf("environment variable %s must be <namespace>/<name>, not %q", EnvSession, given[EnvSession])
	}
	attempt, err := parseAttempt(given[EnvAttempt])
	if err != nil {
		return Environment{}, err
	}
	return Environment{
		APIURL: given[EnvAPIURL], Token: given[EnvToken], CAFile: given[EnvCAFile],
		Namespace: namespace, Name: name, Attempt: attempt,
		Composition: given[EnvComposition], MCPCommand: given[EnvMCPCommand],
		Home:    given["HOME"],
		Agent:   agent,
		Secrets: append(redact.FromEnvironment(environ), given[EnvToken]),
	}, nil
}

func parseAttempt(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	attempt, err := strconv.Atoi(text)
	if err != nil || attempt < 1 {
		return 0, fmt.Errorf("environment variable %s must be a positive number, not %q", EnvAttempt, text)
	}
	return attempt, nil
}

// Timing holds how long the runner waits for what.
type Timing struct {
	// Initialize and NewSession bound the two steps of starting an agent.
	Initialize, NewSession time.Duration
	// Cancel is how long an agent may take to stop when it is asked to.
	Cancel time.Duration
	// Shutdown is the same when the pod ends, which leaves less time.
	Shutdown time.Duration
	// Terminate is how long its program may take to end when it is told to.
	Terminate time.Duration
	// Poll is how long one request waits for a prompt.
	Poll time.Duration
	// Linger is how long a result is still sent after the pod was told to end.
	Linger time.Duration
}

// DefaultTiming returns the times that pods are built around.
func DefaultTiming() Timing {
	return Timing{
		Initialize: 30 * time.Second,
		NewSession: time.Minute,
		Cancel:     30 * time.Second,
		Shutdown:   5 * time.Second,
		Terminate:  10 * time.Second,
		Poll:       50 * time.Second,
		Linger:     10 * time.Second,
	}
}

// Config is all that a [Run] needs.
type Config struct {
	Environment Environment
	Gateway     Gateway
	// Launch starts the agent.
	Launch Launcher
	// Dir is the agent's working directory, absolute.
	Dir    string
	Timing Timing
	// Now is the clock.
	Now func() time.Time
	Log *slog.Logger
}
