package crash

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// relist is what a server sends in a watch whose client has to list anew.
const relist = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,` +
	`"message":"the event was lost"}}` + "\n"

// isWatch tells whether the answer to a request is a stream of events.
func isWatch(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return req.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// watch opens a watch whose events pass one by one.
func (g *gate) watch(req *http.Request) (*http.Response, error) {
	isListed := req.URL.Query().Get("sendInitialEvents") == "true"
	if isListed && g.life.past > 0 {
		// A stream cannot begin in the past; its client then lists instead.
		return refuse(req), nil
	}
	answer, err := g.base.RoundTrip(req)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return answer, err
	}
	reader, writer := io.Pipe()
	s := &stream{life: g.life, base: answer.Body, reader: reader, writer: writer, closed: make(chan struct{}), isListing: isListed}
	answer.Body = s
	go s.run()
	return answer, nil
}

// stream hands the events of a watch on.
type stream struct {
	life   *life
	base   io.ReadCloser
	reader *io.PipeReader
	writer *io.PipeWriter
	once   sync.Once
	closed chan struct{}
	// isListing: the events that are yet to come first say what there is.
	isListing bool
}

// Read gives the process what it may know by now.
func (s *stream) Read(p []byte) (int, error) { return s.reader.Read(p) }

// Close ends the watch.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	_ = s.reader.Close()
	return s.base.Close()
}

func (s *stream) run() {
	if s.life.past > 0 {
		s.hold()
	}
	events := json.NewDecoder(s.base)
	for {
		var event json.RawMessage
		if err := events.Decode(&event); err != nil {
			_ = s.writer.CloseWithError(err)
			return
		}
		s.life.hear(event)
		if err := s.pass(append(event, '\n')); err != nil {
			_ = s.writer.CloseWithError(err)
			return
		}
	}
}

// pass hands one event on, as the fault wants it.
func (s *stream) pass(event []byte) error {
	if s.isListing || bytes.HasPrefix(event, []byte(`{"type":"BOOKMARK"`)) {
		if bytes.Contains(event, []byte("k8s.io/initial-events-end")) {
			s.isListing = false
		}
		return s.send(event)
	}
	number := int(s.life.events.Add(1))
	fault := s.life.fault
	switch {
	case fault.Kind == Repeated:
		s.life.struck.Store(true)
		if err := s.send(event); err != nil {
			return err
		}
	case fault.At != number:
	case fault.Kind == Late:
		s.life.struck.Store(true)
		s.hold()
	case fault.Kind == Lost:
		s.life.struck.Store(true)
		event = []byte(relist)
	}
	return s.send(event)
}

func (s *stream) send(event []byte) error {
	_, err := s.writer.Write(event)
	return err
}

// hold waits until the process is still, and so keeps all that follows back.
func (s *stream) hold() {
	limit := time.NewTimer(holdLimit)
	defer limit.Stop()
	select {
	case <-s.life.still.next():
	case <-limit.C:
	case <-s.closed:
	}
}
