package dryrun

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Cluster is where a run is to go.
type Cluster struct {
	// Hosts have GPUs that take Rate samples a second each.
	Hosts int     `json:"hosts"`
	GPUs  int     `json:"gpus"`
	Rate  float64 `json:"rate"`
	// Servers run the engines, apart from the hosts, which take their batches; 0: each host has an engine of its own.
	Servers int `json:"servers,omitempty"`
	// Cores decode, on each host, or on each server.
	Cores int   `json:"cores"`
	Store Store `json:"store"`
}

// Store is where the data of a run lie.
type Store struct {
	// RTT is the time in seconds until the first byte of an answer comes.
	RTT float64 `json:"rtt"`
	// Bandwidth is how many bytes a second a host gets; 0: there is no bound.
	Bandwidth float64 `json:"bandwidth,omitempty"`
	// Price is in dollars for a million requests, Traffic in dollars for 10⁹ bytes.
	Price   float64 `json:"price"`
	Traffic float64 `json:"traffic"`
	// Prefix is how many requests a second the store answers for the keys with one prefix; 0: there is no bound. Of S3
	// it is 5,500 (Amazon S3 User Guide, "Best practices design patterns").
	Prefix float64 `json:"prefix,omitempty"`
}

// Measured is what a run of the same data has shown on one machine.
type Measured struct {
	// CPU is the time of processors a sample, in seconds, Start the time from opening to the first batch.
	CPU   float64 `json:"cpu"`
	Start float64 `json:"start"`
}

// Bound is a resource that each host has a limited amount of.
type Bound struct {
	Name string `json:"name"`
	// Needed is what the wanted rate needs, Has what a host has, in Unit. Share is Needed / Has.
	Needed float64 `json:"needed"`
	Has    float64 `json:"has"`
	Unit   string  `json:"unit"`
	Share  float64 `json:"share"`
}

// Fleet is what a run on many hosts needs.
type Fleet struct {
	Cluster  Cluster  `json:"cluster"`
	Measured Measured `json:"measured"`
	// Wanted and Reached are samples a second of all hosts. Stalls is the share of the time in which GPUs wait.
	Wanted  float64 `json:"wanted"`
	Reached float64 `json:"reached"`
	Stalls  float64 `json:"stalls"`
	// Bounds are the bounds of a host, the one that breaks first before the others.
	Bounds []Bound `json:"bounds"`
	// Requests is how many requests a second all hosts send at the rate that is reached, Prefixes how many prefixes of
	// keys have to share them, 0 of a store without such a bound.
	Requests float64 `json:"requests"`
	Prefixes int     `json:"prefixes,omitempty"`
	Memory   int64   `json:"memory"` // bytes of a host
	Epoch    Epoch   `json:"epoch"`
	// Servers is what becomes of the rate with a server less and with one more, of Cluster.Servers.
	Servers []Serving `json:"servers,omitempty"`
}

// Serving is what hosts get of so many servers: samples a second, and the share of the time in which GPUs wait.
type Serving struct {
	Servers int     `json:"servers"`
	Reached float64 `json:"reached"`
	Stalls  float64 `json:"stalls"`
}

// Epoch is what an epoch costs.
type Epoch struct {
	Seconds  float64 `json:"seconds"`
	Requests float64 `json:"requests"`
	Bytes    float64 `json:"bytes"`
	Dollars  float64 `json:"dollars"`
}

