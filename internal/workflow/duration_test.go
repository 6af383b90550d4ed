package workflow

import (
	"math"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"P1DT2H3M4.5S":             26*time.Hour + 3*time.Minute + 4500*time.Millisecond,
		"PT0S":                     0,
		"-PT1S":                    -time.Second,
		"+PT1S":                    time.Second,
		"pt1s":                     time.Second,
		"p1dT1h":                   25 * time.Hour,
		"P1D":                      24 * time.Hour,
		"PT90M":                    90 * time.Minute,
		"PT1H1S":                   time.Hour + time.Second,
		"PT0.000000001S":           1,
		"-P0D":                     0,
		"P000001D":                 24 * time.Hour,
		"PT9223372036.854775807S":  math.MaxInt64,
		"-PT9223372036.854775808S": math.MinInt64,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "P", "PT", "-P", "P1DT", "P1M", "P1Y", "P1W", "1h", "1D", "PT1", "P1", "T1S", "PT1S ", " PT1S", "PT1M1H", "PT1S1S",
		"P1D1D", "PT1D", "P1H", "P1S", "PT.5S", "PT1.S", "PT1,5S", "PT1.5M", "P0.5D", "PT0.0000000001S", "PT-1S", "--PT1S", "PT1e3S",
		"PT9223372036.854775808S", "-PT9223372036.854775809S", "P106752D", "PT99999999999999999999S", "PT١S",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestRetryDelay(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		config string
		want   []time.Duration // before attempts 2, 3, …
	}{
		"no retry":              {"{}", nil},
		"null":                  {"{retry: null}", nil},
		"the defaults":          {"{retry: {}}", []time.Duration{10 * s, 20 * s}},
		"a constant":            {"{retry: {maxAttempts: 4, backoff: {initial: PT3S, factor: 1}}}", []time.Duration{3 * s, 3 * s, 3 * s}},
		"a fraction":            {"{retry: {maxAttempts: 4, backoff: {initial: PT2S, factor: 1.5}}}", []time.Duration{2 * s, 3 * s, 4500 * time.Millisecond}},
		"cut at the longest":    {"{retry: {maxAttempts: 6, backoff: {factor: 10}}}", []time.Duration{10 * s, 100 * s, 600 * s, 600 * s, 600 * s}},
		"beyond every duration": {"{retry: {maxAttempts: 10, backoff: {initial: P100000D, factor: 10, max: P106751D}}}", []time.Duration{100000 * day, 106751 * day, 106751 * day, 106751 * day, 106751 * day, 106751 * day, 106751 * day, 106751 * day, 106751 * day}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := Node{map[string]any{"type": "action", "config": parse(t, tc.config)}}.Retry()
			if r.MaxAttempts != len(tc.want)+1 {
				t.Fatalf("MaxAttempts = %d, want %d", r.MaxAttempts, len(tc.want)+1)
			}
			for i, want := range tc.want {
				if got := r.Delay(i + 2); got != want {
					t.Errorf("Delay(%d) = %v, want %v", i+2, got, want)
				}
			}
		})
	}
}

const day = 24 * time.Hour

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"P1DT2H3M4.5S", "-PT9223372036.854775808S", "P1DT", "pt1s", "P1M"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseDuration(text)
		if err != nil {
			return
		}
		// A duration written out in seconds is read back as itself.
		again, err := ParseDuration(inSeconds(got))
		if err != nil || again != got {
			t.Errorf("ParseDuration(%q) = %v, but %s gives %v, %v", text, got, inSeconds(got), again, err)
		}
	})
}

// inSeconds writes a duration as seconds with a fraction.
func inSeconds(d time.Duration) string {
	sign, magnitude := "", uint64(d)
	if d < 0 {
		sign, magnitude = "-", -magnitude
	}
	const second = uint64(time.Second)
	return sign + "PT" + decimal(magnitude/second, 1) + "." + decimal(magnitude%second, 9) + "S"
}

func decimal(n uint64, width int) string {
	digits := ""
	for ; n > 0 || len(digits) < width; n /= 10 {
		digits = string(rune('0'+n%10)) + digits
	}
	return digits
}
