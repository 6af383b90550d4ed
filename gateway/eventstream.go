package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// streamLife is how long one stream lasts. Whoever still may look then comes
	// again; whoever may not any more does not.
	streamLife = 10 * time.Minute
	// commentInterval keeps whatever is between from taking a quiet stream for a
	// dead one.
	commentInterval = 15 * time.Second
	// maxStreams of one caller.
	maxStreams = 16

	mediaStream = "text/event-stream"
	mediaLines  = "application/jsonl"
)

// longAgo makes a deadline pass at once.
var longAgo = time.Unix(1, 0)

// wantsStream tells whether the caller asks for server-sent events.
func wantsStream(r *http.Request) bool {
	for _, accepted := range r.Header.Values("Accept") {
		if strings.Contains(accepted, mediaStream) {
			return true
		}
	}
	return false
}

// streams counts those that are open, by caller. The zero value is ready to use.
type streams struct {
	mu   sync.Mutex
	open map[string]int
}

// enter tells whether the caller may have one more, which it must leave.
func (s *streams) enter(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] >= maxStreams {
		return false
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[key]++
	return true
}

func (s *streams) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key]--; s.open[key] == 0 {
		delete(s.open, key)
	}
}

// stream is an answer that goes on while things happen.
type stream struct {
	server *Server
	ctx    context.Context //nolint:containedctx // the generated code hands the answer over without one
	media  string
	// run sends until the stream is over.
	run func(ctx context.Context, out *output) error
}

// newStream makes a stream of the caller's, if it may have one more.
func (s *Server) newStream(ctx context.Context, media string, run func(context.Context, *output) error) (stream, error) {
	if !s.streams.enter(callerOf(ctx).key) {
		return stream{}, rateLimited()
	}
	return stream{server: s, ctx: ctx, media: media, run: run}, nil
}

// VisitWatchCompositionResponse implements the generated interface.
func (t stream) VisitWatchCompositionResponse(w http.ResponseWriter) error { return t.serve(w) }

// VisitReadEventsResponse implements the generated interface.
func (t stream) VisitReadEventsResponse(w http.ResponseWriter) error { return t.serve(w) }

// serve sends what happens until the caller is gone, the stream's life is over
// or the server shuts down. What goes wrong once it began can only end it.
func (t stream) serve(w http.ResponseWriter) error {
	who := callerOf(t.ctx)
	defer t.server.streams.leave(who.key)
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	control := http.NewResponseController(w)
	// The server's own limits are for requests with an answer. An error says that
	// this writer knows no deadlines.
	_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
	// A caller that does not read must not hold up the end.
	stop := context.AfterFunc(ctx, func() { _ = control.SetWriteDeadline(longAgo) })
	defer stop()
	defer t.server.endWith(ctx, cancel)()

	header := w.Header()
	header.Set("Content-Type", t.media)
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	// The caller must know that the stream began, even if nothing happens yet.
	_ = control.Flush()
	out := &output{w: w, flush: control.Flush}
	if err := t.run(ctx, out); err != nil && ctx.Err() == nil {
		t.server.log.Error(err, "Ended a stream", "caller", who.key)
	}
	return nil
}

// endWith calls end when a stream's life is over, or the server shuts down. The
// caller must call leave.
func (s *Server) endWith(ctx context.Context, end func()) (leave func()) {
	over, forget := s.bells.listen(topic{kind: "end"})
	life := s.clock.NewTimer(streamLife)
	go func() {
		defer end()
		for {
			select {
			case _, open := <-over:
				if !open {
					return
				}
			case <-life.C():
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		life.Stop()
		forget()
	}
}

// output is where the events of a stream go.
type output struct {
	w     io.Writer
	flush func() error
}

func (o *output) send(text string) error {
	if _, err := io.WriteString(o.w, text); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	// One that cannot flush sends when it is full, or at the end.
	_ = o.flush()
	return nil
}

// comment shows that the stream lives.
func (o *output) comment() error { return o.send(":\n\n") }

// event sends a server-sent event; an id of 0 is none.
func (o *output) event(id int64, kind string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	var message strings.Builder
	if id > 0 {
		message.WriteString("id: " + strconv.FormatInt(id, 10) + "\n")
	}
	// JSON has no line breaks of its own; a type is a word.
	message.WriteString("event: " + strings.NewReplacer("\n", " ", "\r", " ").Replace(kind) + "\ndata: ")
	message.Write(text)
	message.WriteString("\n\n")
	return o.send(message.String())
}
