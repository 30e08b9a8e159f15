package rumi

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

// Compression is the value of the Compression tag of rumi files.
const Compression = rumis.Compression

// Is reports whether an open file claims to be a rumi file: by Compression 60000 (generation 1), by the
// tags of generation 2, or by the first bytes of generation 3.
func Is(ctx context.Context, f *ifd.File) bool { return rumis.Is(ctx, f) }

// Meta reads the metadata of a rumi file: its georeferencing and, in generation 3, the names of its bands.
// A file of generation 2 or 3 has a matrix and keys even without georeferencing; the result then has neither.
func Meta(ctx context.Context, f *ifd.File) (tiff.Meta, error) {
	meta, err := tiff.ReadMeta(ctx, f)
	generation := rumis.Generation(ctx, f)
	if err != nil || generation < 2 {
		return meta, err
	}
	meta.Compression, meta.Planar = Compression, 2
	if keys := meta.GeoKeys; len(keys) < 8 || keys[7] == 0 { // the first key is the model type
		meta.Geo = tiff.Geo{}
	}
	if generation == 3 {
		trailer, err := TrailerOf(ctx, f)
		if err != nil {
			return meta, err
		}
		meta.BigTIFF, meta.BandNames = false, trailer.Bands
	}
	return meta, nil
}

// IndexFile reads a rumi file's directory and returns its header blob. It usually costs one read. A TIFF that lacks the
// marks of a rumi file is Unsupported; a broken file with the marks is Corrupt.
func IndexFile(ctx context.Context, r source.Reader) ([]byte, error) {
	file, err := Open(ctx, r, ifd.Limits{})
	if err != nil {
		return nil, err
	}
	index, generation, unit, err := indexOf(ctx, file)
	if err != nil {
		return nil, err
	}
	return blobOf(index, generation, unit), nil
}

