// Command axiom works on workflow documents in files, and with agents on a
// cluster. It holds the environment; what the commands do is in the package cli and
// those below it.
//
// Found on the PATH as kubectl-axiom, it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/apitomy/axiom-operator/cli"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/live"
	"github.com/apitomy/axiom-operator/cli/supervised"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The client library complains, with a stack, of a program that runs for half a
	// minute without a logger.
	ctrllog.SetLogger(logr.Discard())
	return cli.Run(ctx, command.Environment{
		Program: os.Args[0],
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Getenv:  os.Getenv,
		Version: version(),
	}, os.Args[1:], live.Commands(live.Options{Clock: clock.RealClock{}}), supervised.Commands)
}

// version is what the build recorded.
func version() command.Version {
	v := command.Version{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}
