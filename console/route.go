package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// maxBody bounds what a page sends, in bytes: an answer of a task, and what JSON
// makes of it within JSON.
const maxBody = 512 << 10

// A Route is one thing that the page may ask for.
type Route struct {
	// Method is GET for what only reads, POST for what does not.
	Method string
	// Path below /api/, as patterns of net/http have it; {name} is an object.
	Path string
	// Answer does it. What it returns becomes JSON; an error that is no [RefusalError]
	// is told as the fault of what stands behind.
	Answer func(ctx context.Context, r Request) (any, error)
}

// A Request is what the page asks a route.
type Request struct {
	// Name of the object, where the path has one.
	Name  string
	Query url.Values
	// Body is JSON of unknown shape, as it was sent.
	Body []byte
}

// A RefusalError is a request that was understood, and not followed.
type RefusalError struct {
	// Status of HTTP, from 400 to 499.
	Status int `json:"-"`
	// Message for people.
	Message string `json:"error"`
	// Problems of what was sent, by place.
	Problems any `json:"problems,omitempty"`
}

// Error implements error.
func (r *RefusalError) Error() string { return r.Message }

// Decode reads the body of a request into v, and nothing that v does not have.
func (r Request) Decode(v any) error {
	if err := json.Unmarshal(r.Body, v); err != nil {
		return &RefusalError{Status: http.StatusBadRequest, Message: "the request is not what this asks for"}
	}
	return nil
}

func (r Route) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		writeError(w, &RefusalError{Status: http.StatusRequestEntityTooLarge, Message: "the request is too large"})
		return
	}
	answer, err := r.Answer(request.Context(), Request{Name: request.PathValue("name"), Query: request.URL.Query(), Body: body})
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func writeError(w http.ResponseWriter, err error) {
	if refusal, isRefusal := errors.AsType[*RefusalError](err); isRefusal {
		writeJSON(w, refusal.Status, refusal)
		return
	}
	writeJSON(w, http.StatusBadGateway, &RefusalError{Message: err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // whoever asked is gone
}
