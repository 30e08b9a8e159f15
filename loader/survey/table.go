package survey

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// withTable calls do with the open table of a spec, and with the spec and the options after their
// checks and defaults.
func withTable(ctx context.Context, sp spec.Spec, o resources.Options,
	do func(sp spec.Spec, o resources.Options, t *rows.Table) error) error {
	table, err := rows.OpenTable(ctx, &sp, &o)
	defer o.CloseOpener()
	if err != nil {
		return err
	}
	return errors.Join(do(sp, o, table), table.Close())
}

// rasterColumns returns the columns of the raster fields of a table. A table without samples or rasters is a
// fault of kind not found.
func rasterColumns(t *rows.Table, sp spec.Spec) (columns []int, _ error) {
	if t.N == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), sp.Source)
	}
	for i := range spec.RowFields(sp.Fields) {
		if t.Fields[i].Kind == catalog.Raster {
			columns = append(columns, i)
		}
	}
	if columns == nil {
		var names []string
		for _, f := range sp.Fields {
			names = append(names, f.Name)
		}
		err := fault.New(fault.NotFound, "dataset", fault.NoOffset, "no field of %q has rasters; a column of paths of "+
			"PNG, JPEG or NumPy files has them with kind %q", names, spec.RasterField)
		return nil, fault.WithFile(err, sp.Source)
	}
	return columns, nil
}
