//go:build interop

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
)

// closing is what the model says when it has done its work.
const closing = "I put a wait of an hour in front of the end."

// model plays a language model for agents: it looks at the composition,
// proposes to wait, and says so. What comes next is read from the conversation
// that it is sent, as with a real one, so that requests for other things, such
// as a title, do not confuse it.
type model struct {
	url string
	// hangs: it never answers.
	hangs bool

	mu sync.Mutex
	// seen are the conversations it was asked to go on with, without the asides.
	seen []conversation
	// foreign are requests that it does not understand.
	foreign []string
}

// conversation is what an agent sends, whatever its wire protocol.
type conversation struct {
	// system and said are the texts it is to go by, in order.
	system, said string
	// tools on offer, and the results of those called since the user last spoke.
	tools, results []string
	// key it shows.
	key string
}

// move is what the model does next: it calls a tool, or says something.
type move struct {
	tool  string
	input object
	text  string
}

// startModel serves the wire protocols until the spec ends.
func startModel() *model {
	m := &model{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/chat/completions", m.completions)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.foreign = append(m.foreign, r.Method+" "+r.URL.Path)
		http.NotFound(w, r)
	})
	served := httptest.NewServer(mux)
	DeferCleanup(served.Close)
	m.url = served.URL
	return m
}

// next is the model's move; a model that hangs makes it when nobody waits for it
// any more.
func (m *model) next(ctx context.Context, c conversation) move {
	lookAt := toolEnding(c.tools, "get_composition")
	if lookAt == "" || !strings.Contains(c.said, "[Workbench context]") {
		return move{text: "Triage"} // an aside: a title, or how long a text is
	}
	m.mu.Lock()
	m.seen = append(m.seen, c)
	m.mu.Unlock()
	if m.hangs {
		<-ctx.Done()
	}
	switch len(c.results) {
	case 0:
		return move{tool: lookAt, input: object{}}
	case 1:
		return move{tool: toolEnding(c.tools, "propose_workflow_changes"), input: object{"changeSet": waits(revisionIn(c.results[0]))}}
	}
	return move{text: closing}
}

func toolEnding(tools []string, name string) string {
	for _, tool := range tools {
		if strings.HasSuffix(tool, name) {
			return tool
		}
	}
	return ""
}

var revisionMember = regexp.MustCompile(`"workflowRevision": "(sha256:[0-9a-f]{64})"`)

// revisionIn reads the working revision from the answer of get_composition.
func revisionIn(text string) string {
	match := revisionMember.FindStringSubmatch(text)
	if match == nil {
		return "none in " + text
	}
	return match[1]
}

// stream sends events to an agent.
type stream struct{ http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return stream{w}
}

// send sends one event; its name is left out if it is empty.
func (s stream) send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // only a mistake in this file gets here
	}
	if name != "" {
		_, _ = fmt.Fprintf(s, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(s, "data: %s\n\n", text)
}

// textOf reads a content that is a text or a list of blocks with texts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, block := range blocks {
		texts = append(texts, block.Text)
	}
	return strings.Join(texts, "\n")
}

// conversations are those it has seen.
func (m *model) conversations() []conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]conversation(nil), m.seen...)
}
