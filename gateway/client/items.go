package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// try is one try of a call.
type try func(context.Context) (*http.Response, error)

// get makes a call and returns its answer; what says in a few words what for.
func get[T any](ctx context.Context, c *Client, what string, try try) (*T, error) {
	answer := new(T)
	if err := c.do(ctx, call{timeout: callTimeout, answer: answer, try: try}); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return answer, nil
}

// GetAgentItem returns the content of an item of a composition as its agent
// sees it.
func (c *Client) GetAgentItem(ctx context.Context, namespace, name string, kind openapi.ItemType, item string) (json.RawMessage, error) {
	answer, err := get[json.RawMessage](ctx, c, "get item", func(ctx context.Context) (*http.Response, error) {
		return c.calls.GetAgentItem(ctx, namespace, name, kind, item)
	})
	if err != nil {
		return nil, err
	}
	return *answer, nil
}

// UpsertAgentItem gives an item of a composition a content, or adds it.
func (c *Client) UpsertAgentItem(ctx context.Context, namespace, name string, change openapi.ItemChange) (*openapi.Item, error) {
	return get[openapi.Item](ctx, c, "upsert item", func(ctx context.Context) (*http.Response, error) {
		body, err := encode(change)
		if err != nil {
			return nil, err
		}
		return c.calls.UpsertAgentItemWithBody(ctx, namespace, name, contentType, body)
	})
}

// RemoveAgentItem takes an action type or tool out of a composition. The base
// may be nil. An item that is not there any more when the call is repeated went
// with a try whose answer was lost.
func (c *Client) RemoveAgentItem(ctx context.Context, namespace, name string, item openapi.ItemRef, base *string) error {
	params := &openapi.RemoveAgentItemParams{BaseRevision: base}
	return c.remove(ctx, func(ctx context.Context) (*http.Response, error) {
		return c.calls.RemoveAgentItem(ctx, namespace, name, item.Type, item.Name, params)
	})
}

func (c *Client) remove(ctx context.Context, once try) error {
	tries := 0
	err := c.do(ctx, call{timeout: callTimeout, try: func(ctx context.Context) (*http.Response, error) {
		tries++
		return once(ctx)
	}})
	if problem, ok := asProblem(err); ok && problem.Status == http.StatusNotFound && tries > 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove item: %w", err)
	}
	return nil
}

// ListItems returns the drafts of a session.
func (c *Client) ListItems(ctx context.Context, namespace, name string) (*openapi.Items, error) {
	return get[openapi.Items](ctx, c, "list drafts", func(ctx context.Context) (*http.Response, error) {
		return c.calls.ListItems(ctx, namespace, name)
	})
}

// GetItem returns the content of a draft.
func (c *Client) GetItem(ctx context.Context, namespace, name string, kind openapi.ItemType, item string) (json.RawMessage, error) {
	answer, err := get[json.RawMessage](ctx, c, "get draft", func(ctx context.Context) (*http.Response, error) {
		return c.calls.GetItem(ctx, namespace, name, kind, item)
	})
	if err != nil {
		return nil, err
	}
	return *answer, nil
}

// PutItem drafts a library object.
func (c *Client) PutItem(ctx context.Context, namespace, name string, change openapi.ItemChange) (*openapi.Item, error) {
	return get[openapi.Item](ctx, c, "put draft", func(ctx context.Context) (*http.Response, error) {
		body, err := encode(change)
		if err != nil {
			return nil, err
		}
		return c.calls.PutItemWithBody(ctx, namespace, name, contentType, body)
	})
}

// RemoveItem forgets a draft, as RemoveAgentItem removes an item.
func (c *Client) RemoveItem(ctx context.Context, namespace, name string, item openapi.ItemRef, base *string) error {
	params := &openapi.RemoveItemParams{BaseRevision: base}
	return c.remove(ctx, func(ctx context.Context) (*http.Response, error) {
		return c.calls.RemoveItem(ctx, namespace, name, item.Type, item.Name, params)
	})
}

// ValidateItem returns what is wrong with a content that nobody keeps.
func (c *Client) ValidateItem(ctx context.Context, namespace, name string, validation openapi.Validation) (*openapi.ValidationResult, error) {
	return get[openapi.ValidationResult](ctx, c, "validate item", func(ctx context.Context) (*http.Response, error) {
		body, err := encode(validation)
		if err != nil {
			return nil, err
		}
		return c.calls.ValidateItemWithBody(ctx, namespace, name, contentType, body)
	})
}

// ListStreamEvents returns the newest events of the session's namespace.
func (c *Client) ListStreamEvents(ctx context.Context, filter openapi.ListStreamEventsParams) (*openapi.StreamEvents, error) {
	return get[openapi.StreamEvents](ctx, c, "list events", func(ctx context.Context) (*http.Response, error) {
		return c.calls.ListStreamEvents(ctx, &filter)
	})
}

// GetStreamEvent returns an event as expressions see it.
func (c *Client) GetStreamEvent(ctx context.Context, id string) (json.RawMessage, error) {
	answer, err := get[json.RawMessage](ctx, c, "get event", func(ctx context.Context) (*http.Response, error) {
		return c.calls.GetStreamEvent(ctx, id, nil)
	})
	if err != nil {
		return nil, err
	}
	return *answer, nil
}

// ListLibrary returns what the session's namespace offers of one sort.
func (c *Client) ListLibrary(ctx context.Context, kind openapi.LibraryKind) (*openapi.Library, error) {
	return get[openapi.Library](ctx, c, "list library", func(ctx context.Context) (*http.Response, error) {
		return c.calls.ListLibrary(ctx, kind, nil)
	})
}

// GetLibrary returns the spec of a library object.
func (c *Client) GetLibrary(ctx context.Context, kind openapi.LibraryKind, name string) (json.RawMessage, error) {
	answer, err := get[json.RawMessage](ctx, c, "get library object", func(ctx context.Context) (*http.Response, error) {
		return c.calls.GetLibrary(ctx, kind, name, nil)
	})
	if err != nil {
		return nil, err
	}
	return *answer, nil
}
