package tiff

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// lzwDecoder reads TIFF's LZW (TIFF 6.0 section 13): codes of 9 to 12 bits, most significant bit first,
// whose width grows one code early.
//
// Every entry of the table is the string of the previous code plus the byte after it, which stand in the output. So
// the table holds the place of a string there, and its first eight bytes: most strings are no longer, and a load from
// the output would have to wait for the stores that have just been made.
type lzwDecoder struct {
	table  [lzwMax]lzwString
	pos    uint   // bits read
	width  uint   // of the next code
	next   int    // number of entries in the table
	out    int    // bytes written
	text   uint64 // the previous string: its first bytes,
	length int    // and its length, 0 after a clear
}

// lzwString is an entry of the table.
type lzwString struct {
	text   uint64 // its first bytes, the first one lowest; 0 behind the end
	start  int32  // offset in the output
	length int32
}

const (
	lzwClear = 256
	lzwEnd   = 257
	lzwFirst = 258 // first entry of the table
	lzwMax   = 1 << 12
)

// Decompress stops after the code whose string reaches the last byte that is needed, and ignores further bytes. The
// bit order of old writers (least significant first) is unsupported.
func (d *lzwDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(src) >= 2 && oldLZW(src) {
		return errOldLZW()
	}
	if len(dst) > math.MaxInt32 {
		return fault.New(fault.Limit, "lzw", "a chunk of %d bytes", len(dst))
	}
	if got := d.decode(dst, src, t.Need); got < t.Need {
		return fault.New(fault.Corrupt, "lzw", "ends or breaks off after %d of %d bytes", got, len(dst))
	}
	return nil
}

// oldLZW reports whether a chunk that begins with these two bytes has the bit order of old writers.
func oldLZW(head []byte) bool { return head[0] == 0 && head[1]&1 == 1 }

func errOldLZW() error {
	return fault.New(fault.Unsupported, "lzw", "LZW of the old order of bits")
}

// decode writes at least need bytes and returns how many; fewer if the stream ends or is invalid. A chunk
// has at most 2^31-1 bytes, because the table holds int32.
func (d *lzwDecoder) decode(dst, src []byte, need int) int {
	if d.table[0].length == 0 {
		for i := range lzwClear {
			d.table[i] = lzwString{text: uint64(i), length: 1}
		}
	}
	d.pos, d.width, d.next, d.out, d.text, d.length = 0, 9, lzwFirst, 0, 0, 0
	for goesOn := true; goesOn && d.out < need; {
		goesOn = d.some(dst, src, need)
	}
	return d.out
}

// steps decodes codes until need bytes are there, at most as many as count. It reports whether the stream goes on.
func (d *lzwDecoder) steps(dst, src []byte, need, count int) (goesOn bool) {
	// Local variables, and no call in the loop, for which they would live on the stack.
	pos, width, next, out, text, length := d.pos, d.width, d.next, d.out, d.text, d.length
	for goesOn = true; goesOn && out < need && count > 0; count-- {
		var bits uint64
		if first := pos >> 3; first+8 <= uint(len(src)) {
			bits = binary.BigEndian.Uint64(src[first:])
		} else if goesOn = pos+width <= 8*uint(len(src)); goesOn {
			for i, b := range src[first:] {
				bits |= uint64(b) << (56 - 8*uint(i))
			}
		} else {
			break
		}
		code := int(bits << (pos & 7) >> ((64 - width) & 63))
		pos += width
		if code == lzwClear {
			next, width, length = lzwFirst, 9, 0
			continue
		}
		entry := &d.table[code&(lzwMax-1)]
		if length > 0 && next < lzwMax {
			last := entry.text
			if code == next { // it ends with the byte that it begins with
				last = text
			}
			d.table[next] = lzwString{text | last&0xff<<(8*uint(length)), int32(out - length), int32(length + 1)}
			next++
		}
		if goesOn = code != lzwEnd && code < next; !goesOn {
			break
		}
		text, length = entry.text, int(entry.length)
		// Some writers pad the last strip, so the string may pass the end of dst.
		if room := len(dst) - out; length+8 > room {
			length = min(length, room)
			for i := range length {
				if dst[out+i] = byte(text >> (8 * uint(i))); i >= 8 {
					dst[out+i] = dst[int(entry.start)+i]
				}
			}
		} else {
			binary.LittleEndian.PutUint64(dst[out:], text)
			// A string of more than 8 bytes that overlaps itself begins more than 7 bytes before.
			for i, begin := 8, int(entry.start); i < length; i += 8 {
				binary.LittleEndian.PutUint64(dst[out+i:], binary.LittleEndian.Uint64(dst[begin+i:]))
			}
		}
		out += length
		if next >= 1<<width-1 && width < 12 {
			width++
		}
	}
	d.pos, d.width, d.next, d.out, d.text, d.length = pos, width, next, out, text, length
	return goesOn
}
