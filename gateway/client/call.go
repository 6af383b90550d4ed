package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second
	// maxRetryAfter bounds how long the gateway may make its callers wait.
	maxRetryAfter = time.Minute
	contentType   = "application/json"
	// maxAnswer bounds an answer: a composition with everything in it, and room.
	maxAnswer = 8 << 20
)

// encode is the JSON of a body. Angle brackets and ampersands stay as they are:
// escaped they could carry outputs of a script over the gateway's limit.
func encode(body any) (io.Reader, error) {
	buffer := &bytes.Buffer{}
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	// The encoder ends every value with a line break.
	buffer.Truncate(buffer.Len() - 1)
	return buffer, nil
}

// errNoContent reports an answer without a body to a call that has use for one.
var errNoContent = errors.New("no content")

// A call is one request, in as many tries as it takes. Every one of them may be
// made twice: the gateway takes a repetition for what it is.
type call struct {
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
		if ctx.Err() != nil || !failed.mayPass() {
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
		return &failure{err: err}
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

// mayPass tells whether another try may succeed.
func (f *failure) mayPass() bool {
	return f.status == 0 || f.status == http.StatusTooManyRequests || f.status >= http.StatusInternalServerError
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
