package convert

import (
	"context"
	"fmt"
	"io"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/tiff"
)

// Chip is an image in memory.
type Chip struct {
	Shape  [3]int // bands, height, width
	DType  chunk.DType
	Pixels []byte // little-endian samples in C order
	Geo    tiff.Geo
	NoData string   // GDAL_NODATA, as a string; empty for none
	Bands  []string // names of the bands; nil for none
	// Mask has one byte a pixel, 0 for pixels without data; nil for none. Only a TOG can hold it.
	Mask []byte
}

// Write writes the chip to w in the format o.Format, which is not TileDB. Of o, what is about reading and what is kept
// has no effect. The bytes do not depend on o.Workers. With o.Strict, what the format cannot hold is fault.Unsupported;
// otherwise it is left out.
func (c *Chip) Write(ctx context.Context, w io.Writer, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Format == TileDB {
		return fmt.Errorf("format is %q: a chip is a file", o.Format)
	}
	h := &holding{meta: tiff.Meta{NoData: c.NoData, BandNames: c.Bands, Geo: c.Geo}, image: &chunk.Index{}}
	for _, name := range c.Bands {
		h.meta.Bands = append(h.meta.Bands, tiff.Band{Description: name})
	}
	if c.Mask != nil {
		h.image.Mask = &chunk.Index{Bands: 1}
	}
	if _, err := o.keep(h); err != nil {
		return err
	}
	if o.Format == Rumi {
		h.extras.Items = tiff.DescriptionItems(c.Bands)
	}
	return o.write(ctx, w, &image{holding: h, pixels: c.Pixels, times: 1, shape: c.Shape, dtype: c.DType, mask: c.Mask})
}

// HoldsNoData reports whether files of a format say which value is nodata.
func HoldsNoData(format string) bool { return format != Rumi2 && format != Rumi3 }
