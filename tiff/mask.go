package tiff

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

const (
	SubfileReduced = 1 // bits of NewSubfileType
	SubfileMask    = 4
)

// OpenMask reads the structure of the mask of a file's first image, whose index is x. It returns nil if
// there is no mask. A mask is a second image of the same size with one bit or one byte per pixel, 0 where
// the first image has no data (TIFF 6.0, NewSubfileType and PhotometricInterpretation 4; GDAL's internal
// masks). It may also have one byte for each band, which masks each band separately, as in GDAL. The caller
// stores it in x.Mask. OpenMask ignores masks of overviews and files beside this one (.msk). Errors are
// like the errors of Open, and name the directory of the mask.
func OpenMask(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits) (*chunk.Index, error) {
	l.MaxChunk = cmp.Or(l.MaxChunk, chunk.DefaultMaxBytes)
	return openMask(ctx, f, x, l, SubfileMask)
}

// openMask reads the structure of the mask of an image, whose directory has these bits in NewSubfileType.
// The masks of several overviews differ only in size, so the size selects one.
func openMask(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits, bits uint64) (*chunk.Index, error) {
	for i := range f.Dirs[1:] {
		directory := &f.Dirs[1+i]
		if directory.Kind&(SubfileMask|SubfileReduced) != bits {
			continue
		}
		if bits&SubfileReduced != 0 {
			t := f.Tags(ctx, directory)
			if w, h := t.Uint(ifd.TagImageWidth, 0), t.Uint(ifd.TagImageLength, 0); t.Err != nil ||
				w != uint64(x.Width) || h != uint64(x.Height) {
				continue
			}
		}
		index, err := read(ctx, f, directory, func(p *parser) *chunk.Index { return p.mask(x) })
		if err != nil {
			return nil, err
		}
		if err := index.Validate(f.Size(), l.MaxChunk); err != nil {
			return nil, fault.WithPart(err, "mask", 0)
		}
		return index, nil
	}
	return nil, nil
}

// mask builds the index of a mask, not yet validated as a whole.
func (p *parser) mask(image *chunk.Index) *chunk.Index {
	index := &chunk.Index{
		Width:  int(p.Between(ifd.TagImageWidth, 0, 1, chunk.MaxSide)),
		Height: int(p.Between(ifd.TagImageLength, 0, 1, chunk.MaxSide)),
		Bands:  1, ChunkB: 1, DType: chunk.Uint8,
		Codec: p.codec(),
	}
	samples := p.Uint(ifd.TagSamplesPerPixel, 1)
	var bits, format uint64
	if samples > 1 && samples == uint64(image.Bands) {
		bits = p.same(ifd.TagBitsPerSample, image.Bands, 1)
		format = p.same(ifd.TagSampleFormat, image.Bands, formatUint)
		index.Bands = image.Bands
		if p.Between(ifd.TagPlanarConfig, 1, 1, 2) == 1 {
			index.ChunkB, index.Inner = index.Bands, chunk.YXB
		}
	} else {
		bits = p.Uint(ifd.TagBitsPerSample, 1)
		format = p.Uint(ifd.TagSampleFormat, formatUint)
	}
	index.Predictor = p.predictor(index)
	index.Bits = bits == 1 && index.Bands == 1
	switch index.Codec {
	case chunk.JPEG, chunk.LERC, chunk.WebP:
		p.Fail(fault.Unsupported, ifd.TagCompression, "a mask with compression %s", index.Codec)
	}
	p.coding(index)
	p.grid(index)
	switch {
	case p.Err != nil:
		return nil
	case index.Width != image.Width || index.Height != image.Height:
		p.Fail(fault.Corrupt, ifd.TagImageWidth, "a mask of %d by %d pixels for an image of %d by %d", index.Height,
			index.Width, image.Height, image.Width)
	case samples != uint64(index.Bands) || format != formatUint || !index.Bits && bits != 8:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample,
			"a mask of %d samples a pixel of %d bits with SampleFormat %d for an image of %d bands", samples,
			bits, format, image.Bands)
	case index.Bits && index.Predictor != chunk.NoPredictor:
		p.Fail(fault.Unsupported, ifd.TagPredictor, "predictor %d for samples of 1 bit", index.Predictor)
	}
	p.ranges(index)
	if p.Err != nil {
		return nil
	}
	return index
}
