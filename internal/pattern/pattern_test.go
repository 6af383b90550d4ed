package pattern

import (
	"errors"
	"regexp/syntax"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	tests := map[string]struct {
		source string
		match  string
		other  string
	}{
		"literal":     {"abc", "xabcx", "ab"},
		"anchored":    {"^a+$", "aaa", "aab"},
		"class":       {"^[a-z0-9]{2,4}$", "a1b", "a"},
		"alternation": {"^(a|bc)*d$", "abcad", "abd"},
		"unicode":     {`^\pL+$`, "é", "1"},
		"empty":       {"", "x", "\x00never"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile(tc.source)
			if err != nil {
				t.Fatal(err)
			}
			if !compiled.MatchString(tc.match) {
				t.Errorf("%q does not match %q", tc.source, tc.match)
			}
			if tc.source != "" && compiled.MatchString(tc.other) {
				t.Errorf("%q matches %q", tc.source, tc.other)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct {
		source  string
		wantErr error
	}{
		"an open group":           {"(", ErrSyntax},
		"a look-ahead":            {"(?=a)", ErrSyntax},
		"a back reference":        {`(a)\1`, ErrSyntax},
		"a repetition too high":   {"a{1001}", ErrSyntax},
		"repetitions of each":     {"a{1000}b{1000}", ErrStates},
		"repetitions of many":     {"(abc){900}", ErrStates},
		"optional repetitions":    {"(a{0,100}){1,10}b{500}c{500}", ErrStates},
		"a long one":              {strings.Repeat("a", MaxLength+1), ErrLength},
		"a long one within limit": {strings.Repeat("a", MaxLength), ErrStates},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(tc.source); !errors.Is(err, tc.wantErr) {
				t.Errorf("error %v, want %v", err, tc.wantErr)
			}
		})
	}
}

func TestSyntaxErrorsDoNotRepeatTheExpression(t *testing.T) {
	_, err := Compile("secret(")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// FuzzMeasure checks that the bound holds for what the expression is compiled to.
func FuzzMeasure(f *testing.F) {
	for _, seed := range []string{"a{1000}", "(a|b)*c{2,}", `[^\pL]+\b`, "(?i)abc", "(?:a?){30}", "a**", "x{2}{3}", "(?s).", "[[:alpha:]]é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		states, err := Measure(source)
		if err != nil {
			return
		}
		tree, err := syntax.Parse(source, syntax.Perl)
		if err != nil {
			t.Fatalf("measured, but not parsed: %v", err)
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatalf("measured, but not compiled: %v", err)
		}
		// The program begins with a state that fails and ends with one that matches; a class may need some more.
		if got := len(program.Inst); got > 4*states+8 {
			t.Errorf("%q has %d states, more than the bound from %d", source, got, states)
		}
	})
}
