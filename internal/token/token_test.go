package token_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"regexp"
	"testing"
	"testing/iotest"

	"github.com/apitomy/axiom-operator/internal/token"
)

func TestNewGivesFreshTokensOf43Characters(t *testing.T) {
	shape := regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 100 {
		got, err := token.New(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if !shape.MatchString(got) {
			t.Fatalf("token does not have the shape %s", shape)
		}
		if seen[got] {
			t.Fatal("the same token came twice")
		}
		seen[got] = true
	}
}

func TestNewRefusesAShortSource(t *testing.T) {
	if _, err := token.New(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("31 bytes were enough")
	}
	broken := errors.New("broken")
	if _, err := token.New(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want it to wrap %v", err, broken)
	}
}

func TestMatches(t *testing.T) {
	hash := token.Hash("abc")
	for name, tc := range map[string]struct {
		hash, token string
		want        bool
	}{
		"the token itself":                {hash, "abc", true},
		"another token":                   {hash, "abd", false},
		"a longer token":                  {hash, "abcd", false},
		"no token":                        {hash, "", false},
		"a revoked token":                 {"", "abc", false},
		"nothing on either side":          {"", "", false},
		"the empty token's own hash":      {token.Hash(""), "", false},
		"the hash presented as the token": {hash, hash, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := token.Matches(tc.hash, tc.token); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
