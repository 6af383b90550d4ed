package form

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// coerce returns a value as the type asks for it. A value that is of the type already stays as it is; text is read.
func coerce(kind string, given any) (value any, ok bool) {
	s, isText := given.(string)
	switch kind {
	case typeString:
		return given, isText
	case typeNumber:
		if isText {
			return number(s)
		}
		_, ok = jsonvalue.Number(given)
		return given, ok
	case typeBoolean:
		if isText {
			return s == "true", s == "true" || s == "false"
		}
		_, ok = given.(bool)
		return given, ok
	case typeObject:
		if isText {
			return structure(s)
		}
		return given, isStructure(given)
	}
	return given, true
}

// structure reads the JSON text of an object or a list.
func structure(s string) (any, bool) {
	value, err := jsonvalue.Decode([]byte(s))
	return value, err == nil && isStructure(value)
}

func isStructure(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// number reads a JSON number with nothing around it. It refuses text whose value would change: an integer is an int64,
// and any other number is a double that denotes the same decimal.
func number(s string) (any, bool) {
	if s == "" || strings.TrimSpace(s) != s || !strings.ContainsAny(s[:1], "-0123456789") {
		return nil, false
	}
	value, err := jsonvalue.Decode([]byte(s))
	if err != nil {
		return nil, false
	}
	if f, isDouble := value.(float64); isDouble {
		return value, denotes(f, s)
	}
	_, isInteger := value.(int64)
	return value, isInteger
}

// denotes tells whether the shortest decimal of f, or its exact value, is that of the text.
func denotes(f float64, s string) bool {
	want := decimalOf(s)
	return decimalOf(strconv.FormatFloat(f, 'e', -1, 64)) == want || decimalOf(exact(f)) == want
}

// maxDoubleDigits is more than the significant digits of any double.
const maxDoubleDigits = 800

func exact(f float64) string {
	return new(big.Float).SetFloat64(f).Text('e', maxDoubleDigits)
}

// A decimal is a number as its digits without zeros around them, and the power of ten behind the first of them.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// decimalOf reads a number in the grammar of JSON whose exponent is that of a double; any other exponent reads as 0,
// which no double denotes.
func decimalOf(s string) decimal {
	s, negative := strings.CutPrefix(s, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent := len(digits) - len(fraction) // of the place before the first digit
	if n, err := strconv.Atoi(power); err == nil {
		exponent += n
	}
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return decimal{}
	}
	return decimal{negative: negative, digits: digits, exponent: exponent}
}
