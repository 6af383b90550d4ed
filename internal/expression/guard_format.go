package expression

import (
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxPrecision is what the library allows behind the point.
	maxPrecision = 100
	// longestScalar bounds the text of a value that is neither text nor list nor map nor double: a timestamp, a
	// duration or a type name.
	longestScalar = 64
)

// guardedFormat charges for the result when it is there, because the guard only bounds its length from above.
func guardedFormat(library operation, _ []interpreter.InterpretableV2) operation {
	return func(m *meter, args []ref.Val) ref.Val {
		m.charge(stepCost)
		if err := guardFormat(m, args); err != nil {
			return types.WrapErr(err)
		}
		result := library(m, args)
		m.chargeText(textLength(result))
		return result
	}
}

func guardFormat(m *meter, args []ref.Val) error {
	format, isText := stringAt(args, 0)
	values, isList := listAt(args, 1)
	if !isText || !isList {
		return nil
	}
	m.chargeText(len(format))
	clauses, literal := clausesOf(format)
	b := bound{meter: m, left: maxText - literal}
	for i, c := range clauses[:min(len(clauses), sizeOf(values))] {
		if b.clause(c, values.Get(types.Int(i))); b.left < 0 {
			return errText
		}
	}
	return nil
}

// A clause is a verb such as d or x, and the digits it asks for behind the point.
type clause struct {
	verb      byte
	precision int
}

// clausesOf finds the clauses as far as they are well formed, and the length of the text around them. The library
// refuses what is not well formed.
func clausesOf(format string) (clauses []clause, literal int) {
	for {
		before, rest, found := strings.Cut(format, "%")
		literal += len(before)
		if !found {
			return clauses, literal
		}
		if format, found = strings.CutPrefix(rest, "%"); found {
			literal++
			continue
		}
		c, after, ok := readClause(rest)
		if !ok {
			return clauses, literal
		}
		clauses = append(clauses, c)
		format = after
	}
}

// readClause reads what follows a percent sign.
func readClause(text string) (c clause, rest string, ok bool) {
	c.precision = 6
	if after, found := strings.CutPrefix(text, "."); found {
		text = strings.TrimLeft(after, "0123456789")
		c.precision = maxPrecision
	}
	if text == "" {
		return c, "", false
	}
	c.verb = text[0]
	return c, text[1:], true
}

// A bound subtracts the greatest lengths that values can have as text from what is left, and stops below zero.
type bound struct {
	meter *meter
	left  int
}

func (b *bound) clause(c clause, value ref.Val) {
	switch c.verb {
	case 'x', 'X':
		b.left -= max(2*textLength(value), longestScalar)
	case 'b', 'o':
		b.left -= longestScalar + 1
	case 'f', 'e':
		b.left -= fixedLength(value, c.precision)
	default:
		b.text(value)
	}
}

// text bounds the text of a value as the verb s writes it.
func (b *bound) text(value ref.Val) {
	b.meter.charge(stepCost)
	switch v := value.(type) {
	case types.String, types.Bytes:
		b.left -= textLength(value)
	case types.Double:
		b.left -= doubleLength(float64(v), -1)
	case traits.Lister:
		b.left -= len("[]")
		for it := v.Iterator(); it.HasNext() == types.True && b.left >= 0; b.left -= len(", ") {
			b.text(it.Next())
		}
	case traits.Mapper:
		b.meter.charge(keyCost * sizeOf(v))
		b.left -= len("{}")
		for it := v.Iterator(); it.HasNext() == types.True && b.left >= 0; b.left -= len(": , ") {
			key := it.Next()
			b.text(key)
			b.text(v.Get(key))
		}
	default:
		b.left -= longestScalar
	}
}

func fixedLength(value ref.Val, precision int) int {
	switch v := value.(type) {
	case types.Int:
		return doubleLength(float64(v), precision)
	case types.Uint:
		return doubleLength(float64(v), precision)
	case types.Double:
		return doubleLength(float64(v), precision)
	}
	return longestScalar
}

// doubleLength is the length of f without an exponent, which is longer than with one but for a few characters.
func doubleLength(f float64, precision int) int {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return len("-Infinity")
	}
	var buffer [512]byte
	return max(len(strconv.AppendFloat(buffer[:0], f, 'f', precision, 64)), len("-1.e-308")+max(precision, 0))
}
