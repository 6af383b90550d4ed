// Command axiom-mcp serves the tools of one server to an agent over its standard
// input and output. It holds the environment and the wiring; what a tool does
// is decided in the package mcpserver, and by the gateway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/mcpserver"
)

// The environment that the operator sets.
const (
	envURL         = "AXIOM_API_URL"
	envComposition = "AXIOM_COMPOSITION_ID"
	envSession     = "AXIOM_ASSISTANT_SESSION_ID"
	envToken       = "AXIOM_SESSION_TOKEN"
	envCAFile      = "AXIOM_CA_FILE"
)

// targets names, for each server, the variable with what its tools work on.
var targets = map[string]string{mcpserver.Workbench: envComposition, mcpserver.Assistant: envSession}

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	p := program{getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// program is what surrounds a process.
type program struct {
	getenv         func(string) string
	stdin          io.ReadCloser
	stdout, stderr io.WriteCloser
}

// run serves until the agent closes its side or the context ends, and returns
// the exit code.
func (p program) run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("axiom-mcp", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	name := flags.String("server", mcpserver.Workbench, "the server to be: "+mcpserver.Workbench+" or "+mcpserver.Assistant)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	if targets[*name] == "" || flags.NArg() > 0 {
		p.complain("usage: axiom-mcp [--server " + mcpserver.Workbench + "|" + mcpserver.Assistant + "]")
		return exitUsage
	}
	if err := p.serve(ctx, *name); err != nil {
		p.complain(err.Error())
		return exitError
	}
	return exitOK
}

func (p program) serve(ctx context.Context, name string) error {
	targetName := targets[name]
	p.warn(targetName)
	gateway, trouble := p.gateway()
	server := mcpserver.New(name, mcpserver.Options{
		Gateway: gateway, Trouble: trouble, Target: p.getenv(targetName),
	})
	err := server.Run(ctx, &mcp.IOTransport{Reader: p.stdin, Writer: p.stdout})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil //nolint:nilerr // told to stop, or the agent is gone: both are good ends
	}
	if err != nil {
		return fmt.Errorf("serve tools: %w", err)
	}
	return nil
}

// gateway is a client of the gateway, or why there is none.
func (p program) gateway() (mcpserver.Gateway, error) {
	gateway, err := client.New(p.getenv(envURL), p.getenv(envToken), p.getenv(envCAFile))
	if err != nil {
		return nil, err
	}
	return gateway, nil
}

// warn tells in one line what is missing. The server goes on: the agent shall
// learn of it from the tools, not from a server that is not there.
func (p program) warn(targetName string) {
	var missing []string
	for _, name := range []string{envURL, targetName, envToken} {
		if p.getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		p.complain("warning: not set: " + strings.Join(missing, ", ") + "; tools will fail")
	}
}

func (p program) complain(text string) {
	_, _ = fmt.Fprintf(p.stderr, "axiom-mcp: %s\n", text)
}