// HeaderOf returns the header of a file whose directories are read already, by Open. maxChunk is as in
// ParseLimit.
func HeaderOf(ctx context.Context, f *ifd.File, maxChunk int) (*Header, error) {
	index, generation, unit, err := indexOf(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := index.Validate(-1, maxChunk); err != nil {
		return nil, err
	}
	return newHeader(*index, generation, unit), nil
}

func indexOf(ctx context.Context, f *ifd.File) (x *chunk.Index, generation int, unit Unit, err error) {
	switch generation = rumis.Generation(ctx, f); generation {
	case 3:
		x, unit, _, err = index3(ctx, f)
	case 2:
		x, unit, err = index2(ctx, f)
	default:
		generation = 1
		x, err = index1(ctx, f)
	}
	return x, generation, unit, err
}

func index1(ctx context.Context, f *ifd.File) (*chunk.Index, error) {
	directory := &f.Dirs[0]
	if !f.Big || f.BigEndian {
		return nil, fault.At(fault.Unsupported, "header", 0, "not a little-endian BigTIFF")
	}
	tags := profile{f.Tags(ctx, directory)}
	tags.want(ifd.TagCompression, 0, Compression)
	if !oneDirectory(f) && tags.Err == nil {
		return nil, fault.At(fault.Unsupported, "ifd 1", int64(f.Dirs[0].Next), "a rumi file has one directory")
	}
	tags.want(ifd.TagPlanarConfig, 1, 2)
	tags.want(ifd.TagPredictor, 1, 1)
	tags.Prefetch(ifd.TagBitsPerSample, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagSampleFormat)
	index := newIndex(1)
	tags.sizes(index)
	index.DType = tags.dtype(1, index.Bands)
	tags.frames(index)
	return index, tags.Err
}

// oneDirectory reports whether the chain of directories ends with the first.
func oneDirectory(f *ifd.File) bool { return f.Dirs[0].Next == 0 }

// profile reads tags under the rules of the format. After the first error its methods return zeros.
type profile struct{ ifd.Tags }

// fail records that the file is corrupt.
func (p *profile) fail(tag uint16, format string, args ...any) {
	p.Fail(fault.Corrupt, tag, format, args...)
}

// want checks that a tag has the value that every rumi file has.
func (p *profile) want(tag uint16, absent, value uint64) {
	if found := p.Uint(tag, absent); p.Err == nil && found != value {
		p.Err = fault.New(fault.Unsupported, p.Dir.Part(tag), "%d, a rumi file has %d", found, value)
	}
}

// size reads a size from 1 to largest.
func (p *profile) size(tag uint16, largest uint64) int { return int(p.Between(tag, 0, 1, largest)) }

// sizes reads the sizes of the image and of its tiles.
func (p *profile) sizes(x *chunk.Index) {
	x.Width, x.Height = p.size(ifd.TagImageWidth, chunk.MaxSide), p.size(ifd.TagImageLength, chunk.MaxSide)
	x.ChunkW, x.ChunkH = p.size(ifd.TagTileWidth, math.MaxUint16), p.size(ifd.TagTileLength, math.MaxUint16)
	x.Bands = p.size(ifd.TagSamplesPerPixel, math.MaxUint16)
}

// dtype reads the type of the samples, which all bands share.
func (p *profile) dtype(generation, bands int) chunk.DType {
	bits, format := p.perBand(ifd.TagBitsPerSample, bands), p.perBand(ifd.TagSampleFormat, bands)
	dtype := dtypeOf(generation, format, bits)
	if dtype == chunk.Invalid {
		p.fail(ifd.TagBitsPerSample, "samples of %d bits with SampleFormat %d", bits, format)
	}
	return dtype
}

// perBand reads a tag with one value a band, which must all be equal.
func (p *profile) perBand(tag uint16, bands int) uint64 {
	value := p.Uints(tag)
	if p.Err != nil {
		return 0
	}
	if value.Len() != bands {
		p.fail(tag, "%d values for %d bands", value.Len(), bands)
		return 0
	}
	for i := range bands {
		if value.Uint(i) != value.Uint(0) {
			p.fail(tag, "bands differ")
			return 0
		}
	}
	return value.Uint(0)
}

// frames reads the tile arrays, which hold all of band 0, then all of band 1, …, and checks that the frames
// follow each other in the order of the index. That order distinguishes a rumi file from a
// band-interleaved TIFF.
func (p *profile) frames(x *chunk.Index) {
	if p.Err != nil {
		return
	}
	positions, bands := uint64(x.Across())*uint64(x.Down()), uint64(x.Bands)
	offs, counts := p.Array(ifd.TagTileOffsets, positions, bands), p.Array(ifd.TagTileByteCounts, positions, bands)
	if p.Err != nil {
		return
	}
	first := offs.Uint(0)
	if first > maxU32 {
		p.fail(ifd.TagTileOffsets, "first frame at %d", first)
		return
	}
	p.follow(x, offs, counts, x.Bands, first)
}

// follow sets the ranges of the frames. It checks that they follow each other without gaps in the order of
// the index, from offset next on and within the file, and returns the offset of their end. The arrays have
// all frames of one band, then all of the next.
func (p *profile) follow(x *chunk.Index, offs, counts ifd.Value, bands int, next uint64) uint64 {
	positions := offs.Len() / bands
	x.Ranges = make([]chunk.Range, offs.Len())
	for i := range x.Ranges {
		pos := i%bands*positions + i/bands
		offset, size := offs.Uint(pos), counts.Uint(pos)
		if offset != next {
			p.fail(ifd.TagTileOffsets, "frame %d at %d, not at %d: frames not in their order without gaps", i, offset,
				next)
			return 0
		}
		if size == 0 || size > maxU32 {
			p.fail(ifd.TagTileByteCounts, "frame %d of %d bytes", i, size)
			return 0
		}
		if next += size; next > uint64(p.File.Size()) {
			p.fail(ifd.TagTileByteCounts, "frame %d ends at %d, the file at %d", i, next, p.File.Size())
			return 0
		}
		x.Ranges[i] = chunk.Range{Off: int64(offset), Len: int64(size)}
	}
	return next
}
