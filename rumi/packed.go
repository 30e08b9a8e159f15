package rumi

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cursor"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

const (
	blob2Head = 28
	blob3Head = 32
)

// maxEqualFrames bounds the frames of a blob that stores zero bits per frame because all have one size: the
// length of such a blob does not limit their number. If the sizes of as many frames differ by a single byte, the
// blob has 128 KiB, and needs no bound.
const maxEqualFrames = 1 << 20

// shift is how many bytes later than in other generations a field of a blob of generation 3 stands that
// follows the steps of time.
func shift(generation int) int {
	if generation == 3 {
		return blob3Head - blob2Head
	}
	return 0
}

// parsePacked reads a header blob of generation 2 or 3; see Parse.
func parsePacked(b []byte, generation, maxChunk int) (*Header, error) {
	bad := func(off int, format string, args ...any) (*Header, error) {
		return nil, fault.At(fault.Corrupt, "header blob", int64(off), format, args...)
	}
	le, pos := binary.LittleEndian, shift(generation)
	if len(b) < blob2Head+pos {
		return bad(0, "%d bytes", len(b))
	}
	if version := le.Uint16(b[4:]); version != blobVersion {
		return nil, fault.At(fault.Unsupported, "header blob", 4, "version %d of generation %d", version, generation)
	}
	index, err := blobGrid(b, generation)
	if err != nil {
		return nil, err
	}
	bands, times, unit := index.Bands, int64(1), Unit(b[pos+22])
	if generation == 3 {
		times = int64(le.Uint32(b[14:]))
	}
	if times == 0 || generation == 2 && unit > UnitPlanes || generation == 3 && !unit.fits(bands, int(times)) {
		return bad(pos+22, "frame unit %d of %d bands and %d steps of time", unit, bands, times)
	}
	if err := setTimes(index, times); err != nil {
		return nil, err
	}
	unit.apply(index)
	least, width := int64(le.Uint32(b[pos+23:])), int(b[pos+27])
	if least == 0 {
		return bad(pos+23, "a frame is empty")
	}
	if width > 32 {
		return bad(pos+27, "counts of %d bits", width)
	}
	packed := b[pos+blob2Head:]
	frames, ok := framesPacked(index, 8*int64(len(packed)), width)
	if !ok {
		if width == 0 && len(packed) == 0 {
			return nil, fault.At(fault.Limit, "header blob", 0, "more than %d frames of one size", maxEqualFrames)
		}
		return bad(pos+blob2Head, "%d bytes of counts of %d bits for %d by %d positions of %d bands", len(packed),
			width, index.Down(), index.Across(), index.Bands)
	}
	index.Ranges = make([]chunk.Range, frames)
	if err := unpack(index, packed, least, width, firstFrame(generation, int64(bands), frames)); err != nil {
		return nil, err
	}
	unit.indexOrder(index)
	if err := index.Validate(-1, maxChunk); err != nil {
		return nil, err
	}
	return newHeader(*index, generation, unit), nil
}

// framesPacked returns the number of frames of x, and whether that many, of width bits each, fill the n bits of a
// blob.
func framesPacked(x *chunk.Index, n int64, width int) (int64, bool) {
	limit := int64(maxEqualFrames)
	if width > 0 {
		limit = n
	}
	positions, groups := int64(x.Across())*int64(x.Down()), int64(x.Groups()) // below 2^62 and 2^16
	if positions > limit || positions*groups > limit {
		return 0, false
	}
	frames := positions * groups
	return frames, (frames*int64(width)+7)/8*8 == n
}

// unpack reads the byte counts of the frames and places the frames end to end, the first at off.
func unpack(x *chunk.Index, packed []byte, least int64, width int, off int64) error {
	bad := func(format string, args ...any) error {
		return fault.At(fault.Corrupt, "header blob", blob2Head, format, args...)
	}
	zero, largest := false, uint64(0)
	counts := cursor.Unpacker{Src: packed}
	for i := range x.Ranges {
		surplus := counts.Get(width)
		zero, largest = zero || surplus == 0, max(largest, surplus)
		size := least + int64(surplus)
		if size > maxU32 {
			return bad("frame %d of %d bytes", i, size)
		}
		x.Ranges[i] = chunk.Range{Off: off, Len: size}
		// No overflow, since there are fewer than 2^31 frames of less than 4 GiB.
		off += size
	}
	switch {
	case counts.Spare() != 0:
		return bad("spare bits are not 0")
	case !zero || bits.Len64(largest) != width:
		return bad("counts are not packed in the fewest bits")
	}
	return nil
}

// appendPacked appends the blob of an index as parsePacked reads it.
func appendPacked(dst []byte, x *chunk.Index, generation int, unit Unit) []byte {
	ranges := unit.fileOrder(x)
	least, longest := int64(math.MaxInt64), int64(0)
	for _, frame := range ranges {
		least, longest = min(least, frame.Len), max(longest, frame.Len)
	}
	width := bits.Len64(uint64(longest - least))
	dst = appendGrid(dst, x, rumis.Blob2, generation)
	dst = append(dst, byte(unit))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(least))
	dst = append(dst, byte(width))
	packer := cursor.Packer{Dst: dst}
	for _, frame := range ranges {
		packer.Put(uint64(frame.Len-least), width)
	}
	return packer.Bytes()
}
