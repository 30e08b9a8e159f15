package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
)

type packFlags struct {
	lsFlags
	out, collection string
	workers         int
	quiet           bool
	form            formFlags
	given           *build.Collection // the description of append, instead of the source's
	notes           []string          // violations in the sources that can be read anyway
	columns         columnFlags
	ofContainers    *pflag.FlagSet // flags that mean nothing for a directory of files
}

// packHelp describes the command pack.
const packHelp = `Write a TACO 2 container, as a ZIP (OUT ends in .tacozip or .zip) or as a folder.

Of a directory, each file becomes a sample with the file's name as its id, and each directory in it a folder
of samples. Samples at the top must have the same files below them. --collection is needed: a YAML or JSON
file with id, dataset_version, description, licenses, providers and tasks. An older OUT that lies in the
directory is left out.

Of a table (Parquet, CSV or TSV), each row becomes a sample: its column id has the ids from level 0 down, such
as tile_00/img.tif, and path the file, relative to the table. A row without a path is a folder. The other
columns become columns of the samples; at a level where all of their values are null they are left out.

Of containers, the samples are copied with all that lies below them and all their columns: from a ZIP to a
folder and back, of several containers into one, from a Tortilla or a TACO 0.2 to version 2, whose names and
types their columns get, or a subset by --where, --bbox, --datetime and --limit. COLLECTION.json is that of
the first container, changed by the members of --collection. That of a subset says what it is taken from
(taco:subset_of). The containers are checked first, as by 'chaski verify': one that it refuses is not copied,
and its notes are printed.

--metadata adds the columns of a table (Parquet, CSV, or STAC items as JSON) to the samples. The column --on
names the sample of a row: its id or, if no row has that, its id without an extension. A sample without a row
is an error; with --metadata-left its columns are null. Rows without a sample are counted on standard error.

--columns computes columns from the rasters: stac and istac (CRS, shape or footprint, centre), stats
(geotiff:stats; of the classes of --classes their shares), scaling (GDAL's scale and offset), header
(taco:header, of TACOTIFFs), index (chaski:index, rumi:header and the bands' names, chaski:bands),
rumi (rumi:header, rumi:mean, rumi:p2, ...), majortom[=KM], spatialgroup=SAMPLES,
split=train:0.8/validation:0.2 (by a hash of the id), and without values, to be filled, geoenrich and rai.

An OUT that ends in .tortilla is a Tortilla 0.5: the samples and columns without COLLECTION.json. One that
ends in .taco is a streaming TACO 0.2: its rasters must be TOGs ('chaski convert --to tog'), and stac, stats
(stats:mean, …) and, of samples that are folders, histograms are computed. --form taco-plain writes a TACO
0.2 of any files.

--form taco3, or an OUT that ends in .taco3.zip or .taco3, is a TACO 3: a ZIP (OUT ends in .zip) or a folder.
A sample that is a file becomes a folder with the file image or file. Samples may differ in the number of
files whose names count from 0 (t0.tif, t1.tif, ...). Columns have a namespace there: split becomes
split:split, other names without one data:NAME, and the columns of places and times stac, spatial or temporal,
if every sample has what these must have, else taco2:NAME.

An OUT called .tacocat, __TACOCAT__ or TACOLLECTION.json is an index: the tables of the ZIPs CONTAINER..., or
of those in a directory, so that a reader opens the index alone (.tacocat is a folder that today's readers
know, __TACOCAT__ the file of the specification), or one description of them all. The ZIPs must lie
in its folder or below. An older index is replaced.

OUT is complete or absent, also after a kill. A ZIP replaces an older one; a folder must not exist. OUT may
be in S3 (s3://), where it is written without a local copy, and one file also in other stores (gs://, az://),
where it is written in the directory for temporary files (TMPDIR), and then uploaded.`

