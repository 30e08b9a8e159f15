package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// listenMetrics opens the address of --metrics, or returns nil if it is empty.
func listenMetrics(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, console.Usagef("--metrics is %q: it must be host:port", address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	return l, nil
}

// serveMetrics serves Prometheus metrics at /metrics, and health at /healthz and /readyz, until stop is called. It
// closes l.
func serveMetrics(l net.Listener, d *doors, g prometheus.Gatherer, ready func(context.Context) error,
	log *slog.Logger) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", d.guard(promhttp.HandlerFor(g, promhttp.HandlerOpts{})))
	// Without a token, which Kubernetes does not have. They tell nothing else.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	// Timeouts, because a client that sends nothing would otherwise hold its connection forever.
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		TLSConfig: d.metrics, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve := h.Serve
		if d.metrics != nil {
			serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
		}
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics", "error", err)
		}
	}()
	log.Info("metrics", "address", l.Addr().String())
	return func() { h.Close(); <-done }
}
