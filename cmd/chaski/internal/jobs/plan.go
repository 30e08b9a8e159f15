package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/dataset"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/raster"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/job/kinds"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
)

func newPlan(env console.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan KIND",
		Short: "Write the folder of a job, with its list of shards",
		Long: `Write a job into a folder, which must not hold one yet. KIND is the kind of work; its help names
the command that does the same in one pass. Its files are named as there; other machines open them
under the same names, so that full paths or URLs are best. Files are listed, and no pixels are read.`,
		Example: `  chaski job plan stats -o plan-job/ --shards 4 chips/`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("KIND is missing")
			}
			return console.Usagef("KIND is %q: it must be one of %s", args[0], strings.Join(kinds.All.Names(), ", "))
		},
	}
	// The flags depend on the kind: beside a wrong KIND the first of them would be the error.
	cmd.FParseErrWhitelist.UnknownFlags = true
	cmd.AddCommand(planStats(env), planIndex(env), planVerify(env), planWeights(env), planConvert(env),
		planMake(env))
	return cmd
}

// planned has the flags of the plans of all kinds.
type planned struct {
	out string
	o   job.PlanOptions
}

func (f *planned) add(fl *pflag.FlagSet) {
	fl.StringVarP(&f.out, "output", "o", "", "the `FOLDER` of the job, also in an object store: s3://, gs://, az://")
	fl.IntVar(&f.o.Shards, "shards", 0, "how many shards (default: as many as the other limits need)")
	fl.IntVar(&f.o.ShardItems, "shard-items", 0,
		fmt.Sprintf("the most samples or files of a shard (default %d)", job.DefaultShardItems))
	fl.Int64Var(&f.o.ShardBytes, "shard-bytes", 0,
		fmt.Sprintf("the most bytes that a shard reads, where the sizes of the files are known (default %d)",
			int64(job.DefaultShardBytes)))
}

// check checks the flags.
func (f *planned) check(fl *pflag.FlagSet) error {
	if f.out == "" {
		return console.Usagef("-o FOLDER is missing")
	}
	if source.IsRemote(f.out) && !open.IsStore(f.out) {
		return console.Usagef("--output is %s: it must be a path, or a URL of s3://, gs:// or az://", f.out)
	}
	if f.o.Shards > 0 && (f.o.ShardItems > 0 || f.o.ShardBytes > 0) {
		return console.Usagef("--shards excludes --shard-items and --shard-bytes")
	}
	for _, x := range []struct {
		flag  string
		value int64
	}{{"shards", int64(f.o.Shards)}, {"shard-items", int64(f.o.ShardItems)}, {"shard-bytes", f.o.ShardBytes}} {
		if fl.Changed(x.flag) && x.value < 1 {
			return console.Usagef("--%s is %d: it must be at least 1", x.flag, x.value)
		}
	}
	return nil
}

// write writes a job.
func (f *planned) write(cmd *cobra.Command, env console.Env, k job.Kind) error {
	opener := open.NewOpener(true)
	defer opener.Close()
	folder, done, err := folderOf(cmd.Context(), f.out)
	if err != nil {
		return err
	}
	defer done()
	j, err := job.PlanIn(cmd.Context(), folder, k, f.o, loader.Options{Opener: opener, SQL: env.SQL})
	if err != nil {
		return console.UsageUnlessFault(console.FileError(f.out, err))
	}
	_, err = fmt.Fprintf(env.Out, "%d items in %d shards\n", j.Items, len(j.Shards))
	return err
}

// planOf returns the command that plans a kind. kind makes it of the arguments.
func planOf(env console.Env, c *cobra.Command, args cobra.PositionalArgs, add func(*pflag.FlagSet),
	kind func(ctx context.Context, paths []string) (job.Kind, error)) *cobra.Command {
	var f planned
	c.Args = args
	c.RunE = func(cmd *cobra.Command, paths []string) error {
		if err := f.check(cmd.Flags()); err != nil {
			return err
		}
		k, err := kind(cmd.Context(), paths)
		if err != nil {
			return err
		}
		return f.write(cmd, env, k)
	}
	f.add(c.Flags())
	add(c.Flags())
	return c
}

func planStats(env console.Env) *cobra.Command {
	var m dataset.Measured
	return planOf(env, &cobra.Command{
		Use:   "stats [flags] -o FOLDER SPEC.json|DATASET",
		Short: "Plan statistics: the file that 'chaski stats' writes",
		Long: `Plan the statistics of a dataset: means, deviations, ranges and percentiles of every band. A shard reads the
pixels of some of the samples, and 'chaski job merge' adds up exactly, so that the file is the same, byte
for byte, for any number of shards.`,
		Example: `  chaski job plan stats -o chips-job/ --shards 200 chips/
  chaski job plan stats -o spec-job/ spec.json`,
	}, console.ExactlyOne("SPEC.json or DATASET"), m.Add, func(_ context.Context, paths []string) (job.Kind, error) {
		sp, err := m.Spec(paths[0])
		return &kinds.Stats{Dataset: kinds.Dataset{Spec: sp}}, err
	})
}

