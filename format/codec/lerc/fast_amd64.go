//go:build !purego && !twins

package lerc

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

var hasAVX2 = cpu.X86.HasAVX2

// maxWide is the largest width of numbers that vectors read: a number begins at any bit of a byte, and lies in 4 bytes.
const maxWide = 25

// layout says where eight numbers of one width lie: the first four in the 16 bytes that the first one begins in, the
// others in the 16 bytes that the fifth one begins in.
type layout struct {
	bytes [32]byte  // the four bytes of each number
	shift [8]uint32 // the bits before it there
	mask  uint32
}

var layouts = func() (list [maxWide + 1]layout) {
	for width := range list {
		l := &list[width]
		l.mask = 1<<width - 1
		for i := range 8 {
			bit, half := i*width, i&4*width
			for k := range 4 {
				l.bytes[4*i+k] = byte(bit>>3 - half>>3 + k)
			}
			l.shift[i] = uint32(bit & 7)
		}
	}
	return list
}()

// wide writes a block whose numbers and samples are of the common kinds: every pixel has a number, in one band, in rows
// of eight or a multiple. It reports false before it reads anything if the block is another.
func (d *Decoder) wide(r rect, offset float64) bool {
	cols, height := r.x1-r.x0, r.y1-r.y0
	count := cols * height
	if !hasAVX2 || d.s.Bands > 1 || d.h.version < 3 {
		return false
	}
	if cols&7 != 0 || len(d.b) < 3 {
		return false
	}
	const aByte, twoBytes = 2 << 6, 1 << 6 // the size of count
	flags, head, stated := d.b[0], 2, int(d.b[1])
	bitCount := int(flags & 31)
	if flags&^31 == twoBytes {
		head, stated = 3, stated|int(d.b[2])<<8
	} else if flags&^31 != aByte {
		return false
	}
	if stated != count || bitCount > maxWide {
		return false
	}
	size := count / 8 * bitCount
	// The last eight numbers are read as 16 bytes from their fifth one on.
	if len(d.b) < head+size-bitCount+bitCount/2+16 {
		return false
	}
	first := r.y0*d.s.Width + r.x0
	last := first + (height-1)*d.s.Width + cols - 1
	highest, scale := d.maxs[0], 2*d.h.maxError
	switch {
	case d.floats != nil:
		_ = d.floats[last]
		floatsAVX2(&d.floats[first], 4*d.s.Width, &d.b[head], &layouts[bitCount], bitCount, cols, height, offset, scale,
			highest)
	case d.shorts != nil:
		low, step, high := int32(offset), int32(scale), int32(highest)
		whole := float64(low) == offset && float64(step) == scale && float64(high) == highest
		// A sample has at most this many bits: nothing overflows.
		const room = 30
		fits := step >= 0 && bits.Len32(uint32(step))+bitCount <= room && low <= 1<<room && low >= -1<<room
		if !whole || !fits {
			return false
		}
		_ = d.shorts[last]
		shortsAVX2(&d.shorts[first], 2*d.s.Width, &d.b[head], &layouts[bitCount], bitCount, cols, height, low, step,
			high)
	default:
		return false
	}
	d.b = d.b[head+size:]
	return true
}

// shortsAVX2 and floatsAVX2 read numbers of width bits from src and write each as offset + number × scale, at most
// highest, to h rows of w samples. Each row begins stride bytes behind the one before.
//
//go:noescape
func shortsAVX2(dst *uint16, stride int, src *byte, l *layout, width, w, h int, offset, scale, highest int32)

//go:noescape
func floatsAVX2(dst *float32, stride int, src *byte, l *layout, width, w, h int, offset, scale, highest float64)
