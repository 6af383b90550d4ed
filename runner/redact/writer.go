package redact

import (
	"fmt"
	"io"
	"sync"
)

// maxHeld bounds what a Writer holds back; a secret longer than this is cut
// into pieces by whoever wrote it, and no log line is that long.
const maxHeld = 1 << 20

// Writer passes text on without secrets. Flush releases what is held back.
// Several goroutines may write.
type Writer struct {
	redactor *Redactor
	out      io.Writer

	mu   sync.Mutex
	held []byte
}

// Writer returns a Writer in front of out.
func (r *Redactor) Writer(out io.Writer) *Writer {
	return &Writer{redactor: r, out: out}
}

// Write takes all of p, and passes on as much as cannot be part of a secret
// that is still to be completed.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.held = append(w.held, p...)
	safe := w.redactor.Safe(string(w.held))
	if len(w.held)-safe > maxHeld {
		safe = len(w.held)
	}
	if err := w.release(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on the rest, taking it for complete.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.release(len(w.held))
}

func (w *Writer) release(n int) error {
	if n == 0 {
		return nil
	}
	text := w.redactor.String(string(w.held[:n]))
	w.held = append(w.held[:0], w.held[n:]...)
	if _, err := io.WriteString(w.out, text); err != nil {
		return fmt.Errorf("write redacted text: %w", err)
	}
	return nil
}
