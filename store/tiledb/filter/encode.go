package filter

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/zlib"
	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Encoder applies filter pipelines. It is not safe for concurrent use.
type Encoder struct {
	key cipher.AEAD
	lz4 lz4.Compressor
	gz  map[int32]*zlib.Writer
	buf bytes.Buffer
}

// NewEncoder returns an encoder. key may be nil.
func NewEncoder(key cipher.AEAD) *Encoder { return &Encoder{key: key} }

// Tile appends the stored form of a tile to out: its filtered chunks. Each stride bytes of src are
// cut into chunks separately, for tiles of coordinates one dimension; 0 means all of src.
//
// Values that a filter cannot represent (positive delta of falling values) and bzip2 are
// fault.Unsupported.
func (x *Encoder) Tile(out, src []byte, p Pipeline, e Elem, stride int) ([]byte, error) {
	if stride <= 0 {
		stride = len(src)
	}
	unit := e.Cell
	if stride < len(src) { // of coordinates: whole values of one dimension
		unit = e.Size
	}
	limit := max(int(min(p.MaxChunk, math.MaxInt32))/unit*unit, unit)
	count := len(out)
	out = binary.LittleEndian.AppendUint64(out, 0)
	n := uint64(0)
	for first := true; first || len(src) > 0; first = false {
		piece := src[:min(stride, len(src))]
		src = src[len(piece):]
		for goesOn := true; goesOn; goesOn = len(piece) > 0 {
			c := piece[:min(limit, len(piece))]
			piece = piece[len(c):]
			var err error
			if out, err = x.chunk(out, c, p, e); err != nil {
				return nil, err
			}
			n++
		}
	}
	binary.LittleEndian.PutUint64(out[count:], n)
	return out, nil
}

// chunk appends one chunk.
func (x *Encoder) chunk(out, src []byte, p Pipeline, e Elem) ([]byte, error) {
	var metas [][]byte // of the filters so far, the latest first; each a part of its own
	data := src
	for _, filter := range p.Filters {
		if !filter.acts(e) {
			continue
		}
		meta, d, every, err := x.apply(filter, metas, data, e)
		if err != nil {
			return nil, fault.WithPart(err, filter.ID.String(), fault.NoOffset)
		}
		if every {
			metas = nil
		}
		metas, data = append([][]byte{meta}, metas...), d
	}
	meta := bytes.Join(metas, nil)
	if !fits32(len(src)) || !fits32(len(data)) || !fits32(len(meta)) {
		return nil, fault.New(fault.Limit, "chunk", fault.NoOffset, "more than 4 GiB")
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(src)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(meta)))
	return append(append(out, meta...), data...), nil
}

// apply runs one filter. all says that it also consumed the metadata of the filters before it.
func (x *Encoder) apply(f Filter, metas [][]byte, data []byte, e Elem) (meta, out []byte, all bool, err error) {
	switch {
	case f.ID.compressor():
		meta, out, err = x.parts(metas, data, func(out, part []byte) ([]byte, []byte, error) {
			start := len(out)
			out, err := x.compress(out, f, part, e)
			return binary.LittleEndian.AppendUint32(nil, uint32(len(out)-start)), out, err
		})
		return meta, out, true, err
	case f.ID == AES256GCM:
		if x.key == nil {
			return nil, nil, false, fault.New(fault.Unsupported, "", fault.NoOffset, "the filter needs a key")
		}
		meta, out, err = x.parts(metas, data, x.encrypt)
		return meta, out, true, err
	case f.ID == ByteShuffle, f.ID == BitShuffle:
		meta, out = shuffled(f.ID, data, e.Size)
	case f.ID == BitWidth:
		meta, out = narrowed(data, window(f, e, len(data)), e)
	case f.ID == PositiveDelta:
		meta, out, err = deltas(data, window(f, e, len(data)), e)
	default:
		err = fault.New(fault.Unsupported, "", fault.NoOffset, "filter %v", f.ID)
	}
	return meta, out, false, err
}

