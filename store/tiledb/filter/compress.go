package filter

import (
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// decompress undoes a compressor. Its metadata replaced that of the filters before it, which is
// compressed in front of the data.
func (d *Decoder) decompress(id ID, dst, meta, data []byte, final int, e Elem) (m, out []byte, err error) {
	p, err := readParts(meta, 8)
	if err != nil {
		return nil, nil, err
	}
	return d.each(&p, dst, data, final, func(_ int, dst, src []byte) error { return d.expand(id, dst, src, e) })
}

// expand fills dst from one compressed part. The capacity of dst past its length may be
// overwritten.
func (d *Decoder) expand(id ID, dst, src []byte, e Elem) error {
	switch id {
	case Gzip:
		return d.expandGzip(dst, src)
	case Zstd:
		if d.zstd == nil {
			d.zstd = zstd.New()
		}
		var err error
		if cap(dst)-len(dst) >= zstd.Spare {
			err = d.zstd.DecompressSpare(dst, src)
		} else {
			err = d.zstd.Decompress(dst, src)
		}
		if err != nil {
			return unnamed(err)
		}
		return nil
	case LZ4:
		if len(dst) == 0 { // the library needs room even for nothing
			if len(src) != 1 || src[0] != 0 {
				return corrupt("", "block of %d bytes without content", len(src))
			}
			return nil
		}
		n, err := lz4.UncompressBlock(src, dst[:len(dst):len(dst)])
		if err != nil || n != len(dst) {
			return corrupt("", "the block does not give %d bytes", len(dst))
		}
		return nil
	case Bzip2:
		d.src.Reset(src)
		defer d.src.Reset(nil)
		return exactly(bzip2.NewReader(&d.src), dst)
	case RLE:
		return expandRLE(dst, src, e)
	case Delta:
		return expandDelta(dst, src, e)
	}
	return expandDoubleDelta(dst, src, e)
}

// unnamed removes the part from a fault, because the name of the filter takes its place.
func unnamed(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return fault.New(f.Kind, "", fault.NoOffset, "%s", f.Msg)
	}
	return err
}

// expandGzip reads a zlib stream (RFC 1950), whose checksum is verified.
func (d *Decoder) expandGzip(dst, src []byte) (err error) {
	d.src.Reset(src)
	defer d.src.Reset(nil)
	if d.gzip == nil {
		d.gzip, err = zlib.NewReader(&d.src)
	} else {
		err = d.gzip.(zlib.Resetter).Reset(&d.src, nil)
	}
	if err != nil {
		return corrupt("", "%v", err)
	}
	return exactly(d.gzip, dst)
}

// exactly fills dst from r, which must end there.
func exactly(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return corrupt("", "%v", err)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return corrupt("", "more than %d bytes come out", len(dst))
	case err != io.EOF:
		return corrupt("", "%v", err)
	}
	return nil
}

func expandRLE(dst, src []byte, e Elem) error {
	for _, cell := range [...]int{e.Cell, e.Alt} {
		if n, ok := rleLength(src, cell); ok && n == int64(len(dst)) {
			rleDecode(dst, src, cell)
			return nil
		}
	}
	return corrupt("", "%d bytes are not the runs of %d bytes in cells of %d", len(src), len(dst), e.Cell)
}

func expandDelta(dst, src []byte, e Elem) error {
	size := e.ddSize()
	switch {
	case e.Kind == Float:
		return corrupt("", "of floating-point values")
	case len(src) < 8 || len(src)-8 != len(dst)/size*size:
		return corrupt("", "%d bytes for %d in values of %d", len(src), len(dst), size)
	case le(src, 8) != uint64(len(dst)/size):
		return corrupt("", "%d values, %d needed", le(src, 8), len(dst)/size)
	}
	n := copy(dst, src[8:])
	clear(dst[n:]) // as in expandDoubleDelta
	if n > 0 {
		kernel.UndoHorizontal(dst[:n], size, 1)
	}
	return nil
}

func expandDoubleDelta(dst, src []byte, e Elem) error {
	if e.Kind == Float {
		return corrupt("", "of floating-point values")
	}
	if len(src) < ddHeader {
		return corrupt("", "%d bytes, at least %d needed", len(src), ddHeader)
	}
	size := e.ddSize()
	width, count := int(src[0]), binary.LittleEndian.Uint64(src[1:])
	src = src[ddHeader:]
	n := len(dst) / size
	switch {
	case count != uint64(n):
		return corrupt("", "%d values, %d needed", count, n)
	case width > 64:
		return corrupt("", "differences of %d bits", width)
	case width >= 8*size-1: // stored unchanged
		if len(src) != len(dst) {
			return corrupt("", "%d bytes of values, %d needed", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}
	lead := min(n, 2) * size
	if len(src) != lead+8*ddWords(n, width) {
		return corrupt("", "%d bytes for %d values with differences of %d bits", len(src), n, width)
	}
	var first, second int64
	if n > 0 {
		first = extend(src, size, e.signed())
	}
	if n > 1 {
		second = extend(src[size:], size, e.signed())
	}
	clear(dst[n*size:]) // the writer lost what is not a whole value (metadata of other filters)
	ddDecode(dst[:n*size], size, width, first, second, src[lead:])
	return nil
}

// ddSize is the size of the integers that double delta sees.
func (e Elem) ddSize() int {
	if e.Kind == Char {
		return 1
	}
	return e.Size
}

func (e Elem) signed() bool { return e.Kind == Signed || e.Kind == Time }
