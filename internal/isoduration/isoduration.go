// Package isoduration reads the durations that workflow documents and expressions share: ISO 8601 with days, hours,
// minutes and seconds, for example P1DT2H3M4.5S.
//
// Calendar units (years, months, weeks) are refused because they have no fixed length, and a day is always 24 hours.
// The package decides only what a text denotes; whether a duration may be zero or negative is for its users to say.
package isoduration

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour

	maxFractionDigits = 9

	// maxShown bounds how much of a refused text an error repeats.
	maxShown = 64
)

// A SyntaxError says why a text is not a duration of this package.
type SyntaxError struct {
	// Text is what was read, cut if it is long.
	Text string
	// Reason is one phrase, for example "no component".
	Reason string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%q is no ISO 8601 duration: %s", e.Text, e.Reason)
}

// Parse reads an optionally signed ISO 8601 duration made of at least one of days, hours, minutes and seconds, in any
// letter case. Seconds may have up to nine fraction digits. The result is exact; a value beyond the 64-bit nanoseconds
// of [time.Duration], and anything that is no such duration, is a [*SyntaxError].
func Parse(text string) (time.Duration, error) {
	p := parser{rest: text}
	total, reason := p.duration()
	if reason != "" {
		return 0, &SyntaxError{Text: shorten(text), Reason: reason}
	}
	return total, nil
}

// A parser consumes rest from the left. Its methods answer an empty reason on success.
type parser struct {
	rest     string
	negative bool
	// magnitude is the absolute value so far in nanoseconds; it is unsigned because the most negative duration has no
	// positive counterpart.
	magnitude uint64
}

type unit struct {
	letter byte
	size   time.Duration
}

var (
	dateUnits = []unit{{'D', day}}
	timeUnits = []unit{{'H', time.Hour}, {'M', time.Minute}, {'S', time.Second}}
)

func (p *parser) duration() (time.Duration, string) {
	p.sign()
	if !p.letter('P') {
		return 0, "it does not begin with P"
	}
	dates, reason := p.components(dateUnits)
	if reason != "" {
		return 0, reason
	}
	times := 0
	if p.letter('T') {
		if times, reason = p.components(timeUnits); reason != "" {
			return 0, reason
		}
		if times == 0 {
			return 0, "nothing follows T"
		}
	}
	switch {
	case p.rest != "":
		return 0, "a component is misplaced or of an unknown unit"
	case dates+times == 0:
		return 0, "it has no component"
	}
	return p.signed()
}

func (p *parser) sign() {
	if p.rest != "" && (p.rest[0] == '+' || p.rest[0] == '-') {
		p.negative = p.rest[0] == '-'
		p.rest = p.rest[1:]
	}
}

func (p *parser) letter(upper byte) bool {
	if p.rest == "" || p.rest[0]&^0x20 != upper {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// components reads as many of units as are there, each at most once and in the order given, and says how many.
func (p *parser) components(units []unit) (count int, reason string) {
	for _, u := range units {
		found, reason := p.component(u)
		if reason != "" {
			return 0, reason
		}
		if found {
			count++
		}
	}
	return count, ""
}

// component reads one number with u's letter; a number with another letter is left in place.
func (p *parser) component(u unit) (found bool, reason string) {
	before := p.rest
	whole := p.digits()
	if whole == "" {
		return false, ""
	}
	fraction := ""
	if strings.HasPrefix(p.rest, ".") {
		p.rest = p.rest[1:]
		if fraction = p.digits(); fraction == "" {
			return false, "a fraction has no digits"
		}
	}
	if !p.letter(u.letter) {
		p.rest = before
		return false, ""
	}
	switch {
	case fraction != "" && u.letter != 'S':
		return false, "only seconds may have a fraction"
	case len(fraction) > maxFractionDigits:
		return false, "its fraction has more than 9 digits"
	}
	return true, p.add(whole, fraction, u.size)
}

func (p *parser) digits() string {
	end := 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	digits := p.rest[:end]
	p.rest = p.rest[end:]
	return digits
}

const tooLong = "it does not fit 64-bit nanoseconds"

// limit is the magnitude of the most negative duration, the largest there is.
const limit = uint64(math.MaxInt64) + 1

func (p *parser) add(whole, fraction string, size time.Duration) string {
	count, ok := decimal(whole, limit/uint64(size))
	if !ok {
		return tooLong
	}
	// Nine digits of nanoseconds always fit, so the second result is of no interest.
	nanos, _ := decimal((fraction + strings.Repeat("0", maxFractionDigits))[:maxFractionDigits], limit)
	for _, part := range []uint64{count * uint64(size), nanos} {
		if p.magnitude += part; p.magnitude > limit {
			return tooLong
		}
	}
	return ""
}

// decimal is the value of a run of digits, if it is at most maximum.
func decimal(digits string, maximum uint64) (uint64, bool) {
	value := uint64(0)
	for i := range len(digits) {
		value = value*10 + uint64(digits[i]-'0')
		if value > maximum {
			return 0, false
		}
	}
	return value, true
}

func (p *parser) signed() (time.Duration, string) {
	switch {
	case p.negative:
		return time.Duration(-p.magnitude), "" // wraps to the right value, the most negative one included
	case p.magnitude == limit:
		return 0, tooLong
	}
	return time.Duration(p.magnitude), ""
}

func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}
