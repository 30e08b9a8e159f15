package filter

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zlib"
	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// encode runs a filter over data. metas is the metadata of the filters before it, the latest first, which compressors
// and encryption take in.
type encode func(x *Encoder, f Filter, metas [][]byte, data []byte, e Elem) (meta, out []byte, err error)

// encoders are the filters that tests write.
var encoders = map[ID]encode{
	Gzip: compressor(gzip), Zstd: compressor(zstandard), ByteShuffle: byteshuffle,
	AES256GCM: func(x *Encoder, _ Filter, metas [][]byte, data []byte, _ Elem) (meta, out []byte, err error) {
		if x.key == nil {
			return nil, nil, fault.New(fault.Unsupported, "", "the filter needs a key")
		}
		return x.parts(metas, data, x.encrypt)
	},
	LZ4: compressor(compressLZ4), DoubleDelta: compressor(compressDoubleDelta),
	RLE: compressor(func(out []byte, _ Filter, part []byte, e Elem) ([]byte, error) {
		if len(part)%e.Cell != 0 { // libtiledb expects whole tuples among the values of a dimension
			return nil, fault.New(fault.Unsupported, "", "%d bytes are not whole cells of %d", len(part), e.Cell)
		}
		return rleEncode(out, part, e.Cell), nil
	}),
	BitShuffle: func(_ *Encoder, _ Filter, _ [][]byte, data []byte, e Elem) (meta, out []byte, err error) {
		meta, out = bitshuffled(data, e.Size)
		return meta, out, nil
	},
	BitWidth: func(_ *Encoder, f Filter, _ [][]byte, data []byte, e Elem) (meta, out []byte, err error) {
		meta, out = narrowed(data, window(f, e, len(data)), e)
		return meta, out, nil
	},
	PositiveDelta: func(_ *Encoder, f Filter, _ [][]byte, data []byte, e Elem) ([]byte, []byte, error) {
		return deltas(data, window(f, e, len(data)), e)
	},
}

// Encoder applies filter pipelines. It is not safe for concurrent use.
type Encoder struct {
	key cipher.AEAD
}

// NewEncoder returns an encoder. key may be nil.
func NewEncoder(key cipher.AEAD) *Encoder { return &Encoder{key: key} }

// Tile appends the stored form of a tile to out: its filtered chunks. Filters that are not written are
// fault.Unsupported.
func (x *Encoder) Tile(out, src []byte, p Pipeline, e Elem) (_ []byte, err error) {
	limit := max(int(min(p.MaxChunk, math.MaxInt32))/e.Cell*e.Cell, e.Cell)
	chunks := max((len(src)+limit-1)/limit, 1)
	out = binary.LittleEndian.AppendUint64(out, uint64(chunks))
	for range chunks {
		part := src[:min(limit, len(src))]
		src = src[len(part):]
		if out, err = x.chunk(out, part, p, e); err != nil {
			return nil, err
		}
	}
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
		encode := encoders[filter.ID]
		if encode == nil {
			return nil, fault.New(fault.Unsupported, filter.ID.String(), "it cannot be written")
		}
		meta, encoded, err := encode(x, filter, metas, data, e)
		if err != nil {
			return nil, fault.WithPart(err, filter.ID.String(), fault.NoOffset)
		}
		if kinds[filter.ID].compressor > 0 || filter.ID == AES256GCM {
			metas = nil
		}
		metas, data = append([][]byte{meta}, metas...), encoded
	}
	meta := bytes.Join(metas, nil)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(src)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(meta)))
	return append(append(out, meta...), data...), nil
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

// compressor returns what runs a compressor, which appends the stored form of a part.
func compressor(compress func(out []byte, f Filter, part []byte, e Elem) ([]byte, error)) encode {
	return func(x *Encoder, f Filter, metas [][]byte, data []byte, e Elem) (meta, out []byte, err error) {
		return x.parts(metas, data, func(out, part []byte) ([]byte, []byte, error) {
			start := len(out)
			out, err := compress(out, f, part, e)
			return binary.LittleEndian.AppendUint32(nil, uint32(len(out)-start)), out, err
		})
	}
}

func gzip(out []byte, f Filter, part []byte, _ Elem) ([]byte, error) {
	level := int(f.Level)
	if level < zlib.DefaultCompression || level > zlib.BestCompression {
		level = zlib.DefaultCompression
	}
	stored := bytes.NewBuffer(out)
	writer, err := zlib.NewWriterLevel(stored, level)
	if err == nil {
		_, err = writer.Write(part)
	}
	if err == nil {
		err = writer.Close()
	}
	return stored.Bytes(), err
}

func zstandard(out []byte, f Filter, part []byte, _ Elem) ([]byte, error) {
	if len(part) == 0 {
		return out, nil
	}
	level := 3 // libzstd's default
	if f.Level > 0 {
		level = int(f.Level)
	}
	return zstd.Append(out, part, level), nil
}

func byteshuffle(_ *Encoder, _ Filter, _ [][]byte, data []byte, e Elem) (meta, out []byte, err error) {
	out = make([]byte, len(data))
	planes.Split(out, data, e.Size)
	meta = binary.LittleEndian.AppendUint32(nil, 1) // part
	return binary.LittleEndian.AppendUint32(meta, uint32(len(data))), out, nil
}
func bitshuffled(data []byte, size int) (meta, out []byte) {
	out = make([]byte, len(data))
	cut := []int{len(data)}
	if len(data)%8 != 0 {
		cut = []int{len(data) / 8 * 8, len(data) % 8}
	}
	meta = binary.LittleEndian.AppendUint32(nil, uint32(len(cut)))
	dst := out
	for _, n := range cut {
		meta = binary.LittleEndian.AppendUint32(meta, uint32(n))
		if n%size != 0 || n%8 != 0 {
			copy(dst, data[:n])
		} else {
			bitshuffle(dst[:n], data[:n], size)
		}
		dst, data = dst[n:], data[n:]
	}
	return meta, out
}

