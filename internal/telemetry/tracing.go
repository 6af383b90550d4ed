package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	serviceName = "axiom-operator"
	scopeName   = "github.com/apitomy/axiom-operator"
)

// Run is what the spans of a run have in common.
type Run struct {
	UID, Namespace, Name string
	// Started is when the run began.
	Started time.Time
}

// Activation is a closed visit of a node.
type Activation struct {
	// ID such as `approve#1`.
	ID string
	// Node and Type of it, and the branch it was on.
	Node, Type, Branch string
	// Outcome: Completed, TimedOut, Failed or Cancelled.
	Outcome string
	// Attempts of an action.
	Attempts int
	// Code of the failure; empty without one.
	Code            string
	Entered, Closed time.Time
}

// Ending of a run.
type Ending struct {
	// Phase that it ended in, and the code of the failure that ended it.
	Phase, Code string
	At          time.Time
}

// Tracing sends the spans of runs. The nil Tracing sends nothing.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// Environment looks up environment variables, as os.LookupEnv does.
type Environment func(name string) (string, bool)

func (e Environment) get(names ...string) string {
	for _, name := range names {
		if value, _ := e(name); strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// isOn: somebody says where traces go, and nobody says that they do not.
func (e Environment) isOn() bool {
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") || e.get("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return e.get("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// New reads the standard OTEL_* variables and returns nil if they ask for no
// traces.
func New(ctx context.Context, env Environment) (*Tracing, error) {
	if !env.isOn() {
		return nil, nil //nolint:nilnil // the nil Tracing is one that is off
	}
	exporter, err := newExporter(ctx, env)
	if err != nil {
		return nil, err
	}
	return NewWith(ctx, env, sdktrace.NewBatchSpanProcessor(exporter))
}

// NewWith sends spans through a processor of the caller's.
func NewWith(ctx context.Context, env Environment, processor sdktrace.SpanProcessor) (*Tracing, error) {
	sampler, err := newSampler(env)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", serviceName)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the service: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about), sdktrace.WithIDGenerator(idGenerator{}),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)), sdktrace.WithSpanProcessor(processor))
	return &Tracing{provider: provider, tracer: provider.Tracer(scopeName), sampler: sampler}, nil
}

func newExporter(ctx context.Context, env Environment) (sdktrace.SpanExporter, error) {
	if kind := env.get("OTEL_TRACES_EXPORTER"); kind != "" && kind != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER must be otlp or none, not %q", kind)
	}
	var exporter sdktrace.SpanExporter
	var err error
	switch protocol := env.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", "http/protobuf":
		exporter, err = otlptracehttp.New(ctx)
	case "grpc":
		exporter, err = otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, not %q", protocol)
	}
	if err != nil {
		return nil, fmt.Errorf("create trace exporter: %w", err)
	}
	return exporter, nil
}

// newSampler decides by the trace's id, so that all spans of a run, whenever
// they are sent, are kept or are not.
func newSampler(env Environment) (sdktrace.Sampler, error) {
	switch kind := strings.TrimPrefix(env.get("OTEL_TRACES_SAMPLER"), "parentbased_"); kind {
	case "", "always_on":
		return sdktrace.AlwaysSample(), nil
	case "always_off":
		return sdktrace.NeverSample(), nil
	case "traceidratio":
		ratio, err := strconv.ParseFloat(env.get("OTEL_TRACES_SAMPLER_ARG"), 64)
		if err != nil || ratio < 0 || ratio > 1 {
			return nil, errors.New("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1")
		}
		return sdktrace.TraceIDRatioBased(ratio), nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER must be always_on, always_off or traceidratio, not %q", kind)
	}
}

// Start keeps the exporter until the context ends, then sends what is left. It
// implements the manager's Runnable.
func (t *Tracing) Start(ctx context.Context) error {
	<-ctx.Done()
	if t == nil {
		return nil
	}
	// What waits is sent although the operator is told to end.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(last); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// NeedLeaderElection is false: what a replica did it also tells.
func (t *Tracing) NeedLeaderElection() bool { return false }

// flushTime is what sending the last spans may take.
const flushTime = 5 * time.Second

// Closed sends the span of an activation that closed.
func (t *Tracing) Closed(ctx context.Context, run Run, a Activation) {
	if t == nil {
		return
	}
	attributes := append(run.attributes(),
		attribute.String("axiom.activation", a.ID), attribute.String("axiom.node", a.Node), attribute.String("axiom.node.type", a.Type),
		attribute.String("axiom.branch", a.Branch), attribute.String("axiom.outcome", a.Outcome))
	if a.Attempts > 0 {
		attributes = append(attributes, attribute.Int("axiom.attempts", a.Attempts))
	}
	ctx = trace.ContextWithRemoteSpanContext(withIDs(ctx, givenIDs{span: spanID(run.UID, a.ID)}), t.parent(run))
	_, span := t.tracer.Start(ctx, a.ID, trace.WithTimestamp(a.Entered), trace.WithAttributes(attributes...))
	finish(span, a.Code, a.Closed)
}

// Ended sends the span of a run that ended, which is the parent of all others.
func (t *Tracing) Ended(ctx context.Context, run Run, end Ending) {
	if t == nil {
		return
	}
	ctx = withIDs(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), givenIDs{trace: TraceID(run.UID), span: spanID(run.UID, "")})
	_, span := t.tracer.Start(ctx, "run", trace.WithNewRoot(), trace.WithTimestamp(run.Started),
		trace.WithAttributes(append(run.attributes(), attribute.String("axiom.phase", end.Phase))...))
	finish(span, end.Code, end.At)
}

func finish(span trace.Span, code string, at time.Time) {
	if code != "" {
		span.SetAttributes(attribute.String("error.type", code))
		span.SetStatus(codes.Error, code)
	}
	span.End(trace.WithTimestamp(at))
}

// parent is the run's span, which is sent last.
func (t *Tracing) parent(run Run) trace.SpanContext {
	id := TraceID(run.UID)
	config := trace.SpanContextConfig{TraceID: id, SpanID: spanID(run.UID, ""), Remote: true}
	if t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: id}).Decision == sdktrace.RecordAndSample {
		config.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(config)
}

func (r Run) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", r.Namespace), attribute.String("axiom.run", r.Name), attribute.String("axiom.run.uid", r.UID),
	}
}
