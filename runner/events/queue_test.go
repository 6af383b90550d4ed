package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/redact"
)

// journal is a gateway's journal in memory.
type journal struct {
	mu      sync.Mutex
	events  []openapi.Event
	batches []int
	times   []time.Duration
	begin   time.Time
	away    chan struct{} // closed when the gateway is back; nil if it is there
	refuse  func(batch []openapi.Event, call int) error
	last    int64
}

func (j *journal) append(ctx context.Context, batch []openapi.Event) (int64, error) {
	j.mu.Lock()
	away := j.away
	j.mu.Unlock()
	if away != nil {
		select {
		case <-away:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()

	j.batches = append(j.batches, len(batch))
	j.times = append(j.times, time.Since(j.begin))
	if j.refuse != nil {
		if err := j.refuse(batch, len(j.batches)); err != nil {
			return 0, err
		}
	}
	for _, event := range batch {
		if event.Sequence > j.last+1 {
			return 0, gap(j.last + 1)
		}
		if event.Sequence == j.last+1 {
			j.events = append(j.events, event)
			j.last++
		}
	}
	return j.last, nil
}

func gap(expected int64) error {
	return &client.Problem{Problem: openapi.Problem{Status: 409, Expected: strconv.FormatInt(expected, 10)}}
}

func refused(status int) error {
	return &client.Problem{Problem: openapi.Problem{Status: status}}
}

// texts are the types and data of the events in the journal, a line each.
func (j *journal) texts() []string {
	j.mu.Lock()
	defer j.mu.Unlock()

	var texts []string
	for _, event := range j.events {
		texts = append(texts, event.Type+string(event.Data))
	}
	return texts
}

// with runs a test with a queue in a bubble and closes it afterwards.
func with(t *testing.T, j *journal, last int64, test func(*testing.T, *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j.begin, j.last = time.Now(), last
		if j.away != nil {
			j.away = make(chan struct{})
		}
		q := Start(t.Context(), Config{
			Append: j.append, Last: last, Redactor: redact.New([]string{"hunter2-hunter2"}), Log: slog.New(slog.DiscardHandler),
		})
		test(t, q)
		q.Close(t.Context())
		q.Close(t.Context())
		q.Add("late", nil)
		q.Flush(t.Context())
	})
}

func numbered(n int) map[string]any { return map[string]any{"n": n} }

func TestEventsAreSentInBatchesASecondLater(t *testing.T) {
	j := &journal{}
	with(t, j, 7, func(t *testing.T, q *Queue) {
		q.Add("a", numbered(1))
		time.Sleep(600 * time.Millisecond)
		q.Add("b", numbered(2))
		time.Sleep(time.Hour / 2)
	})
	if j.batches[0] != 2 || j.times[0] != time.Second {
		t.Errorf("first batch of %d after %s", j.batches[0], j.times[0])
	}
	if diff := cmp.Diff([]string{`a{"n":1}`, `b{"n":2}`}, j.texts()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if j.events[0].Sequence != 8 || j.events[1].Sequence != 9 {
		t.Errorf("numbers %d, %d", j.events[0].Sequence, j.events[1].Sequence)
	}
}

func TestFullBatchIsSentAtOnce(t *testing.T) {
	j := &journal{}
	with(t, j, 0, func(t *testing.T, q *Queue) {
		for range 5 {
			q.Add("a", map[string]any{"text": strings.Repeat("x", 16<<10)})
		}
		synctest.Wait()
		if len(j.batches) != 1 || j.batches[0] != 3 {
			t.Errorf("batches %v, want one of 3: what fits into %d bytes", j.batches, MaxBatch)
		}
	})
	if len(j.events) != 5 {
		t.Errorf("%d events, want 5", len(j.events))
	}
}

func TestSilenceIsBrokenEveryMinute(t *testing.T) {
	j := &journal{}
	with(t, j, 0, func(*testing.T, *Queue) { time.Sleep(150 * time.Second) })
	if diff := cmp.Diff([]int{0, 0}, j.batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, 2 * time.Minute}, j.times); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestFlushReturnsWhenAllIsDelivered(t *testing.T) {
	j := &journal{}
	with(t, j, 0, func(t *testing.T, q *Queue) {
		for i := range 200 {
			q.Add("a", numbered(i))
		}
		q.Flush(t.Context())
		if len(j.events) != 200 || !time.Now().Equal(j.begin) {
			t.Errorf("%d events after %s", len(j.events), time.Since(j.begin))
		}
		q.Flush(t.Context()) // nothing to do
	})
}

func TestFlushGivesUpOnAGatewayThatIsAway(t *testing.T) {
	j := &journal{away: make(chan struct{})}
	with(t, j, 0, func(t *testing.T, q *Queue) {
		q.Add("a", nil)
		q.Flush(t.Context())
		if after := time.Since(j.begin); after != MaxFlush {
			t.Errorf("it returned after %s", after)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.Flush(ctx)
		if after := time.Since(j.begin); after != MaxFlush+time.Second {
			t.Errorf("it returned after %s", after)
		}
	})
	if len(j.events) != 0 {
		t.Errorf("events %v", j.texts())
	}
}

func TestOldestEventsGoWhenTooManyWait(t *testing.T) {
	const size, count = 16 << 10, 600
	j := &journal{away: make(chan struct{})}
	with(t, j, 0, func(t *testing.T, q *Queue) {
		for i := range count {
			q.Add("a", map[string]any{"n": i, "text": strings.Repeat("x", size-20)})
			if i == 2 {
				time.Sleep(2 * time.Second) // the first three are on their way
			}
		}
		close(j.away)
		q.Flush(t.Context())
	})
	var numbers []int
	dropped := -1
	for i, event := range j.events {
		var data struct{ N, Count int }
		if err := json.Unmarshal(event.Data, &data); err != nil {
			t.Fatal(err)
		}
		if event.Type == Dropped {
			dropped = data.Count
			if i != 3 {
				t.Errorf("the notice is event %d, want 3: where the gap is", i)
			}
			continue
		}
		numbers = append(numbers, data.N)
	}
	if dropped < 1 || dropped+len(numbers) != count {
		t.Fatalf("%d dropped and %d delivered of %d", dropped, len(numbers), count)
	}
	if kept := (len(numbers) - 3) * size; kept > MaxWaiting || kept < MaxWaiting-2*size {
		t.Errorf("%d bytes were kept, want close to %d", kept, MaxWaiting)
	}
	for i, n := range numbers {
		want := i
		if i >= 3 {
			want = i + dropped
		}
		if n != want {
			t.Fatalf("event %d is number %d, want %d", i, n, want)
		}
	}
}

func TestRepeatedBatchIsTakenOnce(t *testing.T) {
	j := &journal{}
	// The journal takes the batch, and only then the answer gets lost: the
	// caller of Append repeats it with the same numbers.
	lost := func(ctx context.Context, batch []openapi.Event) (int64, error) {
		if _, err := j.append(ctx, batch); err != nil {
			return 0, err
		}
		return j.append(ctx, batch)
	}
	synctest.Test(t, func(t *testing.T) {
		j.begin = time.Now()
		q := Start(t.Context(), Config{Append: lost, Redactor: redact.New(nil), Log: slog.New(slog.DiscardHandler)})
		for i := range 10 {
			q.Add("a", numbered(i))
			time.Sleep(300 * time.Millisecond)
		}
		q.Close(t.Context())
	})
	for i, text := range j.texts() {
		if want := fmt.Sprintf(`a{"n":%d}`, i); text != want {
			t.Errorf("event %d is %s, want %s", i, text, want)
		}
	}
	if len(j.events) != 10 {
		t.Errorf("%d events, want 10", len(j.events))
	}
}

func TestGapIsClosedByNumberingAnew(t *testing.T) {
	j := &journal{}
	with(t, j, 5, func(t *testing.T, q *Queue) {
		j.last = 2 // the journal lost some
		q.Add("a", nil)
		q.Add("b", nil)
		q.Flush(t.Context())
		q.Add("c", nil)
	})
	if diff := cmp.Diff([]string{"a{}", "b{}", "c{}"}, j.texts()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if j.events[0].Sequence != 3 || j.events[2].Sequence != 5 {
		t.Errorf("numbers %d, %d", j.events[0].Sequence, j.events[2].Sequence)
	}
}

func TestRefusedEventIsLeftOut(t *testing.T) {
	for _, status := range []int{400, 409, 413, 422} {
		j := &journal{refuse: func(batch []openapi.Event, _ int) error {
			for _, event := range batch {
				if event.Type == "bad" {
					return refused(status)
				}
			}
			return nil
		}}
		with(t, j, 0, func(t *testing.T, q *Queue) {
			for _, kind := range []string{"a", "b", "bad", "c", "bad", "d"} {
				q.Add(kind, nil)
			}
			q.Flush(t.Context())
			if !time.Now().Equal(j.begin) {
				t.Error("a flush waits for an event that was left out")
			}
			q.Add("e", nil)
		})
		want := []string{"a{}", "b{}", "c{}", "d{}", `events_dropped{"count":2}`, "e{}"}
		if diff := cmp.Diff(want, j.texts()); diff != "" {
			t.Errorf("status %d: events (-want +got):\n%s", status, diff)
		}
	}
}

func TestWhatIsMissingIsCountedUntilItCanBeTold(t *testing.T) {
	j := &journal{refuse: func(_ []openapi.Event, call int) error {
		if call <= 6 { // [a b], [a], [b], [dropped c], [dropped], [c]
			return refused(422)
		}
		return nil
	}}
	with(t, j, 0, func(t *testing.T, q *Queue) {
		q.Add("a", nil)
		q.Add("b", nil)
		q.Flush(t.Context())
		q.Add("c", nil)
		q.Flush(t.Context())
		time.Sleep(Heartbeat)
	})
	if diff := cmp.Diff([]string{`events_dropped{"count":3}`}, j.texts()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRefusedSignOfLifeIsNoEnd(t *testing.T) {
	j := &journal{refuse: func(_ []openapi.Event, call int) error {
		if call == 1 {
			return errors.New("no answer of the gateway's")
		}
		return nil
	}}
	with(t, j, 0, func(_ *testing.T, q *Queue) {
		time.Sleep(90 * time.Second)
		q.Add("a", nil)
	})
	if len(j.events) != 1 {
		t.Errorf("%d events, want 1", len(j.events))
	}
}

func TestRefusedTokenEndsSending(t *testing.T) {
	for _, status := range []int{401, 403, 404} {
		j := &journal{refuse: func([]openapi.Event, int) error { return refused(status) }}
		with(t, j, 0, func(t *testing.T, q *Queue) {
			q.Add("a", nil)
			q.Add("b", nil)
			q.Flush(t.Context())
			q.Add("c", nil)
			q.Flush(t.Context())
			time.Sleep(time.Hour)
			if after := time.Since(j.begin); after != time.Hour {
				t.Errorf("the flushes took %s", after-time.Hour)
			}
		})
		if len(j.batches) != 1 {
			t.Errorf("status %d: %d batches were sent, want 1", status, len(j.batches))
		}
	}
}

func TestDataIsCleanAndBounded(t *testing.T) {
	j := &journal{}
	many := make([]any, 1000)
	for i := range many {
		many[i] = strings.Repeat("y", 2000)
	}
	wide := make(map[string]any, 100_000)
	for i := range 100_000 {
		wide[strconv.Itoa(i)] = i
	}
	with(t, j, 0, func(_ *testing.T, q *Queue) {
		q.Add("secret", map[string]any{"text": "it is hunter2-hunter2"})
		q.Add("long", map[string]any{"text": strings.Repeat("é", 20000), "list": []any{strings.Repeat("x", 20000)}})
		q.Add("many", map[string]any{"list": many})
		q.Add("wide", wide)
		q.Add("broken", map[string]any{"f": func() {}})
	})
	got := j.texts()
	want := []string{
		`secret{"text":"it is [redacted]"}`,
		`long{"list":["` + strings.Repeat("x", 16384) + `…[truncated 3616 chars]"],"text":"` + strings.Repeat("é", 16384) + `…[truncated 3616 chars]"}`,
		`many{"list":[` + strings.Repeat(`"`+strings.Repeat("y", 1000)+`…[truncated 1000 chars]",`, 50) + `"…[950 more items]"]}`,
		`wide{"truncated":true}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
