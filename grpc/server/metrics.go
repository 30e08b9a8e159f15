package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// Metric describes a metric of a server.
type Metric struct {
	Name  string
	Type  string // "counter", "gauge" or "histogram"
	Label string // the name of its label, or ""
	Help  string
}

// Metrics are what a server tells Prometheus, beside the figures of its process. docs/metrics.md and the dashboard in
// deploy/grafana are made from this list. Only servers with a cache on disk have figures of it.
var Metrics = []Metric{
	{"chaski_rank_wait_seconds_total", "counter", "rank", "Time that a rank waited for batches, as it says."},
	{"chaski_rank_step_seconds_total", "counter", "rank",
		"Time that a rank was busy between two batches, as it says."},
	{"chaski_rank_batches_total", "counter", "rank", "Batches sent to a rank."},
	{"chaski_server_wait_seconds_total", "counter", "stage",
		"Time that streams waited for a batch that was started, by what the workers did meanwhile: read, decode, " +
			"cache, memory; or transport, of batches from other servers."},
	{"chaski_server_send_seconds_total", "counter", "", "Time in which batches were passed on."},
	{"chaski_server_batch_wait_seconds", "histogram", "",
		"Time a stream waits for a batch that was started: the engine is the bottleneck."},
	{"chaski_server_ticket_wait_seconds", "histogram", "",
		"Time a stream waits for a ticket and a credit: the client is the bottleneck."},
	{"chaski_server_worker_seconds_total", "counter", "stage",
		"Time of all workers: read, decode, turn, memory, wait, other."},
	{"chaski_server_chunks_total", "counter", "", "Chunks that workers decoded."},
	{"chaski_server_streams", "gauge", "", "Streams being served."},
	{"chaski_server_datasets", "gauge", "", "Datasets open."},
	{"chaski_server_batches_total", "counter", "", "Batches sent."},
	{"chaski_server_payload_bytes_total", "counter", "", "Bytes of payload sent."},
	{"chaski_server_faults_total", "counter", "kind", "Tickets answered with a fault, by kind."},
	{"chaski_server_panics_total", "counter", "",
		"Panics of this process that ended one request each: bugs, with their stacks in the log."},
	{"chaski_server_describe_seconds", "histogram", "", "Time to answer Describe."},
	{"chaski_server_leases_total", "counter", "", "Batches passed in shared memory."},
	{"chaski_server_leases", "gauge", "", "Batches and arrays that clients have in shared memory."},
	{"chaski_server_leased_bytes", "gauge", "", "Bytes of batches and arrays that clients have in shared memory."},
	{"chaski_server_segments", "gauge", "", "Segments of shared memory."},
	{"chaski_server_memory_limit_bytes", "gauge", "", "Bytes of --memory-total."},
	{"chaski_server_memory_used_bytes", "gauge", "",
		"Bytes of --memory-total in use: batches, reads, openings, tables."},
	{"chaski_server_memory_waiting", "gauge", "", "Requests that wait for memory of --memory-total."},
	{"chaski_cache_hits_total", "counter", "", "Reads of remote files without a request."},
	{"chaski_cache_misses_total", "counter", "", "Reads of remote files with a request."},
	{"chaski_cache_hit_bytes_total", "counter", "", "Bytes that came from the cache."},
	{"chaski_cache_seconds_total", "counter", "", "Time of all workers that went to reads and writes of the cache."},
	{"chaski_cache_store_bytes_total", "counter", "",
		"Bytes that came from the store, which chaski plan --cache-bytes foretells."},
	{"chaski_cache_stored_bytes_total", "counter", "", "Bytes written to the cache."},
	{"chaski_cache_refused_total", "counter", "", "Ranges that the quota had no room for."},
	{"chaski_cache_evicted_total", "counter", "", "Ranges that made room for others that are read earlier."},
	{"chaski_cache_shared_total", "counter", "",
		"Reads of remote files that had their bytes from a request for another one."},
	{"chaski_cache_damaged_total", "counter", "", "Ranges with a wrong checksum, which were read again."},
	{"chaski_cache_failed_total", "counter", "", "Ranges that the disk did not take or give."},
	{"chaski_cache_used_bytes", "gauge", "", "Bytes on disk of all ranges, also of other engines."},
	{"chaski_cache_quota_bytes", "gauge", "", "Bytes of --cache-bytes."},
}

