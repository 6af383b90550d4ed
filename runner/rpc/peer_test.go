package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"
)

// recorder notes what it is given, and answers requests with their parameters.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.seen = append(r.seen, text)
}

func (r *recorder) Notify(method string, params json.RawMessage) { r.note(method + string(params)) }

func (r *recorder) Request(method string, params json.RawMessage) (any, *acp.RequestError) {
	r.note(method + string(params))
	switch method {
	case "no":
		return nil, acp.NewMethodNotFound(method)
	case "bad":
		return func() {}, nil
	default:
		return params, nil
	}
}

// far is the other end of a connection, played by the test.
type far struct {
	in  *bufio.Reader
	out *io.PipeWriter
}

func connectFar(handler Handler) (*Peer, far) {
	fromFar, out := io.Pipe()
	in, toFar := io.Pipe()
	return Connect(fromFar, toFar, handler), far{in: bufio.NewReader(in), out: out}
}

func (f far) write(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(f.out, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
}

func (f far) read(t *testing.T) string {
	t.Helper()
	line, err := f.in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// in runs a test with a connection in a bubble, and ends it afterwards.
func in(t *testing.T, test func(*testing.T, *Peer, far, *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		handler := &recorder{}
		p, other := connectFar(handler)
		test(t, p, other, handler)
		p.Close(ErrClosed)
		_ = other.out.Close()
		synctest.Wait()
	})
}

func TestAnswerComesAfterWhatWasSentBefore(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, handler *recorder) {
		go func() {
			if got, want := other.read(t), `{"jsonrpc":"2.0","id":1,"method":"ask","params":{"a":1}}`; got != want {
				t.Errorf("request %s, want %s", got, want)
			}
			for i := range 3000 {
				other.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":%d}`, i))
			}
			other.write(t, `{"jsonrpc":"2.0","id":1,"result":{"b":2}}`)
		}()
		var result struct{ B int }
		if err := p.Call(t.Context(), "ask", map[string]int{"a": 1}, &result); err != nil || result.B != 2 {
			t.Errorf("result %+v, error %v", result, err)
		}
		if len(handler.seen) != 3000 || handler.seen[2999] != "n2999" {
			t.Errorf("%d notifications were handled before the answer", len(handler.seen))
		}
	})
}

func TestRequestsAreAnsweredWithTheirOwnID(t *testing.T) {
	in(t, func(t *testing.T, _ *Peer, other far, _ *recorder) {
		cases := map[string]string{
			`{"jsonrpc":"2.0","id":"x","method":"echo","params":{"a":1}}`: `{"jsonrpc":"2.0","id":"x","result":{"a":1}}`,
			`{"jsonrpc":"2.0","id":7,"method":"echo","params":null}`:      `{"jsonrpc":"2.0","id":7,"result":null}`,
			`{"jsonrpc":"2.0","id":8,"method":"no"}`:                      `{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found","data":{"method":"no"}}}`,
			`{"jsonrpc":"2.0","id":9,"method":"bad"}`:                     `{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"Internal error","data":"json: unsupported type: func()"}}`,
		}
		for request, want := range cases {
			other.write(t, request)
			if got := other.read(t); got != want {
				t.Errorf("%s was answered %s, want %s", request, got, want)
			}
		}
	})
}

func TestCallsThatAreNotAnsweredWell(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, _ *recorder) {
		go func() {
			other.read(t)
			other.write(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"who are you"}}`)
			other.read(t)
			other.write(t, `{"jsonrpc":"2.0","id":2,"result":[]}`)
			other.read(t)
		}()
		var refused *acp.RequestError
		if err := p.Call(t.Context(), "ask", nil, nil); !errors.As(err, &refused) || refused.Code != -32000 {
			t.Errorf("error %v", err)
		}
		var object struct{}
		if err := p.Call(t.Context(), "ask", nil, &object); err == nil || !strings.Contains(err.Error(), "decode the answer to ask") {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Call(ctx, "ask", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		// An answer that nobody waits for any more changes nothing.
		other.write(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","id":99,"result":{}}`)
		if err := p.Call(t.Context(), "ask", func() {}, nil); err == nil {
			t.Error("parameters that are no JSON were sent")
		}
	})
}

