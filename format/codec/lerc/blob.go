package lerc

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
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
	b          []byte // the rest of the blob
	err        error
	h          blobHeader
	s          Shape
	maskPixels int    // pixels of the mask of the last blob
	mask       []byte // a bit for each pixel, most significant first; empty if all are valid
	out        []byte
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

type blobHeader struct {
	version     int
	valid       int // pixels
	blockSide   int
	maxError    float64
	least, most float64
	passNoData  bool
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "lerc", format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "lerc", format, args...)
}

// maxBlockSide bounds the blocks of an image, which have 8 or 16 rows in known files.
const maxBlockSide = 256

// Decode fills dst with the samples of a blob: little-endian, interleaved by pixel, 0 where a pixel is not valid.
// mask has a bit for each pixel, most significant first, 1 for a valid one; it is nil if all are valid. It
// is valid until the next call.
func (d *Decoder) Decode(dst, src []byte, s Shape) (mask []byte, err error) {
	d.b, d.err, d.s, d.out, d.size = src, nil, s, dst, sizes[s.Type]
	d.view()
	// The decoder lives on, and would keep the memory of the caller.
	defer func() { d.b, d.out, d.shorts, d.floats = nil, nil, nil, nil }()
	d.header(src)
	if d.err != nil {
		return nil, d.err
	}
	// No block writes invalid pixels and blocks of zeros, whose samples must be 0.
	clear(dst)
	d.readMask()
	if d.err == nil && d.h.valid > 0 {
		d.samples()
	}
	if d.err != nil {
		return nil, d.err
	}
	if d.maskPixels = s.Width * s.Height; d.h.valid == d.maskPixels {
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
	front := d.b[:n]
	d.b = d.b[n:]
	return front
}

func (d *Decoder) u8() int {
	if field := d.bytes(1); field != nil {
		return int(field[0])
	}
	return 0
}

func (d *Decoder) i32() int {
	if field := d.bytes(4); field != nil {
		return int(int32(binary.LittleEndian.Uint32(field)))
	}
	return 0
}

func (d *Decoder) f64() float64 { return d.value(Float64) }

// value reads one number of a type.
func (d *Decoder) value(t Type) float64 {
	if field := d.bytes(sizes[t]); field != nil {
		return get(field, t)
	}
	return 0
}

func get(p []byte, t Type) float64 { return chunk.LERCTypes[t].Number(p) }

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
	if magic := d.bytes(len(key)); d.err == nil && string(magic) != key {
		d.fail(corrupt("not a blob of LERC2"))
	}
	head := &d.h
	*head = blobHeader{version: d.i32()}
	if d.err == nil && (head.version < 2 || head.version > 6) {
		d.fail(unsupported("version %d of LERC2", head.version))
	}
	sum, summed := uint32(0), 0
	if head.version >= 3 {
		sum = uint32(d.i32())
		summed = len(src) - len(d.b)
	}
	rows, cols, bands := d.i32(), d.i32(), 1
	if head.version >= 4 {
		bands = d.i32()
	}
	head.valid, head.blockSide = d.i32(), d.i32()
	size, kind := d.i32(), Type(d.i32())
	if head.version >= 6 {
		count := d.i32()
		flags := d.bytes(4)
		if d.err == nil && count != 0 {
			d.fail(unsupported("%d more blobs", count))
		}
		head.passNoData = flags != nil && flags[0] != 0
	}
	head.maxError, head.least, head.most = d.f64(), d.f64(), d.f64()
	if head.version >= 6 {
		d.f64()
		d.f64()
	}
	shape := &d.s
	switch {
	case d.err != nil:
		return
	case rows != shape.Height || cols != shape.Width || bands != shape.Bands || kind != shape.Type:
		d.fail(corrupt("an image of (%d, %d, %d) samples of type %d in a tile of (%d, %d, %d) of type %d",
			bands, rows, cols, kind, shape.Bands, shape.Height, shape.Width, shape.Type))
	case head.valid < 0 || head.valid > rows*cols:
		d.fail(corrupt("%d valid pixels of %d", head.valid, rows*cols))
	case head.blockSide < 1 || head.blockSide > maxBlockSide:
		d.fail(corrupt("blocks of %d rows", head.blockSide))
	case size < len(src)-len(d.b) || size > len(src):
		d.fail(corrupt("a blob of %d bytes ends after %d", size, len(src)))
	case head.passNoData:
		d.fail(unsupported("nodata values of version 6"))
	case summed > 0 && fletcher(src[summed:size]) != sum:
		d.fail(corrupt("the checksum is wrong"))
	default:
		d.b = d.b[:size-(len(src)-len(d.b))]
	}
}

