package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	acp "github.com/coder/acp-go-sdk"
)

func (p *Peer) readAll(in *lines) {
	defer close(p.read)

	inRow := 0
	for {
		line, tooLong, err := in.next()
		if err != nil {
			p.Close(endOf(err))
			return
		}
		if !tooLong && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		parsed, ok := parse(line)
		if tooLong || !ok {
			inRow++
			p.countSkipped()
			if inRow >= MaxSkipped {
				p.Close(fmt.Errorf("%w: %d lines in a row are no messages", ErrProtocol, inRow))
				return
			}
			continue
		}
		inRow = 0
		p.handle(parsed)
	}
}

func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

func (p *Peer) countSkipped() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.skipped++
}

// parse returns the message of a line, if it is one: an object of version 2.0
// that is a request, a notification or an answer.
func parse(line []byte) (message, bool) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
		return message{}, false
	}
	if m.ID != nil && bytes.Equal(m.ID, []byte("null")) {
		m.ID = nil
	}
	isAnswer := m.isResponse() && (m.Result != nil || m.Error != nil)
	return m, m.Method != "" || isAnswer
}

func (p *Peer) handle(m message) {
	switch {
	case m.isRequest():
		p.answer(m)
	case m.isNotice():
		p.handler.Notify(m.Method, m.Params)
	default:
		p.deliver(m)
	}
}

func (p *Peer) answer(m message) {
	result, failure := p.handler.Request(m.Method, m.Params)
	answer := message{ID: m.ID, Error: failure}
	if failure == nil {
		encoded, err := json.Marshal(result)
		if err != nil {
			answer.Error = acp.NewInternalError(err.Error())
		}
		answer.Result = encoded
	}
	// The only failures are those that end the connection, and the reader sees
	// that by itself.
	_ = p.send(answer)
}

// deliver hands an answer to the call that waits for it; late ones are dropped.
func (p *Peer) deliver(m message) {
	p.mu.Lock()
	slot, ok := p.waiting[string(m.ID)]
	delete(p.waiting, string(m.ID))
	p.mu.Unlock()

	if ok {
		slot <- m
	}
}
