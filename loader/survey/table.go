package survey

import (
	"cmp"
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
	table, err := OpenTable(ctx, &sp, &o)
	defer o.CloseOpener()
	if err != nil {
		return err
	}
	return errors.Join(do(sp, o, table), table.Close())
}

// OpenTable opens the dataset of a spec with one source: a catalog, a table, a container, an array, a directory, a glob
// or a file. It puts the spec and the options after their checks and defaults in place of what they were; the caller
// calls CloseOpener after it has closed the table, and after an error. A container has the samples that meet the spec's
// conditions and split; other datasets have all rows. An invalid spec, a mixture and a dataset that cannot be opened
// are errors.
func OpenTable(ctx context.Context, s *spec.Spec, o *resources.Options) (*rows.Table, error) {
	*s, *o = s.WithDefaults(), o.WithDefaults()
	s.BatchSize = max(s.BatchSize, 1) // Validate needs one, although nothing here makes batches
	if err := cmp.Or(s.Validate(), o.Validate()); err != nil {
		return nil, err
	}
	if len(s.Sources) > 0 {
		return nil, errors.New("spec: a mixture has several datasets: take its sources, one by one")
	}
	var err error
	if *s, err = rows.WithOwnFields(ctx, *s, *o); err != nil {
		return nil, err
	}
	return rows.Open(ctx, s.Root(), s.Fields, *o)
}

// assetsOf returns the rasters of a field in a row: one, or all steps of time that it has files for.
func assetsOf(ctx context.Context, t *rows.Table, field int, row int64) (out []catalog.Asset, err error) {
	numbers := []int{field}
	if steps := t.Fields[field].Steps; steps != nil {
		numbers = nil
		for k, number := range steps.Fields {
			if !steps.Padding(k, row) {
				numbers = append(numbers, number)
			}
		}
	}
	out = make([]catalog.Asset, len(numbers))
	for i, number := range numbers {
		if out[i], err = t.Fields[number].Asset(ctx, row); errors.Is(err, rows.ErrLacks) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rasterColumns returns the columns of the raster fields of a table. A table without samples or rasters is a
// fault of kind not found.
func rasterColumns(t *rows.Table, sp spec.Spec) (columns []int, _ error) {
	if t.N == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", "no samples"), sp.Source)
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
		err := fault.New(fault.NotFound, "dataset", "no field of %q has rasters; a column of paths of "+
			"PNG, JPEG or NumPy files has them with kind %q", names, spec.RasterField)
		return nil, fault.WithFile(err, sp.Source)
	}
	return columns, nil
}
