package filter

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// decompress undoes a compressor. Its metadata replaced the metadata of the filters before it, which is
// compressed in front of the data.
func (d *Decoder) decompress(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	parts, err := readParts(meta, 8)
	if err != nil {
		return nil, nil, err
	}
	elem := f.e
	if f.As.Size > 0 {
		elem = f.after(elem)
	}
	return d.each(&parts, dst, data, final, func(_ int, dst, src []byte) error {
		return kinds[f.ID].expand(d, dst, src, elem)
	})
}

func expandRLE(_ *Decoder, dst, src []byte, e Elem) error {
	for _, cell := range [...]int{e.Cell, e.Alt} {
		if n, ok := rleLength(src, cell); ok && n == int64(len(dst)) {
			rleDecode(dst, src, cell)
			return nil
		}
	}
	return corrupt("", "%d bytes are not the runs of %d bytes in cells of %d", len(src), len(dst), e.Cell)
}

func expandDelta(_ *Decoder, dst, src []byte, e Elem) error {
	size := e.ddSize()
	switch {
	case e.Kind == Float:
		return corrupt("", "of floating-point values")
	case len(src) < 8 || len(src)-8 != len(dst)/size*size:
		return corrupt("", "%d bytes for %d in values of %d", len(src), len(dst), size)
	case cast.Uint(src, 8) != uint64(len(dst)/size):
		return corrupt("", "%d values, %d needed", cast.Uint(src, 8), len(dst)/size)
	}
	copied := copy(dst, src[8:])
	clear(dst[copied:]) // as in expandDoubleDelta
	kernel.UndoHorizontal(dst[:copied], copied, size, 1)
	return nil
}

func expandDoubleDelta(_ *Decoder, dst, src []byte, e Elem) error {
	if e.Kind == Float {
		return corrupt("", "of floating-point values")
	}
	if len(src) < ddHeader {
		return corrupt("", "%d bytes, at least %d needed", len(src), ddHeader)
	}
	size := e.ddSize()
	width, count := int(src[0]), binary.LittleEndian.Uint64(src[1:])
	src = src[ddHeader:]
	values := len(dst) / size
	switch {
	case count != uint64(values):
		return corrupt("", "%d values, %d needed", count, values)
	case width > 64:
		return corrupt("", "differences of %d bits", width)
	case width >= 8*size-1: // stored unchanged
		if len(src) != len(dst) {
			return corrupt("", "%d bytes of values, %d needed", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}
	lead := min(values, 2) * size
	if len(src) != lead+8*ddWords(values, width) {
		return corrupt("", "%d bytes for %d values with differences of %d bits", len(src), values, width)
	}
	var first, second int64
	if values > 0 {
		first = extend(src, size, e.signed())
	}
	if values > 1 {
		second = extend(src[size:], size, e.signed())
	}
	// The writer drops the bytes after the last whole value, which only metadata of other filters has. They need to be
	// 0, because dst is reused.
	clear(dst[values*size:])
	ddDecode(dst[:values*size], size, width, first, second, src[lead:])
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
