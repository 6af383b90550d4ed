package live

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/content"
)

// A desk has a run in a cluster of its own.
type desk struct {
	t       *testing.T
	cluster *cluster
	run     *api.WorkflowRun
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	run := &api.WorkflowRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: "u"},
		Spec:       api.WorkflowRunSpec{Git: &api.GitSource{URL: "https://git.example.com/a.git", Commit: strings.Repeat("c", 40), Path: "a/start.md"}},
	}
	away := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(run).Build()
	return &desk{t: t, cluster: &cluster{WithWatch: away, namespace: "ns"}, run: run}
}

// keeps stores a text outside of the run.
func (d *desk) keeps(text string) api.ContentRef {
	d.t.Helper()
	ref, err := d.cluster.contents().Put(d.t.Context(), d.run, []byte(text))
	if err != nil {
		d.t.Fatal(err)
	}
	return ref
}

func (d *desk) keepsValue(text string) *api.ValueRef {
	d.t.Helper()
	ref := d.keeps(text)
	return &api.ValueRef{Digest: ref.Digest, ConfigMap: content.Name(ref.Digest), Bytes: ref.Size}
}

// records gives the run a history, of which all but the newest entries are in pages of 32.
func (d *desk) records(entries []api.HistoryEntry) {
	d.t.Helper()
	history := api.RunHistory{Total: int64(len(entries))}
	for len(entries) > 64 {
		page := api.HistoryPage{Previous: history.Page, From: entries[0].Seq, To: entries[31].Seq, Entries: entries[:32]}
		data, err := json.Marshal(page)
		if err != nil {
			d.t.Fatal(err)
		}
		history.Page, entries = content.Name(d.keeps(string(data)).Digest), entries[32:]
	}
	history.Entries = entries
	d.run.Status.History = history
}

func (d *desk) reader() *recordReader {
	return &recordReader{ctx: d.t.Context(), cluster: d.cluster, namespace: "ns", wantsAll: true, wantsOutputs: true}
}

