package payload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/proto/chaski/v1/fbs"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestRefusedForItsReason: the error about a payload says what is wrong with it, and where in the header.
func TestRefusedForItsReason(t *testing.T) {
	for want, change := range map[string]func(b *batch.Batch){
		"3 rows, but 2 valid, 3 positions, 3 samples": func(b *batch.Batch) { b.Valid = b.Valid[:2] },
		"3 rows, but 3 valid, 4 positions, 3 samples": func(b *batch.Batch) { b.Positions = append(b.Positions, 1) },
		"3 rows, but 3 valid, 3 positions, 2 samples": func(b *batch.Batch) { b.Samples = b.Samples[:2] },
		"-1 rows, but":              func(b *batch.Batch) { b.Rows = -1 },
		"row 3 of 3":                func(b *batch.Batch) { b.Bad[0].Row = 3 },
		"row -1 of 3":               func(b *batch.Batch) { b.Bad[0].Row = -1 },
		"kind 3":                    func(b *batch.Batch) { b.Tensors[0].Kind = 3 },
		": dtype 99":                func(b *batch.Batch) { b.Tensors[0].DType = 99 },
		"dtype 0":                   func(b *batch.Batch) { b.Tensors[4].DType = 0 },
		"dtype 1":                   func(b *batch.Batch) { b.Tensors[3].DType = dtype.Uint8 },
		"2 axes and 3 lengths":      func(b *batch.Batch) { b.Tensors[0].Axes = b.Tensors[0].Axes[1:] },
		"string is not UTF-8":       func(b *batch.Batch) { b.Tensors[0].Name = "\xff" },
		`called "label"`:            func(b *batch.Batch) { b.Tensors[0].Name = "label" },
		"24 bytes of offsets":       func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 1, 4) },
		"40 bytes of offsets":       func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 1, 3, 4, 4) },
		"33 bytes of offsets":       func(b *batch.Batch) { b.Tensors[3].Offsets = append(b.Tensors[3].Offsets, 0) },
		"offset 1 of row 2 after 3": func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 3, 1, 4) },
		"offset 1 of row 0 after 0": func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(1, 1, 3, 4) },
		"offsets end at 5":          func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 1, 3, 5) },
		"of shape [3 0] for 3 rows": func(b *batch.Batch) { b.Tensors[4].Shape = []int64{3, 0} },
		"of shape [2 1] for 3 rows": func(b *batch.Batch) { b.Tensors[4].Shape = []int64{2, 1} },
		"offset 6 of row 2 in groups of 4": func(b *batch.Batch) {
			b.Tensors[4].Shape, b.Tensors[4].Offsets = []int64{3, 4}, offsetsOf(0, 4, 6, 8)
		},
		"mask of 29 bytes":          func(b *batch.Batch) { b.Tensors[0].Convert.Mask = make([]byte, 29) },
		"mask of 31 bytes":          func(b *batch.Batch) { b.Tensors[0].Convert.Mask = make([]byte, 31) },
		"band axis 3 of 3":          func(b *batch.Batch) { b.Tensors[0].Convert.BandAxis = 3 },
		"band axis -2 of 3":         func(b *batch.Batch) { b.Tensors[0].Convert.BandAxis = -2 },
		"3 scales or offsets for 2": func(b *batch.Batch) { b.Tensors[0].Convert.Offset = []float32{1, 2, 3} },
		"uint16 to int64":           func(b *batch.Batch) { b.Tensors[0].Convert.To = dtype.Int64 },
		"arithmetic to dtype 4":     func(b *batch.Batch) { b.Tensors[0].Convert.To = dtype.Uint64 },
		"shape [-3] of int64 in 0 bytes": func(b *batch.Batch) {
			b.Tensors[1].Shape, b.Tensors[1].Data = []int64{-3}, nil
		},
		"shape [2305843009213693952] of int64 in 0 bytes": func(b *batch.Batch) { // 2^64 bytes
			b.Tensors[1].Shape, b.Tensors[1].Data = []int64{1 << 61}, nil
		},
		"shape [4294967296 4294967296] of int64 in 0 bytes": func(b *batch.Batch) {
			b.Tensors[1].Shape, b.Tensors[1].Data = []int64{1 << 32, 1 << 32}, nil
			b.Tensors[1].Axes = []string{"n", "x"}
		},
		"not dense": func(b *batch.Batch) { b.Tensors[3].Convert = b.Tensors[0].Convert },
	} {
		b := sample()
		change(b)
		p := encode(t, b)
		_, err := Decode(p)
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), want) {
			t.Errorf("%q expected, got %v", want, err)
		}
		if e, ok := errors.AsType[*fault.Error](err); !ok || !slices.Contains(tablesOf(p, e.Part), e.Off) {
			t.Errorf("%v: no such part lies there, but at %v", err, tablesOf(p, e.Part))
		}
		var memory counted
		_, other := received(p, 0, &memory)
		if other == nil || other.Error() != err.Error() || memory.out != 0 {
			t.Errorf("%q: received with %v; %d buffers are out", want, other, memory.out)
		}
	}
}

