package convert

import (
	"context"
	"fmt"
	"io"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/rumi"
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
	if what := c.lost(o.Format); what != "" && o.Strict {
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%s cannot hold %s", o.Format, what)
	}
	h := &holding{meta: tiff.Meta{NoData: c.NoData, BandNames: c.Bands, Geo: c.Geo}}
	if o.Format == Rumi {
		h.extras.Items = tiff.DescriptionItems(c.Bands)
	}
	return o.write(ctx, w, &image{holding: h, pixels: c.Pixels, times: 1, shape: c.Shape, dtype: c.DType, mask: c.Mask})
}

// HoldsNoData reports whether files of a format say which value is nodata.
func HoldsNoData(format string) bool { return format != Rumi2 && format != Rumi3 }

// lost names what a generation of rumi cannot hold of a chip, "" for nothing.
func (c *Chip) lost(format string) string {
	_, named := rumi.BandNames(c.Bands, len(c.Bands))
	switch {
	case format == TOG:
		return ""
	case c.Mask != nil:
		return "a mask"
	case !HoldsNoData(format) && c.NoData != "":
		return "a nodata value"
	case format == Rumi2 && c.Bands != nil, format == Rumi3 && !named:
		return "these names of bands"
	}
	return ""
}
