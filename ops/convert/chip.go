package convert

import (
	"context"
	"fmt"
	"io"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
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

// Write writes the chip to w in the format o.Format, which is TOG, Rumi or Rumi2. Of o, what is about reading and what
// is kept has no effect. The bytes do not depend on o.Workers. What the format cannot hold is fault.Unsupported.
func (c *Chip) Write(ctx context.Context, w io.Writer, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	h := &holding{meta: tiff.Meta{NoData: c.NoData, BandNames: c.Bands, Geo: c.Geo}}
	if err := o.fits(c.DType, c.Shape, &h.meta); err != nil {
		return err
	}
	switch {
	case o.Format == TOG:
		t := o.togOptions(ctx, c.Shape, c.DType, h)
		t.Mask = c.Mask
		return tiff.WriteTOG(w, c.Pixels, t)
	case c.Mask != nil:
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%s cannot hold a mask", o.Format)
	case o.Format == Rumi:
		h.extras.Items = tiff.DescriptionItems(c.Bands)
	case o.Format != Rumi2:
		return fmt.Errorf("format is %q: a chip is written as %s, %s or %s", o.Format, TOG, Rumi, Rumi2)
	case c.NoData != "" || c.Bands != nil:
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset,
			"%s cannot hold a nodata value and names of bands", o.Format)
	}
	return o.rumi(ctx, w, c.Pixels, c.Shape, c.DType, h)
}
