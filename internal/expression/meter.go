package expression

import (
	"context"
	"fmt"

	"github.com/google/cel-go/interpreter"
)

const (
	// costLimit bounds the units of one evaluation.
	costLimit = 1_000_000
	// unitsPerCheck is how many units an evaluation may spend before it looks at its context again. An iteration costs
	// at least one, so 100 iterations never pass unseen.
	unitsPerCheck = 100
	// bytesPerUnit is how much text one unit reads or builds.
	bytesPerUnit = 10
)

// meterVariable is where the nodes of a plan find the meter of the evaluation. No expression can spell it.
const meterVariable = "@meter"

// A meter counts what one evaluation costs and ends it when it costs too much or when its context is done.
type meter struct {
	ctx     context.Context
	spent   uint64
	checked uint64 // value of spent when the context was last looked at
}

// meterOf finds the meter that [variables] carry.
func meterOf(vars interpreter.Activation) *meter {
	found, _ := vars.ResolveName(meterVariable)
	return found.(*meter)
}

// charge spends units before the work is done. Ending an evaluation is a panic of the type that the interpreter
// recovers: an error value could be outvoted by the other operand of || or &&.
func (m *meter) charge(units int) {
	if err := m.spend(units); err != nil {
		panic(*err)
	}
}

// spend is charge for callers that the interpreter does not call.
func (m *meter) spend(units int) *interpreter.EvalCancelledError {
	m.spent += uint64(units)
	if m.spent > costLimit {
		return &interpreter.EvalCancelledError{
			Cause:   interpreter.CostLimitExceeded,
			Message: fmt.Sprintf("it costs more than %d", costLimit),
		}
	}
	if m.spent-m.checked < unitsPerCheck {
		return nil
	}
	m.checked = m.spent
	if m.ctx.Err() != nil {
		return &interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: "interrupted"}
	}
	return nil
}

// chargeText spends what it costs to read or build so many bytes.
func (m *meter) chargeText(bytes int) {
	m.charge((bytes + bytesPerUnit - 1) / bytesPerUnit)
}
