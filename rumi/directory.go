package rumi

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

const (
	tagUnit  = 65000 // generation 3 only, as the next one
	tagTimes = 65001

	dirAt = 16 // where the directory of a file of generation 2 or 3 stands
)

// knownTag is a tag of generation 2 or 3. Those with a value a band or a frame have many.
type knownTag struct {
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

// entries3 are all tags of a file of generation 3, in their order. Generation 2 lacks the last two.
var entries3 = [...]knownTag{
	{ifd.TagImageWidth, ifd.Long, one}, {ifd.TagImageLength, ifd.Long, one},
	{ifd.TagBitsPerSample, ifd.Short, perBand}, {ifd.TagSamplesPerPixel, ifd.Short, one},
	{ifd.TagTileWidth, ifd.Short, one}, {ifd.TagTileLength, ifd.Short, one},
	{ifd.TagTileOffsets, ifd.Long8, perFrame}, {ifd.TagTileByteCounts, ifd.Long, perFrame},
	{ifd.TagSampleFormat, ifd.Short, perBand}, {ifd.TagTransformation, ifd.Double, sixteen},
	{ifd.TagGeoKeys, ifd.Short, sixteen}, {tagUnit, ifd.Short, one}, {tagTimes, ifd.Long, one},
}

// entries returns all tags of a generation after the first.
func entries(generation int) []knownTag {
	if generation == 2 {
		return entries3[:11]
	}
	return entries3[:]
}

// firstFrame returns where the first frame of a file of generation 2 or 3 stands: behind the header, a directory
// of 11 or 13 entries, and the values that do not fit them.
func firstFrame(generation int, bands, frames int64) int64 {
	n := int64(dirAt+8+20*len(entries(generation))+8) + 16*8 + 16*2
	if bands >= 5 {
		n += 2 * 2 * bands
	}
	if frames >= 2 {
		n += 8 * frames
	}
	if frames >= 3 {
		n += 4 * frames
	}
	return n
}

// entriesAre checks that the directory has the tags of a generation in their order. The error has the given
// kind.
func (p *profile) entriesAre(generation int, kind fault.Kind) {
	bad := func(off int64, format string, args ...any) {
		if p.Err == nil {
			p.Err = fault.At(kind, "ifd 0", off, format, args...)
		}
	}
	list := entries(generation)
	if len(p.Dir.Entries) != len(list) {
		bad(p.Dir.Off, "%d tags, a rumi file of generation %d has %d", len(p.Dir.Entries), generation, len(list))
		return
	}
	for i, want := range list {
		found := &p.Dir.Entries[i]
		if found.Tag != want.tag || found.Type != want.typ {
			bad(found.Off, "tag %d of type %d, where a rumi file of generation %d has %d of type %d", found.Tag,
				found.Type, generation, want.tag, want.typ)
		}
	}
}

// places checks the number of values of each tag, and that those outside of the directory follow it
// in the order of the tags without gaps.
func (p *profile) places(generation, bands int, frames uint64) {
	if p.Err != nil {
		return
	}
	list := entries(generation)
	counts := [...]uint64{one: 1, perBand: uint64(bands), perFrame: frames, sixteen: 16}
	pos := int64(dirAt + 8 + 20*len(list) + 8)
	for i, want := range list {
		entry := &p.Dir.Entries[i]
		if entry.Count != counts[want.many] {
			p.fail(entry.Tag, "%d values, %d are needed", entry.Count, counts[want.many])
			return
		}
		if entry.Count > uint64(p.File.Size()) {
			p.fail(entry.Tag, "%d values in a file of %d bytes", entry.Count, p.File.Size())
			return
		}
		if n := int64(entry.Count) * int64(entry.Type.Size()); n > 8 {
			if entry.Off != pos {
				p.fail(entry.Tag, "values at %d, not at %d", entry.Off, pos)
				return
			}
			pos += n
		}
	}
}

// geo checks the form of the georeferencing: a matrix without a third row, and three keys with their
// values beside them.
func (p *profile) geo() {
	value, k := p.Value(ifd.TagTransformation), p.Uints(ifd.TagGeoKeys)
	if p.Err != nil {
		return
	}
	for i := 8; i < 12; i++ {
		if value.Float(i) != 0 {
			p.fail(ifd.TagTransformation, "a third row that is not 0")
		}
	}
	head := [...]uint64{1, 1, 0, 3}
	for i, want := range head {
		if k.Uint(i) != want {
			p.fail(ifd.TagGeoKeys, "a key directory that starts with %d at %d", k.Uint(i), i)
		}
	}
	for i, id := range [...]uint64{ifd.KeyModelType, ifd.KeyRasterType, k.Uint(12)} {
		if pos := 4 + 4*i; k.Uint(pos) != id || k.Uint(pos+1) != 0 || k.Uint(pos+2) != 1 {
			p.fail(ifd.TagGeoKeys, "key %d of type %d with %d values", k.Uint(pos), k.Uint(pos+1), k.Uint(pos+2))
		}
	}
	if last := k.Uint(12); last != ifd.KeyGeographicCRS && last != ifd.KeyProjectedCRS {
		p.fail(ifd.TagGeoKeys, "key %d, where 2048 or 3072 is needed", last)
	}
}

// ranges reads the tile arrays, which are in the order of the frames, and checks that these follow the
// directory without gaps. It returns the offset of their end.
func (p *profile) ranges(generation int, x *chunk.Index, bands int) uint64 {
	offs, counts := p.Uints(ifd.TagTileOffsets), p.Uints(ifd.TagTileByteCounts)
	if p.Err != nil {
		return 0
	}
	return p.follow(x, offs, counts, 1, uint64(firstFrame(generation, int64(bands), int64(offs.Len()))))
}
