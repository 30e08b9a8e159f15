package container

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// columnFlags has the flags of columns that the container gets beside the columns of the source.
type columnFlags struct {
	attach  columns.Attach
	list    string
	classes []string
	compute *columns.Compute // of list, nil without it
}

func (f *columnFlags) add(fl *pflag.FlagSet) {
	console.NonEmptyVar(fl, &f.attach.Table, "metadata")
	console.NonEmptyVar(fl, &f.attach.On, "on")
	console.Var(fl, &f.attach.Left, "metadata-left", false)
	console.NonEmptyVar(fl, &f.list, "columns")
	console.Var(fl, &f.classes, "classes", nil)
}

// check refuses flags that lack another.
func (f *columnFlags) check(o *build.Options) error {
	switch {
	case f.attach.Table == "" && (f.attach.On != "" || f.attach.Left):
		return console.Usagef("--on and --metadata-left need --metadata TABLE")
	case f.list != "" && o.Form.Indexes():
		return console.Usagef("--columns is for samples: an index has the columns of its ZIPs")
	case f.attach.Table != "" && o.Form.Indexes():
		return console.Usagef("--metadata is for samples: an index has the columns of its ZIPs")
	case f.list == "" && f.classes != nil:
		return console.Usagef("--classes needs --columns stats")
	case f.list == "":
		return nil
	}
	compute, err := columns.Parse(f.list)
	if err != nil {
		return console.Usagef("--columns: %w", err)
	}
	compute.Classes = map[string][]int64{}
	for _, text := range f.classes {
		path, classes, err := columns.ParseClasses(text)
		if err == nil && compute.Classes[path] != nil {
			err = fmt.Errorf("%q is the second for its path", text)
		}
		if err != nil {
			return console.Usagef("--classes: %w", err)
		}
		compute.Classes[path] = classes
	}
	if err := compute.Check(); err != nil {
		return console.Usagef("--classes: %w", err)
	}
	compute.Workers = o.Workers
	f.compute = compute
	return nil
}

// old lets a streaming TACO have the columns that its text wants of rasters, and histograms. A plain one has columns of
// the same form.
func (f *columnFlags) old(o *build.Options) (err error) {
	switch {
	case o.Form == build.PlainTaco && f.compute != nil:
		f.compute.Old = true
	case o.Form != build.StreamingTaco:
	case f.classes != nil:
		return console.Usagef("--classes is not for a TACO 0.2: its statistics are those of measurements")
	default:
		if f.compute == nil {
			if f.compute, err = columns.Parse("stac"); err != nil {
				return err
			}
			f.compute.Workers = o.Workers
		}
		f.compute.Stream(o, o.Opener)
	}
	return nil
}

// into adds the columns to the options of the container. Computed columns may need columns of the table, such as
// stac:centroid.
func (f *columnFlags) into(o *build.Options) {
	opener := o.Opener
	var table *tables.Table // of level 0
	if f.attach.Table != "" {
		o.More = func(ctx context.Context, levels []build.Level) (_ []*tables.Table, err error) {
			table, err = f.attach.More(ctx, opener, levels)
			return []*tables.Table{table}, err
		}
	}
	if f.compute == nil {
		return
	}
	o.Inspect = func(levels []build.Level) build.Inspection {
		inspection := f.compute.Inspect(levels)
		compute := inspection.Columns
		inspection.Columns = func(ctx context.Context) ([]*tables.Table, error) {
			made, err := compute(ctx)
			if err == nil {
				err = f.clash(table, made[0])
			}
			return made, err
		}
		return inspection
	}
}

// clash refuses a column that the table of --metadata has and --columns computes. Both may be nil.
func (f *columnFlags) clash(table, computed *tables.Table) error {
	if table == nil || computed == nil {
		return nil
	}
	for _, c := range computed.Columns() {
		if table.Index(c.Name) >= 0 {
			return fault.WithFile(fault.New(fault.Unsupported, "column "+c.Name, fault.NoOffset,
				"is one that --columns computes"), f.attach.Table)
		}
	}
	return nil
}

// report prints what did not find its like in the table.
func (f *columnFlags) report(env console.Env) {
	table := console.Printable(f.attach.Table)
	if n := f.attach.Unmatched; n > 0 {
		fmt.Fprintf(env.Err, "chaski: samples without a row in %s: %d\n", table, n)
	}
	if n := f.attach.Unused; n > 0 {
		fmt.Fprintf(env.Err, "chaski: rows of %s without a sample: %d\n", table, n)
	}
}
