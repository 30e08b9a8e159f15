package convert

import (
	"context"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/tiff"
)

// Image writes image i of the array m to w as a TOG or a rumi file, read by r. The nodata value is the array's
// fill value if the image may have cells that were never written. o.Opener and o.Strict are not used. Errors about
// the array have a kind.
func Image(ctx context.Context, w io.Writer, r *tiledb.Reader, m *tiledb.Images, i int64, o Options) error {
	index := m.Index(i)
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
	if err := m.Read(ctx, r, pixels, i, chunk.Box{B1: index.Bands, Y1: index.Height, X1: index.Width}); err != nil {
		return err
	}
	return o.write(ctx, w, picture)
}
