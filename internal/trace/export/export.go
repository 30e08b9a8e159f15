// Package export sends the spans of package trace to a collector.
package export

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/chaski-eo/chaski/internal/trace"
)

// Variable chooses where spans go, as every SDK of OpenTelemetry has it: "otlp" sends them to the collector that the
// other variables (OTEL_EXPORTER_OTLP_ENDPOINT) name. Here, unlike there, the default is "none".
const Variable = "OTEL_TRACES_EXPORTER"

// start makes spans from now on, if the environment asks for them, until stop is called, which sends the last ones.
func start(ctx context.Context) (stop func(context.Context) error, err error) {
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
	stop, err := start(ctx)
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
	stopSpans := trace.Use(provider.Tracer("chaski"))
	return func(ctx context.Context) error {
		stopSpans()
		return provider.Shutdown(ctx)
	}
}
