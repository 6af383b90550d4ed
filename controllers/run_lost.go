package controllers

import (
	"errors"
	"time"
)

// lostValueRetry is when a run looks again for a value that it lost. Values have
// many owners, so nobody tells a run that one is back.
const lostValueRetry = time.Minute

// lostValueError says that a value which is kept outside of a status is gone or
// is not what was stored. A run cannot go on without it, but can be ended.
type lostValueError struct {
	digest string
	cause  error
}

func (e *lostValueError) Error() string { return "value " + e.digest + " is lost: " + e.cause.Error() }

func (e *lostValueError) Unwrap() error { return e.cause }

// isValueLost tells whether a value is lost, and not just out of reach.
func isValueLost(err error) bool {
	_, isLost := errors.AsType[*lostValueError](err)
	return isLost
}

// wantsInputs tells whether a child is due whose input is kept outside.
func (s *runState) wantsInputs() bool {
	for _, activation := range dueChildren(s.run, s) {
		if branch := runOpenBranch(s.run, activation); branch != nil && branch.InputRef != nil {
			return true
		}
	}
	return false
}
