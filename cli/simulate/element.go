package simulate

import (
	"errors"
	"time"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A Result says what came of a step.
type Result string

const (
	// ResultOK says that the step did what it says.
	ResultOK Result = "ok"
	// ResultIgnored says that the delivery does not apply, and that nothing changed.
	ResultIgnored Result = "ignored"
	// ResultError says that the step cannot be made.
	ResultError Result = "error"
)

// An Element tells of one step and of the run behind it.
type Element struct {
	// Step counts the steps of the script from 1.
	Step   int    `json:"step"`
	Result Result `json:"result"`
	// Reason is the engine's for a delivery it ignored.
	Reason engine.Reason `json:"reason,omitempty"`
	Error  *Error        `json:"error,omitempty"`
	// Opened are the activations that the step opened and Closed the history it
	// wrote, those by stored events included.
	Opened []string       `json:"opened"`
	Closed []engine.Entry `json:"closed"`
	// Parked are the activations that are open now.
	Parked []Parked `json:"parked"`
	// Instance is the run as it is now; an empty object before it started.
	Instance any `json:"instance"`

	// Verb and About are the step's, for people: About is the activation or the
	// type of the event. Now is the time it is.
	Verb  Verb      `json:"-"`
	About string    `json:"-"`
	Now   time.Time `json:"-"`
	// Status is that of the run. The step that Ended it has Outcome and Failure.
	Status  engine.Status   `json:"-"`
	Ended   bool            `json:"-"`
	Outcome string          `json:"-"`
	Failure *engine.Failure `json:"-"`
}

// Codes of errors.
const (
	// CodeInvalidDefinition: the workflow has errors.
	CodeInvalidDefinition = "InvalidDefinition"
	// CodeInvalidInputs: the run cannot start with its inputs.
	CodeInvalidInputs = "InvalidInputs"
	// CodeNotStarted: there is no run yet.
	CodeNotStarted = "NotStarted"
	// CodeAlreadyStarted: there is a run already.
	CodeAlreadyStarted = "AlreadyStarted"
	// CodeClockTurnedBack: the time is before the one it is.
	CodeClockTurnedBack = "ClockTurnedBack"
)

// An Error says why a step cannot be made.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Name is the input at fault, if it is one, and Rule the one it breaks.
	Name string `json:"name,omitempty"`
	Rule string `json:"rule,omitempty"`
	// Problems are those of the workflow.
	Problems []workflow.Problem `json:"problems,omitempty"`
}

// refusal tells of a refused start.
func refusal(err error) *Error {
	if problems, ok := errors.AsType[*engine.ProblemsError](err); ok {
		return &Error{Code: CodeInvalidDefinition, Message: err.Error(), Problems: problems.Problems}
	}
	refused := &Error{Code: CodeInvalidInputs, Message: err.Error()}
	if input, ok := errors.AsType[*engine.InputError](err); ok {
		refused.Name, refused.Rule = input.Name, input.Rule
	}
	return refused
}

// Parked is an open activation.
type Parked struct {
	Activation string        `json:"activation"`
	Node       string        `json:"node"`
	Kind       workflow.Kind `json:"kind"`
	Branch     string        `json:"branch"`
	// Attempt is that of an action.
	Attempt   int           `json:"attempt,omitempty"`
	Deadline  time.Time     `json:"deadline,omitzero"`
	NotBefore time.Time     `json:"notBefore,omitzero"`
	Input     engine.Values `json:"input,omitempty"`
	Title     string        `json:"title,omitempty"`

	// Name is that of the node, for people, and so is LastError.
	Name      string          `json:"-"`
	LastError *engine.Failure `json:"-"`
}

func parkedOf(d *engine.Definition, in engine.Instance) []Parked {
	parked := []Parked{}
	for _, p := range engine.Parked(d, in) {
		parked = append(parked, Parked{
			Activation: p.Activation, Node: p.Node, Kind: p.Kind, Branch: p.Branch,
			Attempt: p.Attempt, Deadline: p.Deadline, NotBefore: p.NotBefore,
			Input: p.Input, Title: p.Title, Name: p.Name, LastError: p.LastError,
		})
	}
	return parked
}
