package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/chaski-eo/chaski/internal/crash"
)

// metrics are the metrics of a server. Without a registerer they are counted, but not
// exported.
type metrics struct {
	streams        prometheus.Gauge
	batches, bytes prometheus.Counter
	lent           prometheus.Counter
	faults         *prometheus.CounterVec
	describe       prometheus.Histogram
	wait, idle     prometheus.Histogram
}

func newMetrics(r prometheus.Registerer, e *engines, s *shared) (*metrics, error) {
	const space, sub = "chaski", "server"
	buckets := prometheus.ExponentialBuckets(0.001, 4, 9) // 1 ms to 65 s
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: space, Subsystem: sub, Name: name,
			Help: help, Buckets: buckets})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: name, Help: help})
	}
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: space, Subsystem: sub, Name: "streams",
			Help: "Streams being served."}),
		batches: counter("batches_total", "Batches sent."),
		lent:    counter("leases_total", "Batches passed in shared memory."),
		bytes:   counter("payload_bytes_total", "Bytes of payload sent."),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: space, Subsystem: sub,
			Name: "faults_total", Help: "Tickets answered with a fault, by kind."}, []string{"kind"}),
		describe: histogram("describe_seconds", "Time to answer Describe."),
		wait: histogram("batch_wait_seconds",
			"Time a stream waits for a batch that was started: the engine is the bottleneck."),
		idle: histogram("ticket_wait_seconds",
			"Time a stream waits for a ticket and a credit: the client is the bottleneck."),
	}
	if r == nil {
		return m, nil
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: space, Subsystem: sub, Name: "datasets",
		Help: "Datasets open."}, func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.byHandle))
	})
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: space, Subsystem: sub,
			Name: name, Help: help}, f)
	}
	panics := prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: "panics_total",
		Help: "Panics of this process that ended one request each: bugs, with their stacks in the log."},
		func() float64 { return float64(crash.Count()) })
	leases := gauge("leases", "Batches and arrays that clients have in shared memory.", func() float64 {
		n, _, _ := s.figures()
		return float64(n)
	})
	leased := gauge("leased_bytes", "Bytes of batches and arrays that clients have in shared memory.", func() float64 {
		_, _, n := s.figures()
		return float64(n)
	})
	segments := gauge("segments", "Segments of shared memory.", func() float64 {
		_, n, _ := s.figures()
		return float64(n)
	})
	total := e.options.Loader.Budget
	limit := gauge("memory_limit_bytes", "Bytes of --memory-total.",
		func() float64 { return float64(total.Limit()) })
	used := gauge("memory_used_bytes", "Bytes of --memory-total in use: batches, reads, openings, tables.",
		func() float64 { return float64(total.Used()) })
	waiting := gauge("memory_waiting", "Requests that wait for memory of --memory-total.",
		func() float64 { return float64(total.Waiting()) })
	for _, c := range []prometheus.Collector{limit, used, waiting, m.streams, m.batches, m.lent, leases, leased,
		segments, m.bytes, panics, m.faults, m.describe, m.wait, m.idle, open} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
