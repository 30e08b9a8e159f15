package jobs

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/container"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/job/kinds"
	"github.com/chaski-eo/chaski/ops/recipe"
)

// mergeFlags are the flags of job merge.
type mergeFlags struct {
	resource
	made            container.MadeFlags
	out, statistics string
}

func newMerge(env console.Env) *cobra.Command {
	var f mergeFlags
	cmd := &cobra.Command{
		Use:   "merge [flags] FOLDER",
		Short: "Join the results of a job's shards",
		Long: `Join the results of all shards into the output of the kind's command, byte for byte: for stats, the file that
'chaski stats' writes for the same dataset. A shard without a result, or with results that differ, is
an error, and nothing is written. The exit code is that of the kind's command.

For make, --output is the container in the form that its name, --form or --part-size say, as with 'chaski
make', also in an object store. --stats also writes the statistics of its chips. The
source of the recipe is opened for its columns.`,
		Example: `  chaski job merge -o pooled.json job/`,
		Args:    console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			j, closeJob, err := opened(ctx, args[0])
			if err != nil {
				return err
			}
			defer closeJob()
			if !j.Places() {
				for _, name := range ofMake {
					if cmd.Flags().Changed(name) {
						return console.Usagef("--%s is for the kind make, and the job is of %s", name, j.Kind)
					}
				}
			}
			return f.run(ctx, env, j)
		},
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "-", `output file, "-" for standard output`)
	flags.NonEmptyVar(cmd.Flags(), &f.statistics, "stats",
		"of make: also write the statistics of all chips to `FILE`")
	f.made.Add(cmd.Flags(), "of make: ")
	f.resource.add(cmd.Flags())
	return cmd
}

func (f *mergeFlags) run(ctx context.Context, env console.Env, j *job.Job) error {
	output, err := f.output(j)
	if err != nil {
		return err
	}
	results, err := j.Results(ctx)
	if err != nil {
		return err
	}
	ro, done, err := f.options(env)
	if err != nil {
		return err
	}
	defer done()
	o := job.MergeOptions{Name: f.out, Output: output, Statistics: f.statistics != "", Resource: ro}
	if f.out == "-" {
		o.Name = ""
	}
	if kinds.Binary(j.Kind) && o.Name == "" {
		if err := console.NotToTerminal(env.Out, "the output of "+j.Kind); err != nil {
			return err
		}
	}
	var outcome job.Outcome
	if j.Places() {
		err = f.made.Stored(ctx, f.out, output, func(path string, output recipe.Output) (err error) {
			o.Name, o.Output = path, output
			outcome, err = results.Place(ctx, o)
			return err
		})
	} else {
		err = console.WriteFile(f.out, env.Out, func(w io.Writer) (err error) {
			outcome, err = results.Merge(ctx, w, o)
			return err
		})
	}
	if err == nil && f.statistics != "" {
		err = container.WriteStatistics(env, f.statistics, outcome.Statistics)
	}
	if err != nil {
		return err
	}
	// After the output is written, so that a command that fails prints only its error.
	for _, line := range outcome.Notes {
		fmt.Fprintf(env.Err, "chaski: %s\n", line)
	}
	return outcome.Fault
}

// output returns the form of the container that --output names, after the checks of both files.
func (f *mergeFlags) output(j *job.Job) (recipe.Output, error) {
	output, err := f.made.Output(f.out)
	switch {
	case err != nil:
		return output, err
	case f.out == "":
		return output, console.Usagef("--output is empty; leave the flag out to write to standard output")
	case j.Places() && f.out == "-":
		return output, console.Usagef("--output is missing: the container to write")
	case f.statistics != "" && container.SamePath(f.statistics, f.out):
		return output, console.Usagef("--stats %s would replace %s", f.statistics, f.out)
	}
	return output, console.Writable(f.statistics) // before the container is written
}

// ofMake are the flags that only the kind make has.
var ofMake = []string{"stats", "form", "part-size"}