func entriesUpTo(n int) []api.HistoryEntry {
	entries := make([]api.HistoryEntry, n)
	for i := range entries {
		entries[i] = api.HistoryEntry{Seq: int64(i + 1), Activation: fmt.Sprintf("work#%d", i+1), Outcome: "Completed"}
	}
	return entries
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func TestSupervised55HistoryIsCompleteOverItsPages(t *testing.T) {
	for _, total := range []int{0, 1, 64, 65, 96, 97, 250} {
		d := newDesk(t)
		d.records(entriesUpTo(total))
		reader := d.reader()
		answer := reader.read(d.run)
		if reader.failure != nil {
			t.Fatal(reader.failure)
		}
		if len(answer.History) != total || answer.Total != int64(total) {
			t.Fatalf("%d entries are shown of %d", len(answer.History), total)
		}
		for i, entry := range answer.History {
			if entry.Seq != int64(i+1) || entry.Activation != fmt.Sprintf("work#%d", i+1) {
				t.Errorf("entry %d of %d is %d, %s", i+1, total, entry.Seq, entry.Activation)
			}
		}
	}
}

func TestSupervised54ValuesAreReadFromWhereTheyAreKept(t *testing.T) {
	d := newDesk(t)
	unkept, unread := "sha256:"+strings.Repeat("0", 64), d.keeps("not read")
	asked := d.keeps(`{"title":"Add it","names":"` + unread.Digest + `"}`)
	request := d.keeps(`{"url":"u","n":9007199254740993}`)
	d.records([]api.HistoryEntry{
		{Seq: 1, Activation: "plan#1", Outcome: "Completed", Branch: "main", Edge: "e1", Condition: "context.go", InputRef: d.keepsValue(`{"a":1}`), Output: raw(`{"b":[true]}`)},
		{Seq: 2, Activation: "push#1", Outcome: "Completed", ReceiptRef: d.keepsValue(`{"decision":"adopted","request":"` + asked.Digest + `","result":"` + unkept + `","observations":["` + unkept + `","sha256:"]}`)},
		{Seq: 3, Activation: "Planning#1", Outcome: "Completed", Call: &api.HistoryCall{Path: "Planning[1]", Component: "Planning", Iteration: 1}},
	})
	observed := d.keeps(`"half"`)
	d.run.Status.Intents = []api.RunIntent{{Activation: "Planning[1]/ask#1", Action: "human-task", Request: request, Observed: &observed, Task: "t"}}
	d.run.Status.Instance = &api.RunInstance{
		Status: "waiting", Context: raw(`{"small":1}`), ContextRefs: map[string]api.ValueRef{"large": *d.keepsValue(`"text"`)},
		ActiveBranches: []api.ActiveBranch{{Activation: "Planning#1", EnteredOn: "2026-05-04T10:00:00Z"}},
	}
	d.run.Status.Frames = []api.RunFrame{{Path: "Planning[1]", Call: "Planning#1", Component: "Planning", Iteration: 1, Instance: api.RunInstance{
		Context: raw(`{"inner":null}`), ActiveBranches: []api.ActiveBranch{{Activation: "ask#1", Title: "Well?", Input: raw(`{"q":2}`)}},
	}}}
	origin := d.keeps(`{"url":"u"}`)
	d.run.Status.Calls = []api.RunCallState{{Call: "Each#1", StateRef: d.keepsValue(`{"items":["x"]}`)}, {Call: "Planning#1", State: raw(`{"items":null}`)}}
	d.run.Status.Workspace = &api.RunWorkspace{Repositories: []api.WorkspaceRepository{{Name: "app", Origin: &origin}, {Name: "bare"}}}
	d.run.Status.OutputsRef = d.keepsValue(`{"done":true}`)
	source := d.keeps("---\nname: X\n---\n")
	d.run.Status.Definition = &api.RunDefinition{Digest: "sha256:d", Sources: []api.RetainedSource{{Path: "a/start.md", Digest: source.Digest, SourceHash: "h"}}}

	reader := d.reader()
	answer := reader.read(d.run)
	if reader.failure != nil {
		t.Fatal(reader.failure)
	}
	for name, pair := range map[string][2]any{
		"input": {answer.History[0].Input, map[string]any{"a": int64(1)}}, "output": {answer.History[0].Output, map[string]any{"b": []any{true}}},
		"receipt": {answer.History[1].Receipt, map[string]any{"decision": "adopted", "result": unkept, "observations": []any{unkept, "sha256:"}, "request": map[string]any{
			"digest": asked.Digest, "value": map[string]any{"title": "Add it", "names": unread.Digest},
		}}},
		"calls":   {answer.Calls, []callAnswer{{Call: "Each#1", State: map[string]any{"items": []any{"x"}}}, {Call: "Planning#1", State: map[string]any{"items": nil}}}},
		"origins": {answer.Origins, map[string]any{"app": map[string]any{"url": "u"}, "bare": nil}},
		"way":     {[]string{answer.History[0].Branch, answer.History[0].Edge, answer.History[0].Condition}, []string{"main", "e1", "context.go"}},
		"context": {answer.Context, map[string]any{"small": int64(1), "large": "text"}}, "frame": {answer.Frames[0].Context, map[string]any{"inner": nil}},
		"open input": {answer.Open[1].Input, map[string]any{"q": int64(2)}},
		"request":    {answer.Open[1].Request, map[string]any{"url": "u", "n": int64(9007199254740993)}}, "observed": {answer.Open[1].Observed, "half"},
		"outputs": {answer.Outputs, map[string]any{"done": true}}, "source": {answer.Sources[0].Text, "---\nname: X\n---\n"},
		"open": {[]string{answer.Open[0].Activation, answer.Open[1].Activation}, []string{"Planning#1", "Planning[1]/ask#1"}},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s mismatch (-want +got):\n%s", name, diff)
		}
	}
}

