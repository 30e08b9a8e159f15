package tiff

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Mask says which pixels of an image hold data: a second image of the file, of the same size, with one
// bit or one byte a pixel (TIFF 6.0, PhotometricInterpretation 4; GDAL's internal masks).
type Mask struct {
	// Index says where the mask's chunks lie. Its grid is in pixels, of one uint8 each, and need not be
	// that of the image. Its chunks are decoded by Decode, not by a chunk.Decoder alone.
	Index *chunk.Index

	packed *chunk.Index // of bytes of eight pixels; nil for a mask of bytes
}

const (
	subfileReduced = 1 // bits of NewSubfileType
	subfileMask    = 4
)

// OpenMask reads the structure of the mask of a file's first image, or returns nil if it has none.
// Overviews' masks are left alone. Errors are as those of Open.
func OpenMask(ctx context.Context, f *ifd.File, l Limits) (*Mask, error) {
	if l.MaxChunk == 0 {
		l.MaxChunk = DefaultMaxChunk
	}
	image := parser{ctx: ctx, f: f, d: &f.Dirs[0]}
	for i := range f.Dirs[1:] {
		d := &f.Dirs[1+i]
		v, err := f.Uint(ctx, d, tagNewSubfileType, 0)
		if err != nil {
			return nil, err
		}
		if v&(subfileMask|subfileReduced) != subfileMask {
			continue
		}
		if err := f.Prefetch(ctx, d, wanted...); err != nil {
			return nil, err
		}
		p := parser{ctx: ctx, f: f, d: d}
		m := p.mask(&image)
		if image.err != nil {
			return nil, image.err
		}
		if p.err != nil {
			return nil, p.err
		}
		for _, x := range [...]*chunk.Index{m.Index, m.packed} {
			if x == nil {
				continue
			}
			if err := x.Validate(f.Size(), l.MaxChunk); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return nil, nil
}

// mask makes the index of a mask, not yet validated as a whole.
func (p *parser) mask(image *parser) *Mask {
	x := &chunk.Index{
		Width:  int(p.uint(tagImageWidth, 0, 1, chunk.MaxSide)),
		Height: int(p.uint(tagImageLength, 0, 1, chunk.MaxSide)),
		Bands:  1, ChunkB: 1, DType: chunk.Uint8,
		Codec: p.codec(),
	}
	bits := p.uint(tagBitsPerSample, 1, 0, 1<<16)
	samples := p.uint(tagSamplesPerPixel, 1, 0, 1<<16)
	format := p.uint(tagSampleFormat, formatUint, 0, 1<<16)
	x.Predictor = p.predictor(x)
	p.grid(x)
	p.refuse()
	w, h := image.uint(tagImageWidth, 0, 1, chunk.MaxSide), image.uint(tagImageLength, 0, 1, chunk.MaxSide)
	switch {
	case p.err != nil || image.err != nil:
		return nil
	case uint64(x.Width) != w || uint64(x.Height) != h:
		p.fail(fault.Corrupt, tagImageWidth, "a mask of %d by %d pixels for an image of %d by %d", x.Height, x.Width, h, w)
	case samples != 1 || format != formatUint || bits != 1 && bits != 8:
		p.fail(fault.Unsupported, tagBitsPerSample, "a mask of %d samples a pixel of %d bits with SampleFormat %d", samples, bits, format)
	case bits == 1 && x.Predictor != chunk.NoPredictor:
		p.fail(fault.Unsupported, tagPredictor, "predictor %d for samples of 1 bit", x.Predictor)
	}
	p.ranges(x)
	if p.err != nil {
		return nil
	}
	m := &Mask{Index: x}
	if bits == 1 { // rows of a chunk start at a byte
		y := *x
		y.ChunkW = (x.ChunkW-1)/8 + 1
		y.Width = x.Across() * y.ChunkW
		m.packed = &y
	}
	return m
}

// Decode fills dst with chunk i of the mask: rows of one byte a pixel, 1 where the image holds data
// and 0 where not, of the shape m.Index.Stored(i). len(dst) must be m.Index.StoredBytes(i). src holds
// the chunk's stored bytes, and is empty for a sparse chunk, which is all 0. d must have Codecs.
func (m *Mask) Decode(d *chunk.Decoder, dst, src []byte, i int) error {
	if m.packed == nil {
		if err := d.Decode(dst, src, m.Index, i); err != nil {
			return err
		}
		for k, v := range dst {
			dst[k] = min(v, 1)
		}
		return nil
	}
	if len(dst) != m.Index.StoredBytes(i) {
		panic("tiff: dst has not the chunk's decoded size")
	}
	_, _, w := m.Index.Stored(i)
	bits := dst[len(dst)-m.packed.StoredBytes(i):]
	if err := d.Decode(bits[:len(bits):len(bits)], src, m.packed, i); err != nil {
		return err
	}
	unpack(dst, bits, w)
	return nil
}

// unpack spreads rows of bits, most significant first and each from a byte on, to rows of w bytes. bits
// may be the end of dst: every byte of it holds at least one pixel, so writing never passes reading.
func unpack(dst, bits []byte, w int) {
	for ; len(dst) > 0; dst = dst[w:] {
		var b byte
		for x := range w {
			if x&7 == 0 {
				b, bits = bits[0], bits[1:]
			}
			dst[x] = b >> 7
			b <<= 1
		}
	}
}
