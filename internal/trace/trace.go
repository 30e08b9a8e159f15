// Package trace makes spans of OpenTelemetry: of the batches of a step, and of requests to stores. Before Use it
// makes no span, and asking for one costs the load of a pointer. Package export sends them to a collector, so other
// packages compile without its SDK.
package trace

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var tracer atomic.Pointer[trace.Tracer]

// Use makes spans with t from now on, until stop is called.
func Use(t trace.Tracer) (stop func()) {
	tracer.Store(&t)
	return func() { tracer.Store(nil) }
}

// Span is a span, or nil, which does nothing.
type Span struct{ span trace.Span }

// Begin begins a span below the span of ctx.
func Begin(ctx context.Context, name string) (context.Context, *Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, nil
	}
	ctx, span := (*t).Start(ctx, name)
	return ctx, &Span{span}
}

// Below returns the context of a span elsewhere, which parent names as W3C's header traceparent does. If
// parent is empty, so is the context.
func Below(ctx context.Context, parent string) context.Context {
	if parent == "" || tracer.Load() == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}

// Set adds a number to the span.
func (s *Span) Set(name string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(name, value))
	}
}

// End ends the span, with an error or nil. A later call does nothing.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}
