package server

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// counts are what is counted about the ranks of an open dataset, for reports and for the metrics of the server.
type counts struct {
	stages  *resources.Stages // of the workers
	cache   *diskcache.Folder // or nil
	remote  bool              // the batches come from other servers
	metrics *metrics

	mu    sync.Mutex
	ranks map[rankID]*report.Rank // each guarded by mu
}

// rankID names a rank of a dataset.
type rankID struct {
	client      clientID
	rank, world uint32
}

// maxRanks bounds the ranks of a dataset that are told apart: as many as streams. Clients may call themselves by any
// number.
const maxRanks = DefaultMaxStreams

// rank returns the times of the rank that sent a ticket.
func (c *counts) rank(client clientID, t *chaskiv1.Ticket) *report.Rank {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := rankID{client, t.GetRowStart(), t.GetRowStride()}
	if r := c.ranks[id]; r != nil {
		return r
	}
	if len(c.ranks) >= maxRanks {
		for other := range c.ranks {
			delete(c.ranks, other) // any one: who comes back is counted anew
			break
		}
	}
	r := &report.Rank{Client: string(client), Rank: id.rank, World: id.world}
	c.ranks[id] = r
	return r
}

// of returns the ranks that a client may know of: with a token of its own, its own ones alone.
func (c *counts) of(client clientID) (ranks []report.Rank) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.ranks {
		if id.client == client || !strings.HasPrefix(string(client), tokenPrefix) {
			ranks = append(ranks, *r)
		}
	}
	return ranks
}

// batchWait is a wait for the next batch of a dataset.
type batchWait struct {
	start time.Time
	spent resources.Spent
	cache time.Duration
}

// await begins a wait.
func (c *counts) await() batchWait { return batchWait{time.Now(), c.stages.Spent(), c.cacheTime()} }

// cacheTime returns the time that workers spent on the cache on disk.
func (c *counts) cacheTime() time.Duration {
	if c.cache == nil {
		return 0
	}
	return c.cache.Stats().Time
}

// waited ends the wait of a rank, and divides it by what the workers did meanwhile. Idle workers do
// not count: they wait for those that the batch waits for.
func (c *counts) waited(r *report.Rank, w batchWait) {
	waited, times := time.Since(w.start).Seconds(), report.Times{}
	if c.remote {
		times[report.Transport] = waited
	} else {
		spent := c.stages.Spent().Sub(w.spent)
		read := spent.Reading()
		cached := min(c.cacheTime()-w.cache, read)
		times[report.Read], times[report.Cache] = (read - cached).Seconds(), cached.Seconds()
		times[report.Decode] = spent.Decoding().Seconds()
		times[report.Memory] = spent[resources.StageMemory].Seconds()
		if times == (report.Times{}) {
			times[report.Decode] = 1 // the work was done before, and the batch is being finished
		}
		times = times.Shares()
		for i := range times {
			times[i] *= waited
		}
	}
	c.metrics.observe("chaski_server_batch_wait_seconds", waited)
	for i, t := range times {
		if t > 0 {
			c.metrics.add("chaski_server_wait_seconds_total", t, report.Stages[i])
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, t := range times {
		r.Engine[i] += t
	}
}

// sent counts a batch that took so many seconds to pass on. Metrics are added without the lock: a new rank of these
// waits for who reads them.
func (c *counts) sent(r *report.Rank, valid []bool, bytes int, seconds float64) {
	c.metrics.add("chaski_server_batches_total", 1)
	c.metrics.add("chaski_server_payload_bytes_total", float64(bytes))
	c.metrics.add("chaski_server_send_seconds_total", seconds)
	c.metrics.add("chaski_rank_batches_total", 1, rankLabel(r))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ok := range valid {
		if ok {
			r.Samples++
		}
	}
	r.Batches++
	r.Bytes += int64(bytes)
	r.Sent += seconds
}

// idled counts seconds without a ticket and a credit.
func (c *counts) idled(r *report.Rank, seconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Idle += seconds
}

// longestStep bounds what a client may say about one step, so its figures stay numbers.
const longestStep = 365 * 24 * time.Hour

// addCredit counts what a client says in a credit.
func (c *counts) addCredit(r *report.Rank, credit *chaskiv1.Credit) {
	seconds := func(ns uint64) float64 { return float64(min(ns, uint64(longestStep))) / 1e9 }
	waited, stepped := seconds(credit.GetWaited()), seconds(credit.GetStepped())
	c.metrics.add("chaski_rank_wait_seconds_total", waited, rankLabel(r))
	c.metrics.add("chaski_rank_step_seconds_total", stepped, rankLabel(r))
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Waited += waited
	r.Stepped += stepped
}

// rankLabel names a rank in metrics. Labels are bounded, since Prometheus keeps each for ever.
func rankLabel(r *report.Rank) string {
	switch {
	case r.World == 0:
		return "fetch"
	case r.Rank >= maxRanks:
		return "other"
	}
	return strconv.Itoa(int(r.Rank))
}

// metrics are the metrics that a server adds to, by name. Without a registerer they are counted only.
type metrics struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]prometheus.Histogram
}

// add adds to a counter of the list, under the value of its label if it has one.
func (m *metrics) add(name string, n float64, label ...string) {
	m.counters[name].WithLabelValues(label...).Add(n)
}

// observe adds seconds to a histogram of the list.
func (m *metrics) observe(name string, seconds float64) { m.histograms[name].Observe(seconds) }
