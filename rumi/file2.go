package rumi

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// is2 reports whether an open TIFF looks like a file of generation 2: a BigTIFF with tiles and a
// matrix, and without a word on compression. Other TIFFs that leave out Compression because the samples
// are not compressed have PhotometricInterpretation, which TIFF demands of every image.
func is2(f *ifd.File) bool {
	d := &f.Dirs[0]
	return !is3(f) && f.Big && d.Find(ifd.TagCompression) == nil && d.Find(ifd.TagPhotometric) == nil &&
		d.Find(ifd.TagTileOffsets) != nil && d.Find(ifd.TagTransformation) != nil && d.Find(ifd.TagGeoKeys) != nil
}

// index2 reads the directory of a file that is2.
func index2(ctx context.Context, f *ifd.File) (*chunk.Index, Unit, error) {
	d := &f.Dirs[0]
	p := profile{f.Tags(ctx, d)}
	if f.BigEndian || d.Off != dirAt || !oneDirectory(f) {
		p.Err = fault.New(fault.Unsupported, "ifd 0", d.Off,
			"no Compression tag, and not a rumi file of generation 2: that is little-endian, with one directory, at 16")
	}
	p.entriesAre(2, fault.Unsupported)
	index := newIndex(2)
	p.sizes(index)
	unit := p.unit2(index)
	if p.Err != nil {
		return nil, 0, p.Err
	}
	// Entries of TileOffsets, by unit2.
	p.places(2, index.Bands, uint64(index.Across())*uint64(index.Down())*uint64(index.Groups()))
	p.Prefetch(ifd.TagBitsPerSample, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagSampleFormat,
		ifd.TagTransformation, ifd.TagGeoKeys)
	index.DType = p.dtype(2, index.Bands)
	p.geo()
	end := p.ranges(2, index, index.Bands)
	if p.Err == nil && end != uint64(f.Size()) {
		p.fail(ifd.TagTileByteCounts, "frames end at %d, the file at %d", end, f.Size())
	}
	return index, unit, p.Err
}

// unit2 finds the frame unit by the number of frames, and sets the bands of a chunk. Where there is
// one band the units are the same, and tiles are meant.
func (p *profile) unit2(x *chunk.Index) Unit {
	if p.Err != nil {
		return UnitTile
	}
	positions := uint64(x.Across()) * uint64(x.Down()) // below 2^62
	n, bands := p.Dir.Find(ifd.TagTileOffsets).Count, uint64(x.Bands)
	switch {
	case n%bands == 0 && n/bands == positions:
		return UnitTile
	case n == positions:
		x.ChunkB = x.Bands
		return UnitPlanes
	}
	p.fail(ifd.TagTileOffsets, "%d entries for %d positions with %d bands", n, positions, bands)
	return UnitTile
}
