package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// RunMetrics count what becomes of runs. No label takes a name, an identifier or
// a text of anybody's: phases, kinds of nodes, outcomes and codes are all there
// is. The nil RunMetrics count nothing.
type RunMetrics struct {
	started   prometheus.Counter
	finished  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	steps     prometheus.Counter
	conflicts prometheus.Counter
	closed    *prometheus.CounterVec
	visit     *prometheus.HistogramVec
	attempts  prometheus.Counter
	failures  *prometheus.CounterVec
	children  *prometheus.CounterVec
}

// NewRunMetrics makes the metrics and registers them. With a registry that has
// them already it returns what is there.
func NewRunMetrics(registry prometheus.Registerer) (*RunMetrics, error) {
	r := registrar{registry: registry}
	m := &RunMetrics{
		started:   r.counter("axiom_workflow_runs_started_total", "Runs that entered their first node."),
		finished:  r.counters("axiom_workflow_runs_finished_total", "Runs that ended, by the phase they ended in.", "phase"),
		duration:  r.histogram("axiom_workflow_run_duration_seconds", "Time from a run's start to its end, waiting included, by phase.", longBuckets(), "phase"),
		steps:     r.counter("axiom_workflow_run_commits_total", "Status updates of runs, each of which commits one step."),
		conflicts: r.counter("axiom_workflow_run_commit_conflicts_total", "Status updates that were computed from an old run and were computed anew."),
		closed:    r.counters("axiom_activations_closed_total", "Activations that closed, by kind of node and outcome.", "type", "outcome"),
		visit:     r.histogram("axiom_activation_duration_seconds", "Time from entering a node to leaving it, by kind of node.", longBuckets(), "type"),
		attempts:  r.counter("axiom_action_attempts_total", "Attempts of the actions that closed."),
		failures:  r.counters("axiom_activation_failures_total", "Activations that closed with a failure, by its phase and code.", "phase", "code"),
		children:  r.counters("axiom_run_children_created_total", "Objects that were created for activations, by kind.", "kind"),
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, fmt.Errorf("register metrics of runs: %w", err)
	}
	return m, nil
}

// longBuckets reach from what a machine does to what a person does.
func longBuckets() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}
}

// registrar registers metrics one after the other and keeps the errors.
type registrar struct {
	registry prometheus.Registerer
	errs     []error
}

func registered[C prometheus.Collector](r *registrar, collector C) C {
	err := r.registry.Register(collector)
	if there, isThere := errors.AsType[prometheus.AlreadyRegisteredError](err); isThere {
		if known, isSame := there.ExistingCollector.(C); isSame {
			return known
		}
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return collector
}

func (r *registrar) counter(name, help string) prometheus.Counter {
	return registered(r, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (r *registrar) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return registered(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (r *registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return registered(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// committed counts a status update, and what it closed.
func (m *RunMetrics) committed(before, after *api.WorkflowRun, closed []engine.Entry) {
	if m == nil {
		return
	}
	m.steps.Inc()
	if before.Status.StartedAt == nil && after.Status.StartedAt != nil {
		m.started.Inc()
	}
	for i := range closed {
		m.closedEntry(&closed[i])
	}
	if before.Status.FinishedAt != nil || after.Status.FinishedAt == nil {
		return
	}
	phase := string(after.Status.Phase)
	m.finished.WithLabelValues(phase).Inc()
	if after.Status.StartedAt != nil {
		m.duration.WithLabelValues(phase).Observe(after.Status.FinishedAt.Sub(after.Status.StartedAt.Time).Seconds())
	}
}

func (m *RunMetrics) closedEntry(entry *engine.Entry) {
	kind := string(entry.Type)
	m.closed.WithLabelValues(kind, string(entry.Outcome)).Inc()
	m.visit.WithLabelValues(kind).Observe(entry.CompletedOn.Sub(entry.EnteredOn).Seconds())
	m.attempts.Add(float64(entry.Attempts))
	if entry.Error != nil {
		m.failures.WithLabelValues(entry.Error.Phase, entry.Error.Code).Inc()
	}
}

// failed counts a status update that somebody else's was faster than.
func (m *RunMetrics) failed(err error) {
	if m != nil && apierrors.IsConflict(err) {
		m.conflicts.Inc()
	}
}

func (m *RunMetrics) created(kind string) {
	if m != nil {
		m.children.WithLabelValues(kind).Inc()
	}
}

// PhaseMetrics tell how many runs and tasks there are in each phase, and how
// many events are kept. They are counted in the cache when somebody asks.
type PhaseMetrics struct {
	reader client.Reader
	runs   *prometheus.Desc
	tasks  *prometheus.Desc
	events *prometheus.Desc
}

var _ prometheus.Collector = (*PhaseMetrics)(nil)

// NewPhaseMetrics counts what a cache holds.
func NewPhaseMetrics(reader client.Reader) *PhaseMetrics {
	return &PhaseMetrics{
		reader: reader,
		runs:   prometheus.NewDesc("axiom_workflow_runs", "Runs that exist, by phase.", []string{"phase"}, nil),
		tasks:  prometheus.NewDesc("axiom_human_tasks", "Human tasks that exist, by phase.", []string{"phase"}, nil),
		events: prometheus.NewDesc("axiom_stream_events", "Events that are kept.", nil, nil),
	}
}

// Describe names the metrics.
func (m *PhaseMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.runs, m.tasks, m.events} {
		descriptions <- d
	}
}

// phaseTime is what counting may take; a cache that is not filled yet answers
// later than that.
const phaseTime = time.Second

// Collect counts. What cannot be read is left out.
func (m *PhaseMetrics) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), phaseTime) //nolint:forbidigo // a scrape brings no context
	defer cancel()
	var runs api.WorkflowRunList
	if m.reader.List(ctx, &runs, client.UnsafeDisableDeepCopy) == nil {
		counts := map[string]int{}
		for i := range runs.Items {
			counts[string(runs.Items[i].Status.Phase)]++
		}
		sendPhases(metrics, m.runs, counts)
	}
	var tasks api.HumanTaskList
	if m.reader.List(ctx, &tasks, client.UnsafeDisableDeepCopy) == nil {
		counts := map[string]int{}
		for i := range tasks.Items {
			counts[string(tasks.Items[i].Status.Phase)]++
		}
		sendPhases(metrics, m.tasks, counts)
	}
	var events api.StreamEventList
	if m.reader.List(ctx, &events, client.UnsafeDisableDeepCopy) == nil {
		metrics <- prometheus.MustNewConstMetric(m.events, prometheus.GaugeValue, float64(len(events.Items)))
	}
}

func sendPhases(metrics chan<- prometheus.Metric, about *prometheus.Desc, counts map[string]int) {
	for phase, count := range counts {
		metrics <- prometheus.MustNewConstMetric(about, prometheus.GaugeValue, float64(count), phase)
	}
}
