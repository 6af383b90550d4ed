package engine_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/engine"
)

func readRelease(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReleaseIsReleased(t *testing.T) {
	s := tell(t, readRelease(t), "{ref: r-17}")
	s.wantOpen("assess#1")
	s.after(time.Minute).complete("assess#1", "{score: 3}")
	s.wantOpen("approve#1")
	s.wantContext("{ref: r-17, risk: 3}")
	s.after(time.Hour).complete("approve#1", "{approved: true, window: night}")
	s.wantOpen("cool-down#1")
	s.after(8 * time.Hour).timeOut("cool-down#1")
	s.wantOpen("merged#1")
	event := "{id: '7', type: pr.merged, eventSourceId: forge, ref: r-17, actor: {login: grace}, payload: {base: main}}"
	s.deliver("merged#1", event, noon.Add(time.Minute))
	s.wantOpen("publish#1")
	s.complete("publish#1", "{}")
	s.wantStatus(engine.StatusCompleted)
	s.wantContext("{ref: r-17, risk: 3, approved: true, window: night, mergedBy: grace}")
	s.wantHistory("start-1#1 Completed", "assess#1 Completed", "approve#1 Completed", "cool-down#1 Completed",
		"merged#1 Completed", "publish#1 Completed", "done#1 Completed")
	if got := s.def.Outcome(s.last); got != "released" {
		t.Errorf("Outcome() = %q, want released", got)
	}
	if by := s.entry("merged#1").By; by != "7" {
		t.Errorf("merged by %q, want the event", by)
	}
	if by := s.entry("approve#1").By; by != "ada" {
		t.Errorf("approved by %q, want the user", by)
	}
}

// The names of members are what people read and other programs depend on.
func TestInstanceAsPeopleSeeIt(t *testing.T) {
	s := tell(t, readRelease(t), "{ref: r-17}")
	s.after(time.Minute).complete("assess#1", "{score: 3}")
	want := `
status: waiting
step: 2
startedOn: "2026-03-02T12:00:00Z"
visits: {start-1: 1, assess: 1, approve: 1}
activeBranches:
- {branch: root, node: approve, activation: "approve#1", edge: e2, enteredOn: "2026-03-02T12:01:00Z", title: Release r-17,
   input: {Change: r-17, Risk: 3}}
joinArrivals: {}
context: {ref: r-17, risk: 3}`
	if diff := cmp.Diff(parse(t, want), parse(t, encode(t, s.in))); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
	history, err := json.Marshal(s.history)
	if err != nil {
		t.Fatal(err)
	}
	want = `
- {seq: 1, activation: "start-1#1", node: start-1, name: Start, type: start, branch: root, outcome: Completed,
   enteredOn: "2026-03-02T12:00:00Z", completedOn: "2026-03-02T12:00:00Z", input: {ref: r-17}}
- {seq: 2, activation: "assess#1", node: assess, name: Assess risk, type: action, branch: root, edge: e1, outcome: Completed,
   enteredOn: "2026-03-02T12:00:00Z", completedOn: "2026-03-02T12:01:00Z", input: {depth: 2, ref: r-17}, output: {risk: 3},
   attempts: 1, by: ada}`
	if diff := cmp.Diff(parse(t, want), parse(t, string(history))); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestAllMembersOfAnInstance(t *testing.T) {
	text := `{"status":"failed","step":3,"startedOn":"2026-03-02T12:00:00.000000001Z","visits":{"a":2},` +
		`"activeBranches":[{"branch":"root","node":"a","activation":"a#2","edge":"e","condition":"c","enteredOn":"2026-03-02T12:00:00Z",` +
		`"input":{"i":9007199254740993},"title":"T","attempt":2,"notBefore":"2026-03-02T12:00:00Z","deadline":"2026-03-02T12:00:00Z",` +
		`"subscriptionKey":"k","since":"2026-03-02T12:00:00Z","lastError":{"phase":"EXECUTION","code":"EXIT_CODE","node":"a",` +
		`"activation":"a#2","edge":"e","expression":"x","field":"f","message":"m"},"child":{"kind":"Pod","name":"p","uid":"u"}}],` +
		`"joinArrivals":{"j":["e1"]},"consumed":{"r":{"ids":["s/1"],"arrivals":["2026-03-02T12:00:00Z"],"floor":"2026-03-02T11:00:00Z"}},` +
		`"context":{"k":1.5},"contextRefs":{"big":{"digest":"sha256:1","configMap":"c","bytes":5000}},` +
		`"failure":{"code":"DEADLOCK"}}`
	if got := encode(t, decode(t, text)); got != text {
		t.Errorf("instance (-want +got):\n%s", cmp.Diff(text, got))
	}
}
