// Package token makes and checks the secrets that open the gateway's routes.
//
// A token is 32 random bytes in URL-safe base64 without padding. Only its
// SHA-256 is ever kept; a presented token is hashed and compared in constant
// time. The package knows nothing of where hashes are stored.
package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
)

const (
	size   = 32
	prefix = "sha256:"
)

// New reads a fresh token, 43 characters long, from a source of randomness.
func New(random io.Reader) (string, error) {
	var raw [size]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw[:]), nil
}

// Hash is what may be kept of a token: `sha256:` and 64 hex digits.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return prefix + hex.EncodeToString(sum[:])
}

// Matches tells whether hash is that of the token. An empty hash or token
// matches nothing: it stands for a token that was revoked or never made.
func Matches(hash, token string) bool {
	if hash == "" || token == "" {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(hash), []byte(Hash(token))) == 1
}
