package dryrun_test

import (
	"math"
	"testing"

	"github.com/chaski-eo/chaski/loader/dryrun"
)

// TestFleet holds the arithmetic to that of a text book, worked out by hand.
func TestFleet(t *testing.T) {
	// 1,000 samples a second and GPU, 8 GPUs a host, 4 hosts; a sample takes 100,000 bytes, 2 requests and 2 ms of a
	// processor.
	f := &dryrun.Forecast{Samples: 10_000_000, InFlight: 320,
		Memory: dryrun.Memory{Batches: 100}, Steps: 1,
		Total: dryrun.Work{Rows: 1000, Requests: 2000, Bytes: 100_000_000}}
	c := dryrun.Cluster{Hosts: 4, GPUs: 8, Rate: 1000, Cores: 96,
		Store: dryrun.Store{RTT: 0.03, Bandwidth: 1e9, Price: 0.4, Traffic: 0.02, Prefix: 5500}}
	got := f.Fleet(c, dryrun.Measured{CPU: 0.002})
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("wanted", got.Wanted, 32_000)
	// 16,000 requests a second of a host, each for 30 ms and 50,000 bytes at 10⁹ a second: 481.28 in flight.
	share := 16_000 * (0.03 + 50_000/1e9) / 320
	for i, want := range []struct {
		name               string
		needed, has, share float64
	}{
		{"requests in flight", 16_000 * 0.03005, 320, share},
		{"link", 6.4, 8, 0.8}, // Gbit/s
		{"processors", 16, 96, 1. / 6},
	} {
		b := got.Bounds[i]
		if b.Name != want.name {
			t.Fatalf("bound %d is %s, want %s", i, b.Name, want.name)
		}
		near(b.Name, b.Needed, want.needed)
		near(b.Name, b.Has, want.has)
		near(b.Name, b.Share, want.share)
	}
	// Requests hardly wait for each other: the link has work for 0.5 of the time.
	if ratio := got.Reached / (32_000 / share); ratio < 0.99 || ratio > 1 {
		t.Errorf("reached is %v of the rate that the requests in flight allow", ratio)
	}
	near("stalls", got.Stalls, 1-got.Reached/32_000)
	near("requests", got.Requests, 2*got.Reached)
	if want := int(math.Ceil(2 * got.Reached / 5500)); got.Prefixes != want {
		t.Errorf("%d prefixes, want %d", got.Prefixes, want)
	}
	near("seconds", got.Epoch.Seconds, 10_000_000/got.Reached)
	near("dollars", got.Epoch.Dollars, 20*0.4+1000*0.02) // 20 million requests, 1,000 GB

	// A store without a bound, and data without requests, bound nothing; whoever wants less than he gets has no stalls.
	c.Store, c.Rate = dryrun.Store{}, 10
	got = (&dryrun.Forecast{Samples: 100}).Fleet(c, dryrun.Measured{CPU: 0.002})
	near("reached", got.Reached, 320)
	if got.Stalls != 0 || got.Prefixes != 0 || got.Epoch.Dollars != 0 {
		t.Errorf("%+v", got)
	}
}

// TestQueues holds the rate of a fleet to closed forms of other methods: that of machines which one repairman serves,
// from the probabilities of its states, and that of stations which all take the same time.
func TestQueues(t *testing.T) {
	const wanted = 1e9
	// rate is of a host whose batches have 10 samples, each of them 1,000 bytes and no more than enough requests.
	rate := func(batches int, c dryrun.Cluster, m dryrun.Measured) float64 {
		f := &dryrun.Forecast{Samples: 1e6, Steps: 100, InFlight: 1e5, Memory: dryrun.Memory{Batches: batches + 1},
			Total: dryrun.Work{Rows: 1000, Requests: 1000, Bytes: 1e6}}
		c.Hosts, c.GPUs, c.Rate = 1, 1, wanted
		return f.Fleet(c, m).Reached
	}
	near := func(batches int, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%d batches: %v samples a second, want %v", batches, got, want)
		}
	}
	for batches := 1; batches <= 20; batches++ {
		// The link serves a batch for 10 ms, after a trip of 50 ms.
		n, sum, term := float64(batches), 0.0, 1.0
		for k := 0.0; k <= n; k++ {
			sum += term
			term *= (n - k) * 10 / 50
		}
		near(batches, rate(batches, dryrun.Cluster{Store: dryrun.Store{RTT: 0.05, Bandwidth: 1e6}}, dryrun.Measured{}),
			10*(1-1/sum)/0.01)
		// The link and four processors take 10 ms each: n batches meet n - 1 others at two stations.
		near(batches, rate(batches, dryrun.Cluster{Cores: 4, Store: dryrun.Store{Bandwidth: 1e6}},
			dryrun.Measured{CPU: 0.004}), 10*n/(0.01*(n+1)))
	}
	if got := rate(3, dryrun.Cluster{}, dryrun.Measured{}); got != wanted { // nothing takes time
		t.Errorf("%v samples a second, want %v", got, wanted)
	}
}

// TestServers: servers share what hosts want, and one more or less changes the rate by its share.
func TestServers(t *testing.T) {
	f := &dryrun.Forecast{Samples: 1e6, Steps: 100, InFlight: 64, Memory: dryrun.Memory{Batches: 8},
		Total: dryrun.Work{Rows: 1000, Requests: 1000, Bytes: 1e6}}
	c := dryrun.Cluster{Hosts: 4, GPUs: 1, Rate: 1000, Servers: 3, Store: dryrun.Store{Bandwidth: 1e6}}
	got := f.Fleet(c, dryrun.Measured{}) // 1,000 samples a second and server
	if got.Wanted != 4000 || math.Abs(got.Reached-3000) > 1e-6 {
		t.Errorf("%v of %v samples a second", got.Reached, got.Wanted)
	}
	if b := got.Bounds[0]; b.Name != "link" || math.Abs(b.Share-4./3) > 1e-9 {
		t.Errorf("%+v breaks first, want the link, needed by 4/3", b)
	}
	for i, want := range []dryrun.Serving{{2, 2000, 0.5}, {4, 4000, 0}} {
		s := got.Servers[i]
		off := max(math.Abs(s.Reached/want.Reached-1), math.Abs(s.Stalls-want.Stalls))
		if s.Servers != want.Servers || off > 1e-9 {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	c.Servers = 1
	if got := f.Fleet(c, dryrun.Measured{}).Servers; len(got) != 1 || got[0].Servers != 2 {
		t.Errorf("of one server: %+v", got)
	}
}
