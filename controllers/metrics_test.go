package controllers

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// registeredMetrics registers all metrics and names them with their labels.
func registeredMetrics(t *testing.T) map[string]string {
	t.Helper()
	spy := &spyRegistry{Registry: prometheus.NewRegistry(), labels: map[string]string{}}
	if _, err := NewRunMetrics(spy); err != nil {
		t.Fatal(err)
	}
	if err := spy.Register(NewPhaseMetrics(fake.NewClientBuilder().Build())); err != nil {
		t.Fatal(err)
	}
	return spy.labels
}

// spyRegistry notes what is registered.
type spyRegistry struct {
	*prometheus.Registry
	labels map[string]string
}

var describedMetric = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func (s *spyRegistry) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 10)
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		if found := describedMetric.FindStringSubmatch(d.String()); found != nil {
			s.labels[found[1]] = found[2]
		}
	}
	return s.Registry.Register(c)
}

var documentedMetric = regexp.MustCompile("(?m)^\\| `(axiom_[a-z_]+)` \\| ([^|]*)\\|")

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, found := range documentedMetric.FindAllStringSubmatch(string(text), -1) {
		documented[found[1]] = strings.NewReplacer("`", "", " ", "").Replace(found[2])
	}
	if diff := cmp.Diff(registeredMetrics(t), documented); diff != "" {
		t.Errorf("docs/operations.md lists other metrics (-registered +documented):\n%s", diff)
	}
}

func TestMetricsHaveOnlyBoundedLabels(t *testing.T) {
	t.Parallel()
	bounded := []string{"phase", "type", "outcome", "code", "kind"}
	for name, labels := range registeredMetrics(t) {
		for label := range strings.SplitSeq(labels, ",") {
			if label != "" && !slices.Contains(bounded, label) {
				t.Errorf("%s has the label %s", name, label)
			}
		}
	}
}

func TestRunMetricsCountCommits(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := NewRunMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewRunMetrics(registry)
	if err != nil || again.steps != metrics.steps {
		t.Fatalf("a second registration gives other metrics, or fails: %v", err)
	}
	began := metav1.NewTime(runTestNow)
	ended := metav1.NewTime(runTestNow.Add(time.Minute))
	before, started, over := &api.WorkflowRun{}, &api.WorkflowRun{}, &api.WorkflowRun{}
	started.Status.StartedAt, started.Status.Phase = &began, api.RunWaiting
	over.Status.StartedAt, over.Status.FinishedAt, over.Status.Phase = &began, &ended, api.RunFailed

	metrics.committed(before, started, []engine.Entry{{Type: "start", Outcome: engine.OutcomeCompleted}})
	metrics.committed(started, over, []engine.Entry{{
		Type: "action", Outcome: engine.OutcomeFailed, Attempts: 3, EnteredOn: runTestNow, CompletedOn: runTestNow.Add(time.Second),
		Error: &engine.Failure{Phase: engine.PhaseExecution, Code: "EXIT_CODE"},
	}})
	metrics.failed(apierrors.NewConflict(schema.GroupResource{}, "r", nil))
	metrics.failed(apierrors.NewNotFound(schema.GroupResource{}, "r"))
	metrics.created("Pod")

	want := map[string]float64{
		"axiom_workflow_runs_started_total": 1, "axiom_workflow_runs_finished_total{Failed}": 1, "axiom_workflow_run_commits_total": 2,
		"axiom_workflow_run_commit_conflicts_total": 1, "axiom_activations_closed_total{Completed,start}": 1,
		"axiom_activations_closed_total{Failed,action}": 1, "axiom_activation_failures_total{EXIT_CODE,EXECUTION}": 1,
		"axiom_action_attempts_total": 3, "axiom_run_children_created_total{Pod}": 1,
	}
	if diff := cmp.Diff(want, countersOf(t, registry)); diff != "" {
		t.Errorf("counters mismatch (-want +got):\n%s", diff)
	}
}

// countersOf reads the counters of a registry; labels stand in braces, by value.
func countersOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counters := map[string]float64{}
	for _, family := range families {
		if family.GetType() != dto.MetricType_COUNTER {
			continue
		}
		for _, metric := range family.GetMetric() {
			var values []string
			for _, pair := range metric.GetLabel() {
				values = append(values, pair.GetValue())
			}
			name := family.GetName()
			if len(values) > 0 {
				name += "{" + strings.Join(values, ",") + "}"
			}
			counters[name] = metric.GetCounter().GetValue()
		}
	}
	return counters
}

func TestNilRunMetricsCountNothing(t *testing.T) {
	t.Parallel()
	var metrics *RunMetrics
	metrics.committed(&api.WorkflowRun{}, &api.WorkflowRun{}, nil)
	metrics.failed(nil)
	metrics.created("Pod")
}

func TestPhaseMetricsCountWhatTheCacheHolds(t *testing.T) {
	t.Parallel()
	run := func(name string, phase api.RunPhase) *api.WorkflowRun {
		r := &api.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		r.Status.Phase = phase
		return r
	}
	event := &api.StreamEvent{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e"}}
	reader := fake.NewClientBuilder().WithScheme(workbenchScheme()).
		WithObjects(run("a", api.RunWaiting), run("b", api.RunWaiting), run("c", api.RunFailed), event).Build()
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewPhaseMetrics(reader))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			got[family.GetName()+strings.Join(slices.Collect(maps.Values(labelsOf(metric))), "")] = metric.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"axiom_workflow_runsWaiting": 2, "axiom_workflow_runsFailed": 1, "axiom_stream_events": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gauges mismatch (-want +got):\n%s", diff)
	}
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
