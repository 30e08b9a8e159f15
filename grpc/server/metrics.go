package server

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

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

	value func(*Server) float64 // of what is counted in any case; nil: see metrics
}

// Metrics are what a server tells Prometheus, beside the figures of its process. docs/metrics.md and the dashboard in
// deploy/grafana are made from this list. Only servers with a cache on disk have figures of it.
var Metrics = []Metric{
	{"chaski_rank_wait_seconds_total", "counter", "rank", "Time that a rank waited for batches, as it says.", nil},
	{"chaski_rank_step_seconds_total", "counter", "rank", "Time that a rank was busy between two batches, as it says.",
		nil},
	{"chaski_rank_batches_total", "counter", "rank", "Batches sent to a rank.", nil},
	{"chaski_server_wait_seconds_total", "counter", "stage",
		"Time that streams waited for a batch that was started, by what the workers did meanwhile: read, " +
			"decode, cache, memory; or transport, of batches from other servers.", nil},
	{"chaski_server_send_seconds_total", "counter", "", "Time in which batches were passed on.", nil},
	{"chaski_server_batch_wait_seconds", "histogram", "",
		"Time a stream waits for a batch that was started: the engine is the bottleneck.", nil},
	{"chaski_server_ticket_wait_seconds", "histogram", "",
		"Time a stream waits for a ticket and a credit: the client is the bottleneck.", nil},
	{"chaski_server_worker_seconds_total", "counter", "stage",
		"Time of all workers: read, decode, turn, memory, wait, other.", nil},
	{"chaski_server_chunks_total", "counter", "", "Chunks that workers decoded.", (*Server).chunks},
	{"chaski_server_streams", "gauge", "", "Streams being served.",
		func(s *Server) float64 { return float64(s.clients.serving()) }},
	{"chaski_server_datasets", "gauge", "", "Datasets open.",
		func(s *Server) float64 { return float64(s.engines.number()) }},
	{"chaski_server_batches_total", "counter", "", "Batches sent.", nil},
	{"chaski_server_payload_bytes_total", "counter", "", "Bytes of payload sent.", nil},
	{"chaski_server_faults_total", "counter", "kind", "Tickets answered with a fault, by kind.", nil},
	{"chaski_server_panics_total", "counter", "",
		"Panics of this process that ended one request each: bugs, with their stacks in the log.",
		func(*Server) float64 { return float64(crash.Count()) }},
	{"chaski_server_describe_seconds", "histogram", "", "Time to answer Describe.", nil},
	{"chaski_server_leases_total", "counter", "", "Batches passed in shared memory.", nil},
	{"chaski_server_leases", "gauge", "", "Batches and arrays that clients have in shared memory.",
		leased(func(leases, _ int, _ int64) int64 { return int64(leases) })},
	{"chaski_server_leased_bytes", "gauge", "", "Bytes of batches and arrays that clients have in shared memory.",
		leased(func(_, _ int, bytes int64) int64 { return bytes })},
	{"chaski_server_segments", "gauge", "", "Segments of shared memory.",
		leased(func(_, segments int, _ int64) int64 { return int64(segments) })},
	{"chaski_server_memory_limit_bytes", "gauge", "", "Bytes of --memory-total.", budgeted((*resources.Budget).Limit)},
	{"chaski_server_memory_used_bytes", "gauge", "",
		"Bytes of --memory-total in use: batches, reads, openings, tables.", budgeted((*resources.Budget).Used)},
	{"chaski_server_memory_waiting", "gauge", "", "Requests that wait for memory of --memory-total.",
		budgeted((*resources.Budget).Waiting)},
	{"chaski_cache_hits_total", "counter", "", "Reads of remote files without a request.",
		cached(func(s diskcache.Stats) int64 { return s.Hits })},
	{"chaski_cache_misses_total", "counter", "", "Reads of remote files with a request.",
		cached(func(s diskcache.Stats) int64 { return s.Misses })},
	{"chaski_cache_hit_bytes_total", "counter", "", "Bytes that came from the cache.",
		cached(func(s diskcache.Stats) int64 { return s.HitBytes })},
	{"chaski_cache_seconds_total", "counter", "", "Time of all workers that went to reads and writes of the cache.",
		func(s *Server) float64 { return s.options.Cache.Stats().Time.Seconds() }},
	{"chaski_cache_store_bytes_total", "counter", "",
		"Bytes that came from the store, which chaski plan --cache-bytes foretells.",
		cached(func(s diskcache.Stats) int64 { return s.StoreBytes })},
	{"chaski_cache_stored_bytes_total", "counter", "", "Bytes written to the cache.",
		cached(func(s diskcache.Stats) int64 { return s.StoredBytes })},
	{"chaski_cache_refused_total", "counter", "", "Ranges that the quota had no room for.",
		cached(func(s diskcache.Stats) int64 { return s.Refused })},
	{"chaski_cache_evicted_total", "counter", "", "Ranges that made room for others that are read earlier.",
		cached(func(s diskcache.Stats) int64 { return s.Evicted })},
	{"chaski_cache_shared_total", "counter", "",
		"Reads of remote files that had their bytes from a request for another one.",
		cached(func(s diskcache.Stats) int64 { return s.Shared })},
	{"chaski_cache_damaged_total", "counter", "", "Ranges with a wrong checksum, which were read again.",
		cached(func(s diskcache.Stats) int64 { return s.Damaged })},
	{"chaski_cache_failed_total", "counter", "", "Ranges that the disk did not take or give.",
		cached(func(s diskcache.Stats) int64 { return s.Failed })},
	{"chaski_cache_used_bytes", "gauge", "", "Bytes on disk of all ranges, also of other engines.",
		func(s *Server) float64 { return float64(s.options.Cache.Used()) }},
	{"chaski_cache_quota_bytes", "gauge", "", "Bytes of --cache-bytes.",
		func(s *Server) float64 { return float64(s.options.Cache.Quota()) }},
}