// metrics are the metrics of a server. Without a registerer they are counted, but not exported.
type metrics struct {
	streams                         prometheus.Gauge
	batches, bytes, lent, send      prometheus.Counter
	faults, waits                   *prometheus.CounterVec
	rankWait, rankStep, rankBatches *prometheus.CounterVec
	describe, wait, idle            prometheus.Histogram

	all []prometheus.Collector
}

// opts returns the options of a metric of the list.
func opts(name string) (o prometheus.Opts, labels []string) {
	for _, m := range Metrics {
		if m.Name == name {
			if m.Label != "" {
				labels = []string{m.Label}
			}
			return prometheus.Opts{Name: name, Help: m.Help}, labels
		}
	}
	panic("metric " + name + " is not in the list")
}

func (m *metrics) counter(name string) prometheus.Counter {
	o, _ := opts(name)
	c := prometheus.NewCounter(prometheus.CounterOpts(o))
	m.all = append(m.all, c)
	return c
}

func (m *metrics) counters(name string) *prometheus.CounterVec {
	o, labels := opts(name)
	c := prometheus.NewCounterVec(prometheus.CounterOpts(o), labels)
	m.all = append(m.all, c)
	return c
}

func (m *metrics) histogram(name string) prometheus.Histogram {
	o, _ := opts(name)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: o.Name, Help: o.Help,
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}) // 1 ms to 65 s
	m.all = append(m.all, h)
	return h
}

// count adds a counter that somebody else counts.
func (m *metrics) count(name string, value func() float64) {
	o, _ := opts(name)
	m.all = append(m.all, prometheus.NewCounterFunc(prometheus.CounterOpts(o), value))
}

func (m *metrics) gauge(name string, value func() float64) {
	o, _ := opts(name)
	m.all = append(m.all, prometheus.NewGaugeFunc(prometheus.GaugeOpts(o), value))
}

// waited counts a wait for a batch, and what it was for.
func (m *metrics) waited(seconds float64, times report.Times) {
	m.wait.Observe(seconds)
	for i, t := range times {
		if t > 0 {
			m.waits.WithLabelValues(report.Stages[i]).Add(t)
		}
	}
}

// sent counts a batch that took so many seconds to pass on.
func (m *metrics) sent(r *report.Rank, bytes int, seconds float64) {
	m.batches.Inc()
	m.bytes.Add(float64(bytes))
	m.send.Add(seconds)
	m.rankBatches.WithLabelValues(rankLabel(r)).Inc()
}

// told counts what a rank says about itself.
func (m *metrics) told(r *report.Rank, waited, stepped float64) {
	m.rankWait.WithLabelValues(rankLabel(r)).Add(waited)
	m.rankStep.WithLabelValues(rankLabel(r)).Add(stepped)
}

