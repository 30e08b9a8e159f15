package loader

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxMeasured bounds the files whose headers are read to learn their sizes. Larger datasets need a
// catalog, which holds the sizes.
const maxMeasured = 10_000_000

// measure learns the sizes of all selected assets: from the columns of the table or, if it has
// none, from the headers of the files.
func (d *dataset) measure(ctx context.Context, e *Engine) error {
	column := d.rasters[0].TableColumn
	field := &d.table.Fields[column]
	if d.sizes.one = field.Size; d.sizes.one == nil {
		var err error
		if d.sizes.each, err = field.Sizes(ctx); err != nil {
			return err
		}
	}
	if !d.sizes.available() {
		if err := d.measureFiles(ctx, e); err != nil {
			return err
		}
	}
	return d.digestSizes(ctx)
}

// measureFiles reads the sizes of the selected assets from the headers of their files.
func (d *dataset) measureFiles(ctx context.Context, e *Engine) error {
	if n := d.table.N; n > maxMeasured {
		return fault.WithFile(fault.New(fault.Limit, "dataset",
			"this sampler needs the sizes of all %d assets, and more than %d are not read from their headers: "+
				"make a catalog with 'chaski index'", n, maxMeasured), d.source.Source)
	}
	d.sizes.each = make([]catalog.Size, d.table.N)
	// At least 4, because reading a header is mostly waiting.
	return each.Of(ctx, d.rows.Len(d.table.N), max(e.options.Workers, 4), func(ctx context.Context, i int64) error {
		row := d.rows.At(i)
		base, err := e.anchorOf(ctx, d, row)
		if err != nil {
			if e.spec.BadSamples != spec.BadError && fault.KindOf(err) != 0 {
				return nil // the run meets the error when it reads the sample
			}
			return fmt.Errorf("the size of sample %d, which this sampler needs: %w", row, err)
		}
		d.sizes.each[row] = catalog.Size{Height: int32(base.height), Width: int32(base.width)}
		return nil
	})
}

// digestSizes adds the sizes of all assets to the digest of the data, because the order of these
// samplers depends on them.
func (d *dataset) digestSizes(ctx context.Context) error {
	for row := range d.table.N {
		size := d.sizes.of(row)
		d.digest.Number(uint64(uint32(size.Height)) | uint64(uint32(size.Width))<<32)
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
