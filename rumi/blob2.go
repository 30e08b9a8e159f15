package rumi

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

const (
	blob2Magic = 0x45564F4C
	blob2Head  = 28
)

// Frame units of generation 2: what one frame holds at a grid position.
const (
	unitTile = 0 // one band
	unitCell = 1 // all bands
)

// maxEqualFrames bounds the frames of a blob that stores them in no bits, as all are of one size: its
// bytes vouch for none of them. An image of that many frames whose sizes differ by a single byte
// has a blob of 128 KiB, and no such bound.
const maxEqualFrames = 1 << 20

// base2 is where the first frame of a file of generation 2 stands: behind the header, a directory
// of 11 entries, and the values that do not fit them.
func base2(bands, frames int64) int64 {
	base := int64(252 + 16*8 + 16*2)
	if bands >= 5 {
		base += 2 * 2 * bands
	}
	if frames >= 2 {
		base += 8 * frames
	}
	if frames >= 3 {
		base += 4 * frames
	}
	return base
}

// parse2 reads a header blob of generation 2; see Parse.
func parse2(b []byte, maxChunk int) (*Header, error) {
	bad := func(off int64, format string, args ...any) (*Header, error) {
		return nil, fault.New(fault.Corrupt, "header blob", off, format, args...)
	}
	le := binary.LittleEndian
	if len(b) < blob2Head {
		return bad(0, "%d bytes", len(b))
	}
	if v := le.Uint16(b[4:]); v != blobVersion {
		return nil, fault.New(fault.Unsupported, "header blob", 4, "version %d of generation 2", v)
	}
	x, err := blobGrid(b, 2)
	if err != nil {
		return nil, err
	}
	unit := int(b[22])
	switch unit {
	case unitTile:
	case unitCell:
		x.ChunkB = x.Bands
	default:
		return bad(22, "frame unit %d", unit)
	}
	least, width := int64(le.Uint32(b[23:])), int(b[27])
	if least == 0 {
		return bad(23, "a frame is empty")
	}
	if width > 32 {
		return bad(27, "counts of %d bits", width)
	}
	packed := b[blob2Head:]
	n, ok := frames2(x, 8*int64(len(packed)), width)
	if !ok {
		if width == 0 && len(packed) == 0 {
			return nil, fault.New(fault.Limit, "header blob", 0, "more than %d frames of one size", maxEqualFrames)
		}
		return bad(blob2Head, "%d bytes of counts of %d bits for %d by %d positions of %d bands", len(packed),
			width, x.Down(), x.Across(), x.Bands)
	}
	x.Ranges = make([]chunk.Range, n)
	if err := unpack2(x, packed, least, width); err != nil {
		return nil, err
	}
	if err := x.Validate(-1, maxChunk); err != nil {
		return nil, err
	}
	return newHeader(*x, 2, unit), nil
}

// frames2 returns the number of frames of x, and whether that many, of width bits each, fill the n bits of a
// blob.
func frames2(x *chunk.Index, n int64, width int) (int64, bool) {
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

// unpack2 reads the byte counts of the frames and places the frames end to end.
func unpack2(x *chunk.Index, packed []byte, least int64, width int) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "header blob", blob2Head, format, args...)
	}
	var acc uint64 // fewer than 8 bits are left between two counts
	have, at := 0, 0
	off := base2(int64(x.Bands), int64(len(x.Ranges)))
	zero, largest := false, uint64(0)
	for i := range x.Ranges {
		for ; have < width; have += 8 {
			acc |= uint64(packed[at]) << have
			at++
		}
		v := acc & (1<<width - 1)
		acc >>= width
		have -= width
		zero, largest = zero || v == 0, max(largest, v)
		n := least + int64(v)
		if n > maxU32 {
			return bad("frame %d of %d bytes", i, n)
		}
		x.Ranges[i] = chunk.Range{Off: off, Len: n}
		off += n // no overflow, since there are fewer than 2^31 frames of less than 4 GiB
	}
	switch {
	case acc != 0:
		return bad("spare bits are not 0")
	case !zero || bits.Len64(largest) != width:
		return bad("counts are not packed in the fewest bits")
	}
	return nil
}

// appendBlob2 appends the blob of an index as parse2 reads it.
func appendBlob2(dst []byte, x *chunk.Index, unit int) []byte {
	least, most := int64(math.MaxInt64), int64(0)
	for _, r := range x.Ranges {
		least, most = min(least, r.Len), max(most, r.Len)
	}
	width := bits.Len64(uint64(most - least))
	dst = appendGrid(dst, x, blob2Magic, 2)
	dst = append(dst, byte(unit))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(least))
	dst = append(dst, byte(width))
	var acc uint64
	n := 0
	for _, r := range x.Ranges {
		acc |= uint64(r.Len-least) << n
		for n += width; n >= 8; n -= 8 {
			dst = append(dst, byte(acc))
			acc >>= 8
		}
	}
	if n > 0 {
		dst = append(dst, byte(acc))
	}
	return dst
}
