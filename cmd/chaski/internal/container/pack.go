package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
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

// NewPack returns the command pack.
func NewPack(env console.Env) *cobra.Command {
	var f packFlags
	cmd := console.Command("pack -o OUT [flags] DIR | TABLE | CONTAINER...",
		console.AtLeastOne("DIR, TABLE or CONTAINER"),
		func(cmd *cobra.Command, paths []string) error { return f.warn(env, f.run(cmd.Context(), env, paths)) })
	fl := cmd.Flags()
	console.Var(fl, &f.out, "output,o", "")
	console.NonEmptyVar(fl, &f.collection, "collection")
	f.form.add(fl, slices.Concat(madeForms, indexForms)...)
	f.addShared(fl)
	return cmd
}

// addShared adds the flags that pack and append have.
func (f *packFlags) addShared(fl *pflag.FlagSet) {
	console.CountVar(fl, &f.workers, "workers", 0, 0)
	f.columns.add(fl)
	console.Var(fl, &f.quiet, "quiet", false)
	f.ofContainers = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.containerFlags.add(f.ofContainers)
	f.Filter.Add(f.ofContainers)
	fl.AddFlagSet(f.ofContainers)
}

func (f *packFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if f.out == "" {
		return console.Usagef("-o OUT is missing")
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
		result.Files, console.DecimalSize(result.Bytes), added)
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
	if class := magic.Named(paths[0]).Class; class == magic.CSV || class == magic.Parquet {
		return f.table(ctx, paths, o)
	}
	if _, err := f.TacoFilter(); err != nil {
		// The filter is parsed here, so that an error comes before the containers are checked.
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
func (f *packFlags) export(
	ctx context.Context, d *taco.Dataset, path string, o build.Options,
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
	rows, err := f.Samples(ctx, d)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	rows = f.Cut(rows)
	collection, err := build.CollectionOf(d)
	if err != nil {
		return nil, err
	}
	if f.collection != "" && !o.Form.Described() {
		return nil, console.Usagef("--collection is for containers with a description: a Tortilla has none")
	}
	if len(rows) < len(visible) {
		collection.SubsetOf(time.Now())
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

// NewAppend returns the command append.
func NewAppend(env console.Env) *cobra.Command {
	var f packFlags
	cmd := console.Command("append [flags] FOLDER DIR | TABLE | CONTAINER...",
		atLeastTwo("FOLDER and at least one DIR, TABLE or CONTAINER"),
		func(cmd *cobra.Command, args []string) error {
			return f.warn(env, f.append(cmd.Context(), env, args[0], args[1:]))
		})
	f.addShared(cmd.Flags())
	return cmd
}

// append adds samples to a folder.
func (f *packFlags) append(ctx context.Context, env console.Env, folder string, paths []string) error {
	return f.show(env, "append", folder, paths, " added", func(o build.Options) (*build.Result, error) {
		o.Form = build.ZIP
		return build.Append(ctx, folder, o, func(path string, c build.Collection) (*build.Result, error) {
			f.out, f.given = path, &c
			return f.write(ctx, paths, o)
		})
	})
}

// index writes an index of ZIPs. A folder among the paths stands for the ZIPs in it.
func (f *packFlags) index(ctx context.Context, paths []string, o build.Options) (*build.Result, error) {
	if err := f.unused("an index has the samples of its ZIPs"); err != nil {
		return nil, err
	}
	if f.collection != "" {
		return nil, console.Usagef("--collection is for containers: an index has the description of its ZIPs")
	}
	zips, err := build.ZIPs(ctx, paths, o.Store)
	if err != nil {
		return nil, err
	}
	// An index of broken containers would hide the damage.
	for _, zip := range zips {
		if err := f.verify(ctx, o.Opener, zip); err != nil {
			return nil, fault.WithFile(err, zip)
		}
	}
	if o.Store != nil {
		return build.Consolidate(ctx, zips, f.out, o)
	}
	// It takes the paths and not the ZIPs, since an append may have added one meanwhile, which it has checked.
	return build.Consolidate(ctx, paths, f.out, o)
}

// verify checks a container, and keeps its notes.
func (f *packFlags) verify(ctx context.Context, files source.Opener, path string) error {
	dataset, err := taco.Open(ctx, files, []string{path}, taco.Options{})
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
