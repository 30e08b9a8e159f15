package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// sizeOrder is the order in which a block has the lengths of codes of lengths (RFC 1951 section 3.2.7).
var sizeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// sizeEntries are the entries of the codes of lengths: each is a base, its symbol.
var sizeEntries = func() (list [19]uint32) {
	for i := range list {
		list[i] = uint32(i) << 16
	}
	return list
}()

// pairsFrom is how many bytes of a stream must be left for pairs of literals to be worth their table: a pair saves
// about 1 ns, and the table takes some 3 µs.
const pairsFrom = 4 << 10

// setFixed sets the codes of RFC 1951 section 3.2.6.
func (d *Decoder) setFixed() {
	if d.fixed {
		return
	}
	for i := range d.sizes {
		switch {
		case i < 144:
			d.sizes[i] = 8
		case i < 256:
			d.sizes[i] = 9
		case i < 280:
			d.sizes[i] = 7
		case i < 288:
			d.sizes[i] = 8
		default:
			d.sizes[i] = 5
		}
	}
	if err := d.build(maxLiterals, maxDistances); err != nil {
		panic(err) // they are complete
	}
	d.fixed = true
}

// build makes the tables of the codes of sizes.
func (d *Decoder) build(literals, distances int) error {
	d.fixed = false
	if err := build(d.codes[:], litBits, d.sizes[:literals], literalEntries[:]); err != nil {
		return err
	}
	if len(d.src)-d.at >= pairsFrom {
		d.codes.pair()
	}
	return build(d.dists[:], distBits, d.sizes[literals:literals+distances], distEntries[:])
}

// readCodes reads the codes of a block.
func (d *Decoder) readCodes() error {
	head, err := d.bits(14)
	if err != nil {
		return err
	}
	literals, distances, lengths := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if literals > 286 || distances > 30 {
		return fmt.Errorf("a block has %d codes of literals and %d of distances", literals, distances)
	}
	var widths [19]uint8
	for i := range lengths {
		width, err := d.bits(3)
		if err != nil {
			return err
		}
		widths[sizeOrder[i]] = uint8(width)
	}
	d.fixed = false
	if err := build(d.codes[:], sizeBits, widths[:], sizeEntries[:]); err != nil {
		return err
	}
	if err := d.readSizes(d.sizes[:literals+distances]); err != nil {
		return err
	}
	return d.build(literals, distances)
}

// readSizes reads the lengths of codes.
func (d *Decoder) readSizes(sizes []uint8) error {
	for i := 0; i < len(sizes); {
		if d.n < maxCode {
			d.fill()
		}
		entry := d.codes[d.buf&(1<<sizeBits-1)]
		if entry&isOdd != 0 {
			return errCodes
		}
		if uint(entry&0xff) > d.n {
			return errEnd
		}
		d.drop(uint(entry & 0xff))
		value := uint8(entry >> 16) // the symbol
		extra, times := uint(0), 0
		switch value {
		case 16:
			if i == 0 {
				return errors.New("the first length of a code repeats one before it")
			}
			extra, times, value = 2, 3, sizes[i-1]
		case 17:
			extra, times, value = 3, 3, 0
		case 18:
			extra, times, value = 7, 11, 0
		default:
			sizes[i] = value
			i++
			continue
		}
		repeats, err := d.bits(extra)
		if err != nil {
			return err
		}
		if times += int(repeats); times > len(sizes)-i {
			return errors.New("more lengths of codes than there are codes")
		}
		for range times {
			sizes[i] = value
			i++
		}
	}
	return nil
}

const (
	// A turn of fast loads 8 bytes twice at most, and writes at most four pairs and a match, which is copied 8 bytes
	// at a time.
	fastSrc = 16
	fastDst = 4*2 + 258 + 8
)

// block decodes a block into dst from out on. It returns where its output ends.
func (d *Decoder) block(dst []byte, out int) (int, error) {
	for {
		if len(d.src)-d.at >= fastSrc && len(dst)-out >= fastDst {
			var err error
			if out, err = d.fast(dst, out); err != nil {
				return out, err
			}
		}
		// Near the end of either slice.
		d.fill()
		entry := d.codes[d.buf&(1<<litBits-1)]
		if entry&(isOdd|isLiteral|isSub) == isOdd|isSub {
			entry = d.codes[entry>>16&0x3fff+uint32(d.buf>>litBits)&(1<<(entry>>8&15)-1)]
		}
		switch {
		case entry&isLiteral != 0:
			length := uint(entry >> 26 & 15) // of the first of two
			if length > d.n {
				return out, errEnd
			}
			d.drop(length)
			if out == len(dst) {
				return out, ErrSurplus
			}
			dst[out] = byte(entry >> 8)
			out++
		case uint(entry&0xff) > d.n:
			return out, errEnd
		case entry&isOdd == 0:
			size, far, err := d.match(entry, out)
			if err != nil {
				return out, err
			}
			for range size {
				if out == len(dst) {
					return out, ErrSurplus
				}
				dst[out] = dst[out-far]
				out++
			}
		case entry&isEnd != 0:
			d.drop(uint(entry & 0xff))
			return out, nil
		default:
			return out, errCodes
		}
	}
}

