package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/time/rate"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/internal/accept"
)

// listenHTTP opens the address of --metrics or --health, or returns nil if it is empty.
func listenHTTP(ctx context.Context, flag, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, console.Usagef("--%s is %q: it must be host:port", flag, address)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	return listener, nil
}

// serveMetrics serves Prometheus metrics at /metrics, and health at /healthz and /readyz, until stop is called. It
// closes l.
func serveMetrics(l net.Listener, d *serverDoors, g prometheus.Gatherer, ready func(context.Context) error,
	log *slog.Logger) (stop func()) {
	mux := healthPages(ready)
	mux.Handle("GET /metrics", d.guard(promhttp.HandlerFor(g, promhttp.HandlerOpts{})))
	log.Info("metrics", "address", l.Addr().String())
	return serveHTTP(l, "metrics", mux, d.metrics, log)
}

// serveHealth serves health alone, in plain text and to everybody, until stop is called. It closes l.
func serveHealth(l net.Listener, ready func(context.Context) error, log *slog.Logger) (stop func()) {
	log.Info("health", "address", l.Addr().String())
	return serveHTTP(l, "health", healthPages(ready), nil, log)
}

// healthPages serves /healthz and /readyz to anyone, because the probes of Kubernetes carry no token. The pages tell
// only whether the server runs and is ready.
func healthPages(ready func(context.Context) error) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

const (
	// maxPages is how many connections for pages there may be. Prometheus and probes have one each; a page takes
	// 100 KiB.
	maxPages = 64
	// pagesPart is the part of the descriptors for the pages of one address. Of 96 descriptors it is 4 (accept.least).
	pagesPart = 32
	// pageRate is how many connections and pages there are a second: /metrics takes half a millisecond. All others
	// wait; maxPages take half a second or so.
	pageRate = 100
)

// pacedServer is a listener and a handler with a limit on their rate.
type pacedServer struct {
	net.Listener
	http.Handler
	limit *rate.Limiter
}

// Accept implements net.Listener.
func (p pacedServer) Accept() (net.Conn, error) {
	_ = p.limit.Wait(context.Background()) // a context without an end has no error
	return p.Listener.Accept()
}

// ServeHTTP implements http.Handler.
func (p pacedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.limit.Wait(r.Context()) == nil {
		p.Handler.ServeHTTP(w, r)
	}
}

// serveHTTP serves pages until stop is called.
func serveHTTP(l net.Listener, name string, mux *http.ServeMux, config *tls.Config, log *slog.Logger) (stop func()) {
	// Timeouts, because a client that sends nothing would otherwise hold its connection forever. A header is a token at
	// most; the default of 1 MB for each connection is for everybody to fill.
	paced := pacedServer{l, mux, rate.NewLimiter(pageRate, pageRate)}
	server := &http.Server{Handler: paced, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		MaxHeaderBytes: 16 << 10,
		TLSConfig:      config, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve := server.Serve
		if config != nil {
			serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		err := serve(accept.NewListener(paced, accept.Descriptors(maxPages, pagesPart)))
		if !errors.Is(err, http.ErrServerClosed) {
			log.Error(name, "error", err)
		}
	}()
	return func() { server.Close(); <-done }
}

// newRegistry returns a registry with the figures of the process.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}
