package payload

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"unicode/utf8"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/proto/chaski/v1/fbs"
)

// decoder first reads the header (batch), which needs no other byte of the payload, and then the bytes of the ranges
// (load). The first thing that is wrong is kept in err.
type decoder struct {
	head []byte // without its size prefix
	// budget is how many bytes may still be read from the header. References may be shared: without
	// it a small header could unfold into a large batch.
	budget  int
	err     error
	first   uint64 // bytes of the payload's first piece of memory
	size    uint64 // of the payload: of its one or two pieces of memory
	rows    int
	spanned uint64          // bytes of all ranges so far
	names   map[string]bool // of the tensors so far
	places  []tensorPlace   // of the tensors
}

// tensorPlace is where the payload has the parts of a tensor. Offset 0 is for parts that it lacks.
type tensorPlace struct {
	spans
	pos   int // of the tensor in the header
	cells int // strings or runs of values
}

// newDecoder returns a decoder of header h of a payload in one piece of memory of first bytes and another one of rest.
func newDecoder(h []byte, first, rest int) *decoder {
	return &decoder{head: slices.Clip(h), budget: len(h), first: uint64(first), size: uint64(first) + uint64(rest),
		names: map[string]bool{}}
}

func (d *decoder) fail(part string, at int, format string, args ...any) {
	if d.err == nil {
		d.err = fault.At(fault.Corrupt, part, int64(at)+sizePrefix, format, args...)
	}
}

// spend takes n elements of size bytes from the budget, and reports whether it had them.
func (d *decoder) spend(part string, at, n, size int) bool {
	if n < 0 || n > d.budget/size {
		d.fail(part, at, "references unfold to more than the header's %d bytes", len(d.head))
	}
	if d.err == nil {
		d.budget -= n * size
	}
	return d.err == nil
}

// table spends the inline bytes of a table, and returns its place.
func (d *decoder) table(part string, t flatbuffers.Table) (at int) {
	fields := flatbuffers.UOffsetT(flatbuffers.SOffsetT(t.Pos) - t.GetSOffsetT(t.Pos)) // vtable
	d.spend(part, int(t.Pos), 1, max(int(t.GetVOffsetT(fields+flatbuffers.SizeVOffsetT)), 1))
	return int(t.Pos)
}

// text returns the characters of a string, checked to be UTF-8.
func (d *decoder) text(part string, at int, b []byte) string {
	if !d.spend(part, at, len(b), 1) {
		return ""
	}
	if !utf8.Valid(b) {
		d.fail(part, at, "string is not UTF-8")
	}
	return string(b)
}

// vector returns n elements of size bytes, which get reads.
func vector[T any](d *decoder, part string, at, n, size int, get func(i int) T) []T {
	if !d.spend(part, at, n, size) {
		return nil
	}
	values := make([]T, n)
	for i := range values {
		values[i] = get(i)
	}
	return values
}

// load gives the tensors of b their bytes, which find returns for a range, and checks those whose values must be valid.
func (d *decoder) load(b *batch.Batch, find func(span) []byte) {
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
		tensor, place := &b.Tensors[i], &d.places[i]
		tensor.Data, tensor.Offsets = bytesOf(place.data), bytesOf(place.offsets)
		if tensor.Convert != nil {
			tensor.Convert.Mask = bytesOf(place.mask)
		}
		if tensor.Kind != batch.Dense {
			d.runs(tensor, place)
		}
	}
}

// batch reads the header. FlatBuffers for Go verifies nothing, but slices of Go do: a reference that leads out of the
// header is a panic of the runtime.
func (d *decoder) batch() (b *batch.Batch) {
	const part = "batch"
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(runtime.Error); !ok {
				panic(p)
			}
			d.fail(part, 0, "a reference leads out of the header")
		}
	}()
	table := fbs.GetRootAsBatch(d.head, 0)
	pos := d.table(part, table.Table())
	if v := table.Version(); v != Version && d.err == nil {
		d.err = fault.At(fault.Unsupported, part, sizePrefix, "payload version %d; this reads version %d", v, Version)
	}
	if n := table.Length(); n != d.size {
		d.fail(part, pos, "payload of %d bytes says that it has %d", d.size, n)
	}
	d.rows = int(table.Rows())
	rows := table.ValidLength()
	if d.rows < 0 || rows != d.rows || table.PositionsLength() != d.rows || table.SamplesLength() != d.rows {
		d.fail(part, pos, "%d rows, but %d valid, %d positions, %d samples", d.rows, rows, table.PositionsLength(),
			table.SamplesLength())
		return nil
	}
	b = &batch.Batch{
		Epoch:     table.Epoch(),
		First:     table.First(),
		Rows:      d.rows,
		Valid:     vector(d, part, pos, rows, 1, func(i int) bool { return table.Valid(i) != 0 }),
		Positions: vector(d, part, pos, rows, 8, table.Positions),
		Samples:   vector(d, part, pos, rows, 8, table.Samples),
	}
	var bad fbs.Bad
	for i := 0; i < table.BadLength() && d.spend(part, pos, 1, 4); i++ {
		table.Bad(&bad, i)
		b.Bad = append(b.Bad, d.bad(&bad))
	}
	var tensor fbs.Tensor
	for i := 0; i < table.TensorsLength() && d.spend(part, pos, 1, 4); i++ {
		table.Tensors(&tensor, i)
		b.Tensors = append(b.Tensors, d.tensor(&tensor))
	}
	return b
}