// tablesOf returns the offsets in a payload of the tables that errors call part, as the generated code finds them.
func tablesOf(p []byte, part string) (out []int64) {
	found := func(name string, t flatbuffers.Table) {
		if name == part {
			out = append(out, sizePrefix+int64(t.Pos))
		}
	}
	b := fbs.GetRootAsBatch(p[sizePrefix:], 0)
	found("batch", b.Table())
	for i := range b.BadLength() {
		var bad fbs.Bad
		b.Bad(&bad, i)
		found("bad row", bad.Table())
	}
	for i := range b.TensorsLength() {
		var tensor fbs.Tensor
		b.Tensors(&tensor, i)
		if found("tensor", tensor.Table()); tensor.Convert(nil) != nil {
			found("convert", tensor.Convert(nil).Table())
		}
	}
	return out
}

// TestSizesAtTheBounds: what may be empty, or as large as it can be, is read.
func TestSizesAtTheBounds(t *testing.T) {
	for name, change := range map[string]func(b *batch.Batch){
		"scales of a band axis of one": func(b *batch.Batch) {
			b.Tensors[0].Convert = &batch.Convert{To: dtype.Float32, BandAxis: 0, Scale: []float32{1, 2, 3}}
		},
		"one scale": func(b *batch.Batch) { b.Tensors[0].Convert.Scale = []float32{2} },
		"the last axis": func(b *batch.Batch) {
			b.Tensors[0].Convert = &batch.Convert{To: dtype.Uint8, BandAxis: 2}
		},
		"a clip to one": func(b *batch.Batch) { b.Tensors[0].Convert.Lo, b.Tensors[0].Convert.Hi = 3, 3 },
		"no mask":       func(b *batch.Batch) { b.Tensors[0].Convert.Mask = nil },
		"integers to int64": func(b *batch.Batch) {
			b.Tensors[0].Convert = &batch.Convert{To: dtype.Int64, BandAxis: -1}
		},
		"empty strings": func(b *batch.Batch) {
			b.Tensors[3].Data, b.Tensors[3].Offsets = nil, offsetsOf(0, 0, 0, 0)
		},
		"groups of one value": func(b *batch.Batch) { b.Tensors[4].Shape = []int64{3, 1} },
		"a scalar": func(b *batch.Batch) {
			b.Tensors[1].Axes, b.Tensors[1].Shape, b.Tensors[1].Data = nil, nil, make([]byte, 8)
		},
		"no tensors": func(b *batch.Batch) { b.Tensors = nil },
		"last row":   func(b *batch.Batch) { b.Bad[0].Row = 2 },
		"first row":  func(b *batch.Batch) { b.Bad[0].Row = 0 },
	} {
		b := sample()
		change(b)
		p := encode(t, b)
		got, err := Decode(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, p, got)
	}
}

