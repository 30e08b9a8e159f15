package tiff

import (
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// coding reads the parameters of the codec (chunk.Index.Params), and refuses images that would be read
// wrongly. x has its shape and its sample type.
func (p *parser) coding(x *chunk.Index) {
	switch v := p.Uint(ifd.TagFillOrder, 1); v {
	case 1:
	case 2:
		// Streams of JPEG have one order only, as in libtiff.
		x.Reversed = x.Codec != chunk.JPEG
	default:
		p.Fail(fault.Unsupported, ifd.TagFillOrder, "FillOrder %d", v)
	}
	yCbCr := p.Uint(ifd.TagPhotometric, 0) == PhotometricYCbCr
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

func (p *parser) jpeg(x *chunk.Index, yCbCr bool) {
	tables := p.Value(ifd.TagJPEGTables)
	switch {
	case tables.Type != ifd.Undefined && tables.Type != ifd.Byte && tables.Len() > 0:
		p.Fail(fault.Corrupt, ifd.TagJPEGTables, "values of type %d", tables.Type)
	case x.DType != chunk.Uint8 || x.Packed != 0:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "JPEG of samples of %d bits",
			p.same(ifd.TagBitsPerSample, x.Bands, 1))
	case yCbCr && (x.Bands != 3 || x.ChunkB != 3):
		p.Fail(fault.Unsupported, ifd.TagPhotometric, "YCbCr samples of %d bands in chunks of %d", x.Bands, x.ChunkB)
	}
	x.Params = []byte{chunk.JPEGAsStored}
	if yCbCr {
		x.Params[0] = chunk.JPEGYCbCr
	}
	x.Params = append(x.Params, tables.Bytes()...)
}

// lerc reads the parameters of LERC. libtiff leaves an alpha band of bytes out of a blob, and makes it from
// the blob's mask, if it has no values but 0 and 255 there.
func (p *parser) lerc(x *chunk.Index) {
	params, extra := p.Uints(ifd.TagLercParameters), p.Uints(ifd.TagExtraSamples)
	if !slices.Contains(chunk.LERCTypes[:], x.DType) || x.Packed != 0 {
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "LERC of %s samples", x.DType)
		return
	}
	if params.Len() < 2 || params.Uint(1) > chunk.LERCZstd {
		p.Fail(fault.Unsupported, ifd.TagLercParameters,
			"compression LERC: %d parameters, or an unknown additional compression", params.Len())
		return
	}
	const unassociated = 2
	alpha := byte(0)
	if count := extra.Len(); x.DType == chunk.Uint8 && x.ChunkB > 1 && count > 0 {
		if extra.Uint(count-1) == unassociated {
			alpha = 1
		}
	}
	x.Params = []byte{byte(params.Uint(1)), alpha}
}

// webp refuses images that libtiff does not write as WebP.
func (p *parser) webp(x *chunk.Index) {
	switch {
	case x.DType != chunk.Uint8 || x.Packed != 0:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "WebP of samples of %d bits",
			p.same(ifd.TagBitsPerSample, x.Bands, 1))
	case x.ChunkB != 3 && x.ChunkB != 4:
		p.Fail(fault.Unsupported, ifd.TagCompression, "compression WebP: chunks of %d bands, it has 3 or 4", x.ChunkB)
	}
}
