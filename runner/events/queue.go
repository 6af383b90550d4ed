// Package events brings the events of an agent session to the gateway: each
// once and in order, however often the gateway is away, and without the agent
// ever waiting for it.
//
// One sender takes the waiting events in batches, every second or as soon as
// there is a full batch. An event gets its number when its batch is made, so
// that what was dropped leaves no gap; a batch on its way is repeated with the
// same numbers until it is taken. When the gateway reports a gap all the same,
// the batch is numbered anew from where the journal ends. With more than
// [MaxWaiting] bytes waiting the oldest events go. A batch that the gateway
// refuses for its content is halved until the refused event is alone, which is
// then left out: a journal is worth no session. An events_dropped event with
// the count of all that is missing goes ahead of the next batch.
//
// The package knows nothing of what events mean.
package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/redact"
)

const (
	// Interval is how long an event waits for others at most.
	Interval = time.Second
	// MaxBatch is the size of a full batch, in bytes.
	MaxBatch = 64 << 10
	// MaxWaiting bounds the bytes that wait while the gateway is away.
	MaxWaiting = 8 << 20
	// MaxFlush is how long a flush waits at most.
	MaxFlush = 10 * time.Second
	// Heartbeat is how long the sender is silent at most.
	Heartbeat = time.Minute
)

// Dropped is the type of the event that stands for events that were dropped.
const Dropped = "events_dropped"

// Append sends one batch, repeating it while the gateway is away, and returns
// the number of the newest event in the journal.
type Append func(context.Context, []openapi.Event) (int64, error)

// Config of a [Queue].
type Config struct {
	// Append sends a batch.
	Append Append
	// Last is the number of the newest event in the journal.
	Last int64
	// Redactor takes the secrets out of what is sent.
	Redactor *redact.Redactor
	// Log tells about events that were dropped or refused.
	Log *slog.Logger
}

// Queue holds events until they are delivered. Its methods may be called by
// several goroutines at once; none but Flush and Close ever waits.
type Queue struct {
	config Config
	cancel context.CancelFunc
	wake   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	waiting []entry
	bytes   int
	dropped int
	// added counts the events that were queued, settled those that were
	// delivered, dropped or refused.
	added, settled int64
	progress       chan struct{}
	hurry          bool
	closed         bool

	// last is the number of the newest event in the journal; only the sender
	// uses it.
	last int64
}

type entry struct {
	kind string
	data json.RawMessage
	// standsFor is how many events one of the type [Dropped] is in place of.
	standsFor int
}

func (e entry) size() int { return len(e.kind) + len(e.data) }

// Start returns a queue whose sender runs until the context ends or the queue
// is closed.
func Start(ctx context.Context, config Config) *Queue {
	ctx, cancel := context.WithCancel(ctx)
	q := &Queue{
		config:   config,
		cancel:   cancel,
		wake:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
		progress: make(chan struct{}),
		last:     config.Last,
	}
	go q.run(ctx)
	return q
}

// Add queues an event. The data, a JSON tree, is copied, stripped of secrets
// and cut to size. After Close it does nothing.
func (q *Queue) Add(kind string, data map[string]any) {
	clean, _ := q.config.Redactor.Value(data).(map[string]any)
	text, err := encode(clean)
	if err != nil {
		q.config.Log.Error("Left an event out", "type", kind, "error", err)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.closed {
		return
	}
	added := entry{kind: kind, data: text}
	q.waiting = append(q.waiting, added)
	q.bytes += added.size()
	q.added++
	q.dropOldest()
	q.signal()
}

// dropOldest makes room, but keeps the newest event.
func (q *Queue) dropOldest() {
	n := 0
	for q.bytes > MaxWaiting && n < len(q.waiting)-1 {
		q.bytes -= q.waiting[n].size()
		n++
	}
	if n == 0 {
		return
	}
	q.waiting = q.waiting[n:]
	q.dropped += n
	q.settle(n)
}

// settle counts events that need no more waiting for, and tells those who
// wait.
func (q *Queue) settle(n int) {
	q.settled += int64(n)
	close(q.progress)
	q.progress = make(chan struct{})
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Flush returns when all that was queued before it is delivered, when
// [MaxFlush] or the context is over, or at once when the queue is closed.
func (q *Queue) Flush(ctx context.Context) {
	q.mu.Lock()
	target := q.added
	q.hurry = true
	q.signal()
	q.mu.Unlock()

	timer := time.NewTimer(MaxFlush)
	defer timer.Stop()
	for {
		q.mu.Lock()
		settled, progress := q.settled >= target, q.progress
		q.mu.Unlock()
		if settled {
			return
		}
		select {
		case <-progress:
		case <-q.ended:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		}
	}
}

// Close flushes the queue and stops its sender. It may be called again.
func (q *Queue) Close(ctx context.Context) {
	q.Flush(ctx)
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cancel()
	<-q.ended
}
