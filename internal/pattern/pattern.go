// Package pattern compiles regular expressions that users write, and refuses those that would be large when compiled.
//
// Matching takes time by the length of the text times the states of the expression, and a few characters can ask for a
// thousand states: a{1000}. The states are therefore counted on the parsed expression, before its repetitions are
// spelt out.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// MaxLength bounds a regular expression, in bytes.
	MaxLength = 4 << 10
	// MaxStates bounds the states it may have when compiled.
	MaxStates = 2_000
)

var (
	// ErrLength reports a regular expression over MaxLength.
	ErrLength = fmt.Errorf("the regular expression is over %d KiB", MaxLength>>10)
	// ErrStates reports one with more than MaxStates.
	ErrStates = fmt.Errorf("the regular expression has over %d states", MaxStates)
	// ErrSyntax reports one that is malformed.
	ErrSyntax = errors.New("the regular expression is malformed")
)

// Measure bounds the states of a regular expression in the syntax of RE2. The error is, or wraps, one of this package.
func Measure(source string) (states int, err error) {
	if len(source) > MaxLength {
		return 0, ErrLength
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return 0, malformed(err)
	}
	if states = statesOf(tree); states > MaxStates {
		return 0, ErrStates
	}
	return states, nil
}

// Compile compiles a regular expression that is not too large; see [Measure] for its errors.
func Compile(source string) (*regexp.Regexp, error) {
	if _, err := Measure(source); err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, malformed(err)
	}
	return compiled, nil
}

// malformed keeps what is wrong and leaves out where: the library repeats the expression.
func malformed(err error) error {
	if detail := (*syntax.Error)(nil); errors.As(err, &detail) {
		return fmt.Errorf("%w: %s", ErrSyntax, detail.Code)
	}
	return ErrSyntax
}

func statesOf(tree *syntax.Regexp) int {
	inner := 0
	for _, sub := range tree.Sub {
		if inner += statesOf(sub); inner > MaxStates {
			return inner
		}
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return 1 + len(tree.Rune)
	case syntax.OpRepeat:
		times := tree.Max
		if times < 0 {
			times = tree.Min + 1
		}
		return 1 + (inner+1)*times
	default:
		return 2 + inner
	}
}
