package rumi

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

// Magic begins files of generation 3, which are not TIFFs. Files of earlier generations begin like a BigTIFF.
const Magic = rumis.Magic

// Open reads the directories of a TIFF, or of a rumi file of any generation.
func Open(ctx context.Context, r source.Reader, l ifd.Limits) (*ifd.File, error) {
	return ifd.OpenAs(ctx, r, l, header3)
}

// header3 returns where the directory of a file of generation 3 stands, 0 if head begins another file.
func header3(head []byte) (uint64, error) {
	if len(head) < len(Magic) || string(head[:len(Magic)]) != Magic {
		return 0, nil
	}
	bad := func(kind fault.Kind, off int64, format string, args ...any) (uint64, error) {
		return 0, fault.At(kind, "header", off, format, args...)
	}
	le := binary.LittleEndian
	if len(head) >= 6 && le.Uint16(head[4:]) != 1 {
		return bad(fault.Unsupported, 4, "a rumi file of version %d, which is after generation 3", le.Uint16(head[4:]))
	}
	if len(head) < dirAt {
		return bad(fault.Corrupt, 0, "%d bytes are not a header of a rumi file", len(head))
	}
	if zero, pos := le.Uint16(head[6:]), le.Uint64(head[8:]); zero != 0 || pos != dirAt {
		return bad(fault.Corrupt, 6, "%d, then a directory at %d, not 0 and %d", zero, pos, dirAt)
	}
	return dirAt, nil
}

// index3 reads the directory and the trailer of a file of generation 3.
func index3(ctx context.Context, f *ifd.File) (*chunk.Index, Unit, *Trailer, error) {
	tags := profile{f.Tags(ctx, &f.Dirs[0])}
	if !oneDirectory(f) {
		tags.Err = fault.At(fault.Corrupt, "ifd 0", dirAt, "a rumi file has one directory")
	}
	tags.entriesAre(3, fault.Corrupt)
	tags.restOfEntries()
	index := newIndex(3)
	tags.sizes(index)
	bands := index.Bands
	unit := tags.unit3(index)
	if tags.Err != nil {
		return nil, 0, nil, tags.Err
	}
	tags.places(3, bands, tags.frames3(index))
	tags.Prefetch(ifd.TagBitsPerSample, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagSampleFormat,
		ifd.TagTransformation, ifd.TagGeoKeys)
	index.DType = tags.dtype(3, bands)
	index.LowBits = index.DType.Bits() < 8
	tags.geo()
	tags.geo3()
	end := tags.ranges(3, index, bands)
	if tags.Err != nil {
		return nil, 0, nil, tags.Err
	}
	unit.indexOrder(index)
	trailer, err := readTrailer(ctx, f, int64(end), bands, index.Steps())
	return index, unit, trailer, err
}

// frames3 returns the number of frames of x. The product of sides and planes may overflow, so it is
// compared with the file first: every frame takes at least a byte.
func (p *profile) frames3(x *chunk.Index) uint64 {
	positions, groups := uint64(x.Across())*uint64(x.Down()), uint64(x.Groups())
	if positions > uint64(p.File.Size())/groups {
		p.fail(ifd.TagTileOffsets, "%d positions of %d frames in a file of %d bytes", positions, groups, p.File.Size())
		return 0
	}
	return positions * groups
}

// restOfEntries checks that the bytes of an entry behind its values, which need not fill it, are 0.
func (p *profile) restOfEntries() {
	if p.Err != nil {
		return
	}
	for i := range p.Dir.Entries {
		entry := &p.Dir.Entries[i]
		pos := int64(dirAt + 8 + 20*i + 12)
		used := int64(entry.Type.Size()) * int64(min(entry.Count, 8))
		// The directory lies in the head, which was read to find it.
		for _, rest := range p.File.Head[min(pos+used, pos+8) : pos+8] {
			if rest != 0 {
				p.fail(entry.Tag, "bytes behind its values that are not 0")
			}
		}
	}
}

// unit3 reads the frame unit and the steps of time, and sets the bands, steps and axes of a chunk.
func (p *profile) unit3(x *chunk.Index) Unit {
	unit, times := p.Uint(tagUnit, 0), p.Between(tagTimes, 0, 1, math.MaxUint32)
	if p.Err != nil {
		return 0
	}
	frameUnit := Unit(min(unit, uint64(numUnits)))
	if !frameUnit.fits(x.Bands, int(times)) {
		p.fail(tagUnit, "frame unit %d of %d bands and %d steps of time", unit, x.Bands, times)
		return 0
	}
	if p.Err = setTimes(x, int64(times)); p.Err != nil {
		return 0
	}
	frameUnit.apply(x)
	return frameUnit
}

// setTimes divides the planes of x into that many steps of time, at least 1.
func setTimes(x *chunk.Index, times int64) error {
	if times*int64(x.Bands) > chunk.MaxPlanes {
		return fault.New(fault.Limit, "header", "%d steps of time of %d bands, at most %d in all",
			times, x.Bands, chunk.MaxPlanes)
	}
	if times > 1 {
		x.Times, x.Bands = int(times), x.Bands*int(times)
	}
	return nil
}

// geo3 checks what generation 3 asks of the georeferencing beside what geo checks: the matrix of a plane,
// and keys that agree.
func (p *profile) geo3() {
	matrix, keys := p.Value(ifd.TagTransformation), p.Uints(ifd.TagGeoKeys)
	if p.Err != nil {
		return
	}
	for i := range 16 {
		number := matrix.Float(i)
		if math.IsNaN(number) || math.IsInf(number, 0) {
			p.fail(ifd.TagTransformation, "a number that is not finite")
		}
		if (i == 2 || i == 6 || i >= 12 && i < 15) && number != 0 || i == 15 && number != 1 {
			p.fail(ifd.TagTransformation, "%g at %d, in the matrix of an image", number, i)
		}
	}
	model, raster, key, code := keys.Uint(7), keys.Uint(11), keys.Uint(12), keys.Uint(15)
	switch {
	case raster != 1 && raster != ifd.RasterPixelIsPoint:
		p.fail(ifd.TagGeoKeys, "raster type %d", raster)
	case model == 0 && (key != ifd.KeyGeographicCRS || code != 0), model == 1 && key != ifd.KeyProjectedCRS,
		model == 2 && key != ifd.KeyGeographicCRS, model > 2, model != 0 && (code < leastEPSG || code > mostEPSG):
		p.fail(ifd.TagGeoKeys, "model type %d with key %d of %d", model, key, code)
	}
	if unit := [...]float64{0: 1, 5: 1, 7: 0}; model == 0 { // the identity
		for i := range 8 {
			if number := matrix.Float(i); number != unit[i] {
				p.fail(ifd.TagTransformation, "%g at %d, without a CRS", number, i)
			}
		}
	}
}
