package expression

import (
	"errors"
	_ "time/tzdata" // the zones are part of the language, whatever machine evaluates it

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxText bounds each text and byte sequence an expression may build, in bytes.
	maxText = 1 << 20
	// maxElements bounds each list an expression may build.
	maxElements = 10_000
)

var (
	errText     = errors.New("the text or bytes would be over 1 MiB")
	errElements = errors.New("the list would have over 10,000 elements")
)

// An override makes the operation of a function that is not priced like an ordinary one. It gets what the library does
// and the nodes of the arguments.
type override func(library operation, args []interpreter.InterpretableV2) operation

// overrides is the size guard and the price list, by function name. Each function here either builds more than it is
// given, or works longer than it takes to read its arguments once, or is given lists and reads them whole.
var overrides = map[string]override{
	operators.Add:       guarded(guardAdd),
	operators.Equals:    replaced(opEqual),
	operators.NotEquals: replaced(opNotEqual),
	operators.In:        redone(opIn),

	"base64.encode": guarded(guardBase64Encode),
	"format":        guardedFormat,
	"indexOf":       guarded(priceSearch),
	"join":          guarded(guardJoin),
	"json.encode":   replaced(opJSONEncode),
	"lastIndexOf":   guarded(priceSearch),
	"matches":       plannedMatches,
	"replace":       guarded(guardReplace),
	"split":         guarded(guardSplit),
	"strings.quote": guarded(guardQuote),

	"@sortByAssociatedKeys": guarded(guardSort),
	"distinct":              redone(opDistinct),
	"flatten":               guarded(guardFlatten),
	"lists.range":           guarded(guardRange),
	"math.@max":             guarded(priceWhole),
	"math.@min":             guarded(priceWhole),
	"reverse":               guarded(guardWhole),
	"sets.contains":         redone(opSetsContains),
	"sets.equivalent":       redone(opSetsEquivalent),
	"sets.intersects":       redone(opSetsIntersects),
	"slice":                 guarded(guardSlice),
	"sort":                  guarded(guardSort),

	"getDate":         guarded(guardZone),
	"getDayOfMonth":   guarded(guardZone),
	"getDayOfWeek":    guarded(guardZone),
	"getDayOfYear":    guarded(guardZone),
	"getFullYear":     guarded(guardZone),
	"getHours":        guarded(guardZone),
	"getMilliseconds": guarded(guardZone),
	"getMinutes":      guarded(guardZone),
	"getMonth":        guarded(guardZone),
	"getSeconds":      guarded(guardZone),
}

// read is the price of all functions: one, and reading the text among the arguments.
func read(m *meter, args []ref.Val) {
	m.charge(stepCost)
	m.chargeText(textOf(args))
}

// ordinary is for functions that cost nothing else.
func ordinary(library operation) operation {
	return func(m *meter, args []ref.Val) ref.Val {
		read(m, args)
		return library(m, args)
	}
}

// guarded puts a guard in front of what the library does. The guard charges what the call costs besides reading; its
// error is the result of the call. For arguments of types it does not expect it does nothing, so that the library can
// say what is wrong with them.
func guarded(guard func(m *meter, args []ref.Val) error) override {
	return func(library operation, _ []interpreter.InterpretableV2) operation {
		return func(m *meter, args []ref.Val) ref.Val {
			read(m, args) // first: a refusal is work as well, and a macro may go on after it
			if err := guard(m, args); err != nil {
				return types.WrapErr(err)
			}
			return library(m, args)
		}
	}
}

// replaced takes the place of what the library does.
func replaced(op operation) override {
	return func(operation, []interpreter.InterpretableV2) operation { return op }
}

// redone takes the place of what the library does if op can handle the arguments, which it tells by its second result.
func redone(op func(m *meter, args []ref.Val) (ref.Val, bool)) override {
	return func(library operation, _ []interpreter.InterpretableV2) operation {
		ordinary := ordinary(library)
		return func(m *meter, args []ref.Val) ref.Val {
			if result, ok := op(m, args); ok {
				return result
			}
			return ordinary(m, args)
		}
	}
}

// zoneCost is the price of finding a time zone by its name, which is looked up each time.
const zoneCost = 200

// guardZone refuses the zone of the machine, which would make the value depend on where it is evaluated.
func guardZone(m *meter, args []ref.Val) error {
	zone, ok := stringAt(args, 1)
	if !ok {
		return nil
	}
	if zone == "Local" {
		return errors.New("unknown time zone Local")
	}
	m.charge(zoneCost)
	return nil
}

// textOf is the number of bytes in the texts among the values.
func textOf(values []ref.Val) int {
	total := 0
	for _, value := range values {
		total += textLength(value)
	}
	return total
}

// textLength is the number of bytes of a text or a byte sequence, and 0 of anything else.
func textLength(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// listAt is the list at an index of the arguments, if there is one.
func listAt(args []ref.Val, i int) (traits.Lister, bool) {
	if i >= len(args) {
		return nil, false
	}
	list, ok := args[i].(traits.Lister)
	return list, ok
}

// stringAt is the string at an index of the arguments, if there is one.
func stringAt(args []ref.Val, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	s, ok := args[i].(types.String)
	return string(s), ok
}

// intAt is the int at an index of the arguments, or absent without one.
func intAt(args []ref.Val, i int, absent int64) int64 {
	if i >= len(args) {
		return absent
	}
	if n, ok := args[i].(types.Int); ok {
		return int64(n)
	}
	return absent
}

func sizeOf(v traits.Sizer) int {
	return int(v.Size().(types.Int))
}
