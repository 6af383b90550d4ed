package events

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
)

func (q *Queue) run(ctx context.Context) {
	defer close(q.ended)

	for q.await(ctx) {
		for {
			batch := q.take()
			if !q.deliver(ctx, batch) {
				return
			}
			if !q.isDue() {
				break
			}
		}
	}
}

// await returns true when it is time to send: a second after the first event,
// at once for a full batch or a flush, and after a silent minute. It returns
// false when the context ends.
func (q *Queue) await(ctx context.Context) bool {
	timer := time.NewTimer(Heartbeat)
	defer timer.Stop()
	started := false
	for {
		if q.isDue() {
			return true
		}
		if !started && q.isWaiting() {
			timer.Reset(Interval)
			started = true
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-q.wake:
		}
	}
}

func (q *Queue) isWaiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	return len(q.waiting) > 0
}

func (q *Queue) isDue() bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(q.waiting) == 0 {
		q.hurry = false
	}
	return q.hurry || q.bytes >= MaxBatch
}

// take removes the next batch from the queue; nothing waiting gives an empty
// one. What was dropped is told ahead of the events that stayed.
func (q *Queue) take() []entry {
	q.mu.Lock()
	defer q.mu.Unlock()

	var batch []entry
	if q.dropped > 0 {
		batch = append(batch, droppedEntry(q.dropped))
		q.settled-- // the notice is no event of the agent's
		q.dropped = 0
	}
	size, n := 0, 0
	for n < len(q.waiting) && (n == 0 || size+q.waiting[n].size() <= MaxBatch) {
		size += q.waiting[n].size()
		n++
	}
	batch = append(batch, q.waiting[:n]...)
	q.waiting = q.waiting[n:]
	q.bytes -= size
	return batch
}

func droppedEntry(count int) entry {
	return entry{kind: Dropped, data: json.RawMessage(`{"count":` + strconv.Itoa(count) + `}`), standsFor: count}
}

// deliver sends a batch, an empty one as a sign of life, until it is in the
// journal or given up. It returns false when nothing more can be sent.
func (q *Queue) deliver(ctx context.Context, batch []entry) bool {
	last, err := q.config.Append(ctx, number(batch, q.last))
	if err == nil {
		q.last = max(q.last+int64(len(batch)), last)
		q.finish(len(batch))
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	refused := asProblem(err)
	switch {
	case refused.isAccess():
		q.config.Log.Error("Stopped sending events", "error", err)
		return false
	case refused.Status == http.StatusConflict && refused.expected > 0 && refused.expected != q.last+1:
		q.last = refused.expected - 1
		return q.deliver(ctx, batch)
	case len(batch) > 1:
		half := len(batch) / 2
		return q.deliver(ctx, batch[:half]) && q.deliver(ctx, batch[half:])
	case len(batch) == 1:
		q.config.Log.Error("Left a refused event out", "type", batch[0].kind, "error", err)
		q.leaveOut(batch[0])
		return true
	default:
		q.config.Log.Warn("A sign of life was refused", "error", err)
		return true
	}
}

func number(batch []entry, last int64) []openapi.Event {
	numbered := make([]openapi.Event, len(batch))
	for i, event := range batch {
		numbered[i] = openapi.Event{Sequence: last + int64(i) + 1, Type: event.kind, Data: event.data}
	}
	return numbered
}

func (q *Queue) finish(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.settle(n)
}

// leaveOut gives an event up; the next batch tells of it.
func (q *Queue) leaveOut(refused entry) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.dropped += max(refused.standsFor, 1)
	q.settle(1)
}

// refusal is what the sender needs to know of an error; its zero value is that
// of an error that is no answer of the gateway's.
type refusal struct {
	client.Problem
	expected int64
}

func asProblem(err error) refusal {
	var problem *client.Problem
	if !errors.As(err, &problem) {
		return refusal{}
	}
	expected, _ := strconv.ParseInt(problem.Expected, 10, 64)
	return refusal{Problem: *problem, expected: expected}
}

// isAccess reports a refusal that stands for every batch to come.
func (r refusal) isAccess() bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.Status == http.StatusNotFound
}
