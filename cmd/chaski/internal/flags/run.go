package flags

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/tables/query"
)

// Run describe a run, for the commands that look at one: its spec and the engine's settings.
type Run struct {
	data     Dataset
	workers  int
	memory   int64
	cache    int64
	maxChunk int
	Json     bool
}

func (f *Run) Add(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.data.Add(fl, 32, true)
	f.data.AddArithmetic(fl)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	AddMemory(fl, &f.memory, "batches")
	fl.Int64Var(&f.cache, "cache", loader.DefaultCacheBytes, "parsed headers and table pages kept, in bytes")
	AddMaxChunk(fl, &f.maxChunk)
}

func (f *Run) AddJSON(fl *pflag.FlagSet, what string) {
	fl.BoolVar(&f.Json, "json", false, what)
}

// options are those of the engine.
func (f *Run) options(sql query.Full) (loader.Options, error) {
	if f.workers < 0 || f.workers > 4096 || f.memory < 0 || f.cache < 1 {
		return loader.Options{}, console.Usagef("--workers is from 0 to 4096, --memory at least 0, --cache at least 1 byte")
	}
	return loader.Options{Workers: f.workers, MemoryBytes: f.memory, CacheBytes: f.cache, MaxChunkBytes: f.maxChunk, SQL: sql}, nil
}

// Open opens the dataset of a run. closeAll ends it, and the files behind it.
func (f *Run) Open(ctx context.Context, env console.Env, path string, change func(*loader.Spec, *loader.Options)) (e *loader.Engine, closeAll func(), err error) {
	o, err := f.options(env.SQL)
	if err != nil {
		return nil, nil, err
	}
	spec, err := f.data.SpecOf(path)
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		change(&spec, &o)
	}
	opener := open.NewOpener(true)
	o.Opener = opener
	if e, err = loader.Open(ctx, spec, o); err != nil {
		opener.Close()
		return nil, nil, console.UsageUnlessFault(err)
	}
	return e, func() {
		e.Close()
		opener.Close()
	}, nil
}
