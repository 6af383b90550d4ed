package cli

import (
	"github.com/spf13/cobra"
)

// A Version describes a build.
type Version struct {
	// Version is that of the module.
	Version string `json:"version"`
	// Revision is that of the source, empty if it is not known.
	Revision string `json:"revision"`
	// Go is the version of the toolchain.
	Go string `json:"go"`
}

func (v Version) tell(p *page) {
	p.line("axiom %s", v.Version)
	if v.Revision != "" {
		p.line("revision %s", v.Revision)
	}
	p.line("built with %s", v.Go)
}

func (a *app) version() *cobra.Command {
	cmd := leaf("version", "Print the version", "", `
  axiom version
  axiom version -o json`)
	a.addOutput(cmd, formatText, formatJSON)
	cmd.RunE = func(*cobra.Command, []string) error { return a.show(a.env.Version) }
	return cmd
}
