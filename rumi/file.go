package rumi

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// TIFF tags of the profile.
const (
	tagWidth       = 256
	tagHeight      = 257
	tagBits        = 258
	tagCompression = 259
	tagPhotometric = 262
	tagSamples     = 277
	tagPlanar      = 284
	tagPredictor   = 317
	tagTileWidth   = 322
	tagTileHeight  = 323
	tagOffsets     = 324
	tagCounts      = 325
	tagFormat      = 339

	// Compression is the value of the Compression tag of rumi files.
	Compression = 60000
)

// Is reports whether an open TIFF says that it is a rumi file: Compression 60000 in generation 1, no
// such tag and those that mark generation 2.
func Is(ctx context.Context, f *ifd.File) bool {
	if is2(f) {
		return true
	}
	v, err := f.Uint(ctx, &f.Dirs[0], tagCompression, 0)
	return err == nil && v == Compression
}

// Meta reads what a rumi file says besides its pixels: where it lies. A file of generation 2 has
// a matrix and keys also where it lies nowhere; then the result has neither.
func Meta(ctx context.Context, f *ifd.File) (tiff.Meta, error) {
	m, err := tiff.ReadMeta(ctx, f)
	if err != nil || !is2(f) {
		return m, err
	}
	m.Compression, m.Planar = Compression, 2
	if k := m.GeoKeys; len(k) < 8 || k[7] == 0 { // the first key is the model type
		m.Geo = tiff.Geo{}
	}
	return m, nil
}

// IndexFile reads a rumi file's directory and returns its header blob. It usually costs one read. A
// TIFF that is not a rumi file is Unsupported; one that claims to be and is broken, Corrupt.
func IndexFile(ctx context.Context, r source.Reader) ([]byte, error) {
	f, err := ifd.Open(ctx, r, ifd.Limits{})
	if err != nil {
		return nil, err
	}
	return Index(ctx, f)
}

// Index is IndexFile for a file whose directories are read already.
func Index(ctx context.Context, f *ifd.File) ([]byte, error) {
	if is2(f) {
		return index2(ctx, f)
	}
	return index1(ctx, f)
}

func index1(ctx context.Context, f *ifd.File) ([]byte, error) {
	d := &f.Dirs[0]
	if !f.Big || f.BigEndian {
		return nil, fault.New(fault.Unsupported, "header", 0, "not a little-endian BigTIFF")
	}
	p := profile{ctx: ctx, f: f, d: d}
	p.want(tagCompression, 0, Compression)
	if len(f.Dirs) != 1 && p.err == nil {
		return nil, fault.New(fault.Unsupported, "ifd 1", f.Dirs[1].Off, "a rumi file has one directory")
	}
	p.want(tagPlanar, 1, 2)
	p.want(tagPredictor, 1, 1)
	if p.err == nil {
		p.err = f.Prefetch(ctx, d, tagBits, tagOffsets, tagCounts, tagFormat)
	}
	x := &chunk.Index{
		Width:  p.size(tagWidth, chunk.MaxSide),
		Height: p.size(tagHeight, chunk.MaxSide),
		ChunkW: p.size(tagTileWidth, math.MaxUint16),
		ChunkH: p.size(tagTileHeight, math.MaxUint16),
		Bands:  p.size(tagSamples, math.MaxUint16), ChunkB: 1,
	}
	bits, format := p.perBand(tagBits, x.Bands), p.perBand(tagFormat, x.Bands)
	if x.DType = tiff.DTypeOf(format, bits); x.DType == chunk.Invalid && p.err == nil {
		p.fail(tagBits, "samples of %d bits with SampleFormat %d", bits, format)
	}
	p.frames(x)
	if p.err != nil {
		return nil, p.err
	}
	return appendBlob(nil, x), nil
}

// profile reads tags under the rules of the format. After the first error its methods return zeros.
type profile struct {
	ctx context.Context
	f   *ifd.File
	d   *ifd.Directory
	err error
}

func (p *profile) fail(tag uint16, format string, args ...any) {
	if p.err != nil {
		return
	}
	off := int64(fault.NoOffset)
	if e := p.d.Find(tag); e != nil {
		off = e.Off
	}
	p.err = fault.New(fault.Corrupt, p.d.Part(tag), off, format, args...)
}

func (p *profile) uint(tag uint16, absent uint64) uint64 {
	if p.err != nil {
		return 0
	}
	v, err := p.f.Uint(p.ctx, p.d, tag, absent)
	p.err = err
	return v
}

// want checks that a tag has the value that every rumi file has.
func (p *profile) want(tag uint16, absent, value uint64) {
	if v := p.uint(tag, absent); p.err == nil && v != value {
		p.err = fault.New(fault.Unsupported, p.d.Part(tag), fault.NoOffset, "%d, a rumi file has %d", v, value)
	}
}

// size reads a size from 1 to most.
func (p *profile) size(tag uint16, most uint64) int {
	v := p.uint(tag, 0)
	if v < 1 || v > most {
		p.fail(tag, "value %d", v)
		return 0
	}
	return int(v)
}

// perBand reads a tag with one value a band, which must all be equal.
func (p *profile) perBand(tag uint16, bands int) uint64 {
	if p.err != nil {
		return 0
	}
	v, err := p.f.Uints(p.ctx, p.d, tag)
	if err != nil {
		p.err = err
		return 0
	}
	if v.Len() != bands {
		p.fail(tag, "%d values for %d bands", v.Len(), bands)
		return 0
	}
	for i := range bands {
		if v.Uint(i) != v.Uint(0) {
			p.fail(tag, "bands differ")
			return 0
		}
	}
	return v.Uint(0)
}

// frames reads the tile arrays, which hold all of band 0, then all of band 1, …, and checks that the
// frames follow each other in frame-index order without gaps, within the file. That order tells a rumi file
// from a band-interleaved TIFF.
func (p *profile) frames(x *chunk.Index) {
	if p.err != nil {
		return
	}
	positions := uint64(x.Across()) * uint64(x.Down()) // below 2^62
	bands := uint64(x.Bands)
	for _, tag := range [...]uint16{tagOffsets, tagCounts} {
		e := p.d.Find(tag)
		if e == nil {
			p.fail(tag, "missing")
			return
		}
		if e.Count%bands != 0 || e.Count/bands != positions {
			p.fail(tag, "%d entries for %d positions with %d bands", e.Count, positions, bands)
			return
		}
	}
	offs, err := p.f.Uints(p.ctx, p.d, tagOffsets)
	if err != nil {
		p.err = err
		return
	}
	counts, err := p.f.Uints(p.ctx, p.d, tagCounts)
	if err != nil {
		p.err = err
		return
	}
	x.Ranges = make([]chunk.Range, offs.Len())
	next := offs.Uint(0)
	if next > maxU32 {
		p.fail(tagOffsets, "first frame at %d", next)
		return
	}
	for i := range x.Ranges {
		at := i%x.Bands*int(positions) + i/x.Bands
		off, n := offs.Uint(at), counts.Uint(at)
		if off != next {
			p.fail(tagOffsets, "frame %d at %d, not at %d: not tile-interleaved without gaps", i, off, next)
			return
		}
		if n == 0 || n > maxU32 {
			p.fail(tagCounts, "frame %d of %d bytes", i, n)
			return
		}
		if next += n; next > uint64(p.f.Size()) {
			p.fail(tagCounts, "frame %d ends at %d, the file at %d", i, next, p.f.Size())
			return
		}
		x.Ranges[i] = chunk.Range{Off: int64(off), Len: int64(n)}
	}
}