// rleEncode appends the runs of src, whose length is a multiple of cell.
func rleEncode(out, src []byte, cell int) []byte {
	for len(src) > 0 {
		n := 1
		for n < math.MaxUint16 && (n+1)*cell <= len(src) && bytes.Equal(src[:cell], src[n*cell:(n+1)*cell]) {
			n++
		}
		out = append(out, src[:cell]...)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		src = src[n*cell:]
	}
	return out
}

// ddWidth returns the number of bits of the largest second difference of src, or 64 if one
// overflows.
func ddWidth(src []byte, size int, signed bool) int {
	n := len(src) / size
	if n <= 2 {
		return 0
	}
	a, b := extend(src, size, signed), extend(src[size:], size, signed)
	prev := b - a
	var greatest uint64
	for i := 2; i < n; i++ {
		c := extend(src[i*size:], size, signed)
		d := c - b
		dd := d - prev
		if size == 8 && (overflows(c, b, d) || overflows(d, prev, dd)) {
			return 64
		}
		if dd < 0 {
			greatest = max(greatest, uint64(-dd))
		} else {
			greatest = max(greatest, uint64(dd))
		}
		b, prev = c, d
	}
	return max(bits.Len64(greatest), 1)
}

// overflows reports whether d = a-b does not hold the difference.
func overflows(a, b, d int64) bool { return (a^b)&(a^d) < 0 }

// ddEncode appends the words of src. width is the result of ddWidth, at most 62.
func ddEncode(out, src []byte, size, width int, signed bool) []byte {
	n := len(src) / size
	if n <= 2 {
		return out
	}
	b := extend(src[size:], size, signed)
	prev := b - extend(src, size, signed)
	var word uint64
	used, need := 0, width+1
	for i := 2; i < n; i++ {
		c := extend(src[i*size:], size, signed)
		d := c - b
		dd := d - prev
		b, prev = c, d
		v := uint64(dd)
		if dd < 0 {
			v = uint64(-dd) | 1<<width
		}
		if used+need < 64 {
			word |= v << (64 - used - need)
			used += need
			continue
		}
		rest := used + need - 64
		out = binary.LittleEndian.AppendUint64(out, word|v>>rest)
		word, used = 0, rest
		if rest > 0 {
			word = v << (64 - rest)
		}
	}
	if used > 0 {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}

// bitshuffle gathers equal bits of 8 values into bytes and these into rows, in blocks of bitBlock
// values. dst and src have one length, a multiple of size; values behind the last multiple of 8 are
// copied.
func bitshuffle(dst, src []byte, size int) {
	done := eachBitBlock(len(src)/size, size, func(first, count int) {
		bitBlockForward(dst[first*size:(first+count)*size], src[first*size:(first+count)*size], size, count/8)
	})
	copy(dst[done*size:], src[done*size:])
}

func bitBlockForward(dst, src []byte, size, rowBytes int) {
	for k := range size {
		rows := dst[k*8*rowBytes : (k+1)*8*rowBytes]
		for g := range rowBytes {
			var x uint64
			s := src[g*8*size+k:]
			for i := range 8 {
				x |= uint64(s[i*size]) << (8 * i)
			}
			x = planes.Transpose8(x)
			for j := range 8 {
				rows[g+j*rowBytes] = byte(x >> (8 * j))
			}
		}
	}
}

// rangeOf returns the least value of src and how far the largest lies above it.
func rangeOf(src []byte, size int, signed bool) (low, span uint64) {
	if signed {
		lo, hi := extend(src, size, true), extend(src, size, true)
		for i := size; i < len(src); i += size {
			v := extend(src[i:], size, true)
			lo, hi = min(lo, v), max(hi, v)
		}
		return uint64(lo), uint64(hi) - uint64(lo)
	}
	lo, hi := cast.Uint(src, size), cast.Uint(src, size)
	for i := size; i < len(src); i += size {
		v := cast.Uint(src[i:], size)
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi - lo
}

// narrow appends the values of src less low, in width bits.
func narrow(out, src []byte, size, width int, low uint64) []byte {
	for i := 0; i < len(src); i += size {
		out = appendLE(out, width/8, cast.Uint(src[i:], size)-low)
	}
	return out
}

// appendLE appends a value of 1, 2, 4 or 8 bytes.
func appendLE(b []byte, size int, v uint64) []byte {
	var s [8]byte
	binary.LittleEndian.PutUint64(s[:], v)
	return append(b, s[:size]...)
}

// window returns the bytes of a window: whole values, at least one.
func window(f Filter, e Elem, n int) int {
	return max(int(min(f.Window, math.MaxInt32))/e.Size, 1) * e.Size
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
				return nil, nil, fault.New(fault.Unsupported, "", "the values are not ascending")
			}
			out = appendLE(out, e.Size, uint64(b-a))
		}
	}
	return meta, out, nil
}

func compressLZ4(out []byte, _ Filter, part []byte, _ Elem) ([]byte, error) {
	if len(part) == 0 {
		return append(out, 0), nil // a token without literals
	}
	data := make([]byte, lz4.CompressBlockBound(len(part))) // which has room for data that do not shrink
	n, err := lz4.CompressBlock(part, data, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "", err)
	}
	return append(out, data[:n]...), nil
}

func compressDoubleDelta(out []byte, _ Filter, part []byte, e Elem) ([]byte, error) {
	if e.Kind == Float {
		return nil, fault.New(fault.Unsupported, "", "of floating-point values")
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