// workerSeconds is the counter whose values the workers of all datasets count, by stage.
const workerSeconds = "chaski_server_worker_seconds_total"

// chunks returns how many chunks workers have decoded.
func (s *Server) chunks() float64 {
	chunks, _ := s.engines.stages.Decoded()
	return float64(chunks)
}

// leased is the value of a figure of shared memory.
func leased(figure func(leases, segments int, bytes int64) int64) func(*Server) float64 {
	return func(s *Server) float64 { return float64(figure(s.shared.figures())) }
}

// budgeted is the value of a figure of --memory-total.
func budgeted(figure func(*resources.Budget) int64) func(*Server) float64 {
	return func(s *Server) float64 { return float64(figure(s.options.Loader.Budget)) }
}

// cached is the value of a figure of the folder of --cache-dir.
func cached(figure func(diskcache.Stats) int64) func(*Server) float64 {
	return func(s *Server) float64 { return float64(figure(s.options.Cache.Stats())) }
}

func newMetrics(s *Server) (*metrics, error) {
	made := &metrics{counters: map[string]*prometheus.CounterVec{}, histograms: map[string]prometheus.Histogram{}}
	for _, metric := range Metrics {
		if s.options.Cache == nil && strings.HasPrefix(metric.Name, "chaski_cache_") {
			continue
		}
		for _, collector := range made.collectors(s, metric) {
			if s.options.Metrics == nil {
				continue
			}
			if err := s.options.Metrics.Register(collector); err != nil {
				return nil, err
			}
		}
	}
	return made, nil
}

// collectors returns what Prometheus asks for the values of a metric.
func (m *metrics) collectors(s *Server, metric Metric) (out []prometheus.Collector) {
	options := prometheus.Opts{Name: metric.Name, Help: metric.Help}
	value := func() float64 { return metric.value(s) }
	switch {
	case metric.Name == workerSeconds:
		for _, stage := range resources.AllStages() {
			if stage == resources.StagePredictor || stage == resources.StageScatter { // they are in decode
				continue
			}
			options.ConstLabels = prometheus.Labels{metric.Label: stage.String()}
			out = append(out, prometheus.NewCounterFunc(prometheus.CounterOpts(options),
				func() float64 { return s.engines.stages.Spent()[stage].Seconds() }))
		}
		return out
	case metric.Type == "histogram":
		histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: options.Name, Help: options.Help,
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}) // 1 ms to 65 s
		m.histograms[options.Name] = histogram
		return append(out, histogram)
	case metric.Type == "gauge":
		return append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts(options), value))
	case metric.value != nil:
		return append(out, prometheus.NewCounterFunc(prometheus.CounterOpts(options), value))
	case metric.Label != "":
		m.counters[options.Name] = prometheus.NewCounterVec(prometheus.CounterOpts(options), []string{metric.Label})
	default:
		m.counters[options.Name] = prometheus.NewCounterVec(prometheus.CounterOpts(options), nil)
		// A counter without a label is given a value, so it is there before the first event.
		m.add(options.Name, 0)
	}
	return append(out, m.counters[options.Name])
}
