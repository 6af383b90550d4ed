package event

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func messageOf(contentType, body string, headers ...string) Message {
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Add(headers[i], headers[i+1])
	}
	return Message{ContentType: contentType, Header: header.Values, Body: []byte(body)}
}

// order is the event that the examples tell of.
func order() Event {
	return Event{
		SenderID: "A-1", Type: "order.placed", Source: "/shop", Ref: "order/7", Timestamp: "2026-05-04T10:11:12.5Z",
		Payload: map[string]any{"total": int64(3)},
	}
}

const orderText = `{"specversion":"1.0","id":"A-1","type":"order.placed","source":"/shop","subject":"order/7",
	"time":"2026-05-04T10:11:12.5Z","datacontenttype":"application/json","extension":"x","data":{"total":3.0}}`

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	required := []string{"ce-specversion", "1.0", "ce-id", "A-1", "ce-type", "order.placed", "ce-source", "/shop"}
	for name, tc := range map[string]struct {
		message Message
		want    []Event
	}{
		"binary": {
			messageOf("application/json; charset=utf-8", `{"total":3}`,
				append(required, "ce-subject", "order/7", "ce-time", "2026-05-04T10:11:12.5Z", "ce-extension", "x")...),
			[]Event{order()},
		},
		"binary without what is optional": {
			messageOf("", `{}`, required...),
			[]Event{{SenderID: "A-1", Type: "order.placed", Source: "/shop", Payload: map[string]any{}}},
		},
		"binary with a JSON of its own kind": {
			messageOf("application/vnd.shop+json", `{}`, required...),
			[]Event{{SenderID: "A-1", Type: "order.placed", Source: "/shop", Payload: map[string]any{}}},
		},
		"binary with what headers cannot hold": {
			messageOf("", `{}`, append(required, "ce-subject", `"caf%C3%A9 \"a\\b\""`)...),
			[]Event{{SenderID: "A-1", Type: "order.placed", Source: "/shop", Ref: `café "a\b"`, Payload: map[string]any{}}},
		},
		"structured":         {messageOf("application/cloudevents+json", orderText), []Event{order()}},
		"structured, spoken": {messageOf("Application/CloudEvents+JSON; charset=UTF-8", orderText), []Event{order()}},
		"structured, its data encoded": {
			messageOf("application/cloudevents+json", `{"specversion":"1.0","id":"A-1","type":"t","source":"s","data_base64":"eyJhIjoxfQ=="}`),
			[]Event{{SenderID: "A-1", Type: "t", Source: "s", Payload: map[string]any{"a": int64(1)}}},
		},
		"batch":          {messageOf("application/cloudevents-batch+json", "["+orderText+","+orderText+"]"), []Event{order(), order()}},
		"an empty batch": {messageOf("application/cloudevents-batch+json", "[]"), []Event{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.message.CloudEvents()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloudEventsThatAreNone(t *testing.T) {
	t.Parallel()
	binary := func(contentType, body string, change ...string) Message {
		header := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-Source": {"s"}}
		for i := 0; i+1 < len(change); i += 2 {
			header.Set(change[i], change[i+1])
		}
		return Message{ContentType: contentType, Header: header.Values, Body: []byte(body)}
	}
	structured := func(text string) Message { return messageOf("application/cloudevents+json", text) }
	twice := binary("", "{}")
	twice.Header = http.Header{"Ce-Id": {"1", "2"}}.Values
	for name, tc := range map[string]struct {
		message Message
		want    string
	}{
		"nothing of the kind":            {messageOf("application/json", `{}`), "specversion must be 1.0"},
		"an older version":               {binary("", `{}`, "ce-specversion", "0.3"), "specversion must be 1.0"},
		"no id":                          {binary("", `{}`, "ce-id", ""), "id is required"},
		"a blank source":                 {binary("", `{}`, "ce-source", "  "), "source is required"},
		"a source that is no reference":  {binary("", `{}`, "ce-source", "http://[::1"), "source must be a URI reference"},
		"no type":                        {binary("", `{}`, "ce-type", ""), "type is required"},
		"a type too long":                {binary("", `{}`, "ce-type", strings.Repeat("t", 254)), "type has 254 characters, the limit is 253"},
		"a subject too long":             {binary("", `{}`, "ce-subject", strings.Repeat("é", 2049)), "subject has 2049 characters"},
		"a line break in a subject":      {binary("", `{}`, "ce-subject", "a%0d%0aX-Evil: 1"), "subject must not have control characters"},
		"no Unicode in a subject":        {binary("", `{}`, "ce-subject", "%ff"), "subject must be valid UTF-8"},
		"half an escape":                 {binary("", `{}`, "ce-subject", "100%"), "subject is not percent-encoded"},
		"half a quotation":               {binary("", `{}`, "ce-subject", `"a`), "subject has a quotation mark"},
		"no time":                        {binary("", `{}`, "ce-time", "yesterday"), "time must be a time in the form of RFC 3339"},
		"an id twice":                    {twice, "id must be given once"},
		"text for data":                  {binary("text/plain", `{}`), "content type must be JSON"},
		"a list for data":                {binary("application/json", `[1]`), "data must be a JSON object"},
		"no data":                        {binary("application/json", ``), "data must be a JSON object"},
		"data that breaks off":           {binary("application/json", `{"a":`), "data must be a JSON object"},
		"two values":                     {binary("application/json", `{}{}`), "data must be a JSON object"},
		"another format":                 {messageOf("application/cloudevents+avro", `x`), "content type must be application/cloudevents+json"},
		"structured, no JSON":            {structured(`{`), "the body is not JSON"},
		"structured, a list":             {structured(`[]`), "a CloudEvent must be an object"},
		"structured, a number as id":     {structured(`{"specversion":"1.0","id":1}`), "id must be text"},
		"structured, without data":       {structured(`{"specversion":"1.0","id":"1","type":"t","source":"s"}`), "data must be a JSON object"},
		"structured, text as data":       {structured(`{"specversion":"1.0","id":"1","type":"t","source":"s","data":"x"}`), "data must be a JSON object"},
		"structured, no base64":          {structured(`{"specversion":"1.0","id":"1","type":"t","source":"s","data_base64":"*"}`), "data_base64 must be base64"},
		"structured, a NUL":              {structured(`{"specversion":"1.0","id":"\u0000","type":"t","source":"s","data":{}}`), "id must not have control characters"},
		"a batch that is none":           {messageOf("application/cloudevents-batch+json", `{}`), "the body must be a list"},
		"a batch with a bad event":       {messageOf("application/cloudevents-batch+json", "["+orderText+`,{"specversion":"1.0"}]`), "[1].id is required"},
		"a batch with what is no event":  {messageOf("application/cloudevents-batch+json", `[7]`), "[0] a CloudEvent must be an object"},
		"a body that is no UTF-8":        {structured("{\"specversion\":\"\xff\"}"), "the body is not JSON"},
		"a number that nothing can hold": {binary("", `{"a":1e400}`), "data must be a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tc.message.CloudEvents()
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPayloadsAreMeasuredAsCompactJSON(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return `{ "a" : "` + strings.Repeat("<", n) + `" }` }
	const overhead = len(`{"a":""}`)
	if _, err := messageOf("", of(MaxPayloadBytes-overhead), "ce-specversion", "1.0", "ce-id", "1", "ce-type", "t", "ce-source", "s").CloudEvents(); err != nil {
		t.Errorf("a payload that just fits: %v", err)
	}
	_, err := messageOf("", of(MaxPayloadBytes-overhead+1), "ce-specversion", "1.0", "ce-id", "1", "ce-type", "t", "ce-source", "s").CloudEvents()
	var size *SizeError
	if !errors.As(err, &size) || size.Bytes != MaxPayloadBytes+1 {
		t.Errorf("a payload that just does not fit: got %v", err)
	}
}