func TestRecordWithoutWhatIsKeptOutside(t *testing.T) {
	d := newDesk(t)
	d.records(entriesUpTo(130))
	d.run.Status.History.Entries[0].OutputRef = d.keepsValue(`{"gone":1}`)
	if err := d.cluster.DeleteAllOf(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	reader := d.reader()
	answer := reader.read(d.run)
	if reader.failure == nil || !strings.Contains(reader.failure.Error(), d.run.Status.History.Page) {
		t.Errorf("failure %v, want one that names the page", reader.failure)
	}
	if len(answer.History) != len(d.run.Status.History.Entries) || answer.Total != 130 || answer.History[0].Output != nil {
		t.Errorf("%d of %d entries are shown, the first with %v", len(answer.History), answer.Total, answer.History[0].Output)
	}
}

func TestRecordTellsOfReceiptsThatMayNotBeRead(t *testing.T) {
	d := newDesk(t)
	asked := d.keeps(`{"title":"Add it"}`)
	d.records([]api.HistoryEntry{{Seq: 1, Activation: "push#1", Outcome: "Completed", Receipt: raw(`{"request":"` + asked.Digest + `"}`)}})
	d.cluster.WithWatch = interceptor.NewClient(d.cluster.WithWatch, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, content.Name(asked.Digest), nil)
		},
	})
	reader := d.reader()
	answer := reader.read(d.run)
	if !apierrors.IsForbidden(reader.failure) {
		t.Errorf("failure %v, want one that says that it is forbidden", reader.failure)
	}
	if diff := cmp.Diff(any(map[string]any{"request": asked.Digest}), answer.History[0].Receipt); diff != "" {
		t.Errorf("receipt mismatch (-want +got):\n%s", diff)
	}
}

func TestRunForPeople(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC))
	answer := runAnswer{
		Run: "add-health", Phase: api.RunSuspended, Git: &gitAnswer{
			Commit: "c0ffee", Path: "a/start.md", Components: []api.GitComponent{{Name: "Planning", Path: "a/Planning.md", SourceHash: "beef"}},
		},
		Executions: []api.RunExecution{
			{Number: 1, Reason: api.ExecutionStarted, StartedAt: at, EndedAt: &at, Ended: api.ExecutionSuspended},
			{Number: 2, Reason: api.ExecutionResumed, RequestedBy: "ann", StartedAt: at},
		},
		Frames: []frameAnswer{{Path: "Planning[1]", Component: "Planning", Iteration: 1}, {Path: "Each[2]", Component: "Each", Item: 2}},
		Open: []openAnswer{
			{Activation: "Planning[1]/ask#1", EnteredOn: "2026-05-04T10:00:00Z", Intent: &api.RunIntent{Action: "human-task", Task: "t"}},
			{Activation: "push#1", EnteredOn: "2026-05-04T10:00:00Z", Intent: &api.RunIntent{Action: "git.push", Attempts: 2, Reason: "network"}},
		},
		History: []entryAnswer{
			{Seq: 1, Activation: "start#1", CompletedOn: "2026-05-04T10:00:00Z", Outcome: "Completed"},
			{Seq: 2, Activation: "Planning#1", Outcome: "Completed", Call: &api.HistoryCall{Component: "Planning", Iteration: 1}},
			{Seq: 3, Activation: "ask#1", Outcome: "Completed", By: "ann\x1b[31m"},
			{Seq: 4, Activation: "push#1", Outcome: "Failed", Error: &api.RunFailure{Code: "CONFLICT"}},
		},
		Outputs: map[string]any{"done": true},
	}
	const want = `add-health  Suspended
  of a/start.md at c0ffee

components
  Planning  a/Planning.md  beef

executions
  1  Started         2026-05-04T10:00:00Z  Suspended 2026-05-04T10:00:00Z
  2  Resumed by ann  2026-05-04T10:00:00Z  goes on

frames
  Planning[1]  Planning  iteration 1
  Each[2]      Each      item 2

open
  Planning[1]/ask#1  2026-05-04T10:00:00Z  human-task, task t
  push#1             2026-05-04T10:00:00Z  git.push, 2 attempts, network

history
  1  start#1     2026-05-04T10:00:00Z  Completed
  2  Planning#1                        Completed  calls Planning iteration 1
  3  ask#1                             Completed  by ann�[31m
  4  push#1                            Failed     CONFLICT

outputs
  {
    "done": true
  }
`
	p := &command.Page{}
	answer.Tell(p)
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}
