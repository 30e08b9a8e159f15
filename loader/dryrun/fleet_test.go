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
	near("reached", got.Reached, 32_000/share)
	near("stalls", got.Stalls, 1-1/share)
	near("requests", got.Requests, 64_000/share)
	if want := int(math.Ceil(64_000 / share / 5500)); got.Prefixes != want {
		t.Errorf("%d prefixes, want %d", got.Prefixes, want)
	}
	near("seconds", got.Epoch.Seconds, 10_000_000*share/32_000)
	near("dollars", got.Epoch.Dollars, 20*0.4+1000*0.02) // 20 million requests, 1,000 GB

	// A store without a bound, and data without requests, bound nothing; whoever wants less than he gets has no stalls.
	c.Store, c.Rate = dryrun.Store{}, 10
	got = (&dryrun.Forecast{Samples: 100}).Fleet(c, dryrun.Measured{CPU: 0.002})
	near("reached", got.Reached, 320)
	if got.Stalls != 0 || got.Prefixes != 0 || got.Epoch.Dollars != 0 {
		t.Errorf("%+v", got)
	}
}
