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
	"github.com/chaski-eo/chaski/source/diskcache"
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
func serveMetrics(l net.Listener, d *doors, g prometheus.Gatherer, ready func(context.Context) error,
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

// healthPages has the pages /healthz and /readyz. They ask for no token, which Kubernetes does not have, and tell
// nothing else.
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

// paced is a listener and a handler with a limit on their rate.
type paced struct {
	net.Listener
	http.Handler
	limit *rate.Limiter
}

// Accept implements net.Listener.
func (p paced) Accept() (net.Conn, error) {
	_ = p.limit.Wait(context.Background()) // a context without an end has no error
	return p.Listener.Accept()
}

// ServeHTTP implements http.Handler.
func (p paced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.limit.Wait(r.Context()) == nil {
		p.Handler.ServeHTTP(w, r)
	}
}

// serveHTTP serves pages until stop is called.
func serveHTTP(l net.Listener, name string, mux *http.ServeMux, config *tls.Config, log *slog.Logger) (stop func()) {
	// Timeouts, because a client that sends nothing would otherwise hold its connection forever. A header is a token at
	// most; the default of 1 MB for each connection is for everybody to fill.
	paced := paced{l, mux, rate.NewLimiter(pageRate, pageRate)}
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

// newRegistry returns a registry with the figures of the process and of the folder of --cache-dir, which it opens: a
// wrong one fails now and not at the first read.
func newRegistry(cache *diskcache.Ref) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	folder, err := cache.Get()
	if folder != nil {
		registry.MustRegister(cacheMetrics(folder)...)
	}
	return registry, err
}

// cacheMetrics has the figures of the folder of --cache-dir.
func cacheMetrics(f *diskcache.Folder) []prometheus.Collector {
	const space, sub = "chaski", "cache"
	counter := func(name, help string, value func(diskcache.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: name,
			Help: help}, func() float64 { return float64(value(f.Stats())) })
	}
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: space, Subsystem: sub, Name: name,
			Help: help}, func() float64 { return float64(value()) })
	}
	type stats = diskcache.Stats
	return []prometheus.Collector{
		counter("hits_total", "Reads of remote files without a request.", func(s stats) int64 { return s.Hits }),
		counter("misses_total", "Reads of remote files with a request.", func(s stats) int64 { return s.Misses }),
		counter("hit_bytes_total", "Bytes that came from the cache.", func(s stats) int64 { return s.HitBytes }),
		counter("store_bytes_total", "Bytes that came from the store, which chaski plan --cache-bytes foretells.",
			func(s stats) int64 { return s.StoreBytes }),
		counter("stored_bytes_total", "Bytes written to the cache.", func(s stats) int64 { return s.StoredBytes }),
		counter("refused_total", "Ranges that the quota had no room for.", func(s stats) int64 { return s.Refused }),
		counter("evicted_total", "Ranges that made room for others that are read earlier.",
			func(s stats) int64 { return s.Evicted }),
		counter("shared_total", "Reads of remote files that had their bytes from a request for another one.",
			func(s stats) int64 { return s.Shared }),
		counter("damaged_total", "Ranges with a wrong checksum, which were read again.",
			func(s stats) int64 { return s.Damaged }),
		counter("failed_total", "Ranges that the disk did not take or give.", func(s stats) int64 { return s.Failed }),
		gauge("used_bytes", "Bytes on disk of all ranges, also of other engines.", f.Used),
		gauge("quota_bytes", "Bytes of --cache-bytes.", f.Quota),
	}
}