func (d *decoder) bad(t *fbs.Bad) batch.Bad {
	const part = "bad row"
	pos := d.table(part, t.Table())
	row := int(t.Row())
	if row < 0 || row >= d.rows {
		d.fail(part, pos, "row %d of %d", row, d.rows)
	}
	err := errors.New(d.text(part, pos, t.Message()))
	failed := wire.FaultError(&chaskiv1.Fault{Kind: d.text(part, pos, t.Kind()), File: d.text(part, pos, t.File()),
		Part: d.text(part, pos, t.Part()), Offset: t.Offset(), Message: err.Error()})
	// Older servers leave the kind out, and newer ones may give one that is unknown to this
	// program.
	if fault.KindOf(failed) != 0 {
		err = failed
	}
	return batch.Bad{
		Row: row, Position: t.Position(), Err: err, Source: d.text(part, pos, t.Source()),
		Sample: d.sampleRef(t.Sample(nil)), Instead: d.sampleRef(t.Instead(nil)),
	}
}

// sampleRef returns the sample of an error, or nil.
func (d *decoder) sampleRef(s *fbs.SampleRef) *batch.SampleRef {
	if s == nil {
		return nil
	}
	table := d.table("sample", s.Table())
	return &batch.SampleRef{Index: s.Index(), Row: s.Row(), ID: d.text("sample", table, s.Id())}
}

func (d *decoder) tensor(t *fbs.Tensor) batch.Tensor {
	pos := d.table(tensorPart, t.Table())
	out := batch.Tensor{
		Name:  d.text(tensorPart, pos, t.Name()),
		Kind:  batch.TensorKind(t.Kind()),
		DType: dtype.Type(t.Dtype()),
		Axes: vector(d, tensorPart, pos, t.AxesLength(), 4, func(i int) string {
			return d.text(tensorPart, pos, t.Axes(i))
		}),
		Shape: vector(d, tensorPart, pos, t.ShapeLength(), 8, t.Shape),
	}
	if d.names[out.Name] {
		d.fail(tensorPart, pos, "a second tensor is called %q", out.Name)
	}
	d.names[out.Name] = true
	placed := tensorPlace{pos: pos}
	placed.data = d.span(tensorPart, t.Data(nil))
	switch out.Kind {
	case batch.Dense:
		d.dense(&out, &placed)
	case batch.Ragged, batch.Text:
		d.ragged(t, &out, &placed)
	default:
		d.fail(tensorPart, pos, "kind %d", out.Kind)
	}
	if c := t.Convert(nil); c != nil {
		out.Convert = d.convert(c, &out, &placed)
	}
	d.places = append(d.places, placed)
	return out
}

// tensorPart names tensors in errors.
const tensorPart = "tensor"

// dense checks that shape, dtype and length of the data agree.
func (d *decoder) dense(out *batch.Tensor, at *tensorPlace) {
	if !out.DType.Valid() {
		d.fail(tensorPart, at.pos, "dtype %d", uint8(out.DType))
		return
	}
	if len(out.Axes) != len(out.Shape) {
		d.fail(tensorPart, at.pos, "%d axes and %d lengths", len(out.Axes), len(out.Shape))
	}
	n, ok := elements(out.Shape)
	hi, size := bits.Mul64(n, uint64(out.DType.Size()))
	if !ok || hi != 0 || size != at.data.length {
		d.fail(tensorPart, at.pos, "shape %v of %v in %d bytes", out.Shape, out.DType, at.data.length)
	}
}

// cells returns how many texts or runs of values a tensor has: one a row, of text in time one a row and step, and of
// several windows one a row and view.
func (d *decoder) cells(out *batch.Tensor, at *tensorPlace) int {
	axes := len(out.Axes)
	named := axes == len(out.Shape)
	hasViews := (axes == 2 || axes == 3) && out.Axes[1] == batch.ViewAxis
	switch {
	case out.Kind == batch.Text && named && axes == 2:
	case out.Kind == batch.Ragged && named && hasViews:
	case out.Kind == batch.Text && len(out.Shape) > 1, len(out.Shape) > 2:
		d.fail(tensorPart, at.pos, "texts of shape %v over %v for %d rows", out.Shape, out.Axes, d.rows)
		return 0
	default:
		return d.rows
	}
	count, ok := elements(out.Shape[:2])
	if !ok || out.Shape[0] != int64(d.rows) || count > d.size {
		d.fail(tensorPart, at.pos, "values of shape %v over %v for %d rows", out.Shape, out.Axes, d.rows)
		return 0
	}
	return int(count)
}

