package payload

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Fields of the tables, by their order in batch.fbs.
const (
	batchVersion = iota
	batchEpoch
	batchFirst
	batchRows
	batchValid
	batchPositions
	batchSamples
	batchBad
	batchTensors
	batchLength
)

const (
	badIndex = iota
	badPosition
	badMessage
	badSource
	badSample
	badInstead
	badKind
	badFile
	badPart
	badOffset
)

const (
	refID = iota
	refIndex
	refRow
)

const (
	tensorName = iota
	tensorKind
	tensorDType
	tensorAxes
	tensorShape
	tensorData
	tensorOffsets
	tensorConvert
)

const (
	convertTo = iota
	convertScale
	convertOffset
	convertBandAxis
	convertClip
	convertLo
	convertHi
	convertFill
	convertMask
)

// spanSize is the bytes of a Span.
const spanSize = 16

// decoder first reads the header (batch), which needs no other byte of the payload, and then the bytes of the ranges
// (load).
type decoder struct {
	reader
	first   uint64 // bytes of the payload's first piece of memory
	size    uint64 // of the payload: of its one or two pieces of memory
	rows    int
	spanned uint64          // bytes of all ranges so far
	names   map[string]bool // of the tensors so far
	places  []place         // of the tensors
}

// place is where the payload has the parts of a tensor. Offset 0 is for parts that it lacks.
type place struct {
	spans
	pos   int // of the tensor in the header
	cells int // strings or runs of values
}

// newDecoder returns a decoder of header h of a payload in one piece of memory of first bytes and another one of rest.
func newDecoder(h []byte, first, rest int) *decoder {
	// The budget avoids that references to the same bytes unfold into more than was received.
	return &decoder{reader: reader{b: h, budget: len(h)}, first: uint64(first), size: uint64(first) + uint64(rest)}
}

// of returns the bytes of s, which lies in p.
func (s span) of(p []byte) []byte { return p[s.offset : s.offset+s.length : s.offset+s.length] }

// load gives the tensors of b their bytes, which find returns for a range, and checks those whose values must be valid.
func (d *decoder) load(b *loader.Batch, find func(span) []byte) {
	if d.err != nil {
		return
	}
	bytesOf := func(s span) []byte {
		if s.offset == 0 {
			return nil
		}
		return find(s)
	}
	for i := range b.Tensors {
		t, place := &b.Tensors[i], &d.places[i]
		t.Data, t.Offsets = bytesOf(place.data), bytesOf(place.offsets)
		if t.Convert != nil {
			t.Convert.Mask = bytesOf(place.mask)
		}
		if t.Kind != loader.Dense {
			d.runs(t, place)
		}
	}
}

func (d *decoder) batch() *loader.Batch {
	t := d.table("batch", d.follow("batch", 0))
	if v := t.uint8(batchVersion, Version); v != Version && d.err == nil {
		d.err = fault.New(fault.Unsupported, "batch", sizePrefix,
			"payload version %d; this reads version %d", v, Version)
	}
	if n := t.uint64(batchLength); n != d.size {
		d.fail("batch", t.pos, "payload of %d bytes says that it has %d", d.size, n)
	}
	rows := t.int32(batchRows)
	if rows < 0 {
		d.fail("batch", t.pos, "%d rows", rows)
		return nil
	}
	d.rows = int(rows)
	batch := &loader.Batch{
		Epoch:     t.uint64(batchEpoch),
		First:     int64(t.uint64(batchFirst)),
		Rows:      d.rows,
		Positions: t.int64s(batchPositions),
		Samples:   t.int64s(batchSamples),
	}
	valid, _ := t.vector(batchValid, 1)
	if len(valid) != d.rows || len(batch.Positions) != d.rows || len(batch.Samples) != d.rows {
		d.fail("batch", t.pos, "%d rows, but %d valid, %d positions, %d samples", d.rows, len(valid),
			len(batch.Positions), len(batch.Samples))
		return nil
	}
	batch.Valid = make([]bool, len(valid))
	for i, v := range valid {
		batch.Valid[i] = v != 0
	}
	t.each(batchBad, "bad row", func(_ int, t table) {
		batch.Bad = append(batch.Bad, d.bad(t))
	})
	t.each(batchTensors, "tensor", func(_ int, t table) {
		batch.Tensors = append(batch.Tensors, d.tensor(t))
	})
	return batch
}

