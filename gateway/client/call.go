package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second
	// maxRetryAfter bounds how long the gateway may make its callers wait.
	maxRetryAfter = time.Minute
	// maxAnswer bounds an answer: a composition with everything in it, and room.
	maxAnswer = 8 << 20
)

// errNoContent reports an answer without a body to a call that has use for one.
var errNoContent = errors.New("no content")

// repetition tells after which failures a call is made again.
type repetition int

const (
	// always: after every failure that may pass.
	always repetition = iota
	// ifUnread: only when it is certain that the gateway did not look at the body.
	ifUnread
)

// A call is one request, in as many tries as it takes.
type call struct {
	repeat repetition
	// timeout of one try.
	timeout time.Duration
	// answer is decoded into; nil when there is none to expect.
	answer any
	try    func(context.Context) (*http.Response, error)
}

// failure is why a try did not succeed.
type failure struct {
	err error
	// status of the answer; 0 when there was none.
	status int
	// unsent tells that the request never left.
	unsent bool
	// retryAfter is the wait that the gateway asked for; 0 when it named none.
	retryAfter time.Duration
}

// do makes the call until it succeeds, fails for good, or the context ends. In
// that case the error is that of the last try, if one was made.
func (c *Client) do(ctx context.Context, call call) error {
	for n := 0; ; n++ {
		failed := call.once(ctx)
		if failed == nil {
			return nil
		}
		if ctx.Err() != nil || !call.repeats(failed) {
			return failed.err
		}
		if c.pause(ctx, pauseBefore(n, failed.retryAfter)) != nil {
			return failed.err
		}
	}
}

func (c call) once(ctx context.Context) *failure {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.try(ctx)
	if err != nil {
		return &failure{err: err, unsent: isDialError(err)}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return &failure{err: fmt.Errorf("read answer: %w", err)}
	}
	if response.StatusCode/100 != 2 {
		return &failure{
			err:        problemOf(response, body),
			status:     response.StatusCode,
			retryAfter: retryAfter(response.Header),
		}
	}
	return c.decode(response.StatusCode, body)
}

func (c call) decode(status int, body []byte) *failure {
	if c.answer == nil {
		return nil
	}
	if status == http.StatusNoContent {
		return &failure{err: errNoContent, status: status}
	}
	if err := json.Unmarshal(body, c.answer); err != nil {
		return &failure{err: fmt.Errorf("decode answer: %w", err), status: status}
	}
	return nil
}

// repeats tells whether to try again after a failure.
func (c call) repeats(failed *failure) bool {
	if failed.unsent || failed.status == http.StatusTooManyRequests {
		return true
	}
	return c.repeat == always && (failed.status == 0 || failed.status >= http.StatusInternalServerError)
}

// isDialError tells whether no connection came about.
func isDialError(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "dial"
}

// pauseBefore is the wait between try n, counted from 0, and the next.
func pauseBefore(n int, asked time.Duration) time.Duration {
	wait := maxPause
	if n < 6 { // beyond, the doubled wait is over the maximum
		wait = min(firstPause<<n, maxPause)
	}
	// Spread over half the wait, so that many pods do not come back as one.
	wait = wait/2 + rand.N(wait/2)
	return max(wait, asked)
}

func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