// fletcher returns Fletcher's checksum of big-endian words of 16 bits.
func fletcher(data []byte) uint32 {
	fold := func(word uint32) uint32 { return word&0xffff + word>>16 }
	low, high := uint32(0xffff), uint32(0xffff)
	for len(data) > 1 {
		count := min(len(data)/2, 359) // so many do not overflow
		words := data[:2*count]
		// Four sums at once, of the words with the same place in 8 bytes, each in 32 bits, and the sums of those sums
		// before each 8 bytes.
		const lanes = 0x0000ffff_0000ffff
		var odd, even, sumOdd, sumEven uint64
		groups := uint32(len(words) / 8)
		for ; len(words) >= 8; words = words[8:] {
			word := binary.BigEndian.Uint64(words)
			sumOdd, sumEven = sumOdd+odd, sumEven+even
			odd, even = odd+word>>16&lanes, even+word&lanes
		}
		sum1, sum2, sum3, sum4 := uint32(odd>>32), uint32(even>>32), uint32(odd), uint32(even)
		sums := uint32(sumOdd>>32) + uint32(sumEven>>32) + uint32(sumOdd) + uint32(sumEven)
		high += 4*groups*low + 4*sums + 4*sum1 + 3*sum2 + 2*sum3 + sum4
		low += sum1 + sum2 + sum3 + sum4
		for ; len(words) > 0; words = words[2:] {
			low += uint32(binary.BigEndian.Uint16(words))
			high += low
		}
		data = data[2*count:]
		low, high = fold(low), fold(high)
	}
	if len(data) == 1 {
		low += uint32(data[0]) << 8
		high += low
	}
	return fold(high)<<16 | fold(low)
}

// readMask reads which pixels are valid.
func (d *Decoder) readMask() {
	size, pixels := d.i32(), d.s.Width*d.s.Height
	every := d.h.valid == pixels
	if d.err != nil || every || d.h.valid == 0 {
		if size != 0 {
			d.fail(corrupt("a mask of %d bytes, where %d of %d pixels are valid", size, d.h.valid, pixels))
		}
		if d.mask = d.mask[:0]; !every {
			d.growMask()
		}
		return
	}
	if size == 0 && d.s.Further && d.maskPixels == pixels && d.ones() == d.h.valid {
		return
	}
	if size <= 0 {
		d.fail(corrupt("no mask, where %d of %d pixels are valid", d.h.valid, pixels))
	}
	runs := d.bytes(size)
	d.growMask()
	dst := d.mask
	for d.err == nil {
		if len(runs) < 2 {
			d.fail(corrupt("the mask ends early"))
			return
		}
		run := int(int16(binary.LittleEndian.Uint16(runs)))
		runs = runs[2:]
		switch {
		case run == -32768:
			if len(dst) > 0 {
				d.fail(corrupt("the mask ends early"))
			}
			if spare := -pixels & 7; spare > 0 { // writers leave anything in the bits after the last pixel
				d.mask[len(d.mask)-1] &= 0xff << spare
			}
			return
		case run > 0 && run <= len(runs) && run <= len(dst):
			copy(dst, runs[:run])
			runs, dst = runs[run:], dst[run:]
		case run < 0 && len(runs) > 0 && -run <= len(dst):
			for i := range -run {
				dst[i] = runs[0]
			}
			runs, dst = runs[1:], dst[-run:]
		default:
			d.fail(corrupt("a run of %d bytes of the mask", run))
		}
	}
}

// ones counts the valid pixels of the mask.
func (d *Decoder) ones() (count int) {
	for _, value := range d.mask {
		count += bits.OnesCount8(value)
	}
	return count
}

// growMask sets the mask to all pixels invalid.
func (d *Decoder) growMask() {
	size := (d.s.Width*d.s.Height + 7) / 8
	if cap(d.mask) < size {
		d.mask = make([]byte, size)
	}
	d.mask = d.mask[:size]
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
