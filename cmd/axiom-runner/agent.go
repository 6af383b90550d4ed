package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/runner"
	"github.com/apitomy/axiom-operator/runner/process"
	"github.com/apitomy/axiom-operator/runner/redact"
)

// installedMCP is where pods have the MCP server.
const installedMCP = "/axiom/axiom-mcp"

func runAgent(cmd *cobra.Command, args []string) error {
	environment, err := runner.ParseEnvironment(os.Environ())
	if err != nil {
		return usageError{err}
	}
	if environment.MCPCommand == "" {
		environment.MCPCommand = besides("axiom-mcp", installedMCP)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find working directory: %w", err)
	}
	if err := hide(); err != nil {
		return err
	}
	gateway, err := client.New(environment.APIURL, environment.Token, environment.CAFile)
	if err != nil {
		return usageError{err}
	}
	ctx := cmd.Context()
	children := &process.Children{}
	go children.ReapOrphans(ctx)

	redactor := redact.New(environment.Secrets)
	stderr := redactor.Writer(cmd.ErrOrStderr())
	program := runner.Program{
		Children: children, Args: args, Env: environment.Agent, Stderr: cmd.ErrOrStderr(), Redactor: redactor,
	}
	return runner.Run(ctx, runner.Config{
		Environment: environment, Gateway: gateway, Launch: program.Launch, Dir: dir,
		Timing: runner.DefaultTiming(), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(stderr, nil)),
	})
}

// besides returns the path of a program beside this one, or else fallback.
func besides(name, fallback string) string {
	own, err := os.Executable()
	if err != nil {
		return fallback
	}
	path := filepath.Join(filepath.Dir(own), name)
	if _, err := os.Stat(path); err != nil {
		return fallback
	}
	return path
}

// hide keeps other processes of the same user from reading this one's memory
// and environment, which hold the token.
func hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide from other processes: %w", err)
	}
	return nil
}
