package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// An Event tells the page that something it may show is not what it was.
type Event struct {
	// Kind of the object, such as turn.
	Kind string `json:"kind"`
	// Name of the object; empty: any of the kind.
	Name string `json:"name,omitempty"`
	// Blind is why changes of the kind are not seen; empty if they are.
	Blind string `json:"blind,omitempty"`
}

// Watch tells of changes until the context ends, or tell cannot. It tells from one
// goroutine at a time.
type Watch func(ctx context.Context, tell func(Event) error) error

// stream serves what a watch tells as server-sent events. A browser that loses the
// connection makes a new one, and a watch begins by saying that all may have changed.
func (watch Watch) stream(w http.ResponseWriter, r *http.Request) {
	flow := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	if _, err := fmt.Fprint(w, "retry: 2000\n\n"); err != nil {
		return
	}
	if err := flow.Flush(); err != nil {
		return
	}
	_ = watch(r.Context(), func(event Event) error { // the page asks again, and is told then
		data, err := json.Marshal(event)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
		if err := flow.Flush(); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
		return nil
	})
}
