package event

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// maxKey is how long a key may be, in bytes, before a digest stands for it.
const maxKey = 1024

// ShortKey is a key as it is remembered and compared: itself, unless it is long.
// The empty key, which no event and no subscription matches by, stays empty.
func ShortKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Key evaluates an expression over an event and returns the value's string form.
func Key(ctx context.Context, x *expression.Cache, text string, event map[string]any) (string, error) {
	value, err := evaluate(ctx, x, text, event)
	if err != nil {
		return "", err
	}
	return jsonvalue.StringForm(value)
}

// evaluate gives the value of an expression that sees an event and nothing else.
func evaluate(ctx context.Context, x *expression.Cache, text string, event map[string]any) (any, error) {
	program, err := x.Compile(expression.ScopeCorrelationEventKey, text)
	if err != nil {
		return nil, err
	}
	return program.Eval(ctx, expression.Variables{Event: event})
}

// Keys remembers what expressions gave over stored events, which never change.
// The zero value is empty and ready; it may be used by several goroutines at
// once.
type Keys struct {
	mu    sync.Mutex
	known map[string]map[string]keyResult
}

type keyResult struct {
	key string
	err error
}

// Of returns the short form of what an expression gives over the event of an
// id, failures included; derive is called if that is not known. Interruptions
// are not remembered.
func (k *Keys) Of(event, text string, derive func() (string, error)) (string, error) {
	if found, ok := k.find(event, text); ok {
		return found.key, found.err
	}
	key, err := derive()
	if errors.Is(err, expression.ErrInterrupted) {
		return "", err
	}
	result := keyResult{key: ShortKey(key), err: err}
	k.remember(event, text, result)
	return result.key, result.err
}

// Forget drops all that is known of an event.
func (k *Keys) Forget(event string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, event)
}

func (k *Keys) find(event, text string) (keyResult, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.known[event][text]
	return found, ok
}

func (k *Keys) remember(event, text string, result keyResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]map[string]keyResult{}
	}
	if k.known[event] == nil {
		k.known[event] = map[string]keyResult{}
	}
	k.known[event][text] = result
}