func planIndex(env console.Env) *cobra.Command {
	var k kinds.Index
	var join kinds.IndexJoin
	var fields []string
	var drop bool
	return planOf(env, &cobra.Command{
		Use:   "index [flags] -o FOLDER PATH...",
		Short: "Plan a catalog: the file that 'chaski index --format parquet' writes",
		Long: `Plan a catalog of the files below PATH: directories, globs, also of an object store, and containers. Shards
are divided by numbers of files, since they read headers only; the list is sorted on disk, so that
memory does not grow with it. Paths of local files are relative to --base, which is the directory that
'chaski job merge -o' writes the catalog into, unless --absolute is set. --join is checked here, and
the merge adds the columns. --field makes a catalog of pairs, as in 'chaski index': the plan pairs the
files, and holds their list in memory.`,
		Example: `  chaski job plan index -o index-job/ --shards 200 chips/
  chaski job plan index -o all-job/ --absolute --skip-bad "chips/*.tif" coast.tacozip
  chaski job plan index -o pairs-index-job/ --field image=images/{id}.tif --field mask=masks/{id}.tif pairs/`,
	}, console.AtLeastOne("PATH"), func(fl *pflag.FlagSet) {
		fl.StringVar(&k.Base, "base", "", "the `DIR` of the catalog (default: the current directory)")
		fl.BoolVar(&k.Absolute, "absolute", false, "store absolute paths in the catalog")
		fl.BoolVar(&k.SkipBad, "skip-bad", false, "leave out files that cannot be indexed")
		fl.StringVar(&k.Previous, "resume", "",
			"keep the rows of this `CATALOG` in --base whose files have not changed, if it is there")
		fl.StringVar(&join.Table, "join", "", "`TABLE` whose columns to add")
		fl.StringVar(&join.On, "on", "", "`COLUMN` of the table that names the files")
		fl.BoolVar(&join.Left, "join-left", false, "allow files without a row in the table")
		fl.StringArrayVar(&fields, "field", nil,
			"`NAME=PATTERN`, or of a table NAME=COLUMN: a field of a catalog of pairs; repeatable")
		fl.BoolVar(&drop, "drop-missing", false, "leave out samples that lack the file of a field")
	}, func(_ context.Context, paths []string) (job.Kind, error) {
		switch k.Paths = paths; {
		case len(fields) > 0 && (k.Previous != "" || join != kinds.IndexJoin{}):
			return nil, console.Usagef("--field excludes --resume and --join")
		case drop && len(fields) == 0:
			return nil, console.Usagef("--drop-missing needs --field")
		case join.Table != "" && join.On == "":
			return nil, console.Usagef("--join %s needs --on COLUMN", join.Table)
		case join.Table == "" && (join.On != "" || join.Left):
			return nil, console.Usagef("--on and --join-left need --join TABLE")
		case join.Table != "":
			k.Join = &join
		}
		pairs, err := raster.PairFields(fields, paths[0])
		if len(pairs) > 0 {
			k.Pairs = &kinds.IndexPairs{Drop: drop}
		}
		for _, s := range pairs {
			k.Pairs.Fields = append(k.Pairs.Fields,
				kinds.IndexField{Name: s.Field, Pattern: s.Pattern, Column: s.Column})
		}
		return &k, err
	})
}

func planVerify(env console.Env) *cobra.Command {
	var k kinds.Verify
	return planOf(env, &cobra.Command{
		Use:   "verify [flags] -o FOLDER PATH...",
		Short: "Plan a check of every byte: the report that 'chaski verify' prints",
		Long: `Plan a check of every byte of files, containers and arrays. 'chaski job merge' prints the report, and its
exit code is 1 if there is a fault, as that of 'chaski verify'. Local paths in it are full paths.`,
		Example: `  chaski job plan verify -o verify-job/ --shards 200 chips/`,
	}, console.AtLeastOne("PATH"), func(fl *pflag.FlagSet) {
		fl.IntVar(&k.MaxFaults, "max-faults", 1000, "list at most this many faults")
	}, func(_ context.Context, paths []string) (job.Kind, error) {
		k.Paths = paths
		return &k, console.AtLeast("max-faults", k.MaxFaults, 1)
	})
}

func planWeights(env console.Env) *cobra.Command {
	var m dataset.Measured
	var k kinds.Weights
	return planOf(env, &cobra.Command{
		Use:   "weights [flags] -o FOLDER SPEC.json|DATASET",
		Short: "Plan the weights of a sampler: the file that 'chaski stats --sampling' writes",
		Long: `Plan the file that the sampler weighted_window reads: for each cell of each asset, the number of valid pixels,
or of pixels of some classes of a field. Rows of a table are counted whatever the conditions, as
'chaski stats --sampling' does.`,
		Example: `  chaski job plan weights -o weights-job/ --shards 200 --field image=images/{id}.tif ` +
			`--field mask=masks/{id}.tif --count mask --classes 3 pairs/`,
	}, console.ExactlyOne("SPEC.json or DATASET"), func(fl *pflag.FlagSet) {
		fl.StringVar(&k.Field, "count", "", "the `FIELD` whose pixels to count (default: the last field)")
		fl.Float64SliceVar(&k.Classes, "classes", nil,
			"count only these values of its first band (default: all valid pixels)")
		fl.Lookup("classes").DefValue = "" // pflag would print (default []), which contradicts the text
		fl.IntVar(&k.Cell, "cell", 64, "side of a cell, in pixels of the first field")
		m.Add(fl)
	}, func(_ context.Context, paths []string) (_ job.Kind, err error) {
		k.Dataset.Spec, err = m.Spec(paths[0])
		return &k, err
	})
}
