package container

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// NewTaco returns the command taco.
func NewTaco(env console.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "taco COMMAND",
		Short: "Bring containers of older versions up to date",
		Long: `Work on containers of older versions: Tortilla 0.5, TACO 0.2 and TACO 2. All commands read them as they are;
'chaski pack' writes them, too. tacoreader 2 wants TACO 2, and taco-eo wants TACO 3.`,
		Example: `  chaski taco upgrade -o new.tacozip data.taco
  chaski taco upgrade -o new.zip --form taco3 data.tacozip
  chaski pack -o new.tacozip --collection about.json data.taco`,
		Args: console.Verb,
		RunE: func(*cobra.Command, []string) error { return console.Usagef("the command of taco is missing") },
	}
	cmd.AddCommand(newUpgrade(env))
	return cmd
}

// newUpgrade returns the command taco upgrade.
func newUpgrade(env console.Env) *cobra.Command {
	f := packFlags{upgrade: true, form: "taco2"}
	cmd := &cobra.Command{
		Use:   "upgrade -o OUT [flags] CONTAINER...",
		Short: "Write a container as TACO 2 or TACO 3",
		Long: `Write a Tortilla 0.5 or a TACO 0.2, whole or in parts, as TACO 2: a ZIP (OUT ends in .tacozip or .zip) or a
folder. The samples have the same ids and bytes, without the histograms of a streaming TACO.

With --form taco3, or an OUT that ends in .taco3.zip or .taco3, write these or a TACO 2 as TACO 3: a ZIP (OUT
ends in .zip) or a folder. 'chaski pack --help' says what columns are called there.

Columns get the names and types of version 2: tortilla:data_split becomes split, stac:raster_shape
stac:tensor_shape, times in seconds timestamps, and WKT of centroids WKB. COLLECTION goes to
COLLECTION.json: task becomes tasks, extent the form of version 2, an id in other characters than a-z, 0-9,
_ and - one in those, and members without a value are left out. --collection adds what version 2 requires
and the container lacks, as a Tortilla does.`,
		Example: `  chaski taco upgrade -o new.tacozip data.taco
  chaski taco upgrade -o new --collection about.json data.taco
  chaski taco upgrade -o new.zip --form taco3 data.tacozip`,
		Args: console.AtLeastOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			return f.warn(env, f.runUpgrade(cmd.Context(), env, paths))
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "`OUT`, the container to write")
	flags.NonEmptyVar(fl, &f.collection, "collection", "YAML or JSON `FILE` with members of COLLECTION.json")
	console.ChoiceVar(fl, &f.form, "form", f.form, "taco2 or taco3", "taco2", "taco3")
	f.addShared(fl)
	return cmd
}

// runUpgrade writes a container of an older generation as one of generation 2 or 3.
func (f *packFlags) runUpgrade(ctx context.Context, env console.Env, paths []string) error {
	switch form := build.FormOf(f.out); {
	case f.out == "":
		return console.Usagef("-o OUT is missing")
	case f.form == "taco3" || form.Named():
		if f.form == "taco2" {
			f.form = "auto"
		}
		return f.run(ctx, env, paths)
	case form != build.ZIP && form != build.Folder:
		return console.Usagef("-o %s: TACO 2 is a ZIP, whose name ends in .tacozip or .zip, or a folder", f.out)
	}
	f.form = "auto"
	return f.run(ctx, env, paths)
}
