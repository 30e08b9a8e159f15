package dryrun

import (
	"math"
	"slices"
	"time"
)

// Cluster is where a run is to go.
type Cluster struct {
	// Hosts run one engine each, for GPUs that take Rate samples a second each.
	Hosts int     `json:"hosts"`
	GPUs  int     `json:"gpus"`
	Rate  float64 `json:"rate"`
	// Cores decode, on each host.
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

// Bound is something of which each host has only so much.
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
}

// Epoch is what an epoch costs.
type Epoch struct {
	Seconds  float64 `json:"seconds"`
	Requests float64 `json:"requests"`
	Bytes    float64 `json:"bytes"`
	Dollars  float64 `json:"dollars"`
}

// Fleet foretells a run of the forecast's samples on a cluster. The forecast is of one host: of Hosts ranks, which read
// a share of each step, or of all.
//
// A host reaches the rate at which the first of its bounds is used up: processors, the link, and the requests in
// flight, which by Little's law are the requests a second × the time of one. Each of these has to wait for the round
// trip and for its own bytes. Bounds are reached in parallel, so they do not add up.
func (f *Forecast) Fleet(c Cluster, m Measured) *Fleet {
	rows := math.Max(float64(f.Total.Rows), 1)
	requests, bytes := float64(f.Total.Requests)/rows, float64(f.Total.Bytes)/rows
	host := c.Rate * float64(c.GPUs)
	wait := c.Store.RTT
	if c.Store.Bandwidth > 0 && requests > 0 {
		wait += bytes / requests / c.Store.Bandwidth
	}
	out := &Fleet{Cluster: c, Measured: m, Wanted: host * float64(c.Hosts), Memory: f.Memory.Total()}
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
	out.Reached = out.Wanted
	if len(out.Bounds) > 0 {
		out.Reached /= math.Max(out.Bounds[0].Share, 1)
	}
	out.Stalls = 1 - out.Reached/out.Wanted
	out.Requests = out.Reached * requests
	if c.Store.Prefix > 0 {
		out.Prefixes = int(math.Ceil(out.Requests / c.Store.Prefix))
	}
	all := float64(f.Samples)
	out.Epoch = Epoch{Seconds: all / out.Reached, Requests: all * requests, Bytes: all * bytes}
	out.Epoch.Dollars = out.Epoch.Requests/1e6*c.Store.Price + out.Epoch.Bytes/1e9*c.Store.Traffic
	return out
}

// DefaultStore is the store of Cluster where nobody says another, as S3 Standard in us-east-1 read from the same
// region: 0.40 dollars for a million GETs, no price for bytes, and first bytes after about 20 ms.
func DefaultStore() Store {
	return Store{RTT: (20 * time.Millisecond).Seconds(), Price: 0.4, Prefix: 5500}
}