func TestEndOfTheConnectionEndsCalls(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, _ *recorder) {
		go func() {
			other.read(t)
			_ = other.out.Close()
		}()
		if err := p.Call(t.Context(), "ask", nil, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("error %v", err)
		}
		<-p.Done()
		<-p.Drained()
		if err := p.Notify("n", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLastWordsAreHandled(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, handler *recorder) {
		if _, err := io.WriteString(other.out, `{"jsonrpc":"2.0","method":"last"}`); err != nil {
			t.Fatal(err)
		}
		_ = other.out.Close()
		<-p.Drained()
		if diff := cmp.Diff([]string{"last"}, handler.seen); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
	})
}

func TestLinesThatAreNoMessagesAreSkipped(t *testing.T) {
	noMessages := []string{
		"Loading…", "{", `{"jsonrpc":"1.0","method":"n"}`, `{"method":"n"}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1}`,
		`[{"jsonrpc":"2.0","method":"n"}]`, `{"jsonrpc":"2.0","id":null,"result":1}`, `"text"`, `{"jsonrpc":"2.0","method":7}`,
		strings.Repeat("x", MaxLine+1),
	}
	in(t, func(t *testing.T, p *Peer, other far, handler *recorder) {
		other.write(t, noMessages...)
		other.write(t, "", "  ", "\r", `{"jsonrpc":"2.0","method":"n","params":1}`+"\r")
		synctest.Wait()
		if got := p.Skipped(); got != len(noMessages) {
			t.Errorf("skipped %d, want %d", got, len(noMessages))
		}
		if diff := cmp.Diff([]string{"n1"}, handler.seen); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
	})
}

func TestLineOfTheLargestSizeIsRead(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, handler *recorder) {
		frame := `{"jsonrpc":"2.0","method":"n","params":""}`
		other.write(t, frame[:len(frame)-2]+strings.Repeat("x", MaxLine-len(frame))+`"}`)
		synctest.Wait()
		if len(handler.seen) != 1 || p.Skipped() != 0 {
			t.Errorf("handled %d, skipped %d", len(handler.seen), p.Skipped())
		}
	})
}

func TestOnlySkippedLinesInARowBreakTheConnection(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, _ *recorder) {
		for range 3 {
			for range MaxSkipped - 1 {
				other.write(t, "Loading…")
			}
			other.write(t, `{"jsonrpc":"2.0","method":"n"}`)
		}
		synctest.Wait()
		if err := p.Err(); err != nil {
			t.Errorf("the connection ended: %v", err)
		}
		for range MaxSkipped {
			other.write(t, "Loading…")
		}
		<-p.Done()
		if err := p.Err(); !errors.Is(err, ErrProtocol) {
			t.Errorf("the connection ended with %v", err)
		}
	})
}

func TestPeerThatDoesNotReadBreaksTheConnection(t *testing.T) {
	in(t, func(t *testing.T, p *Peer, other far, _ *recorder) {
		for i := 0; p.Err() == nil; i++ {
			if i > 2*maxUnread {
				t.Fatal("messages pile up")
			}
			other.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, i))
			synctest.Wait()
		}
		if err := p.Err(); !errors.Is(err, ErrProtocol) {
			t.Errorf("the connection ended with %v", err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(other.in, 1)) // lets the writer go
	})
}

func FuzzPeer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`))
	f.Add([]byte("garbage\n{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"error":{"code":1,"message":"m"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		handler := &recorder{}
		var out bytes.Buffer
		p := &Peer{handler: handler, out: make(chan []byte, maxUnread), done: make(chan struct{}), read: make(chan struct{}), waiting: map[string]chan message{}}
		p.readAll(newLines(bytes.NewReader(data), 1<<10))
		close(p.out)
		for line := range p.out {
			out.Write(line)
		}
		lines := bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n")) + 1
		if handled := len(handler.seen); handled+p.Skipped() > lines {
			t.Errorf("%d handled and %d skipped of %d lines", handled, p.Skipped(), lines)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("answered %q", line)
			}
		}
	})
}
