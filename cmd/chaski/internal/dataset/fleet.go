package dataset

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader/dryrun"
)

// mostOfFleet bounds hosts, servers, and GPUs and cores of one, so that their products are numbers still.
const mostOfFleet = 1_000_000

// fleetFlags say on which hosts a run is to be planned.
type fleetFlags struct {
	cluster dryrun.Cluster
	store   string
}

func (f *fleetFlags) add(cmd *cobra.Command) {
	defined := cmd.Flags()
	console.CountVar(defined, &f.cluster.Hosts, "fleet", 0, 1)
	console.CountVar(defined, &f.cluster.GPUs, "gpus", 8, 1)
	console.Var(defined, &f.cluster.Rate, "rate", 0.0)
	console.CountVar(defined, &f.cluster.Cores, "cores", 0, 1)
	console.CountVar(defined, &f.cluster.Servers, "servers", 0, 1)
	console.Var(defined, &f.store, "store", "")
}

// check completes the cluster. The other flags of a fleet need --fleet.
func (f *fleetFlags) check(cmd *cobra.Command) (err error) {
	if f.cluster.Hosts == 0 {
		for _, name := range []string{"gpus", "rate", "cores", "servers", "store"} {
			if cmd.Flags().Changed(name) {
				return console.Usagef("--%s needs --fleet", name)
			}
		}
		return nil
	}
	if !(f.cluster.Rate > 0 && f.cluster.Rate <= 1e9) { // also of NaN
		return console.Usagef("--rate is %v: it must be the samples a second of a GPU, above 0 and at most 10⁹",
			f.cluster.Rate)
	}
	c := &f.cluster
	for _, flag := range []struct {
		name  string
		value int
	}{{"fleet", c.Hosts}, {"gpus", c.GPUs}, {"cores", c.Cores}, {"servers", c.Servers}} {
		if flag.value > mostOfFleet {
			return console.Usagef("--%s is %d: it must be at most %d", flag.name, flag.value, mostOfFleet)
		}
	}
	c.Store, err = parseStore(f.store)
	return err
}

// parseStore reads the list of --store.
func parseStore(list string) (store dryrun.Store, err error) {
	store = dryrun.DefaultStore()
	for part := range strings.SplitSeq(list, ",") {
		if list == "" {
			break
		}
		name, value, _ := strings.Cut(part, "=")
		bad := func(want string) error {
			return console.Usagef("--store has %q: it must be %s=%s", part, name, want)
		}
		number, numberErr := strconv.ParseFloat(value, 64)
		isNumber := numberErr == nil && number >= 0 && number <= 1e12
		switch name {
		case "rtt":
			rtt, err := time.ParseDuration(value)
			if err != nil || rtt < 0 {
				return store, bad("a duration, such as 20ms")
			}
			store.RTT = rtt.Seconds()
		case "bandwidth":
			if store.Bandwidth, err = parseBandwidth(value); err != nil {
				return store, bad("a rate, such as 25Gbit or 400MB")
			}
		case "price", "traffic", "prefix":
			if !isNumber {
				return store, bad("a number of at least 0")
			}
			to := map[string]*float64{"price": &store.Price, "traffic": &store.Traffic, "prefix": &store.Prefix}
			*to[name] = number
		default:
			return store, console.Usagef("--store has %q: there are rtt, bandwidth, price, traffic and prefix", part)
		}
	}
	return store, nil
}

// parseBandwidth reads bits or bytes a second, and returns bytes.
func parseBandwidth(text string) (float64, error) {
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"GB", 1e9}, {"MB", 1e6}} {
		if digits, ok := strings.CutSuffix(text, unit.name); ok {
			n, err := strconv.ParseFloat(digits, 64)
			if err == nil && !(n > 0 && n <= 1e12) {
				err = strconv.ErrRange
			}
			return n * unit.bytes, err
		}
	}
	return 0, strconv.ErrSyntax
}

// measureTime is how long batches are taken to measure what a sample costs.
const measureTime = 2 * time.Second

// forecast adds what a fleet needs to a forecast of one of its hosts, or of one of its servers. For that it runs the
// first steps here.
func (f *fleetFlags) forecast(ctx context.Context, env console.Env, run *flags.Run, path string,
	of *dryrun.Forecast) (*dryrun.Fleet, error) {
	spec, options, err := run.Prepare(ctx, env, path)
	if err != nil {
		return nil, err
	}
	report, err := bench.Load(ctx, bench.LoadOptions{Spec: spec, Options: options,
		Rounds: bench.Rounds{Count: 1, Time: measureTime}})
	if err != nil {
		return nil, console.UsageUnlessFault(err)
	}
	var m dryrun.Measured
	for _, figure := range report.Figures {
		switch figure.Name {
		case "cpu":
			m.CPU = figure.Median / 1e3
		case "first batch":
			m.Start = figure.Median / 1e3
		}
	}
	cluster := f.cluster
	cluster.Cores = cmp.Or(cluster.Cores, report.Machine.Cores)
	return of.Fleet(cluster, m), nil
}
