package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

// collected is a collector of spans.
type collected struct {
	collector.UnimplementedTraceServiceServer

	mu   sync.Mutex
	list []*spans.Span
}

// Export implements collector.TraceServiceServer.
func (c *collected) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (
	*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.list = append(c.list, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestTraces promises that a collector gets a span for the batch of a step, below the span of the client, and below it
// one for each request to the store.
func TestTraces(t *testing.T) {
	got := &collected{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	collector.RegisterTraceServiceServer(g, got)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // ms
	store := netsim.NewServer(false)
	t.Cleanup(store.Close)
	store.Put("/a.tif", netsim.Chip(1, 2, 1024, 256))

	s := serveWith(t, "--listen", "127.0.0.1:0", "--insecure", "--root", "http://")
	conn, err := grpc.NewClient(s.listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := chaskiv1.NewChaskiClient(conn)
	spec := `{"source":"` + store.URL + `/a.tif","batch_size":1}`
	d, err := client.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: []byte(spec)})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, r := range []*chaskiv1.StreamRequest{
		{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: &chaskiv1.Ticket{
			Handle: d.GetHandle(), Count: 1, RowStride: 1, Trace: "00-" + trace + "-" + parent + "-01",
		}}},
		{Kind: &chaskiv1.StreamRequest_Credit{Credit: &chaskiv1.Credit{Batches: 1}}},
	} {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	parts := 0
	for ; err == nil; parts++ {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) || parts < 2 {
		t.Fatal(parts, err)
	}
	below := map[string]string{} // names of spans of the trace, by their parents
	for range 600 {
		got.mu.Lock()
		for _, s := range got.list {
			if hex.EncodeToString(s.GetTraceId()) == trace {
				below[hex.EncodeToString(s.GetParentSpanId())] = s.GetName()
				below[s.GetName()] = hex.EncodeToString(s.GetSpanId())
			}
		}
		got.mu.Unlock()
		if batch := below["chaski.batch"]; batch != "" {
			if below[parent] != "chaski.batch" || below[batch] != "chaski.request" {
				t.Errorf("%v", below)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("no span of the batch: %v", below)
}
