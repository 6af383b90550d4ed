package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Scenario is a process and a play around it.
type Scenario struct {
	// Config reaches the API server as the process.
	Config *rest.Config
	// World makes a namespace of its own for each play and returns its name.
	World func(ctx context.Context) (string, error)
	// Start runs the process for one namespace until ctx ends. It must reach the
	// API server through cfg alone and keep nothing from one call to the next.
	Start func(ctx context.Context, cfg *rest.Config, namespace string) error
	// Play acts in a namespace, waits until everything has come to rest, and
	// returns the objects to compare. It does not know of faults.
	Play func(ctx context.Context, namespace string) ([]client.Object, error)
	// Normalize changes an object, as JSON, before it is compared; may be nil.
	Normalize func(object map[string]any)
	// Every explores only each n-th write; zero or one: all of them.
	Every int
	// Log is told of each play; may be nil.
	Log func(format string, args ...any)
}

// A Mismatch is a play that ended differently, or not at all.
type Mismatch struct {
	Fault Fault
	// Diff of the normal forms, expected to actual; empty if there is an error.
	Diff string
	// Err of the play or the process.
	Err error
}

// String tells a reader of a test's output what happened.
func (m Mismatch) String() string {
	at := fmt.Sprintf("stopped %s write %d", m.Fault.Moment, m.Fault.Write)
	if m.Err != nil {
		return at + ": " + m.Err.Error()
	}
	return at + ": objects differ (-undisturbed +stopped)\n" + m.Diff
}

// An Outcome is what an exploration found.
type Outcome struct {
	// Writes of the undisturbed process.
	Writes int
	// Plays with a fault, and those in which it struck: a process that happens
	// to write less may end before it.
	Plays, Struck int
	// Mismatches, by write.
	Mismatches []Mismatch
}

// Report joins the mismatches into one text, empty if there are none.
func (o *Outcome) Report() string {
	texts := make([]string, len(o.Mismatches))
	for i, m := range o.Mismatches {
		texts[i] = m.String()
	}
	return strings.Join(texts, "\n\n")
}

// Explore plays the scenario undisturbed, and then with a fault at each write.
// The error is that of the undisturbed play; all others are mismatches.
func Explore(ctx context.Context, s Scenario) (Outcome, error) {
	var out Outcome
	undisturbed, err := s.play(ctx, Fault{})
	if err != nil {
		return out, fmt.Errorf("play undisturbed: %w", err)
	}
	out.Writes = undisturbed.writes
	s.log("undisturbed: %d writes, %d objects", out.Writes, len(undisturbed.objects))
	for write := 1; write <= out.Writes; write += max(s.Every, 1) {
		for _, moment := range []Moment{Before, After} {
			if ctx.Err() != nil {
				return out, context.Cause(ctx)
			}
			out.add(s.compare(ctx, Fault{Write: write, Moment: moment}, undisturbed.objects))
		}
	}
	s.log("%d plays, the fault struck in %d, %d mismatches", out.Plays, out.Struck, len(out.Mismatches))
	return out, nil
}

func (o *Outcome) add(struck bool, mismatch *Mismatch) {
	o.Plays++
	if struck {
		o.Struck++
	}
	if mismatch != nil {
		o.Mismatches = append(o.Mismatches, *mismatch)
	}
}

func (s Scenario) compare(ctx context.Context, fault Fault, want []any) (struck bool, mismatch *Mismatch) {
	got, err := s.play(ctx, fault)
	if err != nil {
		return got.struck, &Mismatch{Fault: fault, Err: err}
	}
	s.log("stopped %s write %d: struck %t, %d writes after it", fault.Moment, fault.Write, got.struck, got.writesAfter)
	if diff := cmp.Diff(want, got.objects); diff != "" {
		return got.struck, &Mismatch{Fault: fault, Diff: diff}
	}
	return got.struck, nil
}

// ending is how one play ended.
type ending struct {
	objects []any
	// writes of the first process, writesAfter those of the ones after it.
	writes, writesAfter int
	struck              bool
}

// play runs the scenario once, with a process that is replaced when it stops.
func (s Scenario) play(ctx context.Context, fault Fault) (ending, error) {
	namespace, err := s.World(ctx)
	if err != nil {
		return ending{}, fmt.Errorf("make world: %w", err)
	}
	playCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var end ending
	supervised := make(chan error, 1)
	go func() {
		err := s.supervise(playCtx, fault, namespace, &end)
		if err != nil {
			cancel(err) // or the play would wait for a process that is not there
		}
		supervised <- err
	}()
	objects, playErr := s.Play(playCtx, namespace)
	cancel(nil)
	if err := errors.Join(playErr, <-supervised); err != nil {
		return end, err
	}
	end.objects, err = normalForm(objects, namespace, s.Normalize)
	return end, err
}

// supervise runs one process after the other until the play is over. Only the
// first one meets the fault.
func (s Scenario) supervise(ctx context.Context, fault Fault, namespace string, end *ending) error {
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			fault = Fault{}
		}
		l, err := s.live(ctx, fault, namespace)
		if first {
			end.writes, end.struck = int(l.writes.Load()), l.dead.Load()
		} else {
			end.writesAfter += int(l.writes.Load())
		}
		if ctx.Err() != nil || l.dead.Load() {
			continue // whatever a stopped process says about its end
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		return fmt.Errorf("run process: %w", err)
	}
	return nil
}

func (s Scenario) live(ctx context.Context, fault Fault, namespace string) (*life, error) {
	lifeCtx, stop := context.WithCancel(ctx)
	defer stop()
	l := &life{fault: fault, stop: stop}
	cfg := rest.CopyConfig(s.Config)
	cfg.QPS = -1 // a play should not wait for a client's own patience
	cfg.Wrap(l.wrap)
	err := s.Start(lifeCtx, cfg, namespace)
	return l, err
}

func (s Scenario) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}
