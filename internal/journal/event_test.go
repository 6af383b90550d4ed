package journal_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/journal"
)

func text(s string) journal.Event {
	return journal.Event{Type: journal.TypeAssistantText, Data: map[string]any{"text": s}}
}

func TestLineIsOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		event journal.Event
		want  string
	}{
		"workbench 40: a text with line breaks": {
			text("one\ntwo\r\n<three>\u2028"),
			`{"type":"assistant_text","data":{"text":"one\ntwo\r\n<three>\u2028"}}` + "\n",
		},
		"no data": {journal.Event{Type: "conversation_reset"}, `{"type":"conversation_reset","data":{}}` + "\n"},
		"an integer that no double has": {
			journal.Event{Type: "x", Data: map[string]any{"n": int64(9007199254740993)}},
			`{"type":"x","data":{"n":9007199254740993}}` + "\n",
		},
		"bytes that are no text": {
			text("a\xffb"), `{"type":"assistant_text","data":{"text":"a\ufffdb"}}` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tc.event.Line()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestLineCutsTexts(t *testing.T) {
	got := journal.Load(string(text(strings.Repeat("ö", journal.MaxString+1)).Line()))
	want := []journal.Event{text(strings.Repeat("ö", journal.MaxString) + "…[truncated 1 chars]")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestLineFitsAChunkWhateverTheData(t *testing.T) {
	manyLists := map[string]any{}
	for i := range 300 {
		manyLists[strconv.Itoa(i)] = []any{strings.Repeat("x", 8000), strings.Repeat("\u0001", 8000)}
	}
	manyNames := map[string]any{}
	for i := range 10_000 {
		manyNames[fmt.Sprintf("a name of some length %d", i)] = true
	}
	for name, tc := range map[string]struct {
		data     map[string]any
		leftOut  bool
		mustHave string
	}{
		"long texts in lists":        {data: manyLists, mustHave: "…[truncated"},
		"a list of long texts":       {data: map[string]any{"l": slicesOf(strings.Repeat("é", 8000), 200)}, mustHave: "more items]"},
		"more names than fit":        {data: manyNames, leftOut: true},
		"a text that is all escapes": {data: map[string]any{"t": strings.Repeat("\u0001", 1<<20)}, mustHave: "…[truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			line := journal.Event{Type: "tool_result", Data: tc.data}.Line()
			if len(line) > journal.MaxChunk {
				t.Fatalf("line has %d bytes", len(line))
			}
			if !strings.Contains(string(line), tc.mustHave) {
				t.Errorf("line does not say %q", tc.mustHave)
			}
			want := map[string]any{"truncated": true}
			if got := journal.Load(string(line))[0].Data; tc.leftOut != cmp.Equal(got, want) {
				t.Errorf("data left out: %v, want %v", !tc.leftOut, tc.leftOut)
			}
		})
	}
}

func slicesOf(s string, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func TestLoad(t *testing.T) {
	reset := journal.Event{Type: journal.TypeConversationReset, Data: map[string]any{}}
	empty := func(kind string) journal.Event { return journal.Event{Type: kind, Data: map[string]any{}} }
	for name, tc := range map[string]struct {
		chunks []string
		want   []journal.Event
	}{
		"workbench 41: no journal":                   {nil, nil},
		"workbench 41: an empty journal":             {[]string{""}, nil},
		"workbench 41: blank lines":                  {[]string{"\n  \n"}, nil},
		"workbench 41: a malformed line":             {[]string{"{\"type\":\n{\"type\":\"a\"}\n"}, []journal.Event{empty("a")}},
		"workbench 41: values that are no objects":   {[]string{"1\n[]\n\"x\"\nnull\n"}, nil},
		"workbench 41: a line without a type":        {[]string{`{"data":{}}` + "\n" + `{"type":""}` + "\n" + `{"type":1}`}, nil},
		"workbench 41: missing data":                 {[]string{`{"type":"a"}`}, []journal.Event{empty("a")}},
		"workbench 41: data that is null":            {[]string{`{"type":"a","data":null}`}, []journal.Event{empty("a")}},
		"workbench 41: data that is no object":       {[]string{`{"type":"a","data":[1]}`}, []journal.Event{empty("a")}},
		"workbench 41: events of several chunks":     {[]string{"{\"type\":\"a\"}\n", "{\"type\":\"b\"}\n"}, []journal.Event{empty("a"), empty("b")}},
		"workbench 41: a line without its end":       {[]string{`{"type":"a"}`, `{"type":"b"}`}, []journal.Event{empty("a"), empty("b")}},
		"workbench 41: all before the last reset":    {[]string{"{\"type\":\"a\"}\n" + string(reset.Line()) + "{\"type\":\"b\"}\n" + string(reset.Line()) + "{\"type\":\"c\"}\n"}, []journal.Event{reset, empty("c")}},
		"workbench 41: a reset in a chunk before":    {[]string{"{\"type\":\"a\"}\n" + string(reset.Line()), "{\"type\":\"b\"}\n"}, []journal.Event{reset, empty("b")}},
		"workbench 41: a malformed line has no type": {[]string{"conversation_reset\n{\"type\":\"a\"}\n"}, []journal.Event{empty("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, journal.Load(tc.chunks...)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoadGivesWhatWasAppended appends random events in random batches, with
// garbage between the chunks' lines, and loads them.
func TestLoadGivesWhatWasAppended(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var events []journal.Event
		var texts []string
		var newest journal.Chunk
		sequence := int64(0)
		for range rng.IntN(6) {
			batch := randomBatch(rng, &sequence)
			for _, chunk := range newest.Append(1, batch) {
				texts = replaceOrAdd(texts, chunk)
				newest = chunk
			}
			for _, entry := range batch {
				if entry.Type == journal.TypeConversationReset {
					events = nil
				}
				events = append(events, entry.Event)
			}
		}
		for i := range texts {
			texts[i] = "\n{]\n" + texts[i]
		}
		if diff := cmp.Diff(events, journal.Load(texts...)); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
	}
}

func replaceOrAdd(texts []string, chunk journal.Chunk) []string {
	if int(chunk.Number) <= len(texts) {
		texts[chunk.Number-1] = chunk.Text
		return texts
	}
	return append(texts, chunk.Text)
}

func randomBatch(rng *rand.Rand, sequence *int64) []journal.Entry {
	var batch []journal.Entry
	for range rng.IntN(30) {
		*sequence++
		event := journal.Event{Type: journal.TypeAssistantText, Data: map[string]any{"text": randomText(rng), "n": rng.Int64()}}
		if rng.IntN(40) == 0 {
			event = journal.Event{Type: journal.TypeConversationReset, Data: map[string]any{}}
		}
		batch = append(batch, journal.Entry{Event: event, Sequence: *sequence})
	}
	return batch
}

func randomText(rng *rand.Rand) string {
	runes := make([]rune, rng.IntN(4000))
	for i := range runes {
		runes[i] = rune(rng.IntN(0x3000))
	}
	return string(runes)
}

func FuzzLoad(f *testing.F) {
	f.Add("{\"type\":\"a\"}\n", "\x00\n{\"type\":\"conversation_reset\"}")
	f.Add(`{"type":"a","data":{"text":"x"}}`, "[]\n\n\r\n{")
	f.Fuzz(func(t *testing.T, before, after string) {
		event := text("between")
		events := journal.Load(before, string(event.Line()), after)
		resets := strings.Contains(after, journal.TypeConversationReset) || !utf8.ValidString(after) || strings.Contains(after, `\u`)
		if !resets && !contains(events, event) {
			t.Errorf("the event got lost between %q and %q", before, after)
		}
		for _, e := range events {
			if e.Type == "" || e.Data == nil {
				t.Errorf("loaded %#v", e)
			}
		}
	})
}

func contains(events []journal.Event, want journal.Event) bool {
	for _, event := range events {
		if cmp.Equal(event, want) {
			return true
		}
	}
	return false
}
