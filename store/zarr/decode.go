package zarr

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// decoder undoes the codecs of chunks. It keeps its memory between chunks and is not safe for concurrent use.
type decoder struct {
	zstd  *zstd.Decoder
	src   bytes.Reader
	gzip  *gzip.Reader
	zlib  io.ReadCloser
	turns [2][]byte // what is between two steps, in turns
	blosc [2][]byte // the planes of a block, and its bytes before bits are put together
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk fills dst from the stored bytes of a chunk. The capacity of dst past its length may be overwritten.
func (d *decoder) chunk(dst, src []byte, steps []step) error {
	cur := src
	for i := range steps {
		s := &steps[i]
		if s.do == doCRC32C { // checks its bytes where they are
			if len(cur) != s.size+4 {
				return badSize(s.name, len(cur), s.size+4)
			}
			body := cur[:s.size]
			if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(cur[s.size:]) {
				return broken(s.name, "the checksum does not match")
			}
			cur = body
			continue
		}
		out := dst
		if i < len(steps)-1 {
			turn := &d.turns[i%2]
			if cap(*turn) < s.size+zstd.Spare {
				*turn = make([]byte, s.size, s.size+zstd.Spare)
			}
			out = (*turn)[:s.size]
		}
		if len(out) != s.size {
			return badSize(s.name, s.size, len(out))
		}
		if err := d.step(out, cur, s); err != nil {
			return fault.WithPart(err, "codec "+s.name, fault.NoOffset)
		}
		cur = out
	}
	if len(cur) != len(dst) {
		return broken("bytes", "%d bytes, the chunk has %d", len(cur), len(dst))
	}
	if len(dst) > 0 && &cur[0] != &dst[0] {
		copy(dst, cur)
	}
	return nil
}

func broken(part, format string, args ...any) error {
	return fault.New(fault.Corrupt, part, fault.NoOffset, format, args...)
}

func badSize(part string, got, want int) error {
	return broken("codec "+part, "%d bytes, %d needed", got, want)
}

// step fills dst, of the step's size, from what was stored.
func (d *decoder) step(dst, src []byte, s *step) error {
	switch s.do {
	case doZstd:
		return d.unzstd(dst, src)
	case doGzip, doZlib:
		return d.inflate(dst, src, s.do == doZlib)
	case doBzip2:
		d.src.Reset(src)
		defer d.src.Reset(nil)
		return exactly(bzip2.NewReader(&d.src), dst)
	case doLZ4: // of numcodecs: the size before the block
		if len(src) < 4 || binary.LittleEndian.Uint32(src) != uint32(len(dst)) {
			return broken("", "the size in front is not %d", len(dst))
		}
		return unLZ4(dst, src[4:])
	case doBlosc:
		return d.unblosc(dst, src)
	}
	return undoFilter(dst, src, s)
}

// undoFilter undoes a step that does not compress.
func undoFilter(dst, src []byte, s *step) error {
	switch s.do {
	case doShuffle:
		if len(src) != len(dst) {
			return broken("", "%d bytes, %d needed", len(src), len(dst))
		}
		n := len(src) / s.elem * s.elem
		copy(dst[n:], src[n:])
		planes.Join(dst[:n], src[:n], s.elem)
		return nil
	case doSwap:
		if len(src) != len(dst) {
			return broken("", "%d bytes, %d needed", len(src), len(dst))
		}
		swap(dst, src, s.elem)
		return nil
	}
	n := len(dst) / s.to.t.Size()
	if len(src) != n*s.from.t.Size() {
		return broken("", "%d bytes, %d values needed", len(src), n)
	}
	if s.do == doScale {
		unscale(dst, src, s, n)
		return nil
	}
	undelta(dst, src, s, n)
	return nil
}

func (d *decoder) unzstd(dst, src []byte) error {
	if d.zstd == nil {
		d.zstd = zstd.New()
	}
	var err error
	if cap(dst)-len(dst) >= zstd.Spare {
		err = d.zstd.DecompressSpare(dst, src)
	} else {
		err = d.zstd.Decompress(dst, src)
	}
	var f *fault.Error
	if errors.As(err, &f) { // without the part, which the codec's name takes the place of
		return broken("", "%s", f.Msg)
	}
	return err
}

// inflate reads a gzip or zlib stream, whose checksum is verified.
func (d *decoder) inflate(dst, src []byte, isZlib bool) (err error) {
	d.src.Reset(src)
	defer d.src.Reset(nil)
	switch {
	case isZlib && d.zlib == nil:
		d.zlib, err = zlib.NewReader(&d.src)
	case isZlib:
		err = d.zlib.(zlib.Resetter).Reset(&d.src, nil)
	case d.gzip == nil:
		d.gzip, err = gzip.NewReader(&d.src)
	default:
		err = d.gzip.Reset(&d.src)
	}
	if err != nil {
		return broken("", "%v", err)
	}
	if isZlib {
		return exactly(d.zlib, dst)
	}
	return exactly(d.gzip, dst)
}

// exactly fills dst from r, which must end there.
func exactly(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return broken("", "%v", err)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return broken("", "more than %d bytes come out", len(dst))
	case !errors.Is(err, io.EOF):
		return broken("", "%v", err)
	}
	return nil
}

// unLZ4 decodes an LZ4 block of exactly len(dst) bytes.
func unLZ4(dst, src []byte) error {
	if len(dst) == 0 { // the library needs room even for nothing
		return nil
	}
	n, err := lz4.UncompressBlock(src, dst[:len(dst):len(dst)])
	if err != nil || n != len(dst) {
		return broken("", "the block does not give %d bytes", len(dst))
	}
	return nil
}