// nested returns the payload of a tensor without rows whose name has n bytes, and that times references.
func nested(t *testing.T, n, times int) []byte {
	t.Helper()
	builder := flatbuffers.NewBuilder(0)
	names := make([]flatbuffers.UOffsetT, times)
	axis := builder.CreateString(strings.Repeat("x", n))
	for i := range names {
		names[i] = axis
	}
	axes := offsets(builder, names)
	shape := int64s(builder, make([]int64, times))
	fbs.TensorStart(builder)
	fbs.TensorAddDtype(builder, byte(dtype.Uint8))
	fbs.TensorAddAxes(builder, axes)
	fbs.TensorAddShape(builder, shape)
	tensors := offsets(builder, []flatbuffers.UOffsetT{fbs.TensorEnd(builder)})
	fbs.BatchStart(builder)
	fbs.BatchAddVersion(builder, Version)
	fbs.BatchAddTensors(builder, tensors)
	fbs.BatchAddLength(builder, math.MaxUint64) // so that its field is there
	fbs.FinishSizePrefixedBatchBuffer(builder, fbs.BatchEnd(builder))
	p := bytes.Clone(builder.FinishedBytes())
	sized := bytes.ReplaceAll(p, bytes.Repeat([]byte{0xff}, 8), binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
	return sized
}

// TestReferencesUnfold: a string that is referred to as often as the header has room is read, and an error says that
// references beyond that unfold to more bytes than the header has.
func TestReferencesUnfold(t *testing.T) {
	for _, times := range []int{1, 2, 5, 20, 100} {
		for n := range 60 {
			p := nested(t, n, times)
			header := len(p) - sizePrefix
			b, err := Decode(p)
			unfolded := times * n // bytes of the strings alone; tables and numbers take some of the header too
			switch {
			case unfolded > header && (err == nil || !strings.Contains(err.Error(), "unfold to more than")):
				t.Errorf("%d references to %d bytes in a header of %d: %v", times, n, header, err)
			case times == 1 && (err != nil || b.Tensors[0].Axes[0] != strings.Repeat("x", n)):
				t.Errorf("one reference to %d bytes: %v", n, err)
			}
		}
	}
}

// TestProductOfAShape: a shape has no elements if a length is negative or the product is beyond 64 bits.
func TestProductOfAShape(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		want  uint64
		ok    bool
	}{
		{nil, 1, true}, {[]int64{0}, 0, true}, {[]int64{3, 0, 5}, 0, true}, {[]int64{2, 3, 7}, 42, true},
		{[]int64{-1}, 0, false}, {[]int64{0, -1}, 0, false}, {[]int64{1 << 32, 1 << 32}, 0, false},
		{[]int64{1 << 32, 1 << 31, 2}, 0, false}, {[]int64{1 << 32, 1 << 31}, 1 << 63, true},
	} {
		if n, ok := elements(c.shape); ok != c.ok || ok && n != c.want {
			t.Errorf("%v: %d, %v", c.shape, n, ok)
		}
	}
}

// TestRangesAtTheBounds: a range lies behind the header, at a multiple of Align, and ends at the end of the payload or
// before; together ranges have no more bytes than the payload.
func TestRangesAtTheBounds(t *testing.T) {
	const header, first, second = 100, 1024, 512 // bytes of the header, and of the two pieces of memory
	for _, c := range []struct {
		at   span
		want string
	}{
		{span{128, 0}, ""}, {span{128, first - 128}, ""}, {span{first - Align, Align}, ""}, {span{first, second}, ""},
		{span{first, 1}, ""}, {span{first + Align, second - Align}, ""},
		{span{0, 1}, "in the header"}, {span{64, 1}, "in the header"},
		{span{130, 1}, "does not divide"}, {span{first + 1, 1}, "does not divide"},
		{span{128, first - 127}, "range of 897 bytes at 128 of 1024"},
		{span{first, second + 1}, "range of 513 bytes at 0 of 512"},
		{span{first + second, 1}, "range of 1 bytes at 512 of 512"},
		{span{first + second + Align, 0}, "of 512"}, {span{128, math.MaxUint64}, "at 128 of 1024"},
	} {
		builder := flatbuffers.NewBuilder(0)
		fbs.TensorStart(builder)
		fbs.TensorAddData(builder, fbs.CreateSpan(builder, c.at.offset, c.at.length))
		builder.Finish(fbs.TensorEnd(builder))
		field := fbs.GetRootAsTensor(builder.FinishedBytes(), 0).Data(nil)
		d := newDecoder(make([]byte, header), first, second)
		got := d.span("x", field)
		if c.want == "" && (d.err != nil || got != c.at) ||
			c.want != "" && (d.err == nil || !strings.Contains(d.err.Error(), c.want)) {
			t.Errorf("%+v: %+v, %v; want %q", c.at, got, d.err, c.want)
		}
		e, refused := errors.AsType[*fault.Error](d.err)
		if refused && e.Off != sizePrefix+int64(field.Table().Pos) {
			t.Errorf("%v: the range is at %d of the header", e, field.Table().Pos)
		}
		for c.want == "" && d.err == nil && c.at.length > 0 { // the same range again, until they have too many bytes
			spanned := d.spanned
			d.span("x", field)
			if more := spanned + c.at.length; (d.err != nil) != (more > first+second) {
				t.Errorf("ranges of %d bytes of %d: %v", more, first+second, d.err)
			}
		}
	}
}

