// Package trace makes spans of OpenTelemetry: of the batches of a step, and of requests to stores. Before Start it
// makes no span, and asking for one costs the load of a pointer.
package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Variable chooses where spans go, as every SDK of OpenTelemetry has it: "otlp" sends them to the collector that the
// other variables (OTEL_EXPORTER_OTLP_ENDPOINT) name. Here, unlike there, the default is "none".
const Variable = "OTEL_TRACES_EXPORTER"

var tracer atomic.Pointer[trace.Tracer]

// Start makes spans from now on, if the environment asks for them, until stop is called, which sends the last ones.
func Start(ctx context.Context) (stop func(context.Context) error, err error) {
	if !slices.Contains(strings.Split(os.Getenv(Variable), ","), "otlp") { // others are for the trainer alone
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracegrpc.New(ctx) // it does not wait for the collector
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Variable, err)
	}
	named := resource.NewSchemaless(attribute.String("service.name", "chaski"))
	if fromEnv, err := resource.New(ctx, resource.WithFromEnv()); err == nil {
		named, err = resource.Merge(named, fromEnv)
		if err != nil {
			return nil, err
		}
	}
	return startWith(sdk.NewBatchSpanProcessor(exporter), named), nil
}

// During makes spans, if the environment asks for them, while run runs.
func During(ctx context.Context, run func(context.Context) error) error {
	stop, err := Start(ctx)
	if err != nil {
		return err
	}
	err = run(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = stop(last) // what no collector takes is lost, which is no error of run
	return err
}

// startWith makes spans for a processor.
func startWith(p sdk.SpanProcessor, named *resource.Resource) (stop func(context.Context) error) {
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(p), sdk.WithResource(named))
	made := provider.Tracer("chaski")
	tracer.Store(&made)
	return func(ctx context.Context) error {
		tracer.Store(nil)
		return provider.Shutdown(ctx)
	}
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
