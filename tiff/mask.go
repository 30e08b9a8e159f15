package tiff

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

const (
	subfileReduced = 1 // bits of NewSubfileType
	subfileMask    = 4
)

// OpenMask reads the structure of the mask of a file's first image, whose index is x, or returns nil if
// it has none. A mask is a second image of the same size with one bit or one byte a pixel, 0 where the
// first holds no data (TIFF 6.0, NewSubfileType and PhotometricInterpretation 4; GDAL's internal masks). It
// may also have one byte for each band of the image, which is then masked band by band, as in GDAL.
// It belongs into x.Mask. Masks of overviews are left alone, and so are files beside this one (.msk).
// Errors are as those of Open, and name the mask's directory.
func OpenMask(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits) (*chunk.Index, error) {
	if l.MaxChunk == 0 {
		l.MaxChunk = DefaultMaxChunk
	}
	return openMask(ctx, f, x, l, subfileMask)
}

// openMask reads the structure of the mask of an image, whose directory has these bits in its
// NewSubfileType. That of an overview is told from those of others by its size.
func openMask(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits, bits uint64) (*chunk.Index, error) {
	for i := range f.Dirs[1:] {
		d := &f.Dirs[1+i]
		v, err := subfileType(ctx, f, d)
		if err != nil {
			return nil, err
		}
		if v&(subfileMask|subfileReduced) != bits {
			continue
		}
		if bits&subfileReduced != 0 {
			t := f.Tags(ctx, d)
			if w, h := t.Uint(tagImageWidth, 0), t.Uint(tagImageLength, 0); t.Err != nil || w != uint64(x.Width) || h != uint64(x.Height) {
				continue
			}
		}
		if err := f.Prefetch(ctx, d, wanted...); err != nil {
			return nil, err
		}
		p := parser{f.Tags(ctx, d)}
		m := p.mask(x)
		if p.Err != nil {
			return nil, p.Err
		}
		cutRaw(m, f.Size())
		if err := m.Validate(f.Size(), l.MaxChunk); err != nil {
			return nil, fault.WithPart(err, "mask", 0)
		}
		return m, nil
	}
	return nil, nil
}

// subfileType returns the NewSubfileType of a directory behind the first. It is 0, an image of its own, if the
// value is broken: what cannot say that it belongs to the first image does not keep that from being read.
func subfileType(ctx context.Context, f *ifd.File, d *ifd.Directory) (uint64, error) {
	v, err := f.Uint(ctx, d, tagNewSubfileType, 0)
	if fault.KindOf(err) != 0 {
		return 0, nil
	}
	return v, err
}

// mask makes the index of a mask, not yet validated as a whole.
func (p *parser) mask(image *chunk.Index) *chunk.Index {
	x := &chunk.Index{
		Width:  int(p.Between(tagImageWidth, 0, 1, chunk.MaxSide)),
		Height: int(p.Between(tagImageLength, 0, 1, chunk.MaxSide)),
		Bands:  1, ChunkB: 1, DType: chunk.Uint8,
		Codec: p.codec(),
	}
	samples := p.Between(tagSamplesPerPixel, 1, 0, 1<<16)
	bits, format := uint64(0), uint64(0)
	if samples > 1 && samples == uint64(image.Bands) {
		bits, format = p.same(tagBitsPerSample, image.Bands, 1), p.same(tagSampleFormat, image.Bands, formatUint)
		x.Bands = image.Bands
		if p.Between(tagPlanarConfig, 1, 1, 2) == 1 {
			x.ChunkB, x.Inner = x.Bands, chunk.YXB
		}
	} else {
		bits, format = p.Between(tagBitsPerSample, 1, 0, 1<<16), p.Between(tagSampleFormat, formatUint, 0, 1<<16)
	}
	x.Predictor = p.predictor(x)
	x.Bits = bits == 1 && x.Bands == 1
	p.grid(x)
	p.refuse()
	switch {
	case p.Err != nil:
		return nil
	case x.Width != image.Width || x.Height != image.Height:
		p.Fail(fault.Corrupt, tagImageWidth, "a mask of %d by %d pixels for an image of %d by %d", x.Height, x.Width, image.Height, image.Width)
	case samples != uint64(x.Bands) || format != formatUint || !x.Bits && bits != 8:
		p.Fail(fault.Unsupported, tagBitsPerSample, "a mask of %d samples a pixel of %d bits with SampleFormat %d for an image of %d bands", samples, bits, format, image.Bands)
	case x.Bits && x.Predictor != chunk.NoPredictor:
		p.Fail(fault.Unsupported, tagPredictor, "predictor %d for samples of 1 bit", x.Predictor)
	}
	p.ranges(x)
	if p.Err != nil {
		return nil
	}
	return x
}
