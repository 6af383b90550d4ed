package journal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxChunk is the size of a chunk in bytes.
	MaxChunk = 64 << 10
	// MaxChunks of a session are kept; the oldest go first.
	MaxChunks = 64
	// maxMarks is how many of the operator's own events are remembered by key.
	// A repetition comes soon or never.
	maxMarks = 32
)

// A Position tells up to where the events of a session's runners were taken in:
// those of the pod of an attempt, up to a sequence, and all of the pods before.
type Position struct {
	Attempt  int32
	Sequence int64
}

// String is the form that [ParsePosition] reads.
func (p Position) String() string {
	return fmt.Sprintf("%d/%d", p.Attempt, p.Sequence)
}

// ParsePosition reads a position. No text is the position before the first event.
func ParsePosition(text string) (Position, error) {
	if text == "" {
		return Position{}, nil
	}
	attempt, sequence, _ := strings.Cut(text, "/")
	a, err := strconv.ParseInt(attempt, 10, 32)
	if err != nil {
		return Position{}, fmt.Errorf("read attempt of position: %w", err)
	}
	s, err := strconv.ParseInt(sequence, 10, 64)
	if err != nil {
		return Position{}, fmt.Errorf("read sequence of position: %w", err)
	}
	return Position{Attempt: int32(a), Sequence: s}, nil
}

// In is the sequence up to which events of the attempt's pod were taken in.
func (p Position) In(attempt int32) int64 {
	if p.Attempt != attempt {
		return 0
	}
	return p.Sequence
}

// A GapError reports a batch that does not go on where the journal ends.
type GapError struct {
	// Expected is the sequence to go on with, Actual the one that came.
	Expected, Actual int64
}

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("event %d does not follow: expected %d", e.Actual, e.Expected)
}

// An Entry is an event on its way into the journal.
type Entry struct {
	Event
	// Sequence of the event in its pod; 0 for an event of the operator's own.
	Sequence int64
	// Key of an event of the operator's own, which is recorded once for each key;
	// empty for the runner's.
	Key string
}

// Accept returns those entries of a batch that are not in the journal yet. The
// error is a [*GapError] if one is missing before them; then none may be taken.
func (p Position) Accept(attempt int32, batch []Entry) ([]Entry, error) {
	last := p.In(attempt)
	fresh := make([]Entry, 0, len(batch))
	for _, entry := range batch {
		if entry.Sequence <= last {
			continue
		}
		if entry.Sequence != last+1 {
			return nil, &GapError{Expected: last + 1, Actual: entry.Sequence}
		}
		last = entry.Sequence
		fresh = append(fresh, entry)
	}
	return fresh, nil
}

// A Chunk is a part of a journal. The zero chunk is that of a journal without any.
type Chunk struct {
	// Number of the chunk, from 1.
	Number int64
	// First and Last are the numbers of its lines in the session, from 1.
	First, Last int64
	// Position after its last line.
	Position Position
	// Marks are the keys of the latest events of the operator's own, oldest first.
	Marks []string
	// Sealed chunks grow no more.
	Sealed bool
	// Text is its lines.
	Text string
}

// Append returns the chunks that change when the entries of an attempt's pod
// are added to a journal whose newest chunk is given: that chunk, if it grows
// or is sealed, and those that begin behind it, in the order in which they must
// be written.
//
// Sealing a chunk before the next one begins is what keeps two writers apart:
// one that still means to add to the old chunk changes something that is no
// longer what it read.
func (c Chunk) Append(attempt int32, entries []Entry) []Chunk {
	if len(entries) == 0 {
		return nil
	}
	var changed []Chunk
	current := c
	for _, entry := range entries {
		line := string(entry.Line())
		if current.isFull(line) {
			if current.Number > 0 && !current.Sealed {
				current.Sealed = true
				changed = append(changed, current)
			}
			current = current.next()
		}
		current.Text += line
		current.Last++
		current = current.noting(attempt, entry)
	}
	return append(changed, current)
}

// noting remembers what the entry was, for whoever might repeat it.
func (c Chunk) noting(attempt int32, entry Entry) Chunk {
	if entry.Sequence > 0 {
		c.Position = Position{Attempt: attempt, Sequence: entry.Sequence}
	}
	if entry.Key != "" {
		marks := append(slices.Clone(c.Marks), entry.Key)
		c.Marks = marks[max(0, len(marks)-maxMarks):]
	}
	return c
}

// Has tells whether the operator's own event of a key is recorded.
func (c Chunk) Has(key string) bool { return slices.Contains(c.Marks, key) }

// A Line is an event with its number in the session, from 1.
type Line struct {
	Number int64
	Event
}

// Lines returns the chunk's events behind a number. What is no event is passed
// over; it has a number all the same.
func (c Chunk) Lines(after int64) []Line {
	var lines []Line
	number := c.First - 1
	for text := range strings.Lines(c.Text) {
		number++
		if number <= after {
			continue
		}
		if event, ok := parse(text); ok {
			lines = append(lines, Line{Number: number, Event: event})
		}
	}
	return lines
}

// isFull tells whether a line must go into another chunk.
func (c Chunk) isFull(line string) bool {
	return c.Number == 0 || c.Sealed || len(c.Text)+len(line) > MaxChunk
}

// next is the chunk behind, without lines.
func (c Chunk) next() Chunk {
	return Chunk{Number: c.Number + 1, First: c.Last + 1, Last: c.Last, Position: c.Position, Marks: c.Marks}
}
