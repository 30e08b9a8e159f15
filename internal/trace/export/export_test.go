package export

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/chaski-eo/chaski/internal/trace"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // the example of W3C's recommendation

// TestSpans promises spans below the one elsewhere, with what was set, and none after the end.
func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	stop := startWith(recorder, resource.Empty())
	ctx, batch := trace.Begin(trace.Below(t.Context(), parent), "batch")
	batch.Set("rows", 3)
	_, request := trace.Begin(ctx, "request")
	request.End(errors.New("late"))
	batch.End(nil)
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, s := trace.Begin(ctx, "after"); s != nil {
		t.Error("a span after the end")
	}
	ended := recorder.Ended()
	if len(ended) != 2 || ended[0].Name() != "request" || ended[1].Name() != "batch" {
		t.Fatal(ended)
	}
	inner, outer := ended[0], ended[1]
	for _, s := range ended {
		if id := s.SpanContext().TraceID().String(); id != parent[3:35] {
			t.Errorf("%s is of trace %s", s.Name(), id)
		}
	}
	if outer.Parent().SpanID().String() != parent[36:52] || inner.Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Errorf("below %v and %v", outer.Parent(), inner.Parent())
	}
	if inner.Status().Code != codes.Error || outer.Attributes()[0].Value.AsInt64() != 3 {
		t.Errorf("%v, %v", inner.Status(), outer.Attributes())
	}
}

// TestExporters promises that there are spans for "otlp", and none for other exporters.
func TestExporters(t *testing.T) {
	for value, on := range map[string]bool{"": false, "none": false, "console": false, "console,otlp": true} {
		t.Setenv(Variable, value)
		err := During(t.Context(), func(ctx context.Context) error {
			if _, s := trace.Begin(ctx, "batch"); (s != nil) != on {
				t.Errorf("%q: a span: %v", value, s != nil)
			}
			return nil
		})
		if err != nil {
			t.Error(value, err)
		}
	}
}
