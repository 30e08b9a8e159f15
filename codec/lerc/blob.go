package lerc

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// Type is the type of the samples of a blob. The format defines the values.
type Type int32

// Types of samples.
const (
	Int8 Type = iota
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Float32
	Float64
	numTypes
)

var sizes = [numTypes]int{1, 1, 2, 2, 4, 4, 4, 8}

// Shape is the expected shape of the image of a blob.
type Shape struct {
	Width, Height, Bands int
	Type                 Type
	Further              bool // the blob is not the first of a tile, and may share the mask of the one before
}

// Decoder decodes blobs one after another. It keeps its memory, and is not safe for concurrent use.
type Decoder struct {
	b    []byte // the rest of the blob
	err  error
	h    header
	s    Shape
	kept int    // pixels of the mask of the last blob
	mask []byte // a bit for each pixel, most significant first; empty if all are valid
	out  []byte
	// out as samples of 16 bits, or as numbers, if it can be seen as such
	shorts []uint16
	floats []float32
	size   int       // of a sample
	maxs   []float64 // the largest sample of each band
	mins   []float64
	block  []uint32 // values of one block from the bit stuffer
	table  []uint32 // its values, if it has a table of them
	codes  huffman
}

type header struct {
	version     int
	valid       int // pixels
	blockSide   int
	maxError    float64
	least, most float64
	passNoData  bool
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "lerc", fault.NoOffset, format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "lerc", fault.NoOffset, format, args...)
}

// maxBlockSide bounds the blocks of an image, which have 8 or 16 rows in known files.
const maxBlockSide = 256

// Decode fills dst with the samples of a blob: little-endian, interleaved by pixel, 0 where a pixel is not valid.
// mask has a bit for each pixel, most significant first, 1 for a valid one; it is nil if all are valid. It
// is valid until the next call.
func (d *Decoder) Decode(dst, src []byte, s Shape) (mask []byte, err error) {
	d.b, d.err, d.s, d.out, d.size = src, nil, s, dst, sizes[s.Type]
	d.view()
	defer func() { d.b, d.out, d.shorts, d.floats = nil, nil, nil, nil }()
	d.header(src)
	if d.err != nil {
		return nil, d.err
	}
	clear(dst)
	d.readMask()
	if d.err == nil && d.h.valid > 0 {
		d.samples()
	}
	if d.err != nil {
		return nil, d.err
	}
	if d.kept = s.Width * s.Height; d.h.valid == d.kept {
		return nil, nil
	}
	return d.mask, nil
}

// view sees out as samples of 16 bits, or as numbers.
func (d *Decoder) view() {
	d.shorts, d.floats = nil, nil
	if d.size == 2 {
		d.shorts, _ = cast.Of[uint16](d.out)
	} else if d.s.Type == Float32 {
		d.floats, _ = cast.Of[float32](d.out)
	}
}

func (d *Decoder) fail(err error) {
	d.err = cmp.Or(d.err, err)
}

