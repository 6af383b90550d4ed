package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// options are the program's flags.
type options struct {
	gateway  bool
	quick    bool
	rows     []string
	document string
	plot     string
	write    bool
	profile  string
	keepLog  string
}

const usage = `Measure workflow runs against a real API server.

usage: runs [flags]

The control plane comes from bin/k8s (make envtest-assets). A full run takes
about a quarter of an hour on two cores, a quick one under two minutes. Figures
are ratios to raw status writes that alternate with what is measured.

Rows: answer, chain, length, fleet, counts, waiting, admission; of the gateway:
proposals.

Exit codes: 0 measured, 1 something failed, 2 bad flags.

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == managerCommand {
		return exitCode(serveManager(ctx, os.Stdin, stdout), stderr)
	}
	flags := pflag.NewFlagSet("runs", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { tell(stdout, "%s%s", usage, flags.FlagUsages()) }
	opts := &options{}
	opts.register(flags)
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = opts.validate(flags.Args())
	}
	if err != nil {
		tell(stderr, "runs: %v\n", err)
		return 2
	}
	return exitCode(measure(ctx, opts, stdout), stderr)
}

// tell writes to somebody who may have stopped listening.
func tell(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}

func exitCode(err error, stderr io.Writer) int {
	if err != nil {
		tell(stderr, "runs: %v\n", err)
		return 1
	}
	return 0
}

func (o *options) register(flags *pflag.FlagSet) {
	flags.BoolVar(&o.gateway, "gateway", false, "Measure the gateway in place of runs: a table of its own, without a plot.")
	flags.BoolVar(&o.quick, "quick", false, "Measure less of everything: smoke, not figures to quote.")
	flags.StringSliceVar(&o.rows, "rows", nil, "Rows to measure, comma-separated; all when empty.")
	flags.BoolVar(&o.write, "write", false, "Write the table and the plot into the documentation; without it the table is only printed.")
	flags.StringVar(&o.document, "document", "docs/performance.md", "File whose part between the markers is replaced.")
	flags.StringVar(&o.plot, "plot", "docs/images/bench-runs.svg", "File of the plot.")
	flags.StringVar(&o.profile, "profile", "", "Directory for CPU profiles of the operator and the API server, of some rows.")
	flags.StringVar(&o.keepLog, "log", "", "File for the operator's log; empty: it is thrown away.")
}

func (o *options) validate(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	known := o.known()
	for _, name := range o.rows {
		if !slices.ContainsFunc(known, func(r row) bool { return r.name == name }) {
			return fmt.Errorf("--rows: there is no row %q", name)
		}
	}
	return nil
}

// known are the rows that can be measured.
func (o *options) known() []row {
	if o.gateway {
		return gatewayRows()
	}
	return rows()
}

// report is an empty one for what is measured, and where its plot goes.
func (o *options) report() (empty *report, plot string) {
	if o.gateway {
		return newReport("bench-gateway", o.quick), ""
	}
	return newReport("bench-runs", o.quick), o.plot
}

// row measures one part of the table.
type row struct {
	name    string
	about   string
	measure func(context.Context, *world) ([]figure, error)
}

func rows() []row {
	return []row{
		{"answer", "a person's answer until the next node is parked", measureAnswers},
		{"chain", "chains of 50 nodes, each completed from outside", measureChains},
		{"length", "cost per node of chains of 10, 100 and 998 nodes", measureLengths},
		{"fleet", "100 chains of 10 nodes with 8 and 32 workers", measureFleets},
		{"counts", "writes, reconciles and Events per node", measureCounts},
		{"waiting", "1,000 and 10,000 waiting runs: memory, idle requests, restart", measureWaiting},
		{"admission", "admission of workflows of 10 and 1,000 nodes", measureAdmission},
	}
}

func gatewayRows() []row {
	return []row{{"proposals", "sessions that propose change sets at once", measureProposals}}
}

// measure measures the rows, and reports them.
func measure(ctx context.Context, opts *options, out io.Writer) error {
	report, plot := opts.report()
	for _, r := range opts.known() {
		if len(opts.rows) > 0 && !slices.Contains(opts.rows, r.name) {
			continue
		}
		if err := r.report(ctx, opts, report, out); err != nil {
			return err
		}
	}
	tell(out, "\n%s", report.markdown())
	if !opts.write {
		return nil
	}
	return report.write(opts.document, plot)
}

// report measures the row in a world of its own: what another row left behind
// would be in the operator's memory, and in what it reads when it starts.
func (r row) report(ctx context.Context, opts *options, result *report, out io.Writer) error {
	w, err := newWorld(ctx, opts, out)
	if err != nil {
		return err
	}
	began := time.Now()
	w.say("%s: %s", r.name, r.about)
	figures, err := r.measure(ctx, w)
	if err = errors.Join(err, w.close()); err != nil {
		return fmt.Errorf("measure %s: %w", r.name, err)
	}
	for _, f := range figures {
		w.say("  %s: %s (goal %s)", f.measure, f.value, f.goal)
	}
	w.say("%s took %s", r.name, time.Since(began).Round(time.Second))
	result.add(figures...)
	return nil
}
