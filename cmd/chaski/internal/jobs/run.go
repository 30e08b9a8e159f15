package jobs

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/job"
)

// running has the flags of the commands that do shards.
type running struct {
	resource
	retry int
}

func (f *running) add(fl *pflag.FlagSet) {
	f.resource.add(fl)
	fl.IntVar(&f.retry, "retry", 0,
		"try a shard again this often after an error of the network or the system; faults of files are not tried again")
}

// options returns the options of a run, and what ends their use.
func (f *running) options(env console.Env) (o job.RunOptions, done func(), err error) {
	if err := console.Between("retry", f.retry, 0, maxRetry); err != nil {
		return o, nil, err
	}
	o.Retry = f.retry
	o.Resource, done, err = f.resource.options(env)
	return o, done, err
}

// maxRetry bounds --retry: more hides an error that stays.
const maxRetry = 100

func newRun(env console.Env) *cobra.Command {
	var f running
	var shards []int
	var again bool
	cmd := &cobra.Command{
		Use:   "run [flags] --shard K FOLDER",
		Short: "Do one shard of a job",
		Long: `Do one shard of a job and write its result into the job's folder, whole or not at all. A shard that has its
result is done: the command ends at once, unless --again is given.`,
		Example: `  chaski job run --shard 0 job/
  chaski job run --again --shard 0 job/`,
		Args: console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(shards) == 0 {
				return console.Usagef("--shard is missing")
			}
			j, closeJob, err := opened(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closeJob()
			total := int64(0)
			for _, i := range shards {
				if i < 0 || i >= len(j.Shards) {
					return console.Usagef("--shard is %d: the job has shards 0 to %d", i, len(j.Shards)-1)
				}
				total += j.Shards[i].Count
			}
			options, done, err := f.options(env)
			if err != nil {
				return err
			}
			defer done()
			options.Again = again
			bar := console.NewBar(env.Err, j.Kind, total)
			defer bar.Done()
			before := int64(0)
			for _, i := range shards {
				options.Progress = func(done, _ int64) { bar.Set(before+done, total) }
				if err := j.Run(cmd.Context(), i, options); err != nil {
					return console.FileError(args[0], err)
				}
				before += j.Shards[i].Count
			}
			return nil
		},
	}
	cmd.Flags().IntSliceVar(&shards, "shard", nil, "the `NUMBER` of the shard, from 0; repeatable")
	cmd.Flags().BoolVar(&again, "again", false, "do it even if it has its result")
	f.add(cmd.Flags())
	return cmd
}

func newLocal(env console.Env) *cobra.Command {
	var f running
	var lo job.LocalOptions
	cmd := &cobra.Command{
		Use:   "local [flags] FOLDER",
		Short: "Do all shards of a job that have no result, on this machine",
		Long: `Do what is left of a job on this machine: --parallel shards at the same time, each with --workers
workers. After a kill the next run goes on with the shards that were lost. An error ends the command,
unless --ignore-errors is given: then it does the other shards first. 'chaski job status' lists what
failed.`,
		Example: `  chaski job local job/
  chaski job local --parallel 8 --workers 1 --retry 3 --ignore-errors job/`,
		Args: console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := console.Between("parallel", lo.Shards, 1, maxParallel); err != nil {
				return err
			}
			j, closeJob, err := opened(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closeJob()
			options, done, err := f.options(env)
			if err != nil {
				return err
			}
			defer done()
			bar := console.NewBar(env.Err, j.Kind, j.Items)
			defer bar.Done()
			lo.RunOptions, lo.Progress = options, bar.Set
			return console.FileError(args[0], j.Local(cmd.Context(), lo))
		},
	}
	cmd.Flags().IntVar(&lo.Shards, "parallel", 1, "number of shards to do at the same time")
	cmd.Flags().BoolVar(&lo.IgnoreErrors, "ignore-errors", false, "go on with the other shards if one fails")
	f.add(cmd.Flags())
	return cmd
}

// maxParallel bounds --parallel: each shard holds up to 64 MiB of its result and open files.
const maxParallel = 256