// parts runs f over every part: the metadata so far, and then the data. f appends the new bytes of
// the part to out, and returns the metadata about it that follows its size.
func (x *Encoder) parts(metas [][]byte, data []byte, f func(out, part []byte) (says, _ []byte,
	err error)) (meta, out []byte, err error) {
	meta = binary.LittleEndian.AppendUint32(nil, uint32(len(metas)))
	meta = binary.LittleEndian.AppendUint32(meta, 1)
	for i := 0; i <= len(metas); i++ {
		part := data
		if i < len(metas) {
			part = metas[i]
		}
		var says []byte
		if says, out, err = f(out, part); err != nil {
			return nil, nil, err
		}
		meta = binary.LittleEndian.AppendUint32(meta, uint32(len(part)))
		meta = append(meta, says...)
	}
	return meta, out, nil
}

func (x *Encoder) encrypt(out, part []byte) (says, _ []byte, err error) {
	var iv [12]byte
	if _, err := rand.Read(iv[:]); err != nil {
		return nil, nil, err
	}
	start := len(out)
	out = x.key.Seal(out, iv[:], part, nil)
	end := len(out) - x.key.Overhead()
	says = binary.LittleEndian.AppendUint32(nil, uint32(end-start))
	says = append(append(says, iv[:]...), out[end:]...)
	return says, out[:end], nil
}

// window returns the bytes of a window: whole values, at least one.
func window(f Filter, e Elem, n int) int {
	return max(values(int(min(f.Window, math.MaxInt32)), e.Size), e.Size)
}

func shuffled(id ID, data []byte, size int) (meta, out []byte) {
	out = make([]byte, len(data))
	cut := []int{len(data)}
	if id == BitShuffle && len(data)%8 != 0 {
		cut = []int{len(data) / 8 * 8, len(data) % 8}
	}
	meta = binary.LittleEndian.AppendUint32(nil, uint32(len(cut)))
	dst := out
	for _, n := range cut {
		meta = binary.LittleEndian.AppendUint32(meta, uint32(n))
		switch {
		case id == ByteShuffle:
			planes.Split(dst[:n], data[:n], size)
		case n%size != 0 || n%8 != 0:
			copy(dst, data[:n])
		default:
			bitshuffle(dst[:n], data[:n], size)
		}
		dst, data = dst[n:], data[n:]
	}
	return meta, out
}

func narrowed(data []byte, limit int, e Elem) (meta, out []byte) {
	meta = binary.LittleEndian.AppendUint32(nil, uint32(len(data)))
	meta = binary.LittleEndian.AppendUint32(meta, uint32((len(data)+limit-1)/limit))
	for len(data) > 0 {
		w := data[:min(limit, len(data))]
		data = data[len(w):]
		low, width := uint64(0), 8*e.Size
		if len(w)%e.Size == 0 {
			var span uint64
			low, span = rangeOf(w, e.Size, e.Kind == Signed)
			width = widthFor(span, 8*e.Size, e.Kind == Signed)
		}
		meta = appendLE(meta, e.Size, low)
		meta = append(meta, byte(width))
		meta = binary.LittleEndian.AppendUint32(meta, uint32(len(w)))
		if width == 8*e.Size {
			out = append(out, w...)
		} else {
			out = narrow(out, w, e.Size, width, low)
		}
	}
	return meta, out
}

// widthFor returns the smallest width of 8, 16, 32 or all bits that holds numbers from 0 to span.
// Values of signed types are widened with their sign, so that they have one bit less.
func widthFor(span uint64, all int, signed bool) int {
	spare := 0
	if signed {
		spare = 1
	}
	for w := 8; w < all; w *= 2 {
		if span>>(w-spare) == 0 {
			return w
		}
	}
	return all
}

