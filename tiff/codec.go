package tiff

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/zstd"
)

type zstdDecoder struct{ d *zstd.Decoder }

// Decompress fills dst. The frames may hold more, and other bytes may follow them, because some writers
// pad the last strip. It verifies the checksum of a frame that ends with dst.
func (z zstdDecoder) Decompress(dst, src []byte, _ int) error {
	if cap(dst)-len(dst) >= zstd.Spare {
		return padded(dst, src, z.d.DecompressSpare(dst, src))
	}
	return padded(dst, src, z.d.Decompress(dst, src))
}

// DecompressPrefix skips the whole blocks after the first n bytes.
func (z zstdDecoder) DecompressPrefix(dst, src []byte, n, _ int) error {
	return padded(dst, src, z.d.DecompressPrefix(dst, src, n))
}

// padded returns err, or nil if the only fault is that src holds more than dst.
func padded(dst, src []byte, err error) error {
	if err != nil && zstd.DecompressSurplus(dst, src) {
		return nil
	}
	return err
}

// deflateDecoder reads zlib streams (RFC 1950), which both deflate compressions of TIFF use.
type deflateDecoder struct {
	src  bytes.Reader
	r    io.ReadCloser
	more [4]byte
}

// Decompress fills dst. A stream may hold more, because some writers pad the last strip. It verifies the
// checksum of a stream that ends with dst.
func (d *deflateDecoder) Decompress(dst, src []byte, _ int) error {
	defer d.src.Reset(nil)
	if err := d.fill(dst, src); err != nil {
		return err
	}
	return endDeflate(d.r, &d.src, d.more[:], func() uint32 { return adler32.Checksum(dst) })
}

// DecompressPrefix fills dst[:n]. It reads nothing after that, so no checksum either.
func (d *deflateDecoder) DecompressPrefix(dst, src []byte, n, _ int) error {
	defer d.src.Reset(nil)
	return d.fill(dst[:n], src)
}

func badDeflate(format string, args ...any) error {
	return fault.New(fault.Corrupt, "deflate", fault.NoOffset, format, args...)
}

// zlibHeader reports whether a stream that begins with these two bytes is a zlib stream without a
// dictionary.
func zlibHeader(head []byte) bool {
	const dictionary = 0x20
	return head[0]&15 == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 && head[1]&dictionary == 0
}

func errZlibHeader() error { return badDeflate("not a zlib header") }

// fill fills dst from the start of the stream.
func (d *deflateDecoder) fill(dst, src []byte) error {
	if len(src) < 2 || !zlibHeader(src) {
		return errZlibHeader()
	}
	d.src.Reset(src[2:])
	if d.r == nil {
		d.r = flate.NewReader(&d.src)
	} else if err := d.r.(flate.Resetter).Reset(&d.src, nil); err != nil {
		return badDeflate("%v", err)
	}
	if _, err := io.ReadFull(d.r, dst); err != nil {
		return badDeflate("%v", err)
	}
	return nil
}

// endDeflate verifies the checksum of a stream whose content has been read from r, unless it holds more. sum
// returns the content's checksum; more has 4 bytes.
func endDeflate(r io.Reader, src io.Reader, more []byte, sum func() uint32) error {
	switch _, err := io.ReadFull(r, more[:1]); err {
	case nil:
		return nil
	case io.EOF:
	default:
		return badDeflate("%v", err)
	}
	// The checksum is next, because flate never reads ahead in an io.ByteReader.
	if _, err := io.ReadFull(src, more); err != nil {
		return badDeflate("the checksum is missing")
	}
	if want, got := binary.BigEndian.Uint32(more), sum(); want != got {
		return badDeflate("checksum %08x, content has %08x", want, got)
	}
	return nil
}

// packBitsDecoder reads Apple's byte-oriented run lengths (TIFF 6.0 section 9).
type packBitsDecoder struct{}

// Decompress fills dst and ignores what follows.
func (p packBitsDecoder) Decompress(dst, src []byte, sample int) error {
	return p.DecompressPrefix(dst, src, len(dst), sample)
}

// DecompressPrefix stops after the run that reaches n.
func (packBitsDecoder) DecompressPrefix(dst, src []byte, n, _ int) error {
	for rest := len(dst) - n; len(dst) > rest; {
		if len(src) < 2 {
			return fault.New(fault.Corrupt, "packbits", fault.NoOffset, "ends early, %d bytes missing", len(dst))
		}
		n := int(int8(src[0]))
		switch {
		case n >= 0: // n+1 bytes as they are
			if n++; min(n, len(dst)) > len(src)-1 {
				return fault.New(fault.Corrupt, "packbits", fault.NoOffset, "a run of %d bytes passes the end", n)
			}
			n = min(n, len(dst)) // because some writers pad the last strip
			copy(dst, src[1:1+n])
			src = src[1+n:]
		case n == -128: // nothing
			src = src[1:]
			continue
		default: // one byte, 1-n times
			n = min(1-n, len(dst))
			for i := range n {
				dst[i] = src[1]
			}
			src = src[2:]
		}
		dst = dst[n:]
	}
	return nil
}
