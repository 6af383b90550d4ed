package isoduration

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		want time.Duration
	}{
		"every unit":                      {"P1DT2H3M4.5S", 26*time.Hour + 3*time.Minute + 4500*time.Millisecond},
		"zero":                            {"PT0S", 0},
		"negative":                        {"-PT1S", -time.Second},
		"explicitly positive":             {"+PT1S", time.Second},
		"lower case":                      {"pt1s", time.Second},
		"mixed case":                      {"Pt1h2M", time.Hour + 2*time.Minute},
		"days alone":                      {"P2D", 48 * time.Hour},
		"minutes alone":                   {"PT90M", 90 * time.Minute},
		"units may be left out":           {"P1DT5S", 24*time.Hour + 5*time.Second},
		"leading zeros":                   {"PT0000000000000000000000007S", 7 * time.Second},
		"nine fraction digits":            {"PT0.000000001S", time.Nanosecond},
		"a negative fraction":             {"-PT0.25S", -250 * time.Millisecond},
		"a zero fraction":                 {"PT3.0S", 3 * time.Second},
		"the longest":                     {"PT9223372036.854775807S", math.MaxInt64},
		"the longest, spread over units":  {"P106751DT23H47M16.854775807S", math.MaxInt64},
		"the most negative":               {"-PT9223372036.854775808S", math.MinInt64},
		"negative applies to every part":  {"-P1DT1H", -25 * time.Hour},
		"more seconds than a minute has":  {"PT3600S", time.Hour},
		"a negative zero is just zero":    {"-PT0S", 0},
		"hours beyond a day do not carry": {"PT36H", 36 * time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.text)
			if err != nil || got != tc.want {
				t.Errorf("Parse(%q) = %v, %v; want %v", tc.text, got, err, tc.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ text, wantReason string }{
		"nothing":                          {"", "does not begin with P"},
		"P alone":                          {"P", "no component"},
		"T without a time":                 {"PT", "nothing follows T"},
		"T without a time after days":      {"P1DT", "nothing follows T"},
		"months":                           {"P1M", "unknown unit"},
		"weeks":                            {"P1W", "unknown unit"},
		"years":                            {"P1Y", "unknown unit"},
		"a Go duration":                    {"1h", "does not begin with P"},
		"a sign alone":                     {"-", "does not begin with P"},
		"two signs":                        {"--PT1S", "does not begin with P"},
		"a sign inside":                    {"PT-1S", "nothing follows T"},
		"space before":                     {" PT1S", "does not begin with P"},
		"space after":                      {"PT1S ", "misplaced"},
		"a number without unit":            {"PT1", "nothing follows T"},
		"a number without unit at the end": {"PT1H2", "misplaced"},
		"a unit without number":            {"PTS", "nothing follows T"},
		"hours before T":                   {"P1H", "unknown unit"},
		"days after T":                     {"PT1D", "nothing follows T"},
		"units out of order":               {"PT1S1M", "misplaced"},
		"a unit twice":                     {"PT1H1H", "misplaced"},
		"days twice":                       {"P1D1D", "misplaced"},
		"a fraction of minutes":            {"PT1.5M", "only seconds"},
		"a fraction of days":               {"P0.5D", "only seconds"},
		"ten fraction digits":              {"PT0.0000000001S", "more than 9 digits"},
		"a fraction without digits":        {"PT1.S", "no digits"},
		"a fraction without whole part":    {"PT.5S", "nothing follows T"},
		"a decimal comma":                  {"PT1,5S", "nothing follows T"},
		"digits that are not ASCII":        {"PT١S", "nothing follows T"},
		"a nanosecond over":                {"PT9223372036.854775808S", "64-bit"},
		"a nanosecond under":               {"-PT9223372036.854775809S", "64-bit"},
		"days over":                        {"P106752D", "64-bit"},
		"a sum over":                       {"P106751DT23H47M17S", "64-bit"},
		"digits without end":               {"PT" + strings.Repeat("9", 1000) + "S", "64-bit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.text)
			var refused *SyntaxError
			if !errors.As(err, &refused) {
				t.Fatalf("Parse(%q) = %v, %v; want a SyntaxError", tc.text, got, err)
			}
			if got != 0 || !strings.Contains(refused.Reason, tc.wantReason) {
				t.Errorf("Parse(%q) = %v, %q; want 0 and a reason with %q", tc.text, got, refused.Reason, tc.wantReason)
			}
		})
	}
}

func TestErrorIsShortAndValid(t *testing.T) {
	_, err := Parse(strings.Repeat("é", 10_000) + "\xff")
	if message := err.Error(); len(message) > 200 || strings.Contains(message, `\x`) {
		t.Errorf("error of %d bytes: %s", len(message), message)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"P1DT2H3M4.5S", "-PT9223372036.854775808S", "PT1H2", "P1W", "pt.5s", "P"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if err != nil {
			return
		}
		for _, same := range []string{strings.ToLower(text), strings.ToUpper(text), inSeconds(got)} {
			if again, err := Parse(same); err != nil || again != got {
				t.Errorf("Parse(%q) = %v, but Parse(%q) = %v, %v", text, got, same, again, err)
			}
		}
	})
}

// inSeconds spells d with seconds alone.
func inSeconds(d time.Duration) string {
	sign, magnitude := "", uint64(d)
	if d < 0 {
		sign, magnitude = "-", -magnitude
	}
	fraction := strconv.FormatUint(1_000_000_000+magnitude%1_000_000_000, 10)[1:]
	return sign + "PT" + strconv.FormatUint(magnitude/1_000_000_000, 10) + "." + fraction + "S"
}
