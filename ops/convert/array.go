package convert

import (
	"context"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
)

// Image writes an image of an array, whose index has Blocks, to w as a TOG or a rumi file. The nodata value is the
// array's fill value if the image may have cells that were never written. o.Opener and o.Strict are not used. Errors
// about the array have a kind.
func Image(ctx context.Context, w io.Writer, index *chunk.Index, o Options) error {
	shape := [3]int{index.Bands, index.Height, index.Width}
	size := int64(index.DType.Size())
	for _, s := range shape {
		if size > o.MaxBytes/int64(s) {
			return fault.New(fault.Limit, "array", "(%d, %d, %d) %s is over %d bytes", index.Bands,
				index.Height, index.Width, index.DType, o.MaxBytes)
		}
		size *= int64(s)
	}
	pixels := make([]byte, size)
	picture := &outputImage{rasterMeta: &rasterMeta{meta: tiff.Meta{NoData: NoDataText(index)}}, pixels: pixels,
		times: 1, shape: shape, dtype: index.DType}
	if err := o.fits(picture); err != nil {
		return err
	}
	whole := chunk.Box{B1: index.Bands, Y1: index.Height, X1: index.Width}
	if err := index.Blocks.Array.Open().ReadBox(ctx, pixels, index.Blocks.Image, whole); err != nil {
		return err
	}
	return o.write(ctx, w, picture)
}
