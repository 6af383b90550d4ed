package event

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	structuredType = "application/cloudevents+json"
	batchType      = "application/cloudevents-batch+json"
	// specVersion is the only version of CloudEvents that is read.
	specVersion = "1.0"
	// maxSenderID bounds what a sender may call an event.
	maxSenderID = 4096
)

// A Message is what a sender sent.
type Message struct {
	// ContentType of the body, as it was given.
	ContentType string
	// Header returns all values of a header.
	Header func(name string) []string
	Body   []byte
}

// IsBatch tells whether the message says that it is a list of events.
func (m Message) IsBatch() bool {
	return m.mediaType() == batchType
}

func (m Message) mediaType() string {
	name, _, err := mime.ParseMediaType(m.ContentType)
	if err != nil {
		return ""
	}
	return name
}

// CloudEvents reads the events of a message in one of the three modes of
// CloudEvents over HTTP; only a batch has any number but one. The error is a
// [*FormatError] or a [*SizeError].
func (m Message) CloudEvents() ([]Event, error) {
	switch name := m.mediaType(); {
	case name == batchType:
		return m.batch()
	case name == structuredType:
		e, err := structured(m.Body)
		return []Event{e}, err
	case strings.HasPrefix(name, "application/cloudevents"):
		return nil, malformed("content type", "must be %s or %s, or that of data", structuredType, batchType)
	}
	e, err := m.binary()
	return []Event{e}, err
}

func (m Message) batch() ([]Event, error) {
	value, err := jsonvalue.Decode(m.Body)
	if err != nil {
		return nil, malformed("", "the body is not JSON: %v", err)
	}
	list, isList := value.([]any)
	if !isList {
		return nil, malformed("", "the body must be a list of CloudEvents")
	}
	events := make([]Event, 0, len(list))
	for i, entry := range list {
		e, err := structuredEvent(entry)
		if err != nil {
			return nil, inBatch(i, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// inBatch says which event of a list is at fault.
func inBatch(index int, err error) error {
	if faulty, isFaulty := err.(*FormatError); isFaulty { //nolint:errorlint // nothing wraps it on the way here
		return malformed(strings.TrimSuffix(fmt.Sprintf("[%d].%s", index, faulty.Member), "."), "%s", faulty.Reason)
	}
	return err
}

func structured(body []byte) (Event, error) {
	value, err := jsonvalue.Decode(body)
	if err != nil {
		return Event{}, malformed("", "the body is not JSON: %v", err)
	}
	return structuredEvent(value)
}

func structuredEvent(value any) (Event, error) {
	object, isObject := value.(map[string]any)
	if !isObject {
		return Event{}, malformed("", "a CloudEvent must be an object")
	}
	e, err := fromAttributes(func(name string) (string, error) {
		switch text := object[name].(type) {
		case nil:
			return "", nil
		case string:
			return text, nil
		}
		return "", malformed(name, "must be text")
	})
	if err != nil {
		return e, err
	}
	if e.Payload, err = structuredData(object); err != nil {
		return e, err
	}
	return e, e.check()
}

// structuredData is the data of an event in JSON, which may be in its text or
// encoded in it.
func structuredData(object map[string]any) (map[string]any, error) {
	if encoded, isEncoded := object["data_base64"].(string); isEncoded {
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, malformed("data_base64", "must be base64")
		}
		return jsonObject("data_base64", data)
	}
	data, isObject := object["data"].(map[string]any)
	if !isObject {
		return nil, malformed("data", "must be a JSON object")
	}
	return data, nil
}

func jsonObject(member string, text []byte) (map[string]any, error) {
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return nil, malformed(member, "must be a JSON object: %v", err)
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, malformed(member, "must be a JSON object")
	}
	return object, nil
}

// binary reads an event whose attributes are headers and whose data is the body.
func (m Message) binary() (Event, error) {
	e, err := fromAttributes(m.attribute)
	if err != nil {
		return e, err
	}
	if name := m.mediaType(); m.ContentType != "" && name != "application/json" && !strings.HasSuffix(name, "+json") {
		return e, malformed("content type", "must be JSON, as data must be a JSON object")
	}
	if e.Payload, err = jsonObject("data", m.Body); err != nil {
		return e, err
	}
	return e, e.check()
}

func (m Message) attribute(name string) (string, error) {
	values := m.Header("ce-" + name)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return headerText(name, values[0])
	}
	return "", malformed(name, "must be given once")
}

// headerText undoes the two ways in which a header holds what it cannot hold as
// it is: quotation, then percent-encoding.
func headerText(name, value string) (string, error) {
	if quoted, isQuoted := strings.CutPrefix(value, `"`); isQuoted {
		unquoted, isClosed := strings.CutSuffix(quoted, `"`)
		if !isClosed {
			return "", malformed(name, "has a quotation mark that is never closed")
		}
		value = unescape(unquoted)
	}
	text, err := url.PathUnescape(value)
	if err != nil {
		return "", malformed(name, "is not percent-encoded")
	}
	return text, nil
}

// unescape drops the backslash before each character that has one.
func unescape(text string) string {
	var plain strings.Builder
	escaped := false
	for _, r := range text {
		if r == '\\' && !escaped {
			escaped = true
			continue
		}
		plain.WriteRune(r)
		escaped = false
	}
	return plain.String()
}

// fromAttributes reads everything of an event but its data.
func fromAttributes(attribute func(name string) (string, error)) (Event, error) {
	var version string
	var e Event
	for _, a := range []struct {
		name string
		into *string
	}{
		{"specversion", &version},
		{"id", &e.SenderID},
		{"source", &e.Source},
		{"type", &e.Type},
		{"subject", &e.Ref},
		{"time", &e.Timestamp},
	} {
		var err error
		if *a.into, err = attribute(a.name); err != nil {
			return e, err
		}
	}
	if version != specVersion {
		return e, malformed("specversion", "must be %s", specVersion)
	}
	return e, e.checkAttributes()
}

func (e Event) checkAttributes() error {
	for _, err := range []error{
		checkRequired("id", e.SenderID, maxSenderID),
		checkRequired("source", e.Source, maxSource),
		checkRequired("type", e.Type, maxType),
		checkText("subject", e.Ref, maxRef),
		checkTime("time", e.Timestamp),
	} {
		if err != nil {
			return err
		}
	}
	if _, err := url.Parse(e.Source); err != nil {
		return malformed("source", "must be a URI reference")
	}
	return nil
}
