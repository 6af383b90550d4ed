package streamevent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/event"
)

var then = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func TestMapIsTheSpecAndNothingElse(t *testing.T) {
	t.Parallel()
	e := &api.StreamEvent{Spec: api.StreamEventSpec{
		ID: "e", Type: "t", EventSourceID: "gh", Actor: &api.EventActor{Login: "octo"},
		Payload: &runtime.RawExtension{Raw: []byte(`{"n":1.0,"big":9007199254740993}`)},
	}}
	got, err := Map(e)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": "e", "type": "t", "eventSourceId": "gh", "actor": map[string]any{"login": "octo"},
		"payload": map[string]any{"n": int64(1), "big": int64(9007199254740993)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
}

func TestNewStoresWhatWasSaid(t *testing.T) {
	t.Parallel()
	said := event.Event{
		SenderID: "1", Type: "t", Source: "/s", Ref: "r", Timestamp: "2026-05-04T10:00:00Z",
		Actor: &event.Actor{Login: "octo", DisplayName: "O", AvatarURL: "a", URL: "u"}, Payload: map[string]any{"x": "<&>"},
	}
	e, err := New("team", "gh", said)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Map(e)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": said.Name("gh"), "type": "t", "source": "/s", "eventSourceId": "gh", "ref": "r", "timestamp": "2026-05-04T10:00:00Z",
		"actor":   map[string]any{"login": "octo", "displayName": "O", "avatarUrl": "a", "url": "u"},
		"payload": map[string]any{"x": "<&>"},
	}
	if diff := cmp.Diff(want, got); diff != "" || e.Name != said.Name("gh") || e.Namespace != "team" {
		t.Errorf("%s/%s (-want +got):\n%s", e.Namespace, e.Name, diff)
	}
}

func TestSortByArrivalThenName(t *testing.T) {
	t.Parallel()
	at := func(name string, after time.Duration) api.StreamEvent {
		return api.StreamEvent{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(then.Add(after))}}
	}
	events := []api.StreamEvent{at("c", time.Second), at("b", 0), at("a", time.Second)}
	Sort(events)
	var names []string
	for i := range events {
		names = append(names, events[i].Name)
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestNextTriggersSince(t *testing.T) {
	t.Parallel()
	comp := func(note string, triggers ...api.Trigger) *api.Composition {
		c := &api.Composition{Spec: api.CompositionSpec{Triggers: triggers}}
		if note != "" {
			c.Annotations = map[string]string{api.AnnotationTriggersSince: note}
		}
		return c
	}
	trigger := func(name, eventType string, suspend bool) api.Trigger {
		return api.Trigger{Name: name, EventType: eventType, Suspend: suspend}
	}
	const noted = `{"a":"2026-01-01T00:00:00Z"}`
	const fresh = `{"a":"2026-05-04T10:00:00Z"}`
	for name, tc := range map[string]struct {
		before, after *api.Composition
		want          string
	}{
		"on creation":                      {nil, comp(noted, trigger("a", "t", false)), fresh},
		"with an edit of something else":   {comp(noted, trigger("a", "t", false)), comp("", trigger("a", "t", false)), noted},
		"against a forged note":            {comp(noted, trigger("a", "t", false)), comp(`{"a":"2001-01-01T00:00:00Z"}`, trigger("a", "t", false)), noted},
		"with another event type":          {comp(noted, trigger("a", "t", false)), comp(noted, trigger("a", "u", false)), fresh},
		"when it is suspended":             {comp(noted, trigger("a", "t", false)), comp(noted, trigger("a", "t", true)), ""},
		"when it is resumed":               {comp("", trigger("a", "t", true)), comp("", trigger("a", "t", false)), fresh},
		"when it is resumed with a note":   {comp(noted, trigger("a", "t", true)), comp(noted, trigger("a", "t", false)), fresh},
		"when another one takes its place": {comp(noted, trigger("b", "t", false)), comp(noted, trigger("a", "t", false)), fresh},
		"when its note is no note":         {comp(`7`, trigger("a", "t", false)), comp("", trigger("a", "t", false)), fresh},
		"without triggers":                 {comp(noted, trigger("a", "t", false)), comp(noted), ""},
	} {
		if got := NextTriggersSince(tc.before, tc.after, then.Add(500*time.Millisecond)); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	for text, isFine := range map[string]bool{`{"a":1}`: true, `[]`: false, `{`: false, `null`: false} {
		_, err := Inputs(api.Trigger{Inputs: &runtime.RawExtension{Raw: []byte(text)}})
		if (err == nil) != isFine {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if got, err := Inputs(api.Trigger{}); got != nil || err != nil {
		t.Errorf("without inputs: got %v, %v", got, err)
	}
}
