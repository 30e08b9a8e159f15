package rumi

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

const (
	tagMatrix  = 34264
	tagGeoKeys = 34735

	dir2 = 16 // where the directory of a file of generation 2 stands
)

// entry2 is a tag of generation 2. Those with a value a band or a frame have many.
type entry2 struct {
	tag  uint16
	typ  ifd.Type
	many many
}

type many uint8

const (
	one many = iota
	perBand
	perFrame
	sixteen
)

// entries2 are all tags of a file of generation 2, in their order.
var entries2 = [...]entry2{
	{tagWidth, ifd.Long, one}, {tagHeight, ifd.Long, one}, {tagBits, ifd.Short, perBand}, {tagSamples, ifd.Short, one},
	{tagTileWidth, ifd.Short, one}, {tagTileHeight, ifd.Short, one},
	{tagOffsets, ifd.Long8, perFrame}, {tagCounts, ifd.Long, perFrame},
	{tagFormat, ifd.Short, perBand}, {tagMatrix, ifd.Double, sixteen}, {tagGeoKeys, ifd.Short, sixteen},
}

// is2 reports whether an open TIFF looks like a file of generation 2: a BigTIFF with tiles and a
// matrix, and without a word on compression. Other TIFFs that leave out Compression because the samples
// are not compressed have PhotometricInterpretation, which TIFF demands of every image.
func is2(f *ifd.File) bool {
	d := &f.Dirs[0]
	return f.Big && d.Find(tagCompression) == nil && d.Find(tagPhotometric) == nil &&
		d.Find(tagOffsets) != nil && d.Find(tagMatrix) != nil && d.Find(tagGeoKeys) != nil
}

// index2 is Index for a file that is2.
func index2(ctx context.Context, f *ifd.File) ([]byte, error) {
	d := &f.Dirs[0]
	p := profile{f.Tags(ctx, d)}
	p.directory2()
	x := newIndex(2)
	p.sizes(x)
	unit := p.unit2(x)
	p.places2(x)
	p.Prefetch(tagBits, tagOffsets, tagCounts, tagFormat, tagMatrix, tagGeoKeys)
	x.DType = p.dtype(2, x.Bands)
	p.geo2()
	p.frames2(x)
	if p.Err != nil {
		return nil, p.Err
	}
	return appendBlob2(nil, x, unit), nil
}

// directory2 checks that there is one directory, at its place, with the tags of the format.
func (p *profile) directory2() {
	bad := func(off int64, format string, args ...any) {
		if p.Err == nil {
			p.Err = fault.New(fault.Unsupported, "ifd 0", off, format, args...)
		}
	}
	if p.File.BigEndian || p.Dir.Off != dir2 || !oneDirectory(p.File) {
		bad(p.Dir.Off,
			"no Compression tag, and not a rumi file of generation 2: that is little-endian, with one directory, at 16")
	}
	if len(p.Dir.Entries) != len(entries2) {
		bad(p.Dir.Off, "%d tags, a rumi file of generation 2 has %d", len(p.Dir.Entries), len(entries2))
		return
	}
	for i, want := range entries2 {
		e := &p.Dir.Entries[i]
		if e.Tag != want.tag || e.Type != want.typ {
			bad(e.Off, "tag %d of type %d, where a rumi file of generation 2 has %d of type %d", e.Tag, e.Type,
				want.tag, want.typ)
		}
	}
}

// unit2 finds the frame unit by the number of frames, and sets the bands of a chunk. Where there is
// one band the units are the same, and tiles are meant.
func (p *profile) unit2(x *chunk.Index) int {
	if p.Err != nil {
		return 0
	}
	positions := uint64(x.Across()) * uint64(x.Down()) // below 2^62
	n, bands := p.Dir.Find(tagOffsets).Count, uint64(x.Bands)
	switch {
	case n%bands == 0 && n/bands == positions:
		return unitTile
	case n == positions:
		x.ChunkB = x.Bands
		return unitCell
	}
	p.fail(tagOffsets, "%d entries for %d positions with %d bands", n, positions, bands)
	return 0
}

// places2 checks the number of values of each tag, and that those outside of the directory follow it
// in the order of the tags without gaps.
func (p *profile) places2(x *chunk.Index) {
	if p.Err != nil {
		return
	}
	frames := uint64(x.Across()) * uint64(x.Down()) * uint64(x.Groups()) // entries of TileOffsets, by unit2
	counts := [...]uint64{one: 1, perBand: uint64(x.Bands), perFrame: frames, sixteen: 16}
	at := int64(dir2 + 8 + 20*len(entries2) + 8)
	for i, want := range entries2 {
		e := &p.Dir.Entries[i]
		if e.Count != counts[want.many] {
			p.fail(e.Tag, "%d values, %d are needed", e.Count, counts[want.many])
			return
		}
		if e.Count > uint64(p.File.Size()) {
			p.fail(e.Tag, "%d values in a file of %d bytes", e.Count, p.File.Size())
			return
		}
		if n := int64(e.Count) * int64(e.Type.Size()); n > 8 {
			if e.Off != at {
				p.fail(e.Tag, "values at %d, not at %d", e.Off, at)
				return
			}
			at += n
		}
	}
}

// geo2 checks the form of the georeferencing: a matrix without a third row, and three keys with their
// values beside them.
func (p *profile) geo2() {
	m, k := p.Value(tagMatrix), p.Uints(tagGeoKeys)
	if p.Err != nil {
		return
	}
	for i := 8; i < 12; i++ {
		if m.Float(i) != 0 {
			p.fail(tagMatrix, "a third row that is not 0")
		}
	}
	head := [...]uint64{1, 1, 0, 3}
	for i, want := range head {
		if k.Uint(i) != want {
			p.fail(tagGeoKeys, "a key directory that starts with %d at %d", k.Uint(i), i)
		}
	}
	for i, id := range [...]uint64{1024, 1025, k.Uint(12)} {
		if at := 4 + 4*i; k.Uint(at) != id || k.Uint(at+1) != 0 || k.Uint(at+2) != 1 {
			p.fail(tagGeoKeys, "key %d of type %d with %d values", k.Uint(at), k.Uint(at+1), k.Uint(at+2))
		}
	}
	if last := k.Uint(12); last != 2048 && last != 3072 {
		p.fail(tagGeoKeys, "key %d, where 2048 or 3072 is needed", last)
	}
}

// frames2 reads the tile arrays, which are in the order of the frames, and checks that these follow
// the directory without gaps and end with the file.
func (p *profile) frames2(x *chunk.Index) {
	offs, counts := p.Uints(tagOffsets), p.Uints(tagCounts)
	if p.Err != nil {
		return
	}
	end := p.follow(x, offs, counts, 1, uint64(base2(int64(x.Bands), int64(offs.Len()))))
	if p.Err == nil && end != uint64(p.File.Size()) {
		p.fail(tagCounts, "frames end at %d, the file at %d", end, p.File.Size())
	}
}
