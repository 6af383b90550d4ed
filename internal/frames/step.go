package frames

import (
	"context"
	"fmt"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// Start begins a run that was created at a time: its workflow starts with the inputs, held against what the root declares
// and with its defaults. The error is that of the inputs, one of engine.StartRun or that of a context that ended; whatever
// happens in the run itself is told by the step.
func Start(ctx context.Context, def Definition, inputs map[string]any, created, now time.Time) (Step, error) {
	s := begin(ctx, def, State{}, now)
	given, err := def.Root.Start(inputs)
	if err != nil {
		return s.refuse(""), fmt.Errorf("check inputs: %w", err)
	}
	step, err := engine.StartRun(ctx, def.Root.Engine(), given, created, now)
	if err != nil {
		return s.refuse(step.Reason), err
	}
	s.absorb(place{component: def.Root}, step)
	if s.interrupted {
		return s.refuse(engine.ReasonInterrupted), fmt.Errorf("start run: %w", context.Cause(ctx))
	}
	return s.end(), nil
}

// Complete delivers the result of an action or a human task; by is the user, if it was one.
//
//nolint:revive // a step gets all that it depends on as arguments
func Complete(ctx context.Context, def Definition, state State, at engine.Address, out engine.Values, by string, now time.Time) Step {
	return begin(ctx, def, state, now).deliver(at, func(d *engine.Definition, in engine.Instance, at engine.Address) engine.Step {
		return engine.Complete(ctx, d, in, at, out, by, now)
	})
}

// Fail delivers the failure of an action or a human task. Where it happened is what the address says.
//
//nolint:revive // a step gets all that it depends on as arguments
func Fail(ctx context.Context, def Definition, state State, at engine.Address, f engine.Failure, now time.Time) Step {
	f.Node, f.Activation = "", ""
	return begin(ctx, def, state, now).deliver(at, func(d *engine.Definition, in engine.Instance, at engine.Address) engine.Step {
		return engine.Fail(ctx, d, in, at, f, now)
	})
}

// Deliver offers an event to a receive-event activation, which takes it only if it is meant.
//
//nolint:revive // a step gets all that it depends on as arguments
func Deliver(ctx context.Context, def Definition, state State, at engine.Address, ev engine.Event, now time.Time) Step {
	return begin(ctx, def, state, now).deliver(at, func(d *engine.Definition, in engine.Instance, at engine.Address) engine.Step {
		return engine.Deliver(ctx, d, in, at, ev, now)
	})
}

// TimeOut tells an activation that its time is up.
func TimeOut(ctx context.Context, def Definition, state State, at engine.Address, now time.Time) Step {
	return begin(ctx, def, state, now).deliver(at, func(d *engine.Definition, in engine.Instance, at engine.Address) engine.Step {
		return engine.TimeOut(ctx, d, in, at, now)
	})
}

// Cancel ends the run at somebody's wish. The reason, if there is one, stands in the entries of what was open. What is
// open within a call closes before the call. With an empty definition it does the same, but the entries have no types.
func Cancel(def Definition, state State, reason string, now time.Time) Step {
	return copyOf(def, state, now).stop(engine.Cancel(state.Root, reason, now))
}

// Abort fails the run as a whole, and closes what is open like Cancel.
func Abort(def Definition, state State, f engine.Failure, now time.Time) Step {
	return copyOf(def, state, now).stop(engine.Abort(state.Root, f, now))
}

// Parked lists the open activations of all frames but those that call: first those of the root, then those of each frame
// in the order the frames were opened.
func Parked(def Definition, state State) []ParkedActivation {
	parked := parkedIn(place{component: def.Root, instance: state.Root}, "")
	for _, f := range state.Frames {
		if component := def.Components[f.Component]; component != nil {
			parked = append(parked, parkedIn(place{path: f.Path, component: component, instance: f.Instance}, f.Component)...)
		}
	}
	return parked
}

func parkedIn(p place, component string) []ParkedActivation {
	var parked []ParkedActivation
	for _, a := range engine.Parked(p.component.Engine(), p.instance) {
		if a.Kind == workflow.KindComponent {
			continue
		}
		a.Activation = join(p.path, a.Activation)
		parked = append(parked, ParkedActivation{ParkedActivation: a, Frame: p.path, Component: component})
	}
	return parked
}

// Context is what the expressions of an activation see of its frame: the context, with every declared key. It is nil if
// there is no such frame.
func Context(def Definition, state State, activation string) map[string]any {
	path, _ := split(activation)
	p, ok := copyOf(def, state, time.Time{}).place(path)
	if !ok {
		return nil
	}
	return p.variables()
}