func (d *decoder) bad(t table) loader.Bad {
	row := t.int32(badIndex)
	if row < 0 || int(row) >= d.rows {
		d.fail(t.part, t.pos, "row %d of %d", row, d.rows)
	}
	err := errors.New(t.string(badMessage))
	failed := wire.FaultError(&chaskiv1.Fault{Kind: t.string(badKind), File: t.string(badFile),
		Part: t.string(badPart), Offset: t.int64(badOffset, fault.NoOffset), Message: err.Error()})
	// Older servers give no kind, and newer ones may give one that this program does not know.
	if fault.KindOf(failed) != 0 {
		err = failed
	}
	return loader.Bad{
		Row: int(row), Position: int64(t.uint64(badPosition)), Err: err,
		Source: t.string(badSource), Sample: sampleRefOf(t, badSample), Instead: sampleRefOf(t, badInstead),
	}
}

// sampleRefOf returns the sample of an error, or nil.
func sampleRefOf(t table, id int) *loader.SampleRef {
	s, ok := t.sub(id, "sample")
	if !ok {
		return nil
	}
	return &loader.SampleRef{Index: s.int64(refIndex, -1), Row: s.int64(refRow, -1), ID: s.string(refID)}
}

func (d *decoder) tensor(t table) loader.Tensor {
	out := loader.Tensor{
		Name:  t.string(tensorName),
		Kind:  loader.TensorKind(t.uint8(tensorKind, 0)),
		DType: chunk.DType(t.uint8(tensorDType, 0)),
		Axes:  t.strings(tensorAxes),
		Shape: t.int64s(tensorShape),
	}
	if d.names[out.Name] {
		d.fail(t.part, t.pos, "a second tensor is called %q", out.Name)
	} else if d.names == nil {
		d.names = map[string]bool{}
	}
	d.names[out.Name] = true
	p := place{pos: t.pos}
	p.data = d.span(t, tensorData)
	switch out.Kind {
	case loader.Dense:
		d.dense(t, &out, &p)
	case loader.Ragged, loader.Text:
		d.ragged(t, &out, &p)
	default:
		d.fail(t.part, t.pos, "kind %d", out.Kind)
	}
	if c, ok := t.sub(tensorConvert, "convert"); ok {
		out.Convert = d.convert(c, &out, &p)
	}
	d.places = append(d.places, p)
	return out
}

// dense checks that shape, dtype and length of the data agree.
func (d *decoder) dense(t table, out *loader.Tensor, at *place) {
	if !out.DType.Valid() {
		d.fail(t.part, t.pos, "dtype %d", uint8(out.DType))
		return
	}
	if len(out.Axes) != len(out.Shape) {
		d.fail(t.part, t.pos, "%d axes and %d lengths", len(out.Axes), len(out.Shape))
	}
	n, ok := elements(out.Shape)
	hi, size := bits.Mul64(n, uint64(out.DType.Size()))
	if !ok || hi != 0 || size != at.data.length {
		d.fail(t.part, t.pos, "shape %v of %v in %d bytes", out.Shape, out.DType, at.data.length)
	}
}

// cells returns how many texts or runs of values a tensor has: one a row, or of text in time one a row and step.
func (d *decoder) cells(t table, out *loader.Tensor) int {
	if out.Kind != loader.Text || len(out.Shape) < 2 {
		return d.rows
	}
	n, ok := elements(out.Shape)
	steps := len(out.Shape) == 2 && len(out.Axes) == 2 && out.Shape[0] == int64(d.rows)
	if !ok || !steps || n > d.size {
		d.fail(t.part, t.pos, "texts of shape %v over %v for %d rows", out.Shape, out.Axes, d.rows)
		return 0
	}
	return int(n)
}

// ragged checks that there is one offset more than there are cells.
func (d *decoder) ragged(t table, out *loader.Tensor, at *place) {
	if (out.Kind == loader.Ragged) != out.DType.Valid() || out.Kind == loader.Text && out.DType != chunk.Invalid {
		d.fail(t.part, t.pos, "dtype %d", uint8(out.DType))
		return
	}
	at.offsets = d.span(t, tensorOffsets)
	at.cells = d.cells(t, out)
	if n := at.offsets.length; d.err == nil && (n%8 != 0 || n/8 != uint64(at.cells)+1) {
		d.fail(t.part, t.pos, "%d bytes of offsets for %d rows", n, at.cells)
	}
}

