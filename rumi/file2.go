package rumi

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// index2 reads the directory of a file of generation 2.
func index2(ctx context.Context, f *ifd.File) (*chunk.Index, Unit, error) {
	directory := &f.Dirs[0]
	tags := profile{f.Tags(ctx, directory)}
	if f.BigEndian || directory.Off != dirAt || !oneDirectory(f) {
		tags.Err = fault.At(fault.Unsupported, "ifd 0", directory.Off,
			"no Compression tag, and not a rumi file of generation 2: that is little-endian, with one directory, at 16")
	}
	tags.entriesAre(2, fault.Unsupported)
	index := newIndex(2)
	tags.sizes(index)
	unit := tags.unit2(index)
	if tags.Err != nil {
		return nil, 0, tags.Err
	}
	// Entries of TileOffsets, by unit2.
	tags.places(2, index.Bands, uint64(index.Across())*uint64(index.Down())*uint64(index.Groups()))
	tags.Prefetch(ifd.TagBitsPerSample, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagSampleFormat,
		ifd.TagTransformation, ifd.TagGeoKeys)
	index.DType = tags.dtype(2, index.Bands)
	tags.geo()
	end := tags.ranges(2, index, index.Bands)
	if tags.Err == nil && end != uint64(f.Size()) {
		tags.fail(ifd.TagTileByteCounts, "frames end at %d, the file at %d", end, f.Size())
	}
	return index, unit, tags.Err
}

// unit2 finds the frame unit by the number of frames, and sets the bands of a chunk. Where there is
// one band the units are the same, and tiles are meant.
func (p *profile) unit2(x *chunk.Index) Unit {
	if p.Err != nil {
		return UnitTile
	}
	positions := uint64(x.Across()) * uint64(x.Down()) // below 2^62
	frames, bands := p.Dir.Find(ifd.TagTileOffsets).Count, uint64(x.Bands)
	switch {
	case frames%bands == 0 && frames/bands == positions:
		return UnitTile
	case frames == positions:
		x.ChunkB = x.Bands
		return UnitPlanes
	}
	p.fail(ifd.TagTileOffsets, "%d entries for %d positions with %d bands", frames, positions, bands)
	return UnitTile
}
