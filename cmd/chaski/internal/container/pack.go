package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
)

type packFlags struct {
	lsFlags
	out, collection string
	workers         int
	quiet           bool
	form            string
	notes           []string // violations in the sources that can be read anyway
	columns         columnFlags
	ofContainers    *pflag.FlagSet // flags that mean nothing for a directory of files
}

// NewPack returns the command pack.
func NewPack(env console.Env) *cobra.Command {
	var f packFlags
	cmd := console.Command("pack -o OUT [flags] DIR | TABLE | CONTAINER...",
		console.AtLeastOne("DIR, TABLE or CONTAINER"),
		func(cmd *cobra.Command, paths []string) error { return f.warn(env, f.run(cmd.Context(), env, paths)) })
	fl := cmd.Flags()
	console.Var(fl, &f.out, "output,o", "")
	console.NonEmptyVar(fl, &f.collection, "collection")
	console.ChoiceVar(fl, &f.form, "form", "auto", build.FormNames...)
	console.CountVar(fl, &f.workers, "workers", 0, 0)
	f.columns.add(cmd)
	console.Var(fl, &f.quiet, "quiet", false)
	f.ofContainers = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.containerFlags.add(f.ofContainers)
	f.Filter.Add(f.ofContainers)
	fl.AddFlagSet(f.ofContainers)
	return cmd
}

func (f *packFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if f.out == "" {
		return console.Usagef("-o OUT is missing")
	}
	options := build.Options{Opener: env.Files, Workers: f.workers}
	var err error
	if options.Form, err = build.ParseForm(f.form, f.out); err != nil {
		return console.Usagef("-o is %q: %w", f.out, err)
	}
	bar := console.NewBar(env.Err, "packing")
	if !f.quiet {
		options.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	}
	result, err := f.write(ctx, paths, options)
	bar.Done()
	if err != nil {
		return console.FileError(f.out, err)
	}
	for _, note := range f.notes {
		fmt.Fprintf(env.Err, "chaski: %s: %s\n", console.Printable(paths[0]), console.Printable(note))
	}
	f.columns.report(env)
	_, err = fmt.Fprintf(env.Out, "%s: %d samples, %d files, %s\n", console.Printable(f.out), result.Samples,
		result.Files, console.DecimalSize(result.Bytes))
	return err
}

// write writes the container.
func (f *packFlags) write(ctx context.Context, paths []string, o build.Options) (_ *build.Result, err error) {
	if err := f.columns.check(&o); err != nil {
		return nil, err
	}
	f.columns.into(&o)
	if o.Form.Indexes() {
		return f.index(ctx, paths, o)
	}
	if st, err := os.Stat(paths[0]); err == nil && st.IsDir() {
		if kind, err := store.Of(ctx, o.Opener, paths[0]); err != nil {
			return nil, err
		} else if _, ok := kind.(store.Lists); !ok {
			return f.directory(ctx, paths, o)
		}
	}
	if class := magic.Named(paths[0]).Class; class == magic.CSV || class == magic.Parquet {
		return f.table(ctx, paths, o)
	}
	if _, err := f.TacoFilter(); err != nil {
		// The filter is parsed here, so an error comes before the containers are checked.
		return nil, err
	}
	dataset, err := f.open(ctx, o.Opener, paths)
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	return f.export(ctx, dataset, paths[0], o)
}

// export packs the samples of the container at path that are chosen.
func (f *packFlags) export(ctx context.Context, d containers.Set, path string, o build.Options) (*build.Result, error) {
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
	rows, err := f.Samples(ctx, d)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	rows = f.Cut(rows)
	collection, err := build.CollectionOf(d.Dataset)
	if err != nil {
		return nil, err
	}
	if len(rows) < len(visible) {
		collection.SubsetOf(time.Now())
	}
	if err := setMembers(collection, f.collection); err != nil {
		return nil, err
	}
	f.columns.attach.Text = collection.TextColumns()
	r, err := build.Export(ctx, d.Dataset, rows, *collection, f.out, o)
	return r, fault.WithFile(err, path)
}

// directory packs a directory of files.
func (f *packFlags) directory(ctx context.Context, paths []string, o build.Options) (*build.Result, error) {
	collection, err := f.description(paths, o, "a directory of files")
	if err != nil {
		return nil, err
	}
	tortilla, sidecars, err := build.Scan(ctx, paths[0], f.out)
	if err != nil {
		return nil, err
	}
	if n := len(sidecars); n > 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("%d files beside rasters, such as %s, are left out, with what "+
			"they say of masks, nodata and places: gdal_translate writes that into the rasters", n, sidecars[0]))
	}
	r, err := build.Create(ctx, &build.Taco{Samples: tortilla, Collection: *collection}, f.out, o)
	return r, fault.WithFile(err, paths[0])
}

// table packs the samples of a table.
func (f *packFlags) table(ctx context.Context, paths []string, o build.Options) (_ *build.Result, err error) {
	defer func() { err = fault.WithFile(err, paths[0]) }()
	collection, err := f.description(paths, o, "a table of samples")
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

// description returns the description of samples that are not in a container yet. what is the only source.
func (f *packFlags) description(paths []string, o build.Options, what string) (*build.Collection, error) {
	if len(paths) > 1 {
		return nil, console.Usagef("%s is %s: it is packed alone", paths[0], what)
	}
	if f.collection == "" {
		return nil, console.Usagef("--collection is missing: %s does not describe itself", what)
	}
	if err := f.unused(paths[0] + " is " + what + ", which is packed whole"); err != nil {
		return nil, err
	}
	collection := &build.Collection{}
	if err := setMembers(collection, f.collection); err != nil {
		return nil, err
	}
	f.columns.attach.Text = collection.TextColumns()
	return collection, nil
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

// index writes an index of ZIPs. A folder among the paths stands for the ZIPs in it.
func (f *packFlags) index(ctx context.Context, paths []string, o build.Options) (*build.Result, error) {
	if err := f.unused("an index has the samples of its ZIPs"); err != nil {
		return nil, err
	}
	if f.collection != "" {
		return nil, console.Usagef("--collection is for containers: an index has the description of its ZIPs")
	}
	zips, err := build.ZIPs(paths)
	if err != nil {
		return nil, err
	}
	// An index of broken containers would hide the damage.
	for _, zip := range zips {
		if err := f.verify(ctx, o.Opener, zip); err != nil {
			return nil, fault.WithFile(err, zip)
		}
	}
	return build.Consolidate(ctx, zips, f.out, o)
}

// verify checks a container, and keeps its notes.
func (f *packFlags) verify(ctx context.Context, files source.Opener, path string) error {
	dataset, err := containers.Open(ctx, files, path, "")
	if err != nil {
		return err
	}
	checked, err := dataset.Verify(ctx)
	if err == nil {
		f.notes = append(f.notes, checked.Notes...)
	}
	return errors.Join(err, dataset.Close())
}

// unused refuses flags that select samples of containers, for the reason why.
func (f *packFlags) unused(why string) error {
	if name := flags.Changed(f.ofContainers); name != "" {
		return console.Usagef("--%s is for containers: %s", name, why)
	}
	return nil
}
