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

// Inputs are the files of the samples of a survey.
type Inputs struct {
	table   *rows.Table
	chosen  shuffle.Rows
	options resources.Options
	fields  []int // of the table, with rasters
}

// OpenInputs opens the inputs of Stats or, with all, of Weights: the samples of the Extent of the same spec.
func OpenInputs(ctx context.Context, sp spec.Spec, o resources.Options, all bool) (in *Inputs, err error) {
	in = &Inputs{options: o}
	in.table, err = OpenTable(ctx, &sp, &in.options)
	if err != nil {
		in.options.CloseOpener()
		return nil, err
	}
	for i := range in.table.Fields { // with the steps of fields, which come behind them
		if in.table.Fields[i].Kind == catalog.Raster {
			in.fields = append(in.fields, i)
		}
	}
	if !all {
		if in.chosen, err = rows.Selected(ctx, in.table, sp.Root(), in.options); err != nil {
			return nil, errors.Join(err, in.Close())
		}
	}
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
