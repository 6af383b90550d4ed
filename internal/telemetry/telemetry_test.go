package telemetry_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/apitomy/axiom-operator/internal/telemetry"
)

var began = time.Date(2026, 3, 1, 9, 0, 0, 5, time.UTC)

func environment(pairs map[string]string) telemetry.Environment {
	return func(name string) (string, bool) {
		value, found := pairs[name]
		return value, found
	}
}

// operator is one life of an operator that sends spans.
func operator(t *testing.T, env map[string]string) (*telemetry.Tracing, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	tracing, err := telemetry.NewWith(t.Context(), environment(env), sdktrace.NewSimpleSpanProcessor(exporter))
	if err != nil {
		t.Fatal(err)
	}
	return tracing, exporter
}

func sampleRun() telemetry.Run {
	return telemetry.Run{UID: "5b1e", Namespace: "shop", Name: "release-17", Started: began}
}

func sampleActivation() telemetry.Activation {
	return telemetry.Activation{
		ID: "assess#1", Node: "assess", Type: "action", Branch: "root", Outcome: "Failed", Attempts: 3, Code: "EXIT_CODE",
		Entered: began, Closed: began.Add(time.Minute),
	}
}

func TestARunIsOneTraceWhoeverCarriesIt(t *testing.T) {
	t.Parallel()
	first, early := operator(t, nil)
	second, late := operator(t, nil)
	run := sampleRun()
	first.Closed(t.Context(), run, sampleActivation())
	second.Closed(t.Context(), run, sampleActivation())
	second.Ended(t.Context(), run, telemetry.Ending{Phase: "Failed", Code: "EXIT_CODE", At: began.Add(2 * time.Minute)})

	one, two := early.GetSpans(), late.GetSpans()
	if len(one) != 1 || len(two) != 2 {
		t.Fatalf("%d and %d spans were sent, want 1 and 2", len(one), len(two))
	}
	if !one[0].SpanContext.Equal(two[0].SpanContext) {
		t.Errorf("the same activation is two spans: %v and %v", one[0].SpanContext, two[0].SpanContext)
	}
	root := two[1]
	if root.Parent.IsValid() || root.SpanContext.SpanID() != one[0].Parent.SpanID() {
		t.Errorf("the run's span %v is not the parent of its activation's, %v", root.SpanContext, one[0].Parent)
	}
	for _, span := range append(two, one...) {
		if span.SpanContext.TraceID() != telemetry.TraceID(run.UID) {
			t.Errorf("span %s is in trace %s", span.Name, span.SpanContext.TraceID())
		}
	}
	if !root.StartTime.Equal(began) || !root.EndTime.Equal(began.Add(2*time.Minute)) {
		t.Errorf("the run's span is from %v to %v", root.StartTime, root.EndTime)
	}
}

func TestASpanTellsPlacesAndCodes(t *testing.T) {
	t.Parallel()
	tracing, sent := operator(t, nil)
	tracing.Closed(t.Context(), sampleRun(), sampleActivation())
	span := sent.GetSpans()[0]
	got := map[string]string{}
	for _, a := range span.Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"k8s.namespace.name": "shop", "axiom.run": "release-17", "axiom.run.uid": "5b1e", "axiom.activation": "assess#1", "axiom.node": "assess",
		"axiom.node.type": "action", "axiom.branch": "root", "axiom.outcome": "Failed", "axiom.attempts": "3", "error.type": "EXIT_CODE",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes mismatch (-want +got):\n%s", diff)
	}
	if span.Status.Code != codes.Error || !span.StartTime.Equal(began) || !span.EndTime.Equal(began.Add(time.Minute)) {
		t.Errorf("the span has status %v, from %v to %v", span.Status, span.StartTime, span.EndTime)
	}
}

func TestARunIsSampledAsAWhole(t *testing.T) {
	t.Parallel()
	tracing, sent := operator(t, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"})
	kept := 0
	for i := range 200 {
		run := sampleRun()
		run.UID = string(rune('a' + i))
		sent.Reset()
		tracing.Closed(t.Context(), run, sampleActivation())
		tracing.Ended(t.Context(), run, telemetry.Ending{Phase: "Completed", At: began.Add(time.Hour)})
		switch n := len(sent.GetSpans()); n {
		case 0:
		case 2:
			kept++
		default:
			t.Errorf("%d of 2 spans of a run were sent", n)
		}
	}
	if kept < 60 || kept > 140 {
		t.Errorf("%d of 200 runs were kept, want about 100", kept)
	}
}

func TestTracesAreOffUntilSomebodyAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env  map[string]string
		isOn bool
	}{
		"nothing is said":              {nil, false},
		"an endpoint":                  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
		"an endpoint of traces":        {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, true},
		"the exporter, over gRPC":      {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true},
		"an endpoint, but no exporter": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, false},
		"an endpoint, but no SDK":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracing, err := telemetry.New(t.Context(), environment(tc.env))
			if err != nil || (tracing != nil) != tc.isOn {
				t.Errorf("on: %t, error %v; want on: %t", tracing != nil, err, tc.isOn)
			}
		})
	}
}

func TestUnusableSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"another exporter": {"OTEL_TRACES_EXPORTER": "zipkin"},
		"another protocol": {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
		"another sampler":  {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "jaeger_remote"},
		"no ratio":         {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"},
	} {
		if _, err := telemetry.New(t.Context(), environment(env)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestWhatWaitsIsSentAtTheEnd(t *testing.T) {
	t.Parallel()
	exporter := &keepingExporter{}
	tracing, err := telemetry.NewWith(t.Context(), environment(nil), sdktrace.NewBatchSpanProcessor(exporter, sdktrace.WithBatchTimeout(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	tracing.Closed(t.Context(), sampleRun(), sampleActivation())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := tracing.Start(ctx); err != nil || exporter.sent != 1 {
		t.Errorf("%d spans were sent, error %v; want 1", exporter.sent, err)
	}
}

// keepingExporter counts the spans it was given.
type keepingExporter struct{ sent int }

func (e *keepingExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.sent += len(spans)
	return nil
}

func (*keepingExporter) Shutdown(context.Context) error { return nil }

func TestNilTracingSendsNothing(t *testing.T) {
	t.Parallel()
	var tracing *telemetry.Tracing
	tracing.Closed(t.Context(), sampleRun(), sampleActivation())
	tracing.Ended(t.Context(), sampleRun(), telemetry.Ending{})
}
