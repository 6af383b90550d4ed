package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
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
	// Others run beside the process, until ctx ends, and are never stopped: a node,
	// for one. May be nil.
	Others func(ctx context.Context, namespace string) error
	// Play acts in a namespace until its story is told. It does not know of faults.
	// What it returns is compared if there is no Ending.
	Play func(ctx context.Context, namespace string) ([]client.Object, error)
	// Ending returns the objects to compare, as they are. It is called after the
	// play, while the process still runs: for the first play until the objects
	// have stayed as they are for a while, and for each other one until they are
	// those of the first and stay so. May be nil.
	Ending func(ctx context.Context, namespace string) ([]client.Object, error)
	// Patience bounds the wait for the ending; zero: 30 s.
	Patience time.Duration
	// Normalize changes an object, as JSON, before it is compared; may be nil.
	Normalize func(object map[string]any)
	// Counts tells which resources, by their plural name, must be created as often
	// as in the undisturbed play; nil: all.
	Counts func(resource string) bool
	// Kinds of faults to explore; nil: Stops.
	Kinds []Kind
	// Every explores only each n-th write and event; zero or one: all of them.
	Every int
	// Quiet is how long a process without a request is taken to have done all that
	// it does for now; zero: 120 ms. What is kept from it comes then.
	Quiet time.Duration
	// Log is told of each play; may be nil.
	Log func(format string, args ...any)
}

// A Mismatch is a play that ended differently, or not at all.
type Mismatch struct {
	Fault Fault
	// Diff of the normal forms, expected to actual; empty if there is an error.
	Diff string
	// Effects that differ, expected to actual, empty if they do not.
	Effects string
	// Err of the play or the process.
	Err error
}

// String tells a reader of a test's output what happened.
func (m Mismatch) String() string {
	at := m.Fault.String()
	if m.Err != nil {
		return at + ": " + m.Err.Error()
	}
	var texts []string
	if m.Diff != "" {
		texts = append(texts, at+": objects differ (-undisturbed +disturbed)\n"+m.Diff)
	}
	if m.Effects != "" {
		texts = append(texts, at+": effects differ (-undisturbed +disturbed)\n"+m.Effects)
	}
	return strings.Join(texts, "\n")
}

// An Outcome is what an exploration found.
type Outcome struct {
	// Writes of the undisturbed process, and the events that it saw.
	Writes, Events int
	// Plays with a fault, and those in which it struck: a process that happens
	// to write less may end before it.
	Plays, Struck int
	// Mismatches, by fault.
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

var errEnded = errors.New("it ended by itself")

// Explore plays the scenario undisturbed, and then with a fault at each write
// or event. The error is that of the undisturbed play; all others are
// mismatches.
func Explore(ctx context.Context, s Scenario) (Outcome, error) {
	var out Outcome
	undisturbed, err := s.play(ctx, Fault{}, nil)
	if err != nil {
		return out, fmt.Errorf("play undisturbed: %w", err)
	}
	out.Writes, out.Events = undisturbed.writes, undisturbed.events
	s.log("undisturbed: %d writes, %d events, %d objects", out.Writes, out.Events, len(undisturbed.objects))
	kinds := s.Kinds
	if kinds == nil {
		kinds = Stops()
	}
	for _, fault := range faultsOf(kinds, out.Writes, out.Events, s.Every) {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		out.add(s.compare(ctx, fault, undisturbed))
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

func (s Scenario) compare(ctx context.Context, fault Fault, want *ending) (struck bool, mismatch *Mismatch) {
	got, err := s.play(ctx, fault, want)
	s.log("%s: struck %t, %d writes after it", fault, got.struck, got.writesAfter)
	found := Mismatch{Fault: fault, Err: err}
	if err == nil {
		found.Diff, found.Effects = cmp.Diff(want.objects, got.objects), cmp.Diff(want.effects, got.effects)
	}
	if found.Err == nil && found.Diff == "" && found.Effects == "" {
		return got.struck, nil
	}
	s.log("mismatch: %s", found)
	return got.struck, &found
}

// ending is how one play ended.
type ending struct {
	objects []any
	effects []string
	mu      sync.Mutex
	// writes and events of the first process, writesAfter those of the others.
	writes, events, writesAfter int
	struck                      bool
}

func (e *ending) add(l *life, isFirst bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !isFirst {
		e.writesAfter += int(l.writes.Load())
		return
	}
	e.writes, e.events = int(l.writes.Load()), int(l.events.Load())
	e.struck = e.struck || l.struck.Load()
}

// play runs the scenario once, with a process that is replaced when it stops.
// What it should come to is nil for the undisturbed play.
func (s Scenario) play(ctx context.Context, fault Fault, want *ending) (*ending, error) {
	end := &ending{struck: fault.Kind == Twins}
	namespace, err := s.World(ctx)
	if err != nil {
		return end, fmt.Errorf("make world: %w", err)
	}
	playCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	created := &effects{}
	var besides sync.WaitGroup
	failures := make(chan error, 3)
	beside := func(run func() error) {
		besides.Go(func() {
			err := run()
			if err != nil {
				cancel(err) // or the play would wait for somebody who is not there
			}
			failures <- err
		})
	}
	beside(func() error { return s.supervise(playCtx, fault, namespace, created, end) })
	if fault.Kind == Twins {
		beside(func() error { return s.supervise(playCtx, Fault{}, namespace, created, &ending{}) })
	}
	if s.Others != nil {
		beside(func() error { return s.accompany(playCtx, namespace) })
	}
	objects, err := s.toTheEnd(playCtx, namespace, want)
	cancel(nil)
	besides.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	end.objects, end.effects = objects, created.list(namespace, s.Counts)
	return end, err
}

// accompany runs the others. When they fail, so does the play.
func (s Scenario) accompany(ctx context.Context, namespace string) error {
	err := s.Others(ctx, namespace)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run others: %w", err)
	}
	return nil // whatever they say about their end
}

// toTheEnd tells the story and returns what the world comes to, in normal form.
func (s Scenario) toTheEnd(ctx context.Context, namespace string, want *ending) ([]any, error) {
	objects, err := s.Play(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if s.Ending == nil {
		return normalForm(objects, namespace, s.Normalize)
	}
	if want == nil {
		return s.rest(ctx, namespace, nil)
	}
	return s.rest(ctx, namespace, want.objects)
}

// supervise runs one process after the other until the play is over. Only the
// first one meets the fault.
func (s Scenario) supervise(ctx context.Context, fault Fault, namespace string, created *effects, end *ending) error {
	l := &life{fault: fault, effects: created}
	for first := true; ctx.Err() == nil; first = false {
		err := s.live(ctx, l, namespace)
		end.add(l, first)
		// A process says what it likes about its end if it was stopped.
		if ctx.Err() == nil && !l.dead.Load() {
			if err == nil {
				err = errEnded
			}
			return fmt.Errorf("run process: %w", err)
		}
		l = &life{effects: created, past: l.before}
	}
	return nil
}

func (s Scenario) live(ctx context.Context, l *life, namespace string) error {
	lifeCtx, stop := context.WithCancel(ctx)
	defer stop()
	l.stop = stop
	l.still.quiet = s.Quiet
	cfg := rest.CopyConfig(s.Config)
	cfg.QPS = -1                              // a play should not wait for a client's own patience
	cfg.ContentType = runtime.ContentTypeJSON // what passes is read
	cfg.Wrap(l.wrap)
	return s.Start(lifeCtx, cfg, namespace)
}

func (s Scenario) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}
