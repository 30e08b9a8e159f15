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
	named := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "chaski", Subsystem: "server", Name: name, Help: help}
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "chaski", Subsystem: "server", Name: name,
			Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}) // 1 ms to 65 s
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts(named(name, help)))
	}
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts(named("streams", "Streams being served."))),
		batches: counter("batches_total", "Batches sent."),
		lent:    counter("leases_total", "Batches passed in shared memory."),
		bytes:   counter("payload_bytes_total", "Bytes of payload sent."),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts(named("faults_total",
			"Tickets answered with a fault, by kind.")), []string{"kind"}),
		describe: histogram("describe_seconds", "Time to answer Describe."),
		wait: histogram("batch_wait_seconds",
			"Time a stream waits for a batch that was started: the engine is the bottleneck."),
		idle: histogram("ticket_wait_seconds",
			"Time a stream waits for a ticket and a credit: the client is the bottleneck."),
	}
	if r == nil {
		return m, nil
	}
	collectors := []prometheus.Collector{m.streams, m.batches, m.lent, m.bytes, m.faults, m.describe, m.wait, m.idle,
		prometheus.NewCounterFunc(prometheus.CounterOpts(named("panics_total",
			"Panics of this process that ended one request each: bugs, with their stacks in the log.")),
			func() float64 { return float64(crash.Count()) })}
	gauge := func(name, help string, value func() float64) {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts(named(name, help)), value))
	}
	gauge("datasets", "Datasets open.", func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.byHandle))
	})
	gauge("leases", "Batches and arrays that clients have in shared memory.", func() float64 {
		leases, _, _ := s.figures()
		return float64(leases)
	})
	gauge("leased_bytes", "Bytes of batches and arrays that clients have in shared memory.", func() float64 {
		_, _, bytes := s.figures()
		return float64(bytes)
	})
	gauge("segments", "Segments of shared memory.", func() float64 {
		_, segments, _ := s.figures()
		return float64(segments)
	})
	budget := e.options.Loader.Budget
	gauge("memory_limit_bytes", "Bytes of --memory-total.", func() float64 { return float64(budget.Limit()) })
	gauge("memory_used_bytes", "Bytes of --memory-total in use: batches, reads, openings, tables.",
		func() float64 { return float64(budget.Used()) })
	gauge("memory_waiting", "Requests that wait for memory of --memory-total.",
		func() float64 { return float64(budget.Waiting()) })
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
