package container

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// columnFlags has the flags of columns that the container gets beside those of the source.
type columnFlags struct {
	attach columns.Attach
}

func (f *columnFlags) add(fl *pflag.FlagSet) {
	flags.NonEmptyVar(fl, &f.attach.Table, "metadata", "`TABLE` with a row for each sample, whose columns to add")
	flags.NonEmptyVar(fl, &f.attach.On, "on", "`COLUMN` of the table that names the samples (default: id)")
	fl.BoolVar(&f.attach.Left, "metadata-left", false, "allow samples without a row in the table")
}

// check refuses flags that lack another.
func (f *columnFlags) check(o *build.Options) error {
	switch {
	case f.attach.Table == "" && (f.attach.On != "" || f.attach.Left):
		return console.Usagef("--on and --metadata-left need --metadata TABLE")
	case f.attach.Table != "" && o.Form.Indexes():
		return console.Usagef("--metadata is for samples: an index has the columns of its ZIPs")
	}
	return nil
}

// into lets the container have the columns.
func (f *columnFlags) into(o *build.Options) {
	if f.attach.Table == "" {
		return
	}
	opener := o.Opener
	o.More = func(ctx context.Context, levels []build.Level) ([]*tables.Table, error) {
		t, err := f.attach.More(ctx, opener, levels)
		return []*tables.Table{t}, err
	}
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
