package engine

import (
	"time"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A Status is how far a run has come.
type Status string

// The statuses. All but StatusWaiting are final.
const (
	// StatusWaiting: something is parked.
	StatusWaiting Status = "waiting"
	// StatusCompleted: an end was reached.
	StatusCompleted Status = "completed"
	// StatusFailed: a failure ended the run.
	StatusFailed Status = "failed"
	// StatusCancelled: somebody ended the run.
	StatusCancelled Status = "cancelled"
)

// IsTerminal tells whether nothing can happen any more.
func (s Status) IsTerminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// An Instance is the state of a run between two steps. It goes through JSON without loss.
type Instance struct {
	Status Status `json:"status"`
	// Step counts the steps that were applied.
	Step int `json:"step"`
	// StartedOn is the creation of the run, from which events are looked back for.
	StartedOn time.Time `json:"startedOn,omitzero"`
	// Visits counts the activations of each node.
	Visits map[string]int `json:"visits"`
	// ActiveBranches are the open activations in the order they were entered.
	ActiveBranches []ActiveBranch `json:"activeBranches"`
	// JoinArrivals holds by join the ids of the edges that were followed into it, sorted.
	JoinArrivals map[string][]string `json:"joinArrivals"`
	// Consumed holds by receive-event node the events it will not take again.
	Consumed map[string]Consumed `json:"consumed,omitempty"`
	// Context is what expressions see.
	Context Values `json:"context"`
	// ContextRefs names the keys of the context whose values are stored elsewhere. Their values must be put back into
	// Context before a step; a step only drops the references of keys it writes, and counts their bytes.
	ContextRefs map[string]ContextRef `json:"contextRefs,omitempty"`
	// Failure is what ended a failed run.
	Failure *Failure `json:"failure,omitempty"`
}

// An ActiveBranch is an open activation, with what it needs to be served and completed.
type ActiveBranch struct {
	// Branch is root, <parent>.<i> behind a fork, or <join>#join behind a join.
	Branch     string `json:"branch"`
	Node       string `json:"node"`
	Activation string `json:"activation"`
	// Edge is the id of the edge by which the node was entered, Condition the one it had.
	Edge      string    `json:"edge,omitempty"`
	Condition string    `json:"condition,omitempty"`
	EnteredOn time.Time `json:"enteredOn"`
	// Input is resolved when the node is entered, once for all attempts. Absent means empty.
	Input Values `json:"input,omitempty"`
	// Title is that of a human task.
	Title string `json:"title,omitempty"`
	// Attempt counts the attempts of an action, from 1.
	Attempt int `json:"attempt,omitempty"`
	// NotBefore is when the attempt may begin, if it is not the first.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Deadline is when the time of a wait, a receive-event node or an attempt is up. A human task keeps its own time.
	Deadline time.Time `json:"deadline,omitzero"`
	// SubscriptionKey is what an event must be about.
	SubscriptionKey string `json:"subscriptionKey,omitempty"`
	// Since is the earliest arrival of an event, cut to seconds.
	Since time.Time `json:"since,omitzero"`
	// LastError is why the last attempt failed, or why an event could not be matched.
	LastError *Failure `json:"lastError,omitempty"`
	// Child is the object that serves the activation. The caller keeps it; a new attempt begins without.
	Child *Child `json:"child,omitempty"`
}

// A Child is an object made for an activation. Its UID is known once it is there.
type Child struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// A ContextRef says where the value of a context key is stored.
type ContextRef struct {
	Digest    string `json:"digest"`
	ConfigMap string `json:"configMap"`
	// Bytes is the length of the value as compact JSON.
	Bytes int `json:"bytes"`
}

// A Phase is where in the life of an activation a failure happened.
type Phase = string

// The phases of failures.
const (
	// PhaseInputResolution: inputs could not be evaluated or break a contract.
	PhaseInputResolution Phase = "INPUT_RESOLUTION"
	// PhaseExecutorLookup: there is nothing that could run the action.
	PhaseExecutorLookup Phase = "EXECUTOR_LOOKUP"
	// PhaseExecution: the work itself failed.
	PhaseExecution Phase = "EXECUTION"
	// PhaseResultValidation: the result cannot be read.
	PhaseResultValidation Phase = "RESULT_VALIDATION"
	// PhaseOutputValidation: the result lacks what is declared.
	PhaseOutputValidation Phase = "OUTPUT_VALIDATION"
	// PhaseOutputMapping: the result cannot enter the context.
	PhaseOutputMapping Phase = "OUTPUT_MAPPING"
	// PhaseEdgeCondition: a condition has no value.
	PhaseEdgeCondition Phase = "EDGE_CONDITION"
	// PhaseEdgeSelection: there is no way on.
	PhaseEdgeSelection Phase = "EDGE_SELECTION"
	// PhaseErrorHandler: the failure could not be handed to an error edge.
	PhaseErrorHandler Phase = "ERROR_HANDLER"
)

// Codes of the failures that the engine itself finds.
const (
	CodeExpressionError = "EXPRESSION_ERROR"
	CodeAttemptTimeout  = "ATTEMPT_TIMEOUT"
	CodeTaskExpired     = "TASK_EXPIRED"
	CodeInvalidResult   = "INVALID_RESULT"
	CodeMissingOutput   = "MISSING_OUTPUT"
	CodeContextTooLarge = "CONTEXT_TOO_LARGE"
	CodeNoMatchingEdge  = "NO_MATCHING_EDGE"
	CodeMoveLimit       = "MOVE_LIMIT"
	CodeDeadlock        = "DEADLOCK"
)

// A Failure says what went wrong and where. Long texts are cut.
type Failure struct {
	Phase      Phase  `json:"phase,omitempty"`
	Code       string `json:"code,omitempty"`
	Node       string `json:"node,omitempty"`
	Activation string `json:"activation,omitempty"`
	Edge       string `json:"edge,omitempty"`
	Expression string `json:"expression,omitempty"`
	// Field is the input, output or match that failed.
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
}

// An Outcome is how an activation closed.
type Outcome string

// The outcomes of activations.
const (
	OutcomeCompleted Outcome = "Completed"
	OutcomeTimedOut  Outcome = "TimedOut"
	OutcomeFailed    Outcome = "Failed"
	OutcomeCancelled Outcome = "Cancelled"
)

// An Entry is the history of one activation, written when it closes.
type Entry struct {
	// Seq counts the entries of a run from 1 without a gap.
	Seq        int    `json:"seq"`
	Activation string `json:"activation"`
	Node       string `json:"node"`
	// Name and Type are those of the node. Abort and Cancel do not know them, see Definition.Describe.
	Name        string        `json:"name,omitempty"`
	Type        workflow.Kind `json:"type,omitempty"`
	Branch      string        `json:"branch"`
	Edge        string        `json:"edge,omitempty"`
	Condition   string        `json:"condition,omitempty"`
	EnteredOn   time.Time     `json:"enteredOn"`
	CompletedOn time.Time     `json:"completedOn"`
	Outcome     Outcome       `json:"outcome"`
	Title       string        `json:"title,omitempty"`
	// Input is what the node was given; of a start the declared inputs.
	Input Values `json:"input,omitempty"`
	// Output is what the node left in the context.
	Output Values `json:"output,omitempty"`
	// Attempts is how often an action was attempted.
	Attempts int      `json:"attempts,omitempty"`
	Error    *Failure `json:"error,omitempty"`
	// By is the user or the event that completed the node.
	By string `json:"by,omitempty"`
}

// An Address says for whom a delivery is meant.
type Address struct {
	Activation string
	// Attempt is that of an action, and ignored for all others.
	Attempt int
}

// An Event is something that happened outside.
type Event struct {
	// Map is what expressions see. Its members type, eventSourceId and id are strings.
	Map Values
	// Arrived is when the event was stored.
	Arrived time.Time
}

// A Reason says why a delivery changed nothing.
type Reason = string

// The reasons, in the order they are looked for.
const (
	// ReasonTerminal: the run is over.
	ReasonTerminal Reason = "Terminal"
	// ReasonUnknownActivation: the run never had the activation.
	ReasonUnknownActivation Reason = "UnknownActivation"
	// ReasonStaleActivation: the activation has closed.
	ReasonStaleActivation Reason = "StaleActivation"
	// ReasonStaleAttempt: the action is not at this attempt.
	ReasonStaleAttempt Reason = "StaleAttempt"
	// ReasonWrongKind: nothing of this sort can happen to the node.
	ReasonWrongKind Reason = "WrongKind"
	// ReasonNoTimeout: the time of the node is not limited.
	ReasonNoTimeout Reason = "NoTimeout"
	// ReasonNotDue: the time is not up.
	ReasonNotDue Reason = "NotDue"
	// ReasonConsumed: the node has had the event.
	ReasonConsumed Reason = "Consumed"
	// ReasonMatchError: it cannot be told whether the event is meant; only LastError of the activation changes.
	ReasonMatchError Reason = "MatchError"
	// ReasonNotMatched: the event is not meant.
	ReasonNotMatched Reason = "NotMatched"
	// ReasonInterrupted: the context ended first. Only this one is worth another try.
	ReasonInterrupted Reason = "Interrupted"
)

// A Step is what came of a call.
type Step struct {
	// Instance is the one to go on with, also if the step was not applied.
	Instance Instance
	// Applied tells whether anything happened; if not, Reason says why.
	Applied bool
	Reason  Reason
	// Closed are the history entries written, Opened the activations that were parked and still are, in order.
	Closed []Entry
	Opened []string
}

// A ParkedActivation is an open activation together with its node.
type ParkedActivation struct {
	ActiveBranch
	Kind workflow.Kind `json:"kind"`
	Name string        `json:"name,omitempty"`
	// Config is that of the definition and must not be changed.
	Config map[string]any `json:"config,omitempty"`
}
