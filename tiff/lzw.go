package tiff

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
)

// lzwDecoder reads TIFF's LZW (TIFF 6.0 section 13): codes of 9 to 12 bits, most significant bit first,
// whose width grows one code early.
//
// Every entry of the table is the string of the previous code plus the byte after it, which stand in the
// output. So the table holds offsets instead of strings.
type lzwDecoder struct {
	start  [lzwMax]int32 // offset of an entry in the output
	length [lzwMax]int32
}

const (
	lzwClear = 256
	lzwEnd   = 257
	lzwFirst = 258 // first entry of the table
	lzwMax   = 1 << 12
)

// Decompress fills dst and ignores further bytes. The bit order of old writers (least significant first)
// is unsupported.
func (d *lzwDecoder) Decompress(dst, src []byte, sample int) error {
	return d.DecompressPrefix(dst, src, len(dst), sample)
}

// DecompressPrefix stops after the code whose string reaches n.
func (d *lzwDecoder) DecompressPrefix(dst, src []byte, n, _ int) error {
	if len(src) >= 2 && oldLZW(src) {
		return errOldLZW()
	}
	if len(dst) > math.MaxInt32 {
		return fault.New(fault.Limit, "lzw", fault.NoOffset, "a chunk of %d bytes", len(dst))
	}
	if got := d.decode(dst, src, n); got < n {
		return fault.New(fault.Corrupt, "lzw", fault.NoOffset, "ends or breaks off after %d of %d bytes", got, len(dst))
	}
	return nil
}

// oldLZW reports whether a chunk that begins with these two bytes has the bit order of old writers.
func oldLZW(head []byte) bool { return head[0] == 0 && head[1]&1 == 1 }

func errOldLZW() error {
	return fault.New(fault.Unsupported, "lzw", fault.NoOffset, "LZW of the old order of bits")
}

// decode writes at least need bytes and returns how many; fewer if the stream ends or is invalid. A chunk
// has at most 2^31-1 bytes, because the table holds int32.
func (d *lzwDecoder) decode(dst, src []byte, need int) int {
	var (
		acc             uint32 // bits not yet used, right-aligned
		have            uint
		width           uint = 9
		next                 = lzwFirst
		before, wasLong int  // the string of the previous code: offset, and length, 0 after a clear
		out, in         int
	)
	for out < need {
		for have < width {
			if in == len(src) {
				return out
			}
			acc, have, in = acc<<8|uint32(src[in]), have+8, in+1
		}
		have -= width
		code := int(acc >> have & (1<<width - 1))
		if code == lzwClear {
			next, width, wasLong = lzwFirst, 9, 0
			continue
		}
		if code == lzwEnd {
			return out
		}
		if wasLong > 0 && next < lzwMax {
			d.start[next], d.length[next] = int32(before), int32(wasLong+1)
			next++
		}
		n := 1
		switch {
		case code < lzwClear:
			dst[out] = byte(code)
		case code < next:
			begin := int(d.start[code])
			n = int(d.length[code])
			// Some writers pad the last strip, so that the string may pass the end of dst.
			if n > len(dst)-out {
				n = len(dst) - out
			}
			if begin+n <= out {
				copy(dst[out:], dst[begin:begin+n])
			} else { // the entry was made by this code, so that its last byte is its first
				copy(dst[out:], dst[begin:out])
				dst[out+n-1] = dst[begin]
			}
		default:
			return out
		}
		before, wasLong, out = out, n, out+n
		if next >= 1<<width-1 && width < 12 {
			width++
		}
	}
	return out
}