// match reads the rest of a match whose length has entry e.
func (d *Decoder) match(e uint32, out int) (size, far int, err error) {
	size = d.based(e)
	d.fill()
	e = d.dists[d.buf&(1<<distBits-1)]
	if e&(isOdd|isSub) == isOdd|isSub {
		e = d.dists[e>>16&0x3fff+uint32(d.buf>>distBits)&(1<<(e>>8&15)-1)]
	}
	switch {
	case uint(e&0xff) > d.n:
		return 0, 0, errEnd
	case e&isOdd != 0:
		return 0, 0, errCodes
	}
	if far = d.based(e); far > out {
		return 0, 0, errFar(far, out)
	}
	return size, far, nil
}

func errFar(far, out int) error {
	return fmt.Errorf("a match %d bytes back after %d bytes", far, out)
}

// based takes an entry that is a base, and returns its value.
func (d *Decoder) based(entry uint32) int {
	codeBits, total := uint(entry>>8&15), uint(entry&0xff)
	value := int(entry>>16) + int(d.buf&(1<<total-1)>>codeBits)
	d.drop(total)
	return value
}

// turns is fast in Go: block while both slices have room for a turn of its loop. It stops before the end of a block and
// before an invalid code.
func (d *Decoder) turns(dst []byte, out int) (int, error) {
	src, pos, buf, held := d.src, d.at, d.buf, d.n
	codes, dists := &d.codes, &d.dists
	var err error
	for len(src)-pos >= fastSrc && len(dst)-out >= fastDst {
		// Bits above held may be set already, since the next load sets the same ones.
		buf |= binary.LittleEndian.Uint64(src[pos:]) << (held & 63)
		pos += int(63-held) >> 3
		held |= 56
		size := 0
		entry := codes[buf&(1<<litBits-1)]
		if entry&isLiteral != 0 {
			// A literal takes at most 11 bits, so two leave 34 for a distance, of 15 + 13 bits at most.
			for range 2 {
				buf >>= entry & 63
				held -= uint(entry & 63)
				binary.LittleEndian.PutUint16(dst[out:], uint16(entry>>8))
				if entry&isThen != 0 {
					out++
					size = int(entry >> 16 & 0xff)
					goto distance
				}
				out += int(entry >> 24 & 3)
				if entry = codes[buf&(1<<litBits-1)]; entry&isLiteral == 0 {
					break
				}
			}
			if entry&isLiteral != 0 {
				continue
			}
			buf |= binary.LittleEndian.Uint64(src[pos:]) << (held & 63)
			pos += int(63-held) >> 3
			held |= 56
		}
		if entry&isOdd != 0 {
			if entry&isSub == 0 {
				break
			}
			entry = codes[entry>>16&0x3fff+uint32(buf>>litBits)&(1<<(entry>>8&15)-1)]
			if entry&isLiteral != 0 {
				buf >>= entry & 63
				held -= uint(entry & 63)
				dst[out] = byte(entry >> 8)
				out++
				continue
			}
			if entry&isOdd != 0 {
				break
			}
		}
		size = int(entry>>16) + int(buf&(1<<(entry&63)-1)>>(entry>>8&15))
		buf >>= entry & 63
		held -= uint(entry & 63)
	distance:
		entry = dists[buf&(1<<distBits-1)]
		if entry&(isOdd|isSub) == isOdd|isSub {
			entry = dists[entry>>16&0x3fff+uint32(buf>>distBits)&(1<<(entry>>8&15)-1)]
		}
		if entry&isOdd != 0 {
			err = errCodes
			break
		}
		far := int(entry>>16) + int(buf&(1<<(entry&63)-1)>>(entry>>8&15))
		buf >>= entry & 63
		held -= uint(entry & 63)
		if far > out {
			err = errFar(far, out)
			break
		}
		if far >= 8 && size <= 8 {
			binary.LittleEndian.PutUint64(dst[out:], binary.LittleEndian.Uint64(dst[out-far:]))
		} else {
			repeat(dst, out, far, size)
		}
		out += size
	}
	d.at, d.buf, d.n = pos, buf&(1<<(held&63)-1), held
	return out, err
}

// repeat copies size bytes to dst[out:] from far bytes before. It may write 7 bytes past them, which must be there.
func repeat(dst []byte, out, far, size int) {
	target, src := dst[out:out+size+8], dst[out-far:]
	switch {
	case far >= 8:
		for i := 0; i < size; i += 8 {
			binary.LittleEndian.PutUint64(target[i:], binary.LittleEndian.Uint64(src[i:]))
		}
	case far == 1:
		word := uint64(src[0]) * 0x0101010101010101
		for i := 0; i < size; i += 8 {
			binary.LittleEndian.PutUint64(target[i:], word)
		}
	default:
		src = src[:size+8]
		for i := range size {
			target[i] = src[i]
		}
	}
}