// NewPack returns the command pack.
func NewPack(env console.Env) *cobra.Command {
	var f packFlags
	cmd := &cobra.Command{
		Use:   "pack -o OUT [flags] DIR | TABLE | CONTAINER...",
		Short: "Write a container: TACO 2 or 3, an index of several, a TACO 0.2 or a Tortilla",
		Long:  packHelp,
		Example: `  chaski pack -o masks.tacozip --collection about.json masks/
  chaski pack -o masks.tacozip --collection about.json --metadata years.csv masks/
  chaski pack -o masks.tacozip --collection about.json --columns stac,stats,index masks/
  chaski pack -o listed.tacozip --collection about.json files.csv
  chaski pack -o folder data.tacozip
  chaski pack -o low.tacozip --where "score < 0.5" data.tacozip
  chaski pack -o high.tacozip --where "score >= 0.5" data.tacozip
  chaski pack -o all.tacozip low.tacozip high.tacozip
  chaski pack -o old.taco --form taco-plain --collection about.json all.tacozip
  chaski pack -o new.tacozip old.taco
  chaski pack -o new.zip --form taco3 all.tacozip
  chaski pack -o parts/ --part-size 4GB all.tacozip
  chaski pack -o parts/.tacocat parts/`,
		Args: console.AtLeastOne("DIR, TABLE or CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.warn(env, f.run(cmd.Context(), env, paths)) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "`OUT`, the container to write")
	flags.NonEmptyVar(fl, &f.collection, "collection", "YAML or JSON `FILE` with members of COLLECTION.json")
	f.form.add(fl, slices.Concat(madeForms, indexForms)...)
	f.addShared(fl)
	return cmd
}

// addShared adds the flags that pack and append have.
func (f *packFlags) addShared(fl *pflag.FlagSet) {
	fl.IntVar(&f.workers, "workers", 0, "files that are read at a time (default: the number of processors, at least 4)")
	f.columns.add(fl)
	fl.BoolVar(&f.quiet, "quiet", false, "show no progress")
	f.ofContainers = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.containerFlags.add(f.ofContainers)
	f.Filter.Add(f.ofContainers)
	fl.AddFlagSet(f.ofContainers)
}

func (f *packFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if f.out == "" {
		return console.Usagef("-o OUT is missing")
	}
	if err := console.AtLeast("workers", f.workers, 0); err != nil {
		return err
	}
	return f.show(env, "pack", f.out, paths, "", func(o build.Options) (r *build.Result, err error) {
		if err := f.form.into(&o, f.out); err != nil {
			return nil, err
		}
		err = stored(ctx, f.out, o, func(path string, store build.Store) (err error) {
			f.out, o.Store = path, store
			r, err = f.write(ctx, paths, o)
			return err
		})
		return r, err
	})
}

// show shows the progress of write, then the notes about its sources and the counts of out.
func (f *packFlags) show(env console.Env, command, out string, paths []string, added string,
	write func(o build.Options) (*build.Result, error)) error {
	bar := console.NewBar(env.Err, command, 0)
	options := build.Options{Opener: env.Files, Workers: f.workers}
	if !f.quiet {
		options.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	}
	result, err := write(options)
	bar.Done()
	if err != nil {
		return console.FileError(out, err)
	}
	for _, note := range f.notes {
		fmt.Fprintf(env.Err, "chaski: %s: %s\n", console.Printable(paths[0]), console.Printable(note))
	}
	f.columns.report(env)
	_, err = fmt.Fprintf(env.Out, "%s: %d samples, %d files, %s%s\n", console.Printable(out), result.Samples,
		result.Files,
		console.DecimalSize(result.Bytes), added)
	return err
}

// write writes the container.
func (f *packFlags) write(ctx context.Context, paths []string, o build.Options) (_ *build.Result, err error) {
	if err := f.columns.check(&o); err != nil {
		return nil, err
	}
	if err := f.columns.old(&o); err != nil {
		return nil, err
	}
	f.columns.into(&o)
	if o.Form.Indexes() {
		return f.index(ctx, paths, o)
	}
	if st, err := os.Stat(paths[0]); err == nil && st.IsDir() {
		if kind, err := store.Of(ctx, o.Opener, paths[0]); err != nil {
			return nil, err
		} else if kind != store.Container {
			return f.directory(ctx, paths, o)
		}
	}
	if isTable(paths[0]) {
		return f.table(ctx, paths, o)
	}
	filter, err := f.TacoFilter()
	if err != nil {
		return nil, err
	}
	dataset, err := f.open(ctx, o.Opener, paths)
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	return f.export(ctx, dataset, paths[0], filter, o)
}

// export packs the samples of the container at path that are chosen.
func (f *packFlags) export(
	ctx context.Context, d *taco.Dataset, path string, filter *taco.Filter, o build.Options,
) (*build.Result, error) {
	// A copy of broken samples would pass all checks, and hide the damage.
	checked, err := d.Verify(ctx)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	f.notes = checked.Notes
	visible, err := d.Visible(ctx, 0)
	if err != nil {
		return nil, err
	}
	var left taco.Selection
	if filter != nil {
		if left, err = d.Select(ctx, *filter); err != nil {
			return nil, err
		}
	}
	table, err := d.Level(ctx, 0)
	if err != nil {
		return nil, err
	}
	rows, err := f.rows(ctx, d, left, table.Len())
	if err != nil {
		return nil, err
	}
	if rows, err = f.choose(ctx, table, rows); err != nil {
		return nil, fault.WithFile(err, path)
	}
	collection, err := build.CollectionOf(d)
	if err != nil {
		return nil, err
	}
	if f.collection != "" && !o.Form.Described() {
		return nil, console.Usagef("--collection is for containers with a description: a Tortilla has none")
	}
	if len(rows) < len(visible) {
		if err := collection.SubsetOf(time.Now()); err != nil {
			return nil, err
		}
	}
	if err := f.describe(collection); err != nil {
		return nil, err
	}
	f.columns.attach.Text = collection.TextColumns()
	r, err := build.Export(ctx, d, rows, *collection, f.out, o)
	return r, fault.WithFile(err, path)
}

// directory packs a directory of files.
func (f *packFlags) directory(ctx context.Context, paths []string, o build.Options) (*build.Result, error) {
	collection, err := f.fresh(paths, o, "a directory of files")
	if err != nil {
		return nil, err
	}
	tortilla, err := build.Scan(ctx, paths[0], f.out)
	if err != nil {
		return nil, err
	}
	r, err := build.Create(ctx, &build.Taco{Samples: tortilla, Collection: *collection}, f.out, o)
	return r, fault.WithFile(err, paths[0])
}

// isTable reports whether a source is a table of samples.
func isTable(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv", ".tsv", ".parquet":
		return true
	}
	return false
}

// table packs the samples of a table.
func (f *packFlags) table(ctx context.Context, paths []string, o build.Options) (_ *build.Result, err error) {
	defer func() { err = fault.WithFile(err, paths[0]) }()
	collection, err := f.fresh(paths, o, "a table of samples")
	if err != nil {
		return nil, err
	}
	table, closer, err := catalog.ReadTable(ctx, o.Opener, paths[0],
		append([]string{build.ListID, build.ListPath}, collection.TextColumns()...)...)
	if err != nil {
		return nil, err
	}
	defer closer.Close() //nolint:errcheck // it was only read
	list, err := build.Listed(ctx, table, pathname.Dir(paths[0]))
	if err != nil {
		return nil, err
	}
	list.Declared = collection.Columns
	set := &build.Taco{Samples: list.Samples, Columns: list.Columns, Collection: *collection}
	return build.Create(ctx, set, f.out, o)
}

// fresh returns the description of samples that are not in a container yet. what is the only source.
func (f *packFlags) fresh(paths []string, o build.Options, what string) (*build.Collection, error) {
	if len(paths) > 1 {
		return nil, console.Usagef("%s is %s: it is packed alone", paths[0], what)
	}
	if f.collection == "" && f.given == nil && o.Form.Described() {
		return nil, console.Usagef("--collection is missing: %s does not describe itself", what)
	}
	if err := f.unused(paths[0] + " is " + what + ", which is packed whole"); err != nil {
		return nil, err
	}
	collection := &build.Collection{}
	if err := f.describe(collection); err != nil {
		return nil, err
	}
	f.columns.attach.Text = collection.TextColumns()
	return collection, nil
}

// describe sets the members of --collection.
func (f *packFlags) describe(c *build.Collection) error {
	if f.given != nil {
		*c = *f.given
	}
	return setMembers(c, f.collection)
}

// setMembers sets the members of a description that the file of --collection has, if there is one.
func setMembers(c *build.Collection, path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return console.FileError(path, err)
	}
	return fault.WithFile(c.SetYAML(data), path)
}
