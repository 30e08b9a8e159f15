package jobs

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/container"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/raster"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/job/kinds"
	"github.com/chaski-eo/chaski/source"
)

func planConvert(env console.Env) *cobra.Command {
	var k kinds.Convert
	var f raster.Encoding
	return planOf(env, &cobra.Command{
		Use:   "convert [flags] --into DIR -o FOLDER SRC...",
		Short: "Plan conversions: the files that 'chaski convert' writes",
		Long: `Plan the conversion of files into TOG or rumi files below --into, a directory that all machines see. SRC is a
raster, a directory or a glob, also of an object store. A new file has the path of its source below SRC,
as with 'chaski convert'. Shards write the files, each whole or not at all; one that is done again replaces
them by the same. 'chaski job merge' makes sure that all are there, and writes a report: a line of JSON for
each file, with its source, size and hash.`,
		Example: `  chaski job plan convert -o convert-job/ --into togs/ --shards 200 chips/
  chaski job plan convert -o rumi-job/ --into rumis/ --to rumi --codec best --skip-bad "chips/*.tif"`,
	}, console.AtLeastOne("SRC"), func(fl *pflag.FlagSet) {
		fl.StringVar(&k.Into, "into", "", "the `DIR` of the new files")
		fl.BoolVar(&k.Overwrite, "overwrite", false, "replace files that exist")
		fl.BoolVar(&k.SkipBad, "skip-bad", false, "leave out files that cannot be converted")
		f.Add(fl)
	}, func(_ context.Context, paths []string) (_ job.Kind, err error) {
		if k.Into == "" || source.Scheme(k.Into) != "" {
			return nil, console.Usagef("--into is %q: it must be the path of a directory", k.Into)
		}
		k.Paths = paths
		k.Options, err = f.Options()
		return &k, err
	})
}

func planMake(env console.Env) *cobra.Command {
	return planOf(env, &cobra.Command{
		Use:   "make [flags] -o FOLDER RECIPE",
		Short: "Plan the chips of a recipe: the container that 'chaski make' writes",
		Long: `Plan the chips of a recipe, a file of YAML or JSON as for 'chaski make'. A shard makes the chips of some of
the windows, and 'chaski job merge -o OUT' writes the container: the one that 'chaski make' writes, byte for
byte, for any number of shards. A relative source is relative to the directory of the recipe, of which the
job has a copy. Shards and the merge must be of the same version of chaski as the plan.`,
		Example: `  chaski job plan make -o make-job/ --shards 200 chips.yaml
  chaski job plan make -o more-job/ --shard-items 5000 chips.json`,
	}, console.ExactlyOne("RECIPE"), func(*pflag.FlagSet) {}, func(ctx context.Context, paths []string) (
		job.Kind, error) {
		_, text, err := container.ReadRecipe(ctx, paths[0])
		if err != nil {
			return nil, err
		}
		return kinds.NewMake(text, pathname.Dir(paths[0]))
	})
}