// bytes returns the next n bytes, or nil after an error.
func (d *Decoder) bytes(n int) []byte {
	if d.err == nil && (n < 0 || n > len(d.b)) {
		d.err = corrupt("ends early")
	}
	if d.err != nil {
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *Decoder) u8() int {
	if p := d.bytes(1); p != nil {
		return int(p[0])
	}
	return 0
}

func (d *Decoder) i32() int {
	if p := d.bytes(4); p != nil {
		return int(int32(binary.LittleEndian.Uint32(p)))
	}
	return 0
}

func (d *Decoder) f64() float64 { return d.value(Float64) }

// value reads one number of a type.
func (d *Decoder) value(t Type) float64 {
	if p := d.bytes(sizes[t]); p != nil {
		return get(p, t)
	}
	return 0
}

func get(p []byte, t Type) float64 {
	le := binary.LittleEndian
	switch t {
	case Int8:
		return float64(int8(p[0]))
	case Uint8:
		return float64(p[0])
	case Int16:
		return float64(int16(le.Uint16(p)))
	case Uint16:
		return float64(le.Uint16(p))
	case Int32:
		return float64(int32(le.Uint32(p)))
	case Uint32:
		return float64(le.Uint32(p))
	case Float32:
		return float64(math.Float32frombits(le.Uint32(p)))
	}
	return math.Float64frombits(le.Uint64(p))
}

// put writes a sample. Numbers that an integer type lacks, which only damaged blobs have, become any.
func put(p []byte, t Type, v float64) {
	le := binary.LittleEndian
	switch t {
	case Float32:
		le.PutUint32(p, math.Float32bits(float32(v)))
		return
	case Float64:
		le.PutUint64(p, math.Float64bits(v))
		return
	}
	if !(v >= math.MinInt32 && v <= math.MaxUint32) {
		v = 0
	}
	switch i := int64(v); sizes[t] {
	case 1:
		p[0] = byte(i)
	case 2:
		le.PutUint16(p, uint16(i))
	case 4:
		le.PutUint32(p, uint32(i))
	}
}

// header reads what precedes the mask, and checks it against the tile.
func (d *Decoder) header(src []byte) {
	const key, oldKey = "Lerc2 ", "CntZImage "
	if len(src) >= len(oldKey) && string(src[:len(oldKey)]) == oldKey {
		d.fail(unsupported("a blob of LERC1"))
		return
	}
	if p := d.bytes(len(key)); d.err == nil && string(p) != key {
		d.fail(corrupt("not a blob of LERC2"))
	}
	h := &d.h
	*h = header{version: d.i32()}
	if d.err == nil && (h.version < 2 || h.version > 6) {
		d.fail(unsupported("version %d of LERC2", h.version))
	}
	sum, summed := uint32(0), 0
	if h.version >= 3 {
		sum = uint32(d.i32())
		summed = len(src) - len(d.b)
	}
	rows, cols, bands := d.i32(), d.i32(), 1
	if h.version >= 4 {
		bands = d.i32()
	}
	h.valid, h.blockSide = d.i32(), d.i32()
	size, kind := d.i32(), Type(d.i32())
	if h.version >= 6 {
		count := d.i32()
		flags := d.bytes(4)
		if d.err == nil && count != 0 {
			d.fail(unsupported("%d more blobs", count))
		}
		h.passNoData = flags != nil && flags[0] != 0
	}
	h.maxError, h.least, h.most = d.f64(), d.f64(), d.f64()
	if h.version >= 6 {
		d.f64()
		d.f64()
	}
	s := &d.s
	switch {
	case d.err != nil:
		return
	case rows != s.Height || cols != s.Width || bands != s.Bands || kind != s.Type:
		d.fail(corrupt("an image of (%d, %d, %d) samples of type %d in a tile of (%d, %d, %d) of type %d",
			bands, rows, cols, kind, s.Bands, s.Height, s.Width, s.Type))
	case h.valid < 0 || h.valid > rows*cols:
		d.fail(corrupt("%d valid pixels of %d", h.valid, rows*cols))
	case h.blockSide < 1 || h.blockSide > maxBlockSide:
		d.fail(corrupt("blocks of %d rows", h.blockSide))
	case size < len(src)-len(d.b) || size > len(src):
		d.fail(corrupt("a blob of %d bytes, of which %d are there", size, len(src)))
	case h.passNoData:
		d.fail(unsupported("nodata values of version 6"))
	case summed > 0 && fletcher(src[summed:size]) != sum:
		d.fail(corrupt("the checksum is wrong"))
	default:
		d.b = d.b[:size-(len(src)-len(d.b))]
	}
}

// fletcher returns Fletcher's checksum of big-endian words of 16 bits.
func fletcher(b []byte) uint32 {
	fold := func(v uint32) uint32 { return v&0xffff + v>>16 }
	lo, hi := uint32(0xffff), uint32(0xffff)
	for len(b) > 1 {
		n := min(len(b)/2, 359) // so many do not overflow
		words := b[:2*n]
		// Four sums at once, of the words with the same place in 8 bytes, each in 32 bits, and the sums of those sums
		// before each 8 bytes.
		const lanes = 0x0000ffff_0000ffff
		var odd, even, sumOdd, sumEven uint64
		groups := uint32(len(words) / 8)
		for ; len(words) >= 8; words = words[8:] {
			v := binary.BigEndian.Uint64(words)
			sumOdd, sumEven = sumOdd+odd, sumEven+even
			odd, even = odd+v>>16&lanes, even+v&lanes
		}
		w1, w2, w3, w4 := uint32(odd>>32), uint32(even>>32), uint32(odd), uint32(even)
		sums := uint32(sumOdd>>32) + uint32(sumEven>>32) + uint32(sumOdd) + uint32(sumEven)
		hi += 4*groups*lo + 4*sums + 4*w1 + 3*w2 + 2*w3 + w4
		lo += w1 + w2 + w3 + w4
		for ; len(words) > 0; words = words[2:] {
			lo += uint32(binary.BigEndian.Uint16(words))
			hi += lo
		}
		b = b[2*n:]
		lo, hi = fold(lo), fold(hi)
	}
	if len(b) == 1 {
		lo += uint32(b[0]) << 8
		hi += lo
	}
	return fold(hi)<<16 | fold(lo)
}

// readMask reads which pixels are valid.
func (d *Decoder) readMask() {
	n, pixels := d.i32(), d.s.Width*d.s.Height
	every := d.h.valid == pixels
	if d.err != nil || every || d.h.valid == 0 {
		if n != 0 {
			d.fail(corrupt("a mask of %d bytes, where %d of %d pixels are valid", n, d.h.valid, pixels))
		}
		if d.mask = d.mask[:0]; !every {
			d.growMask()
		}
		return
	}
	if n == 0 && d.s.Further && d.kept == pixels && d.ones() == d.h.valid {
		return
	}
	if n <= 0 {
		d.fail(corrupt("no mask, where %d of %d pixels are valid", d.h.valid, pixels))
	}
	runs := d.bytes(n)
	d.growMask()
	dst := d.mask
	for d.err == nil {
		if len(runs) < 2 {
			d.fail(corrupt("the mask ends early"))
			return
		}
		k := int(int16(binary.LittleEndian.Uint16(runs)))
		runs = runs[2:]
		switch {
		case k == -32768:
			if len(dst) > 0 {
				d.fail(corrupt("the mask ends early"))
			}
			if spare := -pixels & 7; spare > 0 { // writers leave anything in the bits after the last pixel
				d.mask[len(d.mask)-1] &= 0xff << spare
			}
			return
		case k > 0 && k <= len(runs) && k <= len(dst):
			copy(dst, runs[:k])
			runs, dst = runs[k:], dst[k:]
		case k < 0 && len(runs) > 0 && -k <= len(dst):
			for i := range -k {
				dst[i] = runs[0]
			}
			runs, dst = runs[1:], dst[-k:]
		default:
			d.fail(corrupt("a run of %d bytes of the mask", k))
		}
	}
}

// ones counts the valid pixels of the mask.
func (d *Decoder) ones() (n int) {
	for _, b := range d.mask {
		n += bits.OnesCount8(b)
	}
	return n
}

// growMask sets the mask to all pixels invalid.
func (d *Decoder) growMask() {
	n := (d.s.Width*d.s.Height + 7) / 8
	if cap(d.mask) < n {
		d.mask = make([]byte, n)
	}
	d.mask = d.mask[:n]
	clear(d.mask)
}

func (d *Decoder) isValid(k int) bool {
	return len(d.mask) == 0 || d.mask[k>>3]<<(k&7)&0x80 != 0
}

// SizeAt is how many bytes of a blob BlobSize needs.
const SizeAt = 38

// BlobSize returns the size of the blob that begins with these SizeAt bytes, and how many bands it has;
// zeros if they begin none.
func BlobSize(head []byte) (size, bands int) {
	le := binary.LittleEndian
	pos := 34
	bands = 1
	switch version := int32(le.Uint32(head[6:])); {
	case string(head[:6]) != "Lerc2 " || version < 2:
		return 0, 0
	case version == 2:
		pos = 26
	case version == 3:
		pos = 30
	default:
		bands = int(int32(le.Uint32(head[22:])))
	}
	return int(int32(le.Uint32(head[pos:]))), bands
}