// TestReceiverTakesTheMemoryThatIsNeeded: the memory of a batch has the converted data of its dense tensors, each at a
// multiple of Align.
func TestReceiverTakesTheMemoryThatIsNeeded(t *testing.T) {
	b := sample()
	want := 0
	for i := range b.Tensors {
		tensor := &b.Tensors[i]
		if tensor.Kind != batch.Dense {
			continue
		}
		size := tensor.DType.Size()
		if tensor.Convert != nil {
			size = tensor.Convert.To.Size()
		}
		for _, length := range tensor.Shape {
			size *= int(length)
		}
		want += (size + Align - 1) / Align * Align
	}
	memory := &asked{}
	if _, err := received(encode(t, b), 0, memory); err != nil || memory.bytes != want {
		t.Errorf("%d bytes, want %d: %v", memory.bytes, want, err)
	}
}

// asked is memory that knows how many bytes were asked for.
type asked struct {
	counted
	bytes int
}

func (a *asked) Take(n int) batch.Buffer {
	a.bytes += n
	return a.counted.Take(n)
}

// TestSpend: a header gives its bytes once, to the last one.
func TestSpend(t *testing.T) {
	for _, c := range []struct {
		n, size int
		ok      bool
	}{
		{10, 1, true}, {11, 1, false}, {5, 2, true}, {6, 2, false}, {3, 3, true}, {4, 3, false}, {0, 8, true},
		{-1, 1, false}, {math.MaxInt, 8, false},
	} {
		d := newDecoder(make([]byte, 10), 0, 0)
		if ok := d.spend("x", 0, c.n, c.size); ok != c.ok || ok != (d.err == nil) {
			t.Errorf("%d elements of %d bytes, of 10: %v, %v", c.n, c.size, ok, d.err)
		}
		if rest := 10 - c.n*c.size; c.ok && (!d.spend("x", 0, rest, 1) || d.spend("x", 0, 1, 1)) {
			t.Errorf("%d bytes are not left after %d elements of %d", rest, c.n, c.size)
		}
	}
}

// TestRefusedBeforeItIsAllocated: a header whose strings unfold to a hundred times its size takes memory in proportion
// to the header alone.
func TestRefusedBeforeItIsAllocated(t *testing.T) {
	p := nested(t, 20_000, 5000)
	n := corpus.Allocated(func() {
		if _, err := Decode(p); err == nil {
			t.Error("accepted")
		}
	})
	if n > 8*uint64(len(p)) {
		t.Errorf("%d bytes are allocated for a header of %d", n, len(p))
	}
}

// TestFillsOutOfRange: a fill value that the dtype of the tensor cannot hold is refused, and names the tensor.
func TestFillsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		dtype dtype.Type
		fill  float64
		fits  bool
	}{
		{dtype.Uint8, 255, true}, {dtype.Uint8, 256, false}, {dtype.Uint8, -1, false}, {dtype.Int64, -1, true},
		{dtype.Int64, 1 << 62, true}, {dtype.Int64, 1 << 63, false}, {dtype.Float32, 1e300, true},
	} {
		x := batch.Tensor{Name: "image", DType: dtype.Uint8,
			Convert: &batch.Convert{To: c.dtype, Fill: c.fill, Mask: []byte{0, 1}}}
		err := converted(&x, make([]byte, 2*c.dtype.Size()))
		if c.fits != (err == nil) || !c.fits && !strings.Contains(err.Error(), `tensor "image"`) ||
			c.fits != (x.Convert == nil) {
			t.Errorf("%v in %v: %v", c.fill, c.dtype, err)
		}
		x.Convert, x.DType = &batch.Convert{To: c.dtype, Fill: c.fill, Mask: []byte{0, 1}, BandAxis: -1}, dtype.Uint8
		x.Axes, x.Shape, x.Data = []string{"n"}, []int64{2}, []byte{1, 2}
		var memory counted
		p := encode(t, &batch.Batch{Tensors: []batch.Tensor{x}})
		if _, err := received(p, 0, &memory); (err == nil) != c.fits || memory.out != 0 != c.fits {
			t.Errorf("%v in %v arrives: %v, %d buffers are out", c.fill, c.dtype, err, memory.out)
		}
	}
}