// Fleet foretells a run of the forecast's samples on a cluster. The forecast is of one host: of Hosts ranks, which read
// a share of each step, or of all. With servers it is of one of them.
func (f *Forecast) Fleet(c Cluster, m Measured) *Fleet {
	rows := math.Max(float64(f.Total.Rows), 1)
	requests, bytes := float64(f.Total.Requests)/rows, float64(f.Total.Bytes)/rows
	engines := cmp.Or(c.Servers, c.Hosts)
	wanted := c.Rate * float64(c.GPUs*c.Hosts)
	host := wanted / float64(engines)
	wait := c.Store.RTT
	if c.Store.Bandwidth > 0 && requests > 0 {
		wait += bytes / requests / c.Store.Bandwidth
	}
	out := &Fleet{Cluster: c, Measured: m, Wanted: wanted, Memory: f.Memory.Total()}
	bound := func(name string, needed, has float64, unit string) {
		if has > 0 {
			out.Bounds = append(out.Bounds, Bound{name, needed, has, unit, needed / has})
		}
	}
	bound("processors", host*m.CPU, float64(c.Cores), "cores")
	bound("link", host*bytes*8/1e9, c.Store.Bandwidth*8/1e9, "Gbit/s")
	bound("requests in flight", host*requests*wait, float64(f.InFlight), "requests")
	slices.SortStableFunc(out.Bounds, func(a, b Bound) int {
		switch {
		case a.Share > b.Share:
			return -1
		case a.Share < b.Share:
			return 1
		}
		return 0
	})
	most := f.throughput(c, m)
	out.Reached = math.Min(wanted, most*float64(engines))
	out.Stalls = 1 - out.Reached/wanted
	for _, n := range []int{c.Servers - 1, c.Servers + 1} {
		if c.Servers > 0 && n > 0 {
			reached := math.Min(wanted, most*float64(n))
			out.Servers = append(out.Servers, Serving{Servers: n, Reached: reached, Stalls: 1 - reached/wanted})
		}
	}
	out.Requests = out.Reached * requests
	if c.Store.Prefix > 0 {
		out.Prefixes = int(math.Ceil(out.Requests / c.Store.Prefix))
	}
	all := float64(f.Samples)
	out.Epoch = Epoch{Seconds: all / out.Reached, Requests: all * requests, Bytes: all * bytes}
	out.Epoch.Dollars = out.Epoch.Requests/1e6*c.Store.Price + out.Epoch.Bytes/1e9*c.Store.Traffic
	return out
}

// throughput returns the most samples a second of an engine. Batches go round in it until each has all of its samples,
// and so do requests until each has its chunks: as many batches as fit into memory, as many requests as are in flight.
func (f *Forecast) throughput(c Cluster, m Measured) float64 {
	rows := math.Max(float64(f.Total.Rows), 1)
	requests, bytes := float64(f.Total.Requests)/rows, float64(f.Total.Bytes)/rows
	most := func(customers int, samples, trip float64) float64 {
		var stations []float64
		if c.Store.Bandwidth > 0 {
			stations = append(stations, samples*bytes/c.Store.Bandwidth)
		}
		if c.Cores > 0 {
			stations = append(stations, samples*m.CPU/float64(c.Cores))
		}
		return samples * rounds(customers, trip, stations)
	}
	batch := math.Max(rows/math.Max(float64(f.Steps), 1), 1)
	// Of some batches each has a request, of blocks that batches share.
	batches := most(max(f.Memory.Batches-1, 1), batch, c.Store.RTT*math.Min(batch*requests, 1)) // the trainer has one
	if requests == 0 {
		return batches
	}
	return math.Min(batches, most(max(f.InFlight, 1), 1/requests, c.Store.RTT))
}

// rounds returns how often a second customers go round in a closed network of queues: each is away for some seconds,
// and then waits at each station for those before it and is served for as many seconds as the station says. Mean value
// analysis adds one customer at a time, who meets the queues of those before him (Reiser and Lavenberg, "Mean-Value
// Analysis of Closed Multichain Queuing Networks", Journal of the ACM 27(2), 1980).
func rounds(customers int, away float64, stations []float64) (rate float64) {
	queues := make([]float64, len(stations))
	for n := range customers {
		round := away
		for i, served := range stations {
			round += served * (1 + queues[i])
		}
		if round == 0 {
			return math.Inf(1)
		}
		rate = float64(n+1) / round
		for i, served := range stations {
			queues[i] = rate * served * (1 + queues[i]) // by Little's law
		}
	}
	return rate
}

// DefaultStore is the store of Cluster where nobody says another, as S3 Standard in us-east-1 read from the same
// region: 0.40 dollars for a million GETs, no price for bytes, and first bytes after about 20 ms.
func DefaultStore() Store {
	return Store{RTT: (20 * time.Millisecond).Seconds(), Price: 0.4, Prefix: 5500}
}
