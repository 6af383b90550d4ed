package journal_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/journal"
)

func entries(sequences ...int64) []journal.Entry {
	list := make([]journal.Entry, 0, len(sequences))
	for _, sequence := range sequences {
		list = append(list, journal.Entry{Event: text(strconv.FormatInt(sequence, 10)), Sequence: sequence})
	}
	return list
}

func TestParsePosition(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    journal.Position
		refused bool
	}{
		"nothing":            {"", journal.Position{}, false},
		"what String writes": {journal.Position{Attempt: 2, Sequence: 1 << 40}.String(), journal.Position{Attempt: 2, Sequence: 1 << 40}, false},
		"one number":         {"2", journal.Position{}, true},
		"no numbers":         {"a/b", journal.Position{}, true},
		"three numbers":      {"1/2/3", journal.Position{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := journal.ParsePosition(tc.text)
			if got != tc.want || (err != nil) != tc.refused {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	at := journal.Position{Attempt: 2, Sequence: 5}
	for name, tc := range map[string]struct {
		attempt int32
		batch   []int64
		want    []int64
		gap     *journal.GapError
	}{
		"what follows":             {2, []int64{6, 7}, []int64{6, 7}, nil},
		"nothing":                  {2, nil, nil, nil},
		"a repeated batch":         {2, []int64{4, 5}, nil, nil},
		"an overlap":               {2, []int64{4, 5, 6}, []int64{6}, nil},
		"a repeat within a batch":  {2, []int64{6, 6, 7, 6}, []int64{6, 7}, nil},
		"a gap before the batch":   {2, []int64{7, 8}, nil, &journal.GapError{Expected: 6, Actual: 7}},
		"a gap within the batch":   {2, []int64{6, 8}, nil, &journal.GapError{Expected: 7, Actual: 8}},
		"a new pod from its start": {3, []int64{1, 2}, []int64{1, 2}, nil},
		"a new pod from later":     {3, []int64{6}, nil, &journal.GapError{Expected: 1, Actual: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := at.Accept(tc.attempt, entries(tc.batch...))
			var gap *journal.GapError
			errors.As(err, &gap)
			if diff := cmp.Diff(tc.gap, gap); diff != "" {
				t.Errorf("gap (-want +got):\n%s", diff)
			}
			var sequences []int64
			for _, entry := range got {
				sequences = append(sequences, entry.Sequence)
			}
			if diff := cmp.Diff(tc.want, sequences); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	half := journal.Entry{Event: journal.Event{Type: "x", Data: map[string]any{"a": slicesOf(strings.Repeat("x", 8000), 5)}}, Sequence: 3}
	small := string(text("2").Line())
	first := journal.Chunk{Number: 1, First: 1, Last: 1, Position: journal.Position{Attempt: 1, Sequence: 1}, Text: "a line\n"}
	sealed := first
	sealed.Sealed = true
	grown := journal.Chunk{Number: 1, First: 1, Last: 2, Position: journal.Position{Attempt: 1, Sequence: 2}, Text: "a line\n" + small}
	for name, tc := range map[string]struct {
		newest journal.Chunk
		batch  []journal.Entry
		want   []journal.Chunk
	}{
		"nothing": {first, nil, nil},
		"to no journal": {journal.Chunk{}, entries(2), []journal.Chunk{
			{Number: 1, First: 1, Last: 1, Position: journal.Position{Attempt: 1, Sequence: 2}, Text: small},
		}},
		"to the newest chunk": {first, entries(2), []journal.Chunk{grown}},
		"behind a sealed chunk": {sealed, entries(2), []journal.Chunk{
			{Number: 2, First: 2, Last: 2, Position: journal.Position{Attempt: 1, Sequence: 2}, Text: small},
		}},
		"over the end of the chunk": {first, append(entries(2), half, half), []journal.Chunk{
			{Number: 1, First: 1, Last: 3, Position: journal.Position{Attempt: 1, Sequence: 3}, Text: "a line\n" + small + string(half.Line()), Sealed: true},
			{Number: 2, First: 4, Last: 4, Position: journal.Position{Attempt: 1, Sequence: 3}, Text: string(half.Line())},
		}},
		"beyond a chunk that has no room": {grownTo(first, 60_000), []journal.Entry{half}, []journal.Chunk{
			func() journal.Chunk { c := grownTo(first, 60_000); c.Sealed = true; return c }(),
			{Number: 2, First: 2, Last: 2, Position: journal.Position{Attempt: 1, Sequence: 3}, Text: string(half.Line())},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.newest.Append(1, tc.batch)); diff != "" {
				t.Errorf("chunks (-want +got):\n%s", diff)
			}
		})
	}
}

func grownTo(c journal.Chunk, size int) journal.Chunk {
	c.Text = strings.Repeat("x", size-1) + "\n"
	return c
}

// TestAnyRepetitionGivesTheSameJournal sends overlapping and repeated batches,
// and forgets the later chunks of some writes as a crash would.
func TestAnyRepetitionGivesTheSameJournal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		all := make([]journal.Entry, 200)
		for i := range all {
			all[i] = journal.Entry{Event: text(strings.Repeat("y", rng.IntN(8000))), Sequence: int64(i + 1)}
		}
		chunks := map[int64]journal.Chunk{}
		newest := journal.Chunk{}
		for newest.Position.Sequence < int64(len(all)) {
			from := rng.IntN(int(newest.Position.Sequence) + 1)
			to := min(len(all), from+1+rng.IntN(60))
			fresh, err := newest.Position.Accept(1, all[from:to])
			if err != nil {
				t.Fatal(err)
			}
			written := newest.Append(1, fresh)
			written = written[:rng.IntN(len(written)+1)]
			for _, chunk := range written {
				chunks[chunk.Number], newest = chunk, chunk
			}
		}
		assertJournal(t, chunks, all)
	}
}

func assertJournal(t *testing.T, chunks map[int64]journal.Chunk, all []journal.Entry) {
	t.Helper()
	var texts []string
	last := int64(0)
	for number := range int64(len(chunks)) {
		chunk := chunks[number+1]
		if len(chunk.Text) > journal.MaxChunk {
			t.Fatalf("chunk of %d bytes", len(chunk.Text))
		}
		if chunk.First != last+1 || chunk.Last-chunk.First+1 != int64(strings.Count(chunk.Text, "\n")) {
			t.Fatalf("chunk %d has lines %d to %d behind line %d", chunk.Number, chunk.First, chunk.Last, last)
		}
		last = chunk.Last
		texts = append(texts, chunk.Text)
	}
	var want []journal.Event
	for _, entry := range all {
		want = append(want, entry.Event)
	}
	if diff := cmp.Diff(want, journal.Load(texts...)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
}
