package event

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// checkStorable fails unless an event is one that the API takes.
func checkStorable(t *testing.T, e Event) {
	t.Helper()
	for _, text := range []string{e.SenderID, e.Type, e.Source, e.Ref, e.Timestamp} {
		if !utf8.ValidString(text) || bytes.ContainsFunc([]byte(text), isControl) {
			t.Errorf("%q was taken", text)
		}
	}
	switch {
	case e.SenderID == "" || e.Type == "" || e.Source == "":
		t.Errorf("something required is missing in %+v", e)
	case utf8.RuneCountInString(e.Type) > maxType || utf8.RuneCountInString(e.Ref) > maxRef:
		t.Errorf("something is too long in %+v", e)
	case e.Payload == nil:
		t.Error("there is no payload")
	case jsonvalue.Size(e.Payload) > MaxPayloadBytes:
		t.Error("the payload is too large")
	case len(e.Name("source")) != 43:
		t.Errorf("odd name %q", e.Name("source"))
	}
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var format *FormatError
	var size *SizeError
	if !errors.As(err, &format) && !errors.As(err, &size) {
		t.Errorf("refused with %v, which blames nobody", err)
	}
	if !utf8.ValidString(err.Error()) {
		t.Errorf("refused with %q", err)
	}
}

func FuzzCloudEvents(f *testing.F) {
	f.Add("application/cloudevents+json", "", "", "", "", []byte(orderText))
	f.Add("application/cloudevents-batch+json", "", "", "", "", []byte("["+orderText+"]"))
	f.Add("application/json", "1.0", "id", "caf%C3%A9", `"a\"b"`, []byte(`{"a":1}`))
	f.Add("application/json", "1.0", "id", "%zz", `"`, []byte(`{"a":1e999}`))
	f.Fuzz(func(t *testing.T, contentType, version, id, source, subject string, body []byte) {
		header := http.Header{
			"Ce-Specversion": {version}, "Ce-Id": {id}, "Ce-Source": {source}, "Ce-Type": {"t"}, "Ce-Subject": {subject},
		}
		message := Message{ContentType: contentType, Header: header.Values, Body: body}
		before := bytes.Clone(body)
		events, err := message.CloudEvents()
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if len(events) != 1 && !message.IsBatch() {
			t.Errorf("got %d events", len(events))
		}
		for _, e := range events {
			checkStorable(t, e)
		}
		again, err := message.CloudEvents()
		if err != nil || cmp.Diff(events, again) != "" || !bytes.Equal(before, body) {
			t.Errorf("read twice: %v\n%s", err, cmp.Diff(events, again))
		}
	})
}

func FuzzGitHub(f *testing.F) {
	f.Add("pull_request", "d-1", []byte(`{"action":"closed","pull_request":{"merged":true,"html_url":"p"},"sender":{"login":"octo"}}`))
	f.Add("issue_comment", "d-1", []byte(`{"action":"created","issue":{"pull_request":{}},"comment":{"updated_at":"2026-05-04T10:00:00Z"}}`))
	f.Add("push", "d-1", []byte(`{"repository":{"html_url":"a\nb"}}`))
	f.Add("create", "", []byte(`[]`))
	f.Fuzz(func(t *testing.T, kind, delivery string, body []byte) {
		e, err := GitHub(kind, delivery, body, received)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if e != nil {
			checkStorable(t, *e)
		}
	})
}
