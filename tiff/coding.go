package tiff

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/jpeg"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// coding reads the parameters of the codec (chunk.Index.Params), and refuses images that would be read
// wrongly. x has its shape and its sample type.
func (p *parser) coding(x *chunk.Index) {
	switch v := p.Between(ifd.TagFillOrder, 1, 0, 1<<16); {
	case v == 2:
		// Streams of JPEG have one order only, as in libtiff.
		x.Reversed = x.Codec != chunk.JPEG
	case v != 1:
		p.Fail(fault.Unsupported, ifd.TagFillOrder, "FillOrder %d", v)
	}
	yCbCr := p.Between(ifd.TagPhotometric, 1, 0, 1<<16) == photometricYCbCr
	if p.Err != nil {
		return
	}
	switch {
	case x.Codec == chunk.JPEG:
		p.jpeg(x, yCbCr)
	case yCbCr:
		p.ycbcr(x)
	case x.Codec == chunk.LERC:
		p.lerc(x)
	case x.Codec == chunk.WebP:
		p.webp(x)
	}
}

// The first byte of Params of the codec JPEG is the kind of the samples; JPEGTables follow. Catalogs store the
// values: they must not change.
const (
	jpegAsStored = 0
	jpegYCbCr    = 1 // they become RGB, as in GDAL
)

// JPEGParams returns chunk.Index.Params of the codec JPEG for streams that have their tables in them.
func JPEGParams(yCbCr bool) []byte {
	if yCbCr {
		return []byte{jpegYCbCr}
	}
	return []byte{jpegAsStored}
}

func (p *parser) jpeg(x *chunk.Index, yCbCr bool) {
	tables := p.Value(ifd.TagJPEGTables)
	switch {
	case p.Err != nil:
		return
	case tables.Type != ifd.Undefined && tables.Type != ifd.Byte && tables.Len() > 0:
		p.Fail(fault.Corrupt, ifd.TagJPEGTables, "values of type %d", tables.Type)
	case x.DType != chunk.Uint8 || x.Packed != 0:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "JPEG of samples of %d bits",
			p.same(ifd.TagBitsPerSample, x.Bands, 1))
	case yCbCr && (x.Bands != 3 || x.ChunkB != 3):
		p.Fail(fault.Unsupported, ifd.TagPhotometric, "YCbCr samples of %d bands in chunks of %d", x.Bands, x.ChunkB)
	}
	x.Params = append(JPEGParams(yCbCr), tables.Field(ifd.TagJPEGTables).Data...)
}

// jpegDecoder reads JPEG (TIFF Technical Note 2).
type jpegDecoder struct{ d jpeg.Decoder }

// Decompress implements chunk.Decompressor.
func (d *jpegDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(t.Params) == 0 || t.Params[0] > jpegYCbCr || t.DType != chunk.Uint8 ||
		t.Params[0] == jpegYCbCr && t.Bands != 3 {
		return fault.New(fault.Corrupt, "jpeg", fault.NoOffset, "not the parameters of this codec")
	}
	return d.d.Decode(dst, src, t.Params[1:], jpeg.Shape{
		Width: t.Width, Height: t.Height, Bands: t.Bands, Rows: t.Rows, Least: t.Least,
		MaxHeight: t.MaxHeight, YCbCr: t.Params[0] == jpegYCbCr,
	})
}
