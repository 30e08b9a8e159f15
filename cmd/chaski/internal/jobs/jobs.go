// Package jobs has the command job, and a command for each step of a job.
package jobs

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/job/kinds"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
)

// New returns the command job.
func New(env console.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job VERB",
		Short: "Divide work over a dataset into shards that any machine may do",
		Long: `Divide work over a whole dataset into shards. 'job plan KIND' writes a folder with the list of shards, 'job
run' does one of them, on any machine that sees the folder and the files, and 'job merge' joins the
results. Shards may be done in any order, more than once, and again after a kill; the merged output has
the same bytes. 'job local' does all that is left on this machine.`,
		Example: `  chaski job plan stats -o job/ --shard-items 1000 --field image=images/{id}.tif pairs/
  chaski job run --shard 0 job/
  chaski job local job/
  chaski job status job/
  chaski job merge -o pooled.json job/`,
		Args: console.Verb,
		RunE: func(*cobra.Command, []string) error {
			return console.Usagef("the verb is missing: plan, run, local, status or merge")
		},
	}
	cmd.AddCommand(newPlan(env), newRun(env), newLocal(env), newStatus(env), newMerge(env))
	return cmd
}

// folderOf returns the folder of a job, a path or the URL of an object store, and what ends its use.
func folderOf(ctx context.Context, path string) (job.Folder, func(), error) {
	if !open.IsStore(path) {
		return job.Dir(source.LocalPath(path)), func() {}, nil
	}
	bucket, key, done, err := open.Bucket(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	return job.Objects(bucket, key, path), done, nil
}

// opened opens a job, and returns what ends its use.
func opened(ctx context.Context, path string) (*job.Job, func(), error) {
	folder, done, err := folderOf(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	j, err := job.OpenIn(ctx, folder, kinds.All)
	if err != nil {
		done()
		return nil, nil, err
	}
	return j, done, nil
}

// resource has the flags for resources.
type resource struct {
	workers  int
	maxChunk int
}

func (f *resource) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.workers, "workers", 0, "workers of a shard (default: as in the command of the kind)")
	flags.AddMaxChunk(fl, &f.maxChunk)
}

// options returns the flags as options, and a function that closes them.
func (f *resource) options(env console.Env) (loader.Options, func(), error) {
	if err := console.Between("workers", f.workers, 0, flags.MaxWorkers); err != nil {
		return loader.Options{}, nil, err
	}
	opener := open.NewOpener(true)
	o := loader.Options{Workers: f.workers, MaxChunkBytes: f.maxChunk, Opener: opener, SQL: env.SQL}
	return o, func() { opener.Close() }, nil
}
