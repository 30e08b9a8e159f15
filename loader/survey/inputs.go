package survey

import (
	"cmp"
	"context"
	"errors"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Inputs are the samples of a survey, and the files that they are read from.
type Inputs struct {
	Extent
	table   *rows.Table
	chosen  shuffle.Rows
	options resources.Options
	fields  []int // of the table, with rasters
}

// OpenInputs opens the inputs of Stats: the samples that the conditions and the split leave. With weights they are the
// inputs of Weights: all rows of a table, and of a container the rows that the conditions leave. It refuses options
// that Weights refuses.
func OpenInputs(ctx context.Context, sp spec.Spec, o resources.Options, weights *WeightOptions) (in *Inputs,
	err error) {
	in = &Inputs{options: o}
	if in.table, err = OpenTable(ctx, &sp, &in.options); err != nil {
		in.options.CloseOpener()
		return nil, err
	}
	for i := range in.table.Fields { // with the steps of fields, which come behind them
		if in.table.Fields[i].Kind == catalog.Raster {
			in.fields = append(in.fields, i)
		}
	}
	if weights == nil {
		in.chosen, err = rows.Selected(ctx, in.table, sp.Root(), in.options)
	} else {
		made := &weighing{options: in.options, table: in.table}
		_, err = made.compile(ctx, sp, *weights)
		err = errors.Join(err, made.close())
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	in.Extent = Extent{in.chosen.Len(in.table.N), in.table.Fingerprint}
	return in, nil
}

// Close closes the dataset.
func (in *Inputs) Close() error {
	defer in.options.CloseOpener()
	return in.table.Close()
}

// Assets returns the rasters of a sample. Those that cannot be opened are not among them, since whoever reads the
// sample says what is wrong with them.
func (in *Inputs) Assets(ctx context.Context, sample int64) (assets []catalog.Asset, err error) {
	row := in.chosen.At(sample)
	for _, i := range in.fields {
		asset, err := in.table.Fields[i].Asset(ctx, row)
		switch {
		case ctx.Err() != nil || source.Unreachable(err):
			return nil, cmp.Or(ctx.Err(), err)
		case err == nil && asset.Parts != nil:
			assets = append(assets, asset.Parts...)
		case err == nil:
			assets = append(assets, asset)
		}
	}
	return assets, nil
}
