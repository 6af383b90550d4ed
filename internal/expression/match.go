package expression

import (
	"regexp"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/apitomy/axiom-operator/internal/pattern"
)

const (
	// compileCost is the price of compiling one state of a regular expression.
	compileCost = 4
	// statesPerUnit is how many states one unit tries on a byte of text.
	statesPerUnit = 40
)

// A matcher is a compiled regular expression and a bound of its states.
type matcher struct {
	*regexp.Regexp
	states int
}

// plannedMatches compiles a literal pattern once. If that fails it fails again in each evaluation that gets there, for
// an arm that is not taken does not fail.
func plannedMatches(library operation, args []interpreter.InterpretableV2) operation {
	compile := compileMatcher
	if literal, ok := literalText(args[1]); ok {
		planned, err := compileMatcher(func(int) {}, literal)
		compile = func(func(int), string) (matcher, error) { return planned, err }
	}
	return func(m *meter, args []ref.Val) ref.Val {
		text, isText := stringAt(args, 0)
		source, isPattern := stringAt(args, 1)
		if !isText || !isPattern {
			return library(m, args)
		}
		read(m, args)
		matcher, err := compile(m.charge, source)
		if err != nil {
			return types.WrapErr(err)
		}
		m.charge((len(text) + 1) * matcher.states / statesPerUnit)
		return types.Bool(matcher.MatchString(text))
	}
}

func literalText(node interpreter.InterpretableV2) (string, bool) {
	constant, ok := node.(interpreter.InterpretableConst)
	if !ok {
		return "", false
	}
	text, ok := constant.Value().(types.String)
	return string(text), ok
}

func compileMatcher(charge func(units int), source string) (matcher, error) {
	charge(min(len(source), pattern.MaxLength))
	states, err := pattern.Measure(source)
	if err != nil {
		return matcher{}, err
	}
	charge(states * compileCost)
	compiled, err := pattern.Compile(source)
	return matcher{Regexp: compiled, states: states}, err
}