// runs checks that the offsets begin at 0, never fall and end with the values.
func (d *decoder) runs(t *loader.Tensor, at *place) {
	last := uint64(0)
	for i := 0; i < len(t.Offsets); i += 8 {
		v := binary.LittleEndian.Uint64(t.Offsets[i:])
		if v < last || i == 0 && v != 0 {
			d.fail("tensor", at.pos, "offset %d of row %d after %d", v, i/8, last)
			return
		}
		last = v
	}
	size := 1
	if t.Kind == loader.Ragged {
		size = t.DType.Size()
		d.groups(t, at)
	}
	if hi, n := bits.Mul64(last, uint64(size)); hi != 0 || n != uint64(len(t.Data)) {
		d.fail("tensor", at.pos, "offsets end at %d, values have %d bytes", last, len(t.Data))
	}
}

// groups checks that offsets are multiples of the last axis of a ragged tensor of two.
func (d *decoder) groups(t *loader.Tensor, at *place) {
	if len(t.Shape) != 2 {
		return
	}
	k := uint64(t.Shape[1])
	if t.Shape[1] < 1 || t.Shape[0] != int64(d.rows) {
		d.fail("tensor", at.pos, "ragged values of shape %v for %d rows", t.Shape, d.rows)
		return
	}
	for i := 0; i < len(t.Offsets); i += 8 {
		if v := binary.LittleEndian.Uint64(t.Offsets[i:]); v%k != 0 {
			d.fail("tensor", at.pos, "offset %d of row %d in groups of %d", v, i/8, k)
			return
		}
	}
}

func (d *decoder) convert(c table, t *loader.Tensor, at *place) *loader.Convert {
	out := &loader.Convert{
		To:       chunk.DType(c.uint8(convertTo, 0)),
		Scale:    c.float32s(convertScale),
		Offset:   c.float32s(convertOffset),
		BandAxis: int(c.int32(convertBandAxis)),
		Clip:     c.uint8(convertClip, 0) != 0,
		Lo:       c.float32(convertLo),
		Hi:       c.float32(convertHi),
		Fill:     c.float64(convertFill),
	}
	at.mask = d.span(c, convertMask)
	if d.err == nil {
		if msg := checkSizes(t, out, at.data.length, at.mask.length, at.mask.offset > 0); msg != "" {
			d.fail(c.part, c.pos, "%s", msg)
		}
	}
	return out
}

// span returns the range that field id, a Span, names. A missing one is empty and has offset 0.
func (d *decoder) span(t table, id int) span {
	o := t.field(id, spanSize)
	if o < 0 {
		return span{}
	}
	s := span{binary.LittleEndian.Uint64(d.b[o:]), binary.LittleEndian.Uint64(d.b[o+8:])}
	pos, end := s.offset, d.first // in the piece of memory
	if d.size > d.first && pos >= d.first {
		pos, end = pos-d.first, d.size-d.first
	} else if pos < uint64(sizePrefix+len(d.b)) {
		d.fail(t.part, o, "range of %d bytes at %d, in the header", s.length, s.offset)
		return span{}
	}
	switch {
	case pos%Align != 0:
		d.fail(t.part, o, "range at %d, which %d does not divide", pos, Align)
		return span{}
	case pos > end || s.length > end-pos:
		d.fail(t.part, o, "range of %d bytes at %d of %d", s.length, pos, end)
		return span{}
	}
	// Ranges must not overlap, so the memory of a receiver is in proportion to the payload.
	if d.spanned += s.length; d.spanned > d.size {
		d.fail(t.part, o, "ranges of %d bytes in a payload of %d", d.spanned, d.size)
		return span{}
	}
	return s
}

// elements returns the product of a shape, and whether it is one: no negative length, no overflow.
func elements(shape []int64) (uint64, bool) {
	n := uint64(1)
	for _, s := range shape {
		if s < 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(n, uint64(s))
		if hi != 0 {
			return 0, false
		}
		n = lo
	}
	return n, true
}
