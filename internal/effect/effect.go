// Package effect is what effects outside a run have in common: what is observed of their completion, and what follows
// from it. An effect is performed only for a completion that was proven missing, so a crash between performing and
// recording ends in adopting what is there.
//
// The package decides. It knows nothing of Kubernetes, of clocks or of what an effect is about.
package effect

import (
	"context"
	"time"
)

// A Verdict is what an observation says about the completion of an effect.
type Verdict string

// The verdicts.
const (
	// Absent: the completion is proven missing, so it may be performed once.
	Absent Verdict = "absent"
	// Compatible: the completion is there.
	Compatible Verdict = "compatible"
	// Conflict: something else is there.
	Conflict Verdict = "conflict"
	// Ambiguous: more than one thing could be it.
	Ambiguous Verdict = "ambiguous"
	// Unavailable: it was not observed completely. This is never absence.
	Unavailable Verdict = "unavailable"
)

// A Reason says why an observation is not complete.
type Reason string

// The reasons.
const (
	ReasonNetwork        Reason = "network"
	ReasonAuthentication Reason = "authentication"
	ReasonRateLimited    Reason = "rate-limited"
	ReasonServer         Reason = "server"
	ReasonRejected       Reason = "rejected"
	ReasonIncomplete     Reason = "incomplete"
	ReasonUnreadable     Reason = "unreadable"
	ReasonLag            Reason = "lag"
	ReasonMissingObjects Reason = "missing-objects"
	ReasonUncertain      Reason = "uncertain"
)

// An Observation is what one look at the outside gave. PreState, Result and Observed are JSON trees without locators,
// credentials or text of the server's messages.
type Observation struct {
	Verdict Verdict
	// Reason of an observation that is unavailable.
	Reason Reason
	// RetryAfter is how long the other side asked to be left alone; zero: it said nothing.
	RetryAfter time.Duration
	// PreState is what a change starts from, of an absent completion.
	PreState map[string]any
	// Result is what the action returns, of a compatible one.
	Result map[string]any
	// Observed are the candidates that were seen, for the receipt.
	Observed []any
	// Message tells people more, for a conflict or an ambiguity. It holds no stored values.
	Message string
}

// Missed is an observation that was not complete.
func Missed(reason Reason, retryAfter time.Duration) Observation {
	return Observation{Verdict: Unavailable, Reason: reason, RetryAfter: retryAfter}
}

// An Effect is one thing to bring about outside, fixed by its intent.
type Effect interface {
	// Observe looks whether it is there. The error is a *Failure that no repetition mends, or that of a context that
	// ended; whatever else goes wrong is an observation.
	Observe(ctx context.Context) (Observation, error)
	// Perform sends the one change for an absence that was observed. Its error says only that the answer fell short of
	// clear success: what became of it is settled by observing again.
	Perform(ctx context.Context, absent Observation) error
	// IsCreate tells whether performing makes a new object, which a list may show late.
	IsCreate(absent Observation) bool
}

// A Failure ends an action for good.
type Failure struct { //nolint:errname // the word for it everywhere
	// Code of the failure, such as CONFLICT.
	Code string
	// Message without stored values.
	Message string
}

// Error has code and message.
func (f *Failure) Error() string {
	if f.Message == "" {
		return f.Code
	}
	return f.Code + ": " + f.Message
}

// Codes of failures that all effects share.
const (
	CodeConflict           = "CONFLICT"
	CodeAmbiguous          = "AMBIGUOUS"
	CodeUnavailable        = "UNAVAILABLE"
	CodeInputContract      = "INPUT_CONTRACT"
	CodeSecretDetected     = "SECRET_DETECTED"
	CodeResultTooLarge     = "RESULT_TOO_LARGE"
	CodeRemoteNotAllowed   = "REMOTE_NOT_ALLOWED"
	CodeCredentialsMissing = "CREDENTIALS_MISSING"
	CodeCredentialsRefused = "CREDENTIALS_REFUSED"
)