func deltas(data []byte, limit int, e Elem) (meta, out []byte, err error) {
	meta = binary.LittleEndian.AppendUint32(nil, uint32((len(data)+limit-1)/limit))
	for len(data) > 0 {
		w := data[:min(limit, len(data))]
		data = data[len(w):]
		if len(w)%e.Size != 0 {
			meta = appendLE(meta, e.Size, 0)
			meta = binary.LittleEndian.AppendUint32(meta, uint32(len(w)))
			out = append(out, w...)
			continue
		}
		meta = appendLE(meta, e.Size, cast.Uint(w, e.Size))
		meta = binary.LittleEndian.AppendUint32(meta, uint32(len(w)))
		for i := 0; i < len(w); i += e.Size {
			j := max(i-e.Size, 0)
			a, b := extend(w[j:], e.Size, e.Kind == Signed), extend(w[i:], e.Size, e.Kind == Signed)
			if falls := b < a; falls != (e.Kind == Unsigned && (a < 0) != (b < 0)) {
				return nil, nil, fault.New(fault.Unsupported, "", fault.NoOffset, "the values are not ascending")
			}
			out = appendLE(out, e.Size, uint64(b-a))
		}
	}
	return meta, out, nil
}

// compress appends one compressed part.
func (x *Encoder) compress(out []byte, f Filter, part []byte, e Elem) ([]byte, error) {
	switch f.ID {
	case Gzip:
		return x.compressGzip(out, f.Level, part)
	case Zstd:
		if len(part) == 0 {
			return out, nil
		}
		level := 3 // libzstd's default
		if f.Level > 0 {
			level = int(f.Level)
		}
		return zstd.Append(out, part, level), nil
	case LZ4:
		return x.compressLZ4(out, part)
	case RLE:
		if len(part)%e.Cell != 0 { // libtiledb expects whole tuples among the values of a dimension
			return nil, fault.New(fault.Unsupported, "", fault.NoOffset,
				"%d bytes are not whole cells of %d", len(part), e.Cell)
		}
		return rleEncode(out, part, e.Cell), nil
	case DoubleDelta:
		return compressDoubleDelta(out, part, e)
	}
	return nil, fault.New(fault.Unsupported, "", fault.NoOffset, "it cannot be written")
}

func (x *Encoder) compressGzip(out []byte, level int32, part []byte) ([]byte, error) {
	if level < -1 || level > 9 {
		level = -1
	}
	x.buf.Reset()
	writer := x.gz[level]
	if writer == nil {
		var err error
		if writer, err = zlib.NewWriterLevel(&x.buf, int(level)); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "", fault.NoOffset, err)
		}
		if x.gz == nil {
			x.gz = map[int32]*zlib.Writer{}
		}
		x.gz[level] = writer
	} else {
		writer.Reset(&x.buf)
	}
	if _, err := writer.Write(part); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return append(out, x.buf.Bytes()...), nil
}

func (x *Encoder) compressLZ4(out, part []byte) ([]byte, error) {
	if len(part) == 0 {
		return append(out, 0), nil // a token without literals
	}
	data := make([]byte, lz4.CompressBlockBound(len(part))) // which has room for data that do not shrink
	n, err := x.lz4.CompressBlock(part, data)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "", fault.NoOffset, err)
	}
	return append(out, data[:n]...), nil
}

func compressDoubleDelta(out, part []byte, e Elem) ([]byte, error) {
	if e.Kind == Float {
		return nil, fault.New(fault.Unsupported, "", fault.NoOffset, "of floating-point values")
	}
	size := e.ddSize()
	width := ddWidth(part, size, e.signed())
	n := len(part) / size
	if len(part)%size != 0 { // metadata of another filter is stored unchanged, so that nothing is lost
		width = 8*size - 1
	}
	if width >= 8*size-1 {
		width = min(width, 8*size-1)
		out = binary.LittleEndian.AppendUint64(append(out, byte(width)), uint64(n))
		return append(out, part...), nil
	}
	out = binary.LittleEndian.AppendUint64(append(out, byte(width)), uint64(n))
	out = append(out, part[:min(n, 2)*size]...)
	return ddEncode(out, part, size, width, e.signed()), nil
}
