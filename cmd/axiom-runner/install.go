package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/runner/install"
)

func newInstallCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "install --to DIRECTORY",
		Short: "Copy axiom-runner and axiom-mcp into a directory",
		Long: `Copies axiom-runner and axiom-mcp from beside this program into a directory, for
containers whose image has neither. A copy appears whole or not at all, and may
be run but not changed.

Exit codes:
  0  both are there
  1  something went wrong
  2  the command line is wrong`,
		Example: "  axiom-runner install --to /axiom",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return installPrograms(to) },
	}
	cmd.Flags().StringVar(&to, "to", "", "directory to copy to")
	return cmd
}

func installPrograms(to string) error {
	if to == "" {
		return usageError{errors.New("--to must be given")}
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	return install.Programs(filepath.Dir(own), to, "axiom-runner", "axiom-mcp")
}
