package jpeg

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

func init() { chunk.Register(chunk.JPEG, func() chunk.Decompressor { return new(tileDecoder) }) }

// tileDecoder reads JPEG (TIFF Technical Note 2).
type tileDecoder struct{ d Decoder }

// Decompress implements chunk.Decompressor.
func (d *tileDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(t.Params) == 0 || t.Params[0] > chunk.JPEGYCbCr || t.DType != chunk.Uint8 ||
		t.Params[0] == chunk.JPEGYCbCr && t.Bands != 3 {
		return fault.New(fault.Corrupt, "jpeg", "not the parameters of this codec")
	}
	return d.d.Decode(dst, src, t.Params[1:], Shape{
		Width: t.Width, Height: t.Height, Bands: t.Bands, Rows: t.Rows, Least: t.LeastRows,
		MaxHeight: t.MaxHeight, YCbCr: t.Params[0] == chunk.JPEGYCbCr,
	})
}
