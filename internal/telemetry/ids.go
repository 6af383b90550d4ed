package telemetry

import (
	"context"
	"crypto/sha256"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TraceID of the run of a UID.
func TraceID(uid string) trace.TraceID {
	sum := sha256.Sum256([]byte("trace/" + uid))
	return trace.TraceID(sum[:len(trace.TraceID{})])
}

// spanID of an activation of a run; that of the run itself has no activation.
func spanID(uid, activation string) trace.SpanID {
	sum := sha256.Sum256([]byte("span/" + uid + "/" + activation))
	return trace.SpanID(sum[:len(trace.SpanID{})])
}

// givenIDs are the ids that the next span shall have.
type givenIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

type givenIDsKey struct{}

func withIDs(ctx context.Context, ids givenIDs) context.Context {
	return context.WithValue(ctx, givenIDsKey{}, ids)
}

// idGenerator hands out the ids that a context carries.
type idGenerator struct{}

var _ sdktrace.IDGenerator = idGenerator{}

// NewIDs are those of a span without a parent.
func (idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	ids, _ := ctx.Value(givenIDsKey{}).(givenIDs)
	return ids.trace, ids.span
}

// NewSpanID is that of a span with a parent.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	ids, _ := ctx.Value(givenIDsKey{}).(givenIDs)
	return ids.span
}
