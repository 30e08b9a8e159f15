package container

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// columnFlags has the flags of columns that the container gets beside the columns of the source.
type columnFlags struct {
	attach  columns.Attach
	list    string
	compute *columns.Compute // of list, nil without it
}

func (f *columnFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	console.NonEmptyVar(fl, &f.attach.Table, "metadata")
	console.NonEmptyVar(fl, &f.attach.On, "on")
	console.Var(fl, &f.attach.Left, "metadata-left", false)
	console.NonEmptyVar(fl, &f.list, "columns")
	// Both fail only for a flag that is not declared.
	_ = cmd.RegisterFlagCompletionFunc("columns",
		cobra.FixedCompletions(columns.Extensions, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("on", f.offerColumns)
}

// offerColumns offers shells the columns of the table, if it is on this machine: a remote one would take requests.
func (f *columnFlags) offerColumns(c *cobra.Command, _ []string, _ string) (out []string, _ cobra.ShellCompDirective) {
	files := &openers.Files{}
	defer files.Close()
	if table, closer, err := catalog.ReadTable(c.Context(), files, f.attach.Table); err == nil {
		defer closer.Close()
		for _, column := range table.Columns() {
			out = append(out, column.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// check refuses flags that lack another.
func (f *columnFlags) check(o *build.Options) (err error) {
	switch {
	case f.attach.Table == "" && (f.attach.On != "" || f.attach.Left):
		return console.Usagef("--on and --metadata-left need --metadata TABLE")
	case f.list != "" && o.Form.Indexes():
		return console.Usagef("--columns is for samples: an index has the columns of its ZIPs")
	case f.attach.Table != "" && o.Form.Indexes():
		return console.Usagef("--metadata is for samples: an index has the columns of its ZIPs")
	case f.list == "":
		return nil
	}
	if f.compute, err = columns.Parse(f.list); err != nil {
		return console.Usagef("--columns: %w", err)
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
			return fault.WithFile(fault.New(fault.Unsupported, "column "+c.Name,
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