func newMetrics(r prometheus.Registerer, e *engines, s *shared) (*metrics, error) {
	m := &metrics{}
	m.batches, m.bytes = m.counter("chaski_server_batches_total"), m.counter("chaski_server_payload_bytes_total")
	m.lent, m.send = m.counter("chaski_server_leases_total"), m.counter("chaski_server_send_seconds_total")
	m.faults, m.waits = m.counters("chaski_server_faults_total"), m.counters("chaski_server_wait_seconds_total")
	m.rankWait, m.rankStep = m.counters("chaski_rank_wait_seconds_total"), m.counters("chaski_rank_step_seconds_total")
	m.rankBatches = m.counters("chaski_rank_batches_total")
	m.describe = m.histogram("chaski_server_describe_seconds")
	m.wait, m.idle = m.histogram("chaski_server_batch_wait_seconds"), m.histogram("chaski_server_ticket_wait_seconds")
	streams, _ := opts("chaski_server_streams")
	m.streams = prometheus.NewGauge(prometheus.GaugeOpts(streams))
	m.all = append(m.all, m.streams)
	if r == nil {
		return m, nil
	}
	m.addEngines(e)
	m.addShared(s)
	if e.options.Cache != nil {
		m.addCache(e.options.Cache)
	}
	for _, c := range m.all {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addEngines adds the figures of datasets, their workers and their memory.
func (m *metrics) addEngines(e *engines) {
	m.gauge("chaski_server_datasets", func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.byHandle))
	})
	m.count("chaski_server_panics_total", func() float64 { return float64(crash.Count()) })
	m.count("chaski_server_chunks_total", func() float64 {
		chunks, _ := e.stages.Decoded()
		return float64(chunks)
	})
	budget := e.options.Loader.Budget
	m.gauge("chaski_server_memory_limit_bytes", func() float64 { return float64(budget.Limit()) })
	m.gauge("chaski_server_memory_used_bytes", func() float64 { return float64(budget.Used()) })
	m.gauge("chaski_server_memory_waiting", func() float64 { return float64(budget.Waiting()) })
	worker, labels := opts("chaski_server_worker_seconds_total")
	for _, stage := range resources.AllStages() {
		if stage == resources.StagePredictor || stage == resources.StageScatter { // they are in decode
			continue
		}
		worker.ConstLabels = prometheus.Labels{labels[0]: stage.String()}
		m.all = append(m.all, prometheus.NewCounterFunc(prometheus.CounterOpts(worker),
			func() float64 { return e.stages.Spent()[stage].Seconds() }))
	}
}

// addShared adds the figures of shared memory.
func (m *metrics) addShared(s *shared) {
	m.gauge("chaski_server_leases", func() float64 {
		leases, _, _ := s.figures()
		return float64(leases)
	})
	m.gauge("chaski_server_leased_bytes", func() float64 {
		_, _, bytes := s.figures()
		return float64(bytes)
	})
	m.gauge("chaski_server_segments", func() float64 {
		_, segments, _ := s.figures()
		return float64(segments)
	})
}

// addCache adds the figures of the folder of --cache-dir.
func (m *metrics) addCache(f *diskcache.Folder) {
	counts := func(name string, value func(diskcache.Stats) int64) {
		m.count(name, func() float64 { return float64(value(f.Stats())) })
	}
	type stats = diskcache.Stats
	counts("chaski_cache_hits_total", func(s stats) int64 { return s.Hits })
	counts("chaski_cache_misses_total", func(s stats) int64 { return s.Misses })
	counts("chaski_cache_hit_bytes_total", func(s stats) int64 { return s.HitBytes })
	counts("chaski_cache_store_bytes_total", func(s stats) int64 { return s.StoreBytes })
	counts("chaski_cache_stored_bytes_total", func(s stats) int64 { return s.StoredBytes })
	counts("chaski_cache_refused_total", func(s stats) int64 { return s.Refused })
	counts("chaski_cache_evicted_total", func(s stats) int64 { return s.Evicted })
	counts("chaski_cache_shared_total", func(s stats) int64 { return s.Shared })
	counts("chaski_cache_damaged_total", func(s stats) int64 { return s.Damaged })
	counts("chaski_cache_failed_total", func(s stats) int64 { return s.Failed })
	m.count("chaski_cache_seconds_total", func() float64 { return f.Stats().Time.Seconds() })
	m.gauge("chaski_cache_used_bytes", func() float64 { return float64(f.Used()) })
	m.gauge("chaski_cache_quota_bytes", func() float64 { return float64(f.Quota()) })
}