// ragged checks that there is one offset more than there are cells.
func (d *decoder) ragged(t *fbs.Tensor, out *batch.Tensor, at *tensorPlace) {
	if (out.Kind == batch.Ragged) != out.DType.Valid() || out.Kind == batch.Text && out.DType != dtype.Invalid {
		d.fail(tensorPart, at.pos, "dtype %d", uint8(out.DType))
		return
	}
	at.offsets = d.span(tensorPart, t.Offsets(nil))
	at.cells = d.cells(out, at)
	if n := at.offsets.length; d.err == nil && (n%8 != 0 || n/8 != uint64(at.cells)+1) {
		d.fail(tensorPart, at.pos, "%d bytes of offsets for %d rows", n, at.cells)
	}
}

// runs checks that the offsets begin at 0, never fall and end with the values.
func (d *decoder) runs(t *batch.Tensor, at *tensorPlace) {
	last := uint64(0)
	for i := 0; i < len(t.Offsets); i += 8 {
		offset := binary.LittleEndian.Uint64(t.Offsets[i:])
		if offset < last || i == 0 && offset != 0 {
			d.fail(tensorPart, at.pos, "offset %d of row %d after %d", offset, i/8, last)
			return
		}
		last = offset
	}
	size := 1
	if t.Kind == batch.Ragged {
		size = t.DType.Size()
		d.groups(t, at)
	}
	if hi, n := bits.Mul64(last, uint64(size)); hi != 0 || n != uint64(len(t.Data)) {
		d.fail(tensorPart, at.pos, "offsets end at %d, values have %d bytes", last, len(t.Data))
	}
}

// groups checks that offsets are multiples of the last axis of a ragged tensor whose values belong together.
func (d *decoder) groups(t *batch.Tensor, at *tensorPlace) {
	last := len(t.Shape) - 1
	if last < 1 || last == 1 && len(t.Axes) == 2 && t.Axes[1] == batch.ViewAxis {
		return
	}
	group := uint64(t.Shape[last])
	if t.Shape[last] < 1 || t.Shape[0] != int64(d.rows) || last > 2 {
		d.fail(tensorPart, at.pos, "ragged values of shape %v for %d rows", t.Shape, d.rows)
		return
	}
	for i := 0; i < len(t.Offsets); i += 8 {
		if offset := binary.LittleEndian.Uint64(t.Offsets[i:]); offset%group != 0 {
			d.fail(tensorPart, at.pos, "offset %d of row %d in groups of %d", offset, i/8, group)
			return
		}
	}
}

func (d *decoder) convert(c *fbs.Convert, t *batch.Tensor, at *tensorPlace) *batch.Convert {
	const part = "convert"
	pos := d.table(part, c.Table())
	out := &batch.Convert{
		To:       dtype.Type(c.To()),
		Scale:    orNil(vector(d, part, pos, c.ScaleLength(), 4, c.Scale)),
		Offset:   orNil(vector(d, part, pos, c.OffsetLength(), 4, c.Offset)),
		BandAxis: int(c.BandAxis()),
		Clip:     c.Clip(),
		Lo:       c.Lo(),
		Hi:       c.Hi(),
		Fill:     c.Fill(),
	}
	at.mask = d.span(part, c.Mask(nil))
	if d.err == nil {
		if msg := checkSizes(t, out, at.mask.length, at.mask.offset > 0); msg != "" {
			d.fail(part, pos, "%s", msg)
		}
	}
	return out
}

// span returns the range that a field names. A missing one is empty and has offset 0.
func (d *decoder) span(part string, field *fbs.Span) span {
	if field == nil {
		return span{}
	}
	header := int(field.Table().Pos)
	named := span{field.Offset(), field.Length()}
	pos, end := named.offset, d.first // in the piece of memory
	if d.size > d.first && pos >= d.first {
		pos, end = pos-d.first, d.size-d.first
	} else if pos < uint64(sizePrefix+len(d.head)) {
		d.fail(part, header, "range of %d bytes at %d, in the header", named.length, named.offset)
		return span{}
	}
	switch {
	case pos%Align != 0:
		d.fail(part, header, "range at %d, which %d does not divide", pos, Align)
		return span{}
	case pos > end || named.length > end-pos:
		d.fail(part, header, "range of %d bytes at %d of %d", named.length, pos, end)
		return span{}
	}
	// Ranges must not overlap, so the memory of a receiver is in proportion to the payload.
	if d.spanned += named.length; d.spanned > d.size {
		d.fail(part, header, "ranges of %d bytes in a payload of %d", d.spanned, d.size)
		return span{}
	}
	return named
}

// elements returns the product of a shape, and false if a length is negative or the product
// overflows.
func elements(shape []int64) (uint64, bool) {
	count := uint64(1)
	for _, length := range shape {
		if length < 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(count, uint64(length))
		if hi != 0 {
			return 0, false
		}
		count = lo
	}
	return count, true
}
