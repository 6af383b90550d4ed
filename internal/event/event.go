package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Limits of what is stored of an event; texts are counted in characters.
const (
	// MaxPayloadBytes bounds the compact JSON of a payload.
	MaxPayloadBytes = 256 << 10
	maxType         = 253
	maxSource       = 2048
	maxRef          = 2048
	maxTimestamp    = 64
	maxLogin        = 256
	maxActorURL     = 2048
)

// An Event is what a sender said.
type Event struct {
	// SenderID is what the sender calls it. It is no part of what is stored.
	SenderID string
	// Type and Source are those of the sender.
	Type, Source string
	// Ref is what the event is about, empty if that is not said.
	Ref string
	// Timestamp is in the form of RFC 3339, empty if none is given.
	Timestamp string
	// Actor caused the event, nil if nobody is named.
	Actor *Actor
	// Payload is a JSON object.
	Payload map[string]any
}

// An Actor is who caused an event.
type Actor struct {
	Login, DisplayName, AvatarURL, URL string
}

// A FormatError is why something is no event.
type FormatError struct {
	// Member that is at fault, in the sender's words; empty: the whole.
	Member string
	// Reason says what it must be.
	Reason string
}

// Error names the member first.
func (e *FormatError) Error() string {
	if e.Member == "" {
		return e.Reason
	}
	return e.Member + " " + e.Reason
}

func malformed(member, format string, args ...any) error {
	return &FormatError{Member: member, Reason: fmt.Sprintf(format, args...)}
}

// A SizeError is a payload beyond [MaxPayloadBytes].
type SizeError struct {
	// Bytes of its compact JSON.
	Bytes int
}

// Error has figure and limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the payload has %d bytes of JSON, the limit is %d", e.Bytes, MaxPayloadBytes)
}

// Name is the name of the object that stores the event, and its id: the same
// for each delivery of the same event to the same ingest source.
func (e Event) Name(eventSourceID string) string {
	sum := sha256.New()
	for _, part := range []string{e.Source, eventSourceID, e.SenderID} {
		// The length keeps parts from running into each other.
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // a hash takes everything
	}
	const digits = 40
	return "ev-" + hex.EncodeToString(sum.Sum(nil))[:digits]
}

// check makes sure that the event can be stored.
func (e Event) check() error {
	if size := jsonvalue.Size(e.Payload); size > MaxPayloadBytes {
		return &SizeError{Bytes: size}
	}
	return nil
}

// checkText refuses text that is too long, is not Unicode or could be taken for
// something else where it is shown.
func checkText(member, text string, limit int) error {
	switch {
	case !utf8.ValidString(text):
		return malformed(member, "must be valid UTF-8")
	case strings.ContainsFunc(text, isControl):
		return malformed(member, "must not have control characters")
	case utf8.RuneCountInString(text) > limit:
		return malformed(member, "has %d characters, the limit is %d", utf8.RuneCountInString(text), limit)
	}
	return nil
}

func isControl(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f
}

func checkRequired(member, text string, limit int) error {
	if isBlank(text) {
		return malformed(member, "is required")
	}
	return checkText(member, text, limit)
}

func checkTime(member, text string) error {
	if text == "" {
		return nil
	}
	if err := checkText(member, text, maxTimestamp); err != nil {
		return err
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return malformed(member, "must be a time in the form of RFC 3339")
	}
	return nil
}

// signaturePrefix names the algorithm of a signature.
const signaturePrefix = "sha256="

// IsSigned tells whether a signature in the form of `sha256=` and 64 hex digits
// is that of the body under a secret, in a time that does not depend on where it
// is wrong. An empty secret signs nothing.
func IsSigned(secret, body []byte, signature string) bool {
	digits, isKnown := strings.CutPrefix(signature, signaturePrefix)
	given, err := hex.DecodeString(digits)
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(body) // a hash takes everything
	return hmac.Equal(given, mac.Sum(nil)) && isKnown && err == nil && len(secret) > 0
}
