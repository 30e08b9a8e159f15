package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// serveMetrics serves Prometheus metrics at /metrics until stop is called.
func serveMetrics(ctx context.Context, address string, g prometheus.Gatherer,
	log *slog.Logger) (stop func(), err error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, console.Usagef("--metrics is %q: it must be host:port", address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	// Timeouts, because a client that sends nothing would otherwise hold its connection forever.
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics", "error", err)
		}
	}()
	log.Info("metrics", "address", l.Addr().String())
	return func() { h.Close(); <-done }, nil
}
