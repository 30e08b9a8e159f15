package dataset

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/source/diskcache"
)

type planFlags struct {
	run     flags.Run
	options dryrun.Options
	fleet   fleetFlags
	state   string
	all     bool
}

func NewPlan(env console.Env) *cobra.Command {
	var f planFlags
	cmd := console.Command("plan [flags] SPEC.json|DATASET", console.ExactlyOne("SPEC.json or DATASET"),
		func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) })
	f.run.Add(cmd)
	defined := cmd.Flags()
	f.run.AddJSON(defined)
	console.Var(defined, &f.state, "state", "")
	console.Var(defined, &f.options.Epoch, "epoch", 0)
	console.Var(defined, &f.options.Rank, "rank", 0)
	console.CountVar(defined, &f.options.World, "world", 1, 1)
	console.CountVar(defined, &f.options.Prefetch, "prefetch", 0, 1)
	console.CountVar(defined, &f.options.Samples, "sample", dryrun.DefaultSamples, 1)
	console.Var(defined, &f.all, "all", false)
	f.fleet.add(cmd)
	return cmd
}

// planReport is what plan prints.
type planReport struct {
	Spec    string `json:"spec"`
	Dataset string `json:"dataset"`
	// Fields describe the fields of a batch: kind, dtype and lengths, as found in the dataset.
	Fields []string `json:"fields"`
	*dryrun.Forecast
	MemoryTotal int64 `json:"memory_total"`
	// Weights draw the samples of the epoch from their steps on.
	Weights []*weightsSince `json:"weights,omitempty"`
	// Cache has the bytes of the epoch and of the next one, with an empty cache before them.
	Cache []dryrun.CachedEpoch `json:"cache,omitempty"`
	Exact bool                 `json:"exact"`
	// Fleet is what the hosts of --fleet need.
	Fleet *dryrun.Fleet `json:"fleet,omitempty"`
}

func (f *planFlags) do(cmd *cobra.Command, env console.Env, path string) error {
	if err := checkRank(f.options.Rank, f.options.World); err != nil {
		return err
	}
	if err := f.fleet.check(cmd); err != nil {
		return err
	}
	engine, err := f.run.Open(cmd.Context(), env, path, nil)
	if err != nil {
		return err
	}
	defer engine.Close()
	if hosts := f.fleet.cluster.Hosts; hosts > 0 {
		if gpus, batch := hosts*f.fleet.cluster.GPUs, engine.Spec().BatchSize; batch < gpus {
			return console.Usagef("the batch has %d samples for %d GPUs: it counts the samples of all", batch, gpus)
		}
		if !cmd.Flags().Changed("world") {
			f.options.World = cmp.Or(f.fleet.cluster.Servers, hosts)
		}
	}
	weights, err := f.weights(cmd, engine)
	if err != nil {
		return err
	}
	// The variable of the quota may be set for all commands: who says how much to examine wants no more.
	if quota := env.Cache.Quota(); quota > 0 && !cmd.Flags().Changed("sample") {
		f.options.Cache = diskcache.NewSimulation(quota)
	}
	if f.all {
		f.options.Samples = -1
	}
	bar := console.NewBar(env.Err, "planning")
	defer bar.Done()
	f.options.Progress = bar.Set
	forecast, err := engine.Forecast(cmd.Context(), f.options)
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	var cached []dryrun.CachedEpoch
	if first := forecast.Cached; first.Cache+first.Store > 0 { // else no file is remote
		f.options.Epoch++
		next, err := engine.Forecast(cmd.Context(), f.options)
		if err != nil {
			return err
		}
		cached = []dryrun.CachedEpoch{first, next.Cached}
	}
	r := planReport{Spec: engine.Hash(), Dataset: engine.Fingerprint(), Fields: fieldsOf(engine),
		Forecast:    forecast,
		MemoryTotal: forecast.Memory.Total(), Exact: forecast.Exact(), Cache: cached, Weights: weights}
	if f.fleet.cluster.Hosts > 0 {
		if r.Fleet, err = f.fleet.forecast(cmd.Context(), env, &f.run, path, forecast); err != nil {
			return err
		}
	}
	return console.Print(env.Out, r, f.run.JSON)
}

// weights sets the epoch and the weights of a state, and returns the weights of the epoch.
func (f *planFlags) weights(cmd *cobra.Command, e *loader.Engine) (list []*weightsSince, _ error) {
	if f.state == "" {
		return nil, nil
	}
	state, err := readState(f.state, e)
	if err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed("epoch") {
		f.options.Epoch = state.Epoch
	}
	epoch, batch := f.options.Epoch, e.Spec().BatchSize
	f.options.Weights = state.Weights
	if change := state.ChangeAt(epoch, 0); change != nil {
		list = append(list, since(change, batch))
	}
	for i, c := range state.Weights {
		if c.Epoch == epoch && c.Samples > 0 {
			list = append(list, since(&state.Weights[i], batch))
		}
	}
	return list, nil
}
