package jsonvalue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrNumber reports a number that is no finite double, or is no JSON number
// at all.
var ErrNumber = errors.New("number is not a finite double")

// Number returns the double nearest to v. It is false when v is no number, or
// is one without a finite double.
func Number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case json.Number:
		f, err := parseDouble(string(n))
		return f, err == nil
	}
	return 0, false
}

// parseNumber turns the text of a JSON number into an int64 when its value is
// integral and fits, however it is spelt, and into the nearest double
// otherwise. Numbers beyond the doubles are an error.
func parseNumber(text string) (any, error) {
	if n, ok := parseInteger(text); ok {
		return n, nil
	}
	return parseDouble(text)
}

// parseInteger works on the decimal digits, so 9007199254740993.0 keeps its
// last digit where a detour over double would lose it.
func parseInteger(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	mantissa, exponent, _ := strings.Cut(strings.ReplaceAll(text, "E", "e"), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")

	significant := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(significant, "0")
	if digits == "" {
		return 0, true
	}
	scale := 0
	if exponent != "" {
		var err error
		if scale, err = strconv.Atoi(exponent); err != nil || scale > math.MaxInt32 || scale < math.MinInt32 {
			return 0, false
		}
	}
	zeros := scale - len(fraction) + len(significant) - len(digits)
	if zeros < 0 || len(digits)+zeros > maxInt64Digits {
		return 0, false
	}
	return joinInteger(negative, digits, zeros)
}

// maxInt64Digits is the number of decimal digits of the largest int64.
const maxInt64Digits = 19

func joinInteger(negative bool, digits string, zeros int) (int64, bool) {
	sign := ""
	if negative {
		sign = "-"
	}
	n, err := strconv.ParseInt(sign+digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}

func parseDouble(text string) (float64, error) {
	if !isNumberText(text) {
		return 0, fmt.Errorf("parse %.40q: %w", text, ErrNumber)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %.40q: %w", text, ErrNumber)
	}
	return f, nil
}

// isNumberText holds strconv to the grammar of JSON: it would also take
// hexadecimal digits, names of infinity, a leading plus or a bare point.
func isNumberText(text string) bool {
	rest := strings.TrimPrefix(text, "-")
	whole, rest := cutDigits(rest)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	if after, ok := strings.CutPrefix(rest, "."); ok {
		var fraction string
		if fraction, rest = cutDigits(after); fraction == "" {
			return false
		}
	}
	return rest == "" || isExponent(rest)
}

func isExponent(text string) bool {
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	text = text[1:]
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	exponent, rest := cutDigits(text)
	return exponent != "" && rest == ""
}

func cutDigits(text string) (digits, rest string) {
	rest = strings.TrimLeft(text, "0123456789")
	return text[:len(text)-len(rest)], rest
}

// exactDouble is the largest magnitude up to which every integer is a double.
const exactDouble = 1 << 53

// appendInteger writes n as the double nearest to it.
func appendInteger(dst []byte, n int64) []byte {
	if -exactDouble <= n && n <= exactDouble {
		return strconv.AppendInt(dst, n, 10)
	}
	return appendDouble(dst, float64(n))
}

// appendDouble writes a finite double as ECMAScript does: the shortest digits
// that read back the same, with an exponent below 1e-6 and from 1e21.
func appendDouble(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // also for negative zero
	}
	if magnitude := math.Abs(f); 1e-6 <= magnitude && magnitude < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv pads an exponent to two digits, ECMAScript does not.
	if n := len(dst); dst[n-2] == '0' && dst[n-3] == '-' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
