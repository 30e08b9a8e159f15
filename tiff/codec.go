package tiff

import (
	"bufio"
	"bytes"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/inflate"
	"github.com/chaski-eo/chaski/internal/zstd"
)

type zstdDecoder struct{ d *zstd.Decoder }

// Decompress fills dst. The frames may hold more, and other bytes may follow them, because some writers
// pad the last strip. It verifies the checksum of a frame that ends with dst, and skips whole blocks that are not
// needed.
func (z zstdDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	return padded(dst, src, z.d.DecompressPrefix(dst, src, t.Need))
}

// padded returns err, or nil if the only fault is that src holds more than dst.
func padded(dst, src []byte, err error) error {
	if err != nil && zstd.DecompressSurplus(dst, src) {
		return nil
	}
	return err
}

// deflateDecoder reads zlib streams (RFC 1950), which both deflate compressions of TIFF use.
type deflateDecoder struct{ d inflate.Decoder }

// Decompress fills dst. A stream may hold more, because some writers pad the last strip. It stops behind the bytes
// that are needed, and leaves out the checksum.
func (d *deflateDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if t.Need < len(dst) {
		if !inflate.IsZlib(src) {
			return badDeflate("not a zlib header")
		}
		if _, err := d.d.Fill(dst[:t.Need], src[2:]); err != nil {
			return badDeflate("%v", err)
		}
		return nil
	}
	switch err := d.d.Zlib(dst, src); {
	case errors.Is(err, inflate.ErrSurplus):
		return d.padded(dst, src)
	case err != nil:
		return badDeflate("%v", err)
	}
	return nil
}

// padded verifies the checksum of a stream that holds more than dst.
func (d *deflateDecoder) padded(dst, src []byte) error {
	stream, err := d.Stream(bufio.NewReader(bytes.NewReader(src)), 0)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := stream.Fill(dst); err != nil {
		return err
	}
	return stream.End()
}

func badDeflate(format string, args ...any) error {
	return fault.New(fault.Corrupt, "deflate", format, args...)
}

// packBitsDecoder reads Apple's byte-oriented run lengths (TIFF 6.0 section 9).
type packBitsDecoder struct{}

// Decompress stops after the run that reaches the last byte that is needed, and ignores further bytes.
func (packBitsDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	for rest := len(dst) - t.Need; len(dst) > rest; {
		if len(src) < 2 {
			return fault.New(fault.Corrupt, "packbits", "ends early, %d bytes missing", len(dst))
		}
		n := int(int8(src[0]))
		switch {
		case n >= 0: // n+1 bytes as they are
			if n++; min(n, len(dst)) > len(src)-1 {
				return fault.New(fault.Corrupt, "packbits", "a run of %d bytes passes the end", n)
			}
			// Some writers pad the last strip, so more may come out.
			n = min(n, len(dst))
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
