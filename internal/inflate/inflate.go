// Package inflate decompresses DEFLATE streams (RFC 1951) from one slice into another.
//
// The libraries read a stream byte by byte, because they cannot know that all of it is in memory. Chunks of rasters
// are, and that makes decoding two to four times as fast: bits are loaded eight bytes at a time, and one look-up gives
// two literals, or a literal and the length of the match behind it, where both codes are short, as they are for 16-bit
// imagery behind a predictor.
package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrSurplus is the error of a stream that holds more than fits into dst.
var ErrSurplus = errors.New("the stream holds more")

// errEnd is the error of a stream that is cut off.
var errEnd = errors.New("the stream ends early")

// Decoder decompresses streams. The zero value is ready to use. It keeps its tables between streams, so it is not safe
// for concurrent use.
type Decoder struct {
	src []byte
	at  int    // in src: behind the bytes that buf holds
	buf uint64 // bits that are next, the first one lowest
	n   uint   // how many bits buf holds; those above them are 0

	last  bool // the block is the last one
	sizes [maxLiterals + maxDistances]uint8
	codes litTable // also of the code of sizes
	dists distTable
	fixed bool // codes and dists belong to fixed blocks
}

// Fill fills dst from the start of a stream, and returns how many bytes it wrote. It returns an error if the stream has
// fewer bytes or a fault before the last one. It does not read further bytes.
func (d *Decoder) Fill(dst, src []byte) (int, error) {
	d.reset(src)
	written, err := d.blocks(dst, true)
	switch {
	case written == len(dst):
		return written, nil // a fault lies in further bytes
	case err == nil:
		err = errEnd
	}
	return written, err
}

// Whole fills dst from a stream that must hold no less. It returns how many bytes of src the stream takes, or
// ErrSurplus if it holds more than dst.
func (d *Decoder) Whole(dst, src []byte) (int, error) {
	written, used, err := d.Next(dst, src)
	if err == nil && written < len(dst) {
		err = errEnd
	}
	return used, err
}

// Next decodes a stream into dst. It returns how many bytes it wrote, and how many of src the stream takes, or
// ErrSurplus if the stream holds more than dst.
func (d *Decoder) Next(dst, src []byte) (written, used int, err error) {
	d.reset(src)
	written, err = d.blocks(dst, false)
	return written, d.at - int(d.n/8), err
}

// MostRatio is how many bytes a byte of a stream gives at most: a match of 258 bytes takes two bits.
const MostRatio = 258 * 8 / 2

// Zlib fills dst from a zlib stream (RFC 1950), which must hold no less, and checks its checksum. It returns ErrSurplus
// if the stream holds more than dst.
func (d *Decoder) Zlib(dst, src []byte) error {
	if !IsZlib(src) {
		return errors.New("not a zlib header")
	}
	used, err := d.Whole(dst, src[2:])
	if err != nil {
		return err
	}
	behind, sum := src[2+used:], Adler32(dst)
	switch {
	case len(behind) < 4:
		return errors.New("the checksum is missing")
	case binary.BigEndian.Uint32(behind) != sum:
		return fmt.Errorf("checksum %08x, content has %08x", binary.BigEndian.Uint32(behind), sum)
	}
	return nil
}

// IsZlib reports whether a stream begins as a zlib stream without a dictionary.
func IsZlib(head []byte) bool {
	const dictionary = 0x20
	return len(head) >= 2 && head[0]&15 == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 && head[1]&dictionary == 0
}

func (d *Decoder) reset(src []byte) {
	d.src, d.at, d.buf, d.n, d.last = src, 0, 0, 0, false
}

// blocks decodes blocks until the end of the stream, a fault, ErrSurplus or, with part, the end of dst. It returns how
// many bytes it wrote.
func (d *Decoder) blocks(dst []byte, part bool) (out int, err error) {
	// The decoder may live long, and would keep the memory of the caller.
	defer func() { d.src = nil }()
	for !d.last && !(part && out == len(dst)) {
		head, err := d.bits(3)
		if err != nil {
			return out, err
		}
		d.last = head&1 != 0
		switch head >> 1 {
		case 0:
			out, err = d.stored(dst, out)
		case 1:
			d.setFixed()
			out, err = d.block(dst, out)
		case 2:
			if err = d.readCodes(); err == nil {
				out, err = d.block(dst, out)
			}
		default:
			err = errors.New("block type 3")
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// fill loads bytes until buf holds at least 48 bits, or all that there are.
func (d *Decoder) fill() {
	for d.n < 56 && d.at < len(d.src) {
		d.buf |= uint64(d.src[d.at]) << d.n
		d.at++
		d.n += 8
	}
}

// bits returns the next k bits, at most 16.
func (d *Decoder) bits(k uint) (uint, error) {
	if d.n < k {
		if d.fill(); d.n < k {
			return 0, errEnd
		}
	}
	value := uint(d.buf & (1<<k - 1))
	d.drop(k)
	return value, nil
}

func (d *Decoder) drop(k uint) {
	d.buf >>= k
	d.n -= k
}

// stored copies a block that is not compressed.
func (d *Decoder) stored(dst []byte, out int) (int, error) {
	d.drop(d.n & 7)
	size, err := d.bits(16)
	if err != nil {
		return out, err
	}
	check, err := d.bits(16)
	if err != nil {
		return out, err
	}
	if size != ^check&0xffff {
		return out, fmt.Errorf("a stored block of %d bytes, or of %d", size, ^check&0xffff)
	}
	d.at -= int(d.n / 8) // whole bytes that buf holds ahead
	d.buf, d.n = 0, 0
	rest := d.src[d.at:min(d.at+int(size), len(d.src))]
	copied := copy(dst[out:], rest)
	d.at += copied
	switch {
	case copied < len(rest):
		return out + copied, ErrSurplus
	case copied < int(size):
		return out + copied, errEnd
	}
	return out + copied, nil
}
