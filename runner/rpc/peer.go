// Package rpc is the runner's end of a JSON-RPC 2.0 connection over lines of
// text, made for a peer that may misbehave.
//
// Everything the peer sends is handled in the order in which it was sent, so
// that an answer is seen after the notifications that came before it. Lines
// that are no JSON-RPC message, or longer than [MaxLine], are skipped and
// counted; [MaxSkipped] of them in a row, or a peer that does not read what it
// is sent, break the connection. The connection classes of the protocol's own
// library close on a line of 10 MiB and on a burst of notifications, both of
// which a well-meaning agent may send; hence this one.
//
// The package knows nothing of the Agent Client Protocol's messages.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

const (
	// MaxLine is the longest line that is read, in bytes.
	MaxLine = 16 << 20
	// MaxSkipped lines in a row break the connection.
	MaxSkipped = 100
	// maxUnread messages may wait for the peer to read them.
	maxUnread = 1024
)

// ErrProtocol is why a connection broke when the peer does not speak the
// protocol.
var ErrProtocol = errors.New("peer does not speak JSON-RPC")

// ErrClosed is why a connection ended when the peer closed it.
var ErrClosed = errors.New("peer closed the connection")

// Handler takes what the peer sends on its own account. Its methods are called
// one at a time and must not wait for the peer.
type Handler interface {
	// Request answers a request with a value that becomes its JSON result, or
	// with an error.
	Request(method string, params json.RawMessage) (any, *acp.RequestError)
	// Notify takes a notification.
	Notify(method string, params json.RawMessage)
}

type message struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *acp.RequestError `json:"error,omitempty"`
}

func (m *message) isRequest() bool  { return m.Method != "" && m.ID != nil }
func (m *message) isNotice() bool   { return m.Method != "" && m.ID == nil }
func (m *message) isResponse() bool { return m.Method == "" && m.ID != nil }

// Peer is one end of a connection.
type Peer struct {
	handler Handler
	out     chan []byte
	done    chan struct{}
	read    chan struct{}

	mu      sync.Mutex
	nextID  int64
	waiting map[string]chan message
	err     error
	skipped int
}

// Connect starts a connection that reads from r and writes to w. It ends when
// r ends, when w fails, or on [Peer.Close]; neither r nor w is closed.
func Connect(r io.Reader, w io.Writer, handler Handler) *Peer {
	p := &Peer{
		handler: handler,
		out:     make(chan []byte, maxUnread),
		done:    make(chan struct{}),
		read:    make(chan struct{}),
		waiting: make(map[string]chan message),
	}
	go p.readAll(newLines(r, MaxLine))
	go p.writeAll(w)
	return p
}

// Done is closed when the connection has ended; [Peer.Err] then says why.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Drained is closed when nothing more will be handled.
func (p *Peer) Drained() <-chan struct{} { return p.read }

// Err returns why the connection ended, or nil while it lasts.
func (p *Peer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.err
}

// Skipped returns how many lines were skipped so far.
func (p *Peer) Skipped() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.skipped
}

// Close ends the connection for the given reason.
func (p *Peer) Close(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.err != nil {
		return
	}
	p.err = reason
	close(p.done)
}

// Call sends a request and decodes its answer into result, which may be nil.
// The error is an *acp.RequestError if the peer answered with one, the reason
// if the connection ended, or the context's.
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	encoded, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode parameters of %s: %w", method, err)
	}
	id, answer := p.expect()
	defer p.forget(id)
	if err := p.send(message{ID: json.RawMessage(id), Method: method, Params: encoded}); err != nil {
		return err
	}
	select {
	case response := <-answer:
		return decode(method, response, result)
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer to %s: %w", method, context.Cause(ctx))
	case <-p.done:
		return p.afterEnd(method, answer, result)
	}
}

// afterEnd prefers an answer that came in just before the connection ended.
func (p *Peer) afterEnd(method string, answer <-chan message, result any) error {
	select {
	case response := <-answer:
		return decode(method, response, result)
	default:
		return p.Err()
	}
}

func decode(method string, response message, result any) error {
	if response.Error != nil {
		return response.Error
	}
	if result == nil || len(response.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(response.Result, result); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", method, err)
	}
	return nil
}

func (p *Peer) expect() (id string, answer <-chan message) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.nextID++
	id = strconv.FormatInt(p.nextID, 10)
	slot := make(chan message, 1)
	p.waiting[id] = slot
	return id, slot
}

func (p *Peer) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	delete(p.waiting, id)
}

// Notify sends a notification.
func (p *Peer) Notify(method string, params any) error {
	encoded, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode parameters of %s: %w", method, err)
	}
	return p.send(message{Method: method, Params: encoded})
}

// send queues a message; writing it here could wait for a peer that in turn
// waits for us to read.
func (p *Peer) send(m message) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if err := p.Err(); err != nil {
		return err
	}
	select {
	case p.out <- append(line, '\n'):
		return nil
	default:
		p.Close(fmt.Errorf("%w: %d messages unread", ErrProtocol, maxUnread))
		return p.Err()
	}
}

func (p *Peer) writeAll(w io.Writer) {
	for {
		select {
		case <-p.done:
			return
		case line := <-p.out:
			if p.Err() != nil {
				return // both were ready, and a write to this peer may never end
			}
			if _, err := w.Write(line); err != nil {
				p.Close(ErrClosed)
				return
			}
		}
	}
}
