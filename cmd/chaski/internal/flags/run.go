package flags

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
)

// MaxWorkers is the largest --workers. A worker holds scratch memory for one chunk, and more workers than
// processors only help while they wait, so a larger number is a mistake.
const MaxWorkers = 4096

// Engine has the flags of what an engine may take.
type Engine struct {
	workers  int
	memory   int64
	total    MemoryTotal
	cache    int64
	maxChunk int
	recode   bool
	share    float64
}

// Add adds the flags.
func (f *Engine) Add(fl *pflag.FlagSet) {
	console.NumberVar(fl, &f.workers, "workers", 0, 0, MaxWorkers)
	console.CountVar(fl, &f.memory, "memory", 0, 0)
	f.total.Add(fl)
	console.CountVar(fl, &f.cache, "cache", resources.DefaultCacheBytes, 1)
	AddMaxChunk(fl, &f.maxChunk)
	console.Var(fl, &f.recode, "recode", false)
	console.Var(fl, &f.share, "recode-share", resources.DefaultRecodeShare)
}

// Options returns the settings of the engine, and limits the heap of this process to its budget.
func (f *Engine) Options() (loader.Options, error) {
	budget, err := f.total.Budget(f.memory)
	return loader.Options{Workers: f.workers, MemoryBytes: f.memory, CacheBytes: f.cache,
		MaxChunkBytes: f.maxChunk, Budget: budget, Recode: f.recode, RecodeShare: f.share}, err
}

// Run has the flags of commands that look at a run: its spec and the settings of its engine.
type Run struct {
	data   Dataset
	engine Engine
	JSON   bool
}

// Add adds all flags but --json.
func (f *Run) Add(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.data.Add(fl, 32, true)
	f.data.AddArithmetic(fl)
	f.engine.Add(fl)
}

// AddJSON adds --json.
func (f *Run) AddJSON(fl *pflag.FlagSet) { console.Var(fl, &f.JSON, "json", false) }

// Prepare returns the spec of a run, and the settings of its engine. path is a spec or a dataset.
func (f *Run) Prepare(ctx context.Context, env console.Env, path string) (
	spec loader.Spec, o loader.Options, err error) {
	if o, err = f.engine.Options(); err == nil {
		o.Opener, o.Disk = env.Files, env.Cache
		spec, err = SpecOr(ctx, env.Files, path, loader.ParseSpec, &f.data.Own, f.data.Spec)
	}
	return spec, o, err
}

// Open opens the engine of a run. path is a spec or a dataset. change, if not nil, edits the spec and
// the options before.
func (f *Run) Open(ctx context.Context, env console.Env, path string,
	change func(*loader.Spec, *loader.Options)) (*loader.Engine, error) {
	spec, options, err := f.Prepare(ctx, env, path)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&spec, &options)
	}
	engine, err := loader.Open(ctx, spec, options)
	return engine, console.UsageUnlessFault(err)
}
