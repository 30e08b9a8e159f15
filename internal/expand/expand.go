// Package expand undoes the general compressors of array formats (zstd, zlib, gzip, bzip2, LZ4) into memory of a known
// size. The content must fill that memory exactly, which the libraries do not check. Errors are faults without a part,
// which callers name.
package expand

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inflate"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Decoder keeps the memory of its readers between calls. The zero value is ready for use, by one goroutine.
type Decoder struct {
	src     bytes.Reader
	zstd    *zstd.Decoder
	inflate inflate.Decoder
}

// Zstd fills dst from a zstd frame (RFC 8878). The capacity of dst past its length may be overwritten.
func (d *Decoder) Zstd(dst, src []byte) error {
	if d.zstd == nil {
		d.zstd = zstd.New()
	}
	if err := d.zstd.Decompress(dst, src); err != nil {
		return unnamed(err)
	}
	return nil
}

// unnamed removes the part of a fault.
func unnamed(err error) error {
	if named, ok := errors.AsType[*fault.Error](err); ok {
		return fault.New(named.Kind, "", "%s", named.Msg)
	}
	return err
}

// Zlib fills dst from a zlib stream (RFC 1950), whose checksum is verified.
func (d *Decoder) Zlib(dst, src []byte) error {
	if err := d.inflate.Zlib(dst, src); err != nil {
		return corrupt("%v", err)
	}
	return nil
}

// Gzip fills dst from gzip members (RFC 1952), whose checksums are verified.
func (d *Decoder) Gzip(dst, src []byte) error {
	for rest := dst; ; {
		begin, err := gzipHeader(src)
		if err != nil {
			return err
		}
		written, used, err := d.inflate.Next(rest, src[begin:])
		if err != nil {
			return corrupt("%v", err)
		}
		const trailer = 8 // CRC-32 and the size modulo 2^32
		src = src[begin+used:]
		if len(src) < trailer {
			return corrupt("gzip: the checksum is missing")
		}
		sum, size := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:])
		if found := crc32.ChecksumIEEE(rest[:written]); sum != found || size != uint32(written) {
			return corrupt("gzip: checksum %08x of %d bytes, content has %08x of %d", sum, size, found, written)
		}
		if src, rest = src[trailer:], rest[written:]; len(src) == 0 {
			if len(rest) > 0 {
				return corrupt("gzip: %d bytes are missing", len(rest))
			}
			return nil
		}
	}
}

// gzipHeader returns the length of the header of a gzip member.
func gzipHeader(b []byte) (int, error) {
	const (
		fixed                         = 10
		sum, extra, name, note, spare = 2, 4, 8, 16, 0xe0 // bits of byte 3
	)
	if len(b) < fixed || b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 || b[3]&spare != 0 {
		return 0, corrupt("not a gzip header")
	}
	end, flags := fixed, b[3]
	if flags&extra != 0 {
		if end += 2; end <= len(b) {
			end += int(binary.LittleEndian.Uint16(b[end-2:]))
		}
	}
	for _, text := range [...]byte{name, note} { // each ends with a zero
		if flags&text != 0 && end < len(b) {
			n := bytes.IndexByte(b[end:], 0)
			if n < 0 {
				return 0, corrupt("gzip: the header is cut off")
			}
			end += n + 1
		}
	}
	if flags&sum != 0 {
		end += 2
		if end <= len(b) && binary.LittleEndian.Uint16(b[end-2:]) != uint16(crc32.ChecksumIEEE(b[:end-2])) {
			return 0, corrupt("gzip: the checksum of the header is wrong")
		}
	}
	if end > len(b) {
		return 0, corrupt("gzip: the header is cut off")
	}
	return end, nil
}

// Bzip2 fills dst from a bzip2 stream.
func (d *Decoder) Bzip2(dst, src []byte) error {
	d.src.Reset(src)
	defer d.src.Reset(nil)
	return exactly(dst, bzip2.NewReader(&d.src))
}

// LZ4 fills dst from an LZ4 block.
func LZ4(dst, src []byte) error {
	// An empty block is checked here, because the library needs room even for nothing.
	if len(dst) == 0 {
		if len(src) != 1 || src[0] != 0 {
			return corrupt("block of %d bytes without content", len(src))
		}
		return nil
	}
	size, err := lz4.UncompressBlock(src, slices.Clip(dst))
	if err != nil || size != len(dst) {
		return corrupt("the block does not give %d bytes", len(dst))
	}
	return nil
}

// exactly fills dst from r, which must end there.
func exactly(dst []byte, r io.Reader) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return corrupt("%v", err)
	}
	var rest [1]byte
	switch surplus, err := io.ReadFull(r, rest[:]); {
	case surplus > 0:
		return corrupt("more than %d bytes come out", len(dst))
	case !errors.Is(err, io.EOF):
		return corrupt("%v", err)
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "", format, args...)
}

// LZF fills dst from a stream of LibLZF, as h5py writes it. A control byte below 32 is followed by as many literals
// plus one. Another one has the length of a match in its upper three bits, and the upper five bits of its distance in
// the rest; the length 7 takes a further byte.
func LZF(dst, src []byte) error {
	pos, i := 0, 0
	for i < len(src) {
		ctrl := int(src[i])
		i++
		if ctrl < 32 {
			n := ctrl + 1
			if n > len(src)-i || n > len(dst)-pos {
				return corrupt("LZF: %d literals at %d of %d bytes", n, i, len(src))
			}
			pos += copy(dst[pos:], src[i:i+n])
			i += n
			continue
		}
		n := ctrl >> 5
		if n == 7 && i < len(src) {
			n += int(src[i])
			i++
		}
		if i >= len(src) {
			return corrupt("LZF: the stream is cut off")
		}
		distance := (ctrl&31)<<8 + int(src[i]) + 1
		i++
		if n += 2; distance > pos || n > len(dst)-pos {
			return corrupt("LZF: %d bytes from %d back at %d of %d", n, distance, pos, len(dst))
		}
		for ; n > 0; n-- {
			dst[pos] = dst[pos-distance]
			pos++
		}
	}
	if pos != len(dst) {
		return corrupt("LZF: the stream gives %d bytes, %d needed", pos, len(dst))
	}
	return nil
}
