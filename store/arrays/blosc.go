package arrays

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/snappy"

	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/internal/planes"
)

// The container of Blosc 1 begins with 16 bytes: the versions of the format and of the codec, flags, the size of a
// value, then the decoded size, the size of a block and the size of the container as uint32. Unless it is a plain copy
// the start of every block follows as int32. A block is one stream or, of split blocks, one stream for each byte of a
// value; a stream begins with its size as int32. A stream as large as its content is a copy.
const (
	bloscVersion = 2 // the one that c-blosc 1 writes and reads
	bloscHeader  = 16
	bloscShuffle = 0x01 // bytes of values are shuffled
	bloscCopy    = 0x02
	bloscBits    = 0x04 // bits of values are shuffled
	bloscLater   = 0x08 // not of Blosc 1
	bloscWhole   = 0x10 // blocks are not split
	bloscSplits  = 16   // values of more bytes are never split
	bloscLeast   = 128  // blocks of fewer values are never split
)

// unblosc fills dst from a container of Blosc 1.
func (d *chunkDecoder) unblosc(dst, src []byte) error {
	if len(src) < bloscHeader {
		return broken("", "%d bytes, the header has %d", len(src), bloscHeader)
	}
	flags, size := src[2], int(src[3])
	decoded, side := int64(binary.LittleEndian.Uint32(src[4:])), int64(binary.LittleEndian.Uint32(src[8:]))
	switch {
	case src[0] != bloscVersion:
		return broken("", "version %d of the container", src[0])
	case flags&bloscLater != 0:
		return broken("", "flags %#x", flags)
	case decoded != int64(len(dst)):
		return broken("", "%d bytes come out, %d needed", decoded, len(dst))
	case int64(binary.LittleEndian.Uint32(src[12:])) != int64(len(src)):
		return broken("", "the container has %d bytes, which it does not say", len(src))
	case decoded == 0:
		return nil
	case size == 0:
		return broken("", "values of 0 bytes")
	case side == 0 || side > decoded: // of a copy, too
		return broken("", "blocks of %d bytes in %d", side, decoded)
	case flags&bloscCopy != 0:
		if len(src)-bloscHeader != len(dst) {
			return broken("", "a copy of %d bytes, %d needed", len(src)-bloscHeader, len(dst))
		}
		copy(dst, src[bloscHeader:])
		return nil
	case src[1] != 1:
		return broken("", "version %d of the compressor", src[1])
	}
	blocks := (decoded + side - 1) / side
	if blocks > int64(len(src)-bloscHeader)/4 {
		return broken("", "%d blocks in %d bytes", blocks, len(src))
	}
	for i := range int(blocks) {
		out := dst[int64(i)*side : min(int64(i+1)*side, decoded)]
		pos := int64(binary.LittleEndian.Uint32(src[bloscHeader+4*i:]))
		if pos < bloscHeader+4*blocks || pos > int64(len(src)) {
			return broken("", "block %d starts at %d of %d", i, pos, len(src))
		}
		if err := d.bloscBlock(out, src[pos:], flags, size, int64(len(out)) < side); err != nil {
			return err
		}
	}
	return nil
}

// bloscBlock decodes one block. last is true for one that is shorter than the others, which is never split.
func (d *chunkDecoder) bloscBlock(dst, src []byte, flags byte, size int, last bool) error {
	splits := 1
	if !last && flags&bloscWhole == 0 && size <= bloscSplits && len(dst)/size >= bloscLeast {
		splits = size
	}
	bytewise := flags&bloscShuffle != 0 && size > 1
	bitwise := flags&bloscBits != 0 && len(dst) >= size && len(dst)/size%8 == 0
	out := dst
	if bytewise || bitwise {
		out = d.room(0, len(dst))
	}
	each := len(out) / splits
	for k := range splits {
		target := out[k*each : (k+1)*each]
		if k == splits-1 {
			target = out[k*each:]
		}
		if len(src) < 4 {
			return broken("", "a stream without its size")
		}
		stored := int64(binary.LittleEndian.Uint32(src))
		if src = src[4:]; stored > int64(len(src)) {
			return broken("", "a stream of %d bytes, %d are left", stored, len(src))
		}
		if err := d.bloscStream(target, src[:stored], flags>>5); err != nil {
			return err
		}
		src = src[stored:]
	}
	switch whole := len(dst) / size * size; {
	case bytewise:
		planes.Join(dst, out, size)
	case bitwise:
		copy(dst[whole:], out[whole:])
		planes.JoinBits(dst[:whole], out[:whole], d.room(1, whole), size)
	}
	return nil
}

// room returns scratch memory.
func (d *chunkDecoder) room(k, n int) []byte {
	d.blosc[k] = slices.Grow(d.blosc[k][:0], n)
	return d.blosc[k][:n]
}

// bloscStream decodes one stream of a block.
func (d *chunkDecoder) bloscStream(dst, src []byte, codec byte) error {
	if len(src) == len(dst) {
		copy(dst, src)
		return nil
	}
	switch codec {
	case 0:
		if !unBloscLZ(dst, src) {
			return broken("blosclz", "the stream does not give %d bytes", len(dst))
		}
		return nil
	case 1: // lz4hc writes the same
		return expand.LZ4(dst, src)
	case 2:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return broken("snappy", "the stream does not give %d bytes", len(dst))
		}
		if b, err := snappy.Decode(dst, src); err != nil || len(b) != len(dst) {
			return broken("snappy", "the stream does not give %d bytes", len(dst))
		}
		return nil
	case 3:
		return d.expand.Zlib(dst, src)
	case 4:
		return d.expand.Zstd(slices.Clip(dst), src)
	}
	return broken("", "compressor %d", codec)
}

// unBloscLZ decodes a stream of BloscLZ, which is made like FastLZ's second level: a control byte below 32 is followed
// by as many literals plus one; another one has the length of a match in its upper three bits, and the upper five bits
// of its distance in the rest. Longer lengths and distances of more than 13 bits take further bytes.
func unBloscLZ(dst, src []byte) bool {
	if len(src) == 0 {
		return false
	}
	pos, i := 0, 1
	ctrl := int(src[0]) & 31
	for {
		if ctrl < 32 {
			literals := ctrl + 1
			if literals > len(dst)-pos || literals > len(src)-i {
				return false
			}
			pos += copy(dst[pos:], src[i:i+literals])
			i += literals
		} else {
			length, distance := ctrl>>5-1, (ctrl&31)<<8
			if length == 6 {
				for {
					if i >= len(src) || length > len(dst) {
						return false
					}
					extra := int(src[i])
					i++
					length += extra
					if extra != 255 {
						break
					}
				}
			}
			if i >= len(src) {
				return false
			}
			extra := int(src[i])
			i++
			length += 3
			distance += extra
			if extra == 255 && distance == 31<<8+255 { // a far match: two bytes follow
				if len(src)-i < 2 {
					return false
				}
				distance = int(src[i])<<8 + int(src[i+1]) + 8191
				i += 2
			}
			distance++
			if distance > pos || length > len(dst)-pos {
				return false
			}
			copyMatch(dst, pos, distance, length)
			pos += length
		}
		if i >= len(src) {
			return pos == len(dst)
		}
		ctrl = int(src[i])
		i++
	}
}

// copyMatch copies n bytes from far bytes back, which may overlap with where they go.
func copyMatch(dst []byte, at, far, n int) {
	if far >= n {
		copy(dst[at:at+n], dst[at-far:])
		return
	}
	for k := at; k < at+n; k++ {
		dst[k] = dst[k-far]
	}
}
