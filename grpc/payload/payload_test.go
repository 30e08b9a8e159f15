package payload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/proto/chaski/v1/fbs"
)

// sample returns a batch that has everything.
func sample() *batch.Batch {
	image := make([]byte, 3*2*5*2)
	for i := range image {
		image[i] = byte(i * 7)
	}
	mask := bytes.Repeat([]byte{1, 1, 0}, 10)
	return &batch.Batch{
		Epoch: 3, First: 64, Rows: 3,
		Valid:     []bool{true, false, true},
		Positions: []int64{64, 66, -1},
		Samples:   []int64{12, 1 << 40, -1},
		Bad: []batch.Bad{
			{Row: 1, Position: 66, Err: errors.New("tile 3 at 12: bad\nbytes: corrupt")},
			{Row: 2, Position: 67, Err: fmt.Errorf("in a test: %w",
				fault.WithFile(fault.At(fault.Limit, "tile 3", 12, "too large"), "x.tif"))},
			{
				Row: 0, Position: 65, Err: errors.New("b: corrupt"), Source: "coast",
				Sample:  &batch.SampleRef{Index: 7, Row: 3, ID: "é.tif"},
				Instead: &batch.SampleRef{Index: -1, Row: 0},
			},
		},
		Tensors: []batch.Tensor{
			{
				Name: "image", DType: dtype.Uint16, Axes: []string{"n", "b", "(y x)"},
				Shape: []int64{3, 2, 5}, Data: image,
				Convert: &batch.Convert{
					To: dtype.Float32, Scale: []float32{0.5, 2}, Offset: []float32{1, -1},
					BandAxis: 1, Clip: true, Lo: 0, Hi: 1e4, Fill: math.NaN(), Mask: mask,
				},
			},
			{Name: "label", DType: dtype.Int64, Axes: []string{"n"}, Shape: []int64{3}, Data: make([]byte, 24)},
			{Name: "none", DType: dtype.Float32, Axes: []string{"n", "b"}, Shape: []int64{3, 0}},
			{
				Name: "id", Kind: batch.Text, Axes: []string{"n"}, Shape: []int64{3},
				Data: []byte("aßb"), Offsets: offsetsOf(0, 1, 3, 4),
			},
			{
				Name: "boxes", Kind: batch.Ragged, DType: dtype.Float32, Axes: []string{"n"},
				Shape: []int64{3}, Data: make([]byte, 8), Offsets: offsetsOf(0, 0, 2, 2),
			},
		},
	}
}

// viewed gives the boxes a shape, and axes behind n.
func viewed(b *batch.Batch, shape []int64, axes ...string) {
	b.Tensors[4].Shape, b.Tensors[4].Axes = shape, append([]string{"n"}, axes...)
}

// TestListsOfViews: a ragged tensor has a list for each window of each row.
func TestListsOfViews(t *testing.T) {
	b := sample()
	viewed(b, []int64{3, 2, 2}, batch.ViewAxis, "xy")
	b.Tensors[4].Data = make([]byte, 4*8)
	b.Tensors[4].Offsets = offsetsOf(0, 2, 2, 4, 8, 8, 8)
	got, err := Decode(encode(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if from, to := got.Tensors[4].Row(3); from != 4 || to != 8 {
		t.Errorf("the list of row 1 in view 1 is %d to %d, want 4 to 8", from, to)
	}
	b.Tensors[4].Offsets = offsetsOf(0, 2, 2, 3, 8, 8, 8)
	if _, err := Decode(encode(t, b)); err == nil {
		t.Error("a pair is divided between two windows")
	}
}

func offsetsOf(v ...uint64) []byte {
	var b []byte
	for _, o := range v {
		b = binary.LittleEndian.AppendUint64(b, o)
	}
	return b
}

func join(segments [][]byte) []byte { return bytes.Join(segments, nil) }

func encode(t testing.TB, b *batch.Batch) []byte {
	t.Helper()
	segments, total := Encode(b)
	p := join(segments)
	if len(p) != total {
		t.Fatalf("segments have %d bytes, total is %d", len(p), total)
	}
	return p
}

// TestEncodeAgainstFlatBuffers: the generated code reads the payload, and the bytes are where the
// header says.
func TestEncodeAgainstFlatBuffers(t *testing.T) {
	b := sample()
	p := encode(t, b)
	same(t, p, b)
}

// same fails unless the generated code reads b from p.
func same(t testing.TB, p []byte, b *batch.Batch) {
	t.Helper()
	check := func(what string, got, want any) {
		t.Helper()
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			t.Errorf("%s is %s, want %s", what, g, w)
		}
	}
	bytesOf := func(what string, s *fbs.Span, want []byte) {
		t.Helper()
		if s == nil {
			check(what, "absent", want)
			return
		}
		check(what+" alignment", s.Offset()%64, 0)
		if got := p[s.Offset() : s.Offset()+s.Length()]; !bytes.Equal(got, want) {
			t.Errorf("%s differs", what)
		}
	}
	m := fbs.GetRootAsBatch(p[4:4+binary.LittleEndian.Uint32(p)], 0)
	check("version", m.Version(), 1)
	check("length", m.Length(), len(p))
	check("epoch", m.Epoch(), b.Epoch)
	check("first", m.First(), b.First)
	check("rows", m.Rows(), b.Rows)
	check("valid", m.ValidLength(), len(b.Valid))
	for i := range b.Rows {
		check("valid", m.Valid(i) != 0, b.Valid[i])
		check("position", m.Positions(i), b.Positions[i])
		check("sample", m.Samples(i), b.Samples[i])
	}
	check("bad rows", m.BadLength(), len(b.Bad))
	for i, want := range b.Bad {
		var bad fbs.Bad
		m.Bad(&bad, i)
		check("bad row", fmt.Sprint(bad.Row(), bad.Position(), fault.Line(errors.New(string(bad.Message())))),
			fmt.Sprint(want.Row, want.Position, fault.Line(want.Err)))
	}
	for i, want := range b.Bad {
		var bad fbs.Bad
		m.Bad(&bad, i)
		check("source", string(bad.Source()), want.Source)
		if e, ok := errors.AsType[*fault.Error](want.Err); ok {
			check("fault", fmt.Sprintf("%q %q %q %d", bad.Kind(), bad.File(), bad.Part(), bad.Offset()),
				fmt.Sprintf("%q %q %q %d", e.Kind.Error(), e.File, e.Part, e.Off))
		} else if slices.Contains([]string{"corrupt", "unsupported", "limit", "not found"}, string(bad.Kind())) {
			t.Errorf("%v has the kind %q in the payload", want.Err, bad.Kind())
		}
		for _, ref := range []struct {
			got  *fbs.SampleRef
			want *batch.SampleRef
		}{{bad.Sample(nil), want.Sample}, {bad.Instead(nil), want.Instead}} {
			if check("a sample", ref.got == nil, ref.want == nil); ref.got != nil && ref.want != nil {
				check("sample", batch.SampleRef{
					Index: ref.got.Index(), Row: ref.got.Row(), ID: string(ref.got.Id()),
				}, *ref.want)
			}
		}
	}
	check("tensors", m.TensorsLength(), len(b.Tensors))
	for i := range b.Tensors {
		var x fbs.Tensor
		m.Tensors(&x, i)
		want := &b.Tensors[i]
		check("name", string(x.Name()), want.Name)
		check("kind", byte(x.Kind()), byte(want.Kind))
		check("dtype", x.Dtype(), byte(want.DType))
		var axes []string
		for j := range x.AxesLength() {
			axes = append(axes, string(x.Axes(j)))
		}
		check("axes", axes, want.Axes)
		var shape []int64
		for j := range x.ShapeLength() {
			shape = append(shape, x.Shape(j))
		}
		check("shape", shape, want.Shape)
		bytesOf(want.Name+" data", x.Data(nil), want.Data)
		if want.Kind != batch.Dense {
			bytesOf(want.Name+" offsets", x.Offsets(nil), want.Offsets)
		}
		c := x.Convert(nil)
		check("convert", c != nil, want.Convert != nil)
		if c == nil || want.Convert == nil {
			continue
		}
		var scale, offset []float32
		for j := range c.ScaleLength() {
			scale = append(scale, c.Scale(j))
		}
		for j := range c.OffsetLength() {
			offset = append(offset, c.Offset(j))
		}
		w := want.Convert
		check("convert", fmt.Sprint(c.To(), scale, offset, c.BandAxis(), c.Clip(), c.Lo(), c.Hi(), c.Fill()),
			fmt.Sprint(byte(w.To), w.Scale, w.Offset, w.BandAxis, w.Clip, w.Lo, w.Hi, w.Fill))
		if w.Mask != nil || c.Mask(nil) != nil {
			bytesOf("mask", c.Mask(nil), w.Mask)
		}
	}
}

// TestTensorsOfAnyLength: each tensor begins at a multiple of Align, whatever the length of the one before it, and no
// segment is empty.
func TestTensorsOfAnyLength(t *testing.T) {
	for n := range 2*Align + 2 {
		b := &batch.Batch{}
		for _, name := range []string{"a", "b"} {
			b.Tensors = append(b.Tensors, batch.Tensor{Name: name, DType: dtype.Uint8, Axes: []string{"n"},
				Shape: []int64{int64(n)}, Data: bytes.Repeat([]byte(name), n)})
		}
		same(t, encode(t, b), b)
		segments, _ := Encode(b)
		if slices.ContainsFunc(segments, func(s []byte) bool { return len(s) == 0 }) {
			t.Errorf("a segment of tensors of %d bytes is empty", n)
		}
	}
}

func TestEncodeDoesNotCopyTensors(t *testing.T) {
	b := sample()
	segments, _ := Encode(b)
	for i := range b.Tensors {
		for _, mem := range [][]byte{b.Tensors[i].Data, b.Tensors[i].Offsets} {
			if len(mem) > 0 &&
				!slices.ContainsFunc(segments, func(s []byte) bool { return len(s) == len(mem) && &s[0] == &mem[0] }) {
				t.Errorf("tensor %q is not among the segments", b.Tensors[i].Name)
			}
		}
	}
}

func TestDecodeGivesWhatWasEncoded(t *testing.T) {
	want := sample()
	p := encode(t, want)
	got, err := Decode(p)
	if err != nil {
		t.Fatal(err)
	}
	same(t, p, got)
	if got.Tensor("image").Convert == nil || got.Tensor("label").Convert != nil {
		t.Error("convert")
	}
	got.Tensor("image").Data[0] ^= 0xff
	if again, err := Decode(p); err != nil || again.Tensor("image").Data[0] == want.Tensor("image").Data[0] {
		t.Error("tensors do not alias the payload")
	}
}

// timed gives a batch's strings another shape.
func timed(b *batch.Batch, shape ...int64) {
	b.Tensors[3].Shape, b.Tensors[3].Axes = shape, []string{"n", "t", "x"}[:len(shape)]
}

// TestTextsInTime: strings may have two axes, with one string for each step of a sequence.
func TestTextsInTime(t *testing.T) {
	b := sample()
	timed(b, 3, 2)
	b.Tensors[3].Data, b.Tensors[3].Offsets = []byte("éabc"), offsetsOf(0, 2, 2, 3, 3, 3, 5)
	got, err := Decode(encode(t, b))
	if err != nil {
		t.Fatal(err)
	}
	x := got.Tensors[3]
	if !slices.Equal(x.Shape, []int64{3, 2}) || !slices.Equal(x.Texts(), []string{"é", "", "a", "", "", "bc"}) {
		t.Errorf("%v of %v", x.Texts(), x.Shape)
	}
}

func TestDecodeEmptyBatch(t *testing.T) {
	p := encode(t, &batch.Batch{})
	b, err := Decode(p)
	if err != nil || b.Rows != 0 || len(b.Tensors) != 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestDecodeRefuses: every single change to a valid payload is refused.
func TestDecodeRefuses(t *testing.T) {
	for name, change := range map[string]func(b *batch.Batch){
		"too few valid":          func(b *batch.Batch) { b.Valid = b.Valid[:2] },
		"too many positions":     func(b *batch.Batch) { b.Positions = append(b.Positions, 1) },
		"no samples":             func(b *batch.Batch) { b.Samples = nil },
		"negative rows":          func(b *batch.Batch) { b.Rows = -1 },
		"bad row outside":        func(b *batch.Batch) { b.Bad[0].Row = 3 },
		"bad row negative":       func(b *batch.Batch) { b.Bad[0].Row = -1 },
		"unknown kind":           func(b *batch.Batch) { b.Tensors[0].Kind = 3 },
		"unknown dtype":          func(b *batch.Batch) { b.Tensors[0].DType = 99 },
		"dtype of dense missing": func(b *batch.Batch) { b.Tensors[0].DType = 0 },
		"texts of other rows":    func(b *batch.Batch) { timed(b, 2, 2) },
		"texts of other steps":   func(b *batch.Batch) { timed(b, 3, 2) },
		"texts of three axes":    func(b *batch.Batch) { timed(b, 3, 1, 1) },
		"texts overflow":         func(b *batch.Batch) { timed(b, 3, 1<<62) },
		"texts of few axes":      func(b *batch.Batch) { timed(b, 3, 1); b.Tensors[3].Axes = []string{"n"} },
		"text with dtype":        func(b *batch.Batch) { b.Tensors[3].DType = dtype.Uint8 },
		"ragged without dtype":   func(b *batch.Batch) { b.Tensors[4].DType = 0 },
		"axes and shape":         func(b *batch.Batch) { b.Tensors[0].Axes = b.Tensors[0].Axes[1:] },
		"shape too large":        func(b *batch.Batch) { b.Tensors[0].Shape[2] = 6 },
		"shape negative":         func(b *batch.Batch) { b.Tensors[1].Shape[0] = -3 },
		"shape overflows": func(b *batch.Batch) {
			b.Tensors[1].Shape = []int64{1 << 32, 1 << 32}
			b.Tensors[1].Axes = []string{"n", "x"}
		},
		"size overflows":          func(b *batch.Batch) { b.Tensors[1].Shape[0] = 1 << 61 },
		"name is not UTF-8":       func(b *batch.Batch) { b.Tensors[0].Name = "\xff" },
		"too few offsets":         func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 1, 4) },
		"offsets fall":            func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 3, 1, 4) },
		"offsets begin late":      func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(1, 1, 3, 4) },
		"offsets pass the values": func(b *batch.Batch) { b.Tensors[3].Offsets = offsetsOf(0, 1, 3, 5) },
		"ragged size overflows":   func(b *batch.Batch) { b.Tensors[4].Offsets = offsetsOf(0, 0, 2, 1<<62) },
		"ragged in fours":         func(b *batch.Batch) { b.Tensors[4].Shape = []int64{3, 4} },
		"views without lists":     func(b *batch.Batch) { viewed(b, []int64{3, 2}, "v") },
		"views of other rows":     func(b *batch.Batch) { viewed(b, []int64{1, 3}, "v") },
		"views below 0":           func(b *batch.Batch) { viewed(b, []int64{-3, -1}, "v") },
		"views without end":       func(b *batch.Batch) { viewed(b, []int64{3, 1 << 62}, "v") },
		"three axes, no views":    func(b *batch.Batch) { viewed(b, []int64{3, 1, 1}, "k", "xyxy") },
		"views in threes":         func(b *batch.Batch) { viewed(b, []int64{3, 1, 3}, "v", "xyxy") },
		"scales and bands":        func(b *batch.Batch) { b.Tensors[0].Convert.Scale = []float32{1, 2, 3} },
		"scales without axis":     func(b *batch.Batch) { b.Tensors[0].Convert.BandAxis = -1 },
		"band axis":               func(b *batch.Batch) { b.Tensors[0].Convert.BandAxis = 3 },
		"clip upside down":        func(b *batch.Batch) { b.Tensors[0].Convert.Lo = 1e5 },
		"clip NaN":                func(b *batch.Batch) { b.Tensors[0].Convert.Hi = float32(math.NaN()) },
		"converted to int32":      func(b *batch.Batch) { b.Tensors[0].Convert.To = dtype.Int32 },
		"scaled to int64":         func(b *batch.Batch) { b.Tensors[0].Convert.To = dtype.Int64 },
		"float to int64": func(b *batch.Batch) {
			b.Tensors[0].DType, b.Tensors[0].Data = dtype.Float32, make([]byte, 120)
			b.Tensors[0].Convert = &batch.Convert{To: dtype.Int64, BandAxis: -1}
		},
		"converted from complex": func(b *batch.Batch) {
			b.Tensors[0].DType, b.Tensors[0].Shape[0] = dtype.ComplexInt16, 3
			b.Tensors[0].Data = make([]byte, 120)
		},
		"mask too short":  func(b *batch.Batch) { b.Tensors[0].Convert.Mask = make([]byte, 29) },
		"convert of text": func(b *batch.Batch) { b.Tensors[3].Convert = b.Tensors[0].Convert },
	} {
		b := sample()
		change(b)
		if _, err := Decode(encode(t, b)); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeRefusesOtherVersion(t *testing.T) {
	f := flatbuffers.NewBuilder(0)
	fbs.BatchStart(f)
	fbs.BatchAddVersion(f, 2)
	fbs.FinishSizePrefixedBatchBuffer(f, fbs.BatchEnd(f))
	p := f.FinishedBytes()
	if _, err := Decode(p); fault.KindOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

func TestDecodeRefusesEveryTruncation(t *testing.T) {
	p := encode(t, sample())
	for n := range p {
		if _, err := Decode(p[:n:n]); fault.KindOf(err) != fault.Corrupt {
			t.Fatalf("%d of %d bytes: %v", n, len(p), err)
		}
	}
}

// TestDecodeUnfolding: headers whose shared references unfold to more than the header holds are
// refused.
func TestDecodeUnfolding(t *testing.T) {
	f := flatbuffers.NewBuilder(0)
	long := f.CreateString(string(bytes.Repeat([]byte("x"), 1000)))
	fbs.TensorStart(f)
	fbs.TensorAddName(f, long)
	fbs.TensorAddDtype(f, byte(dtype.Uint8))
	fbs.TensorAddData(f, fbs.CreateSpan(f, 0, 0))
	one := fbs.TensorEnd(f)
	refs := make([]flatbuffers.UOffsetT, 5000)
	for i := range refs {
		refs[i] = one
	}
	all := offsets(f, refs)
	fbs.BatchStart(f)
	fbs.BatchAddTensors(f, all)
	fbs.BatchAddLength(f, 1<<20)
	fbs.FinishSizePrefixedBatchBuffer(f, fbs.BatchEnd(f))
	p := make([]byte, 1<<20)
	copy(p, f.FinishedBytes())
	if _, err := Decode(p); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
}

// TestDecodeMutated: extreme values are written at every place of the header. A payload that is
// still accepted lies inside its bytes, and reads the same with the generated code.
func TestDecodeMutated(t *testing.T) {
	p := encode(t, sample())
	n := 4 + int(binary.LittleEndian.Uint32(p))
	for i := range n {
		for _, v := range []byte{0, 1, 4, 0x7f, 0x80, 0xff, p[i] + 1, p[i] - 1, p[i] + 4} {
			q := slices.Clone(p)
			q[i] = v
			checkDecoded(t, q)
		}
	}
}

// checkDecoded decodes p and, if that works, compares with the generated code.
func checkDecoded(t testing.TB, p []byte) {
	t.Helper()
	b, err := Decode(p)
	if err != nil {
		if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported {
			t.Fatalf("error without a kind: %v", err)
		}
		return
	}
	same(t, p, b)
	for i := range b.Tensors {
		if err := Apply(&b.Tensors[i]); err == nil && b.Tensors[i].Convert != nil {
			t.Fatal("applied, but left to do")
		}
	}
}

func FuzzPayload(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add(encode(f, &batch.Batch{}))
	small := sample()
	small.Tensors = small.Tensors[3:]
	f.Add(encode(f, small))
	f.Fuzz(func(t *testing.T, p []byte) { checkDecoded(t, p) })
}

// TestApplyAgainstSlow: Apply agrees with the arithmetic written out element by element.
func TestApplyAgainstSlow(t *testing.T) {
	shape := []int64{2, 3, 4, 5}
	const n = 2 * 3 * 4 * 5
	for axis := -1; axis < len(shape); axis++ {
		bands := 1
		if axis >= 0 {
			bands = int(shape[axis])
		}
		for _, from := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float32} {
			x := &batch.Tensor{
				Name: "x", DType: from, Axes: []string{"n", "b", "y", "x"},
				Shape: shape, Data: make([]byte, n*from.Size()),
			}
			c := &batch.Convert{
				To: dtype.Float32, BandAxis: axis, Clip: true,
				Lo: -50, Hi: 1e3, Fill: -9, Mask: make([]byte, n),
			}
			for b := range bands {
				c.Scale = append(c.Scale, 0.1*float32(b+1))
				c.Offset = append(c.Offset, float32(b)-0.3)
			}
			want := make([]byte, 0, 4*n)
			for i := range n {
				v := slowElement(x, i)
				inner := 1
				for _, s := range shape[axis+1:] {
					inner *= int(s)
				}
				b := 0
				if axis >= 0 {
					b = i / inner % bands
				}
				y := float32(float32(v*c.Scale[b]) + c.Offset[b])
				y = max(min(y, c.Hi), c.Lo)
				if c.Mask[i] = byte(i % 3); c.Mask[i] == 0 {
					y = -9
				}
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(y))
			}
			x.Convert = c
			if err := Apply(x); err != nil {
				t.Fatal(err)
			}
			if x.DType != dtype.Float32 || x.Convert != nil || !bytes.Equal(x.Data, want) {
				t.Errorf("axis %d from %v differs", axis, from)
			}
		}
	}
}

// slowElement sets element i of x to some value, which it returns.
func slowElement(x *batch.Tensor, i int) float32 {
	size := x.DType.Size()
	p := x.Data[i*size:]
	switch x.DType {
	case dtype.Uint8:
		p[0] = byte(i * 37)
		return float32(p[0])
	case dtype.Uint16:
		binary.LittleEndian.PutUint16(p, uint16(i*977))
		return float32(uint16(i * 977))
	case dtype.Int16:
		binary.LittleEndian.PutUint16(p, uint16(int16(i*977)))
		return float32(int16(i * 977))
	default:
		v := float32(i)*1.7 - 90
		binary.LittleEndian.PutUint32(p, math.Float32bits(v))
		return v
	}
}

func TestApplyFill(t *testing.T) {
	for to, want := range map[dtype.Type][]byte{
		dtype.Uint8:    {7},
		dtype.Float16:  {0x00, 0x47},
		dtype.BFloat16: {0xe0, 0x40},
		dtype.Float32:  {0, 0, 0xe0, 0x40},
		dtype.Int64:    {7, 0, 0, 0, 0, 0, 0, 0},
	} {
		x := &batch.Tensor{DType: dtype.Uint8, Axes: []string{"x"}, Shape: []int64{1}, Data: []byte{3},
			Convert: &batch.Convert{To: to, BandAxis: -1, Fill: 7, Mask: []byte{0}}}
		if err := Apply(x); err != nil || !bytes.Equal(x.Data, want) {
			t.Errorf("%v: % x, %v", to, x.Data, err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	batch := sample()
	for b.Loop() {
		Encode(batch)
	}
}

// shared returns sample with its dense tensors in memory, laid out as an engine does, after a gap.
func shared(memory []byte) *batch.Batch {
	b := sample()
	at := Align
	for i := range b.Tensors {
		t := &b.Tensors[i]
		if t.Convert != nil {
			n := copy(memory[at:], t.Convert.Mask)
			t.Convert.Mask = memory[at : at+n : at+n]
			at += roundUp(n)
		}
		if t.Kind == batch.Dense && len(t.Data) > 0 && t.Name != "label" {
			n := copy(memory[at:], t.Data)
			t.Data = memory[at : at+n : at+n]
			at += roundUp(n)
		}
	}
	return b
}

// TestSharedIsTheSamePayload: head followed by memory is a payload that reads as b, and tensors
// decoded from the two lie in memory.
func TestSharedIsTheSamePayload(t *testing.T) {
	memory := cast.Aligned(1000)
	b := shared(memory)
	if !InMemory(b, memory) || InMemory(sample(), memory) || InMemory(&batch.Batch{}, memory) {
		t.Fatal("what lies in memory is not seen")
	}
	head := EncodeShared(b, memory)
	if len(head)%Align != 0 {
		t.Errorf("a head of %d bytes", len(head))
	}
	same(t, append(slices.Clone(head), memory...), b)
	got, err := DecodeShared(head, memory)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Tensors {
		w, g := &b.Tensors[i], &got.Tensors[i]
		if !bytes.Equal(g.Data, w.Data) || !bytes.Equal(g.Offsets, w.Offsets) {
			t.Errorf("%s differs", w.Name)
		}
		if w.Convert != nil && !bytes.Equal(g.Convert.Mask, w.Convert.Mask) {
			t.Errorf("the mask of %s differs", w.Name)
		}
		o, in := cast.Offset(memory, w.Data)
		if o2, in2 := cast.Offset(memory, g.Data); in2 != in || in && o2 != o {
			t.Errorf("%s is at %d %v, was at %d %v", w.Name, o2, in2, o, in)
		}
	}
	odd := &batch.Batch{
		Tensors: []batch.Tensor{
			{Name: "odd", DType: dtype.Uint8, Axes: []string{"n"}, Shape: []int64{3}, Data: memory[3:6]},
		},
	}
	if InMemory(odd, memory) {
		t.Error("a tensor that is not aligned is lent")
	}
	odd.Tensors[0].Data = memory[Align : Align+3]
	for begin, lent := range map[int]bool{3: false, Align - 1: false, 2 * Align: true} {
		odd.Tensors[0].Convert = &batch.Convert{Mask: memory[begin : begin+3]}
		if InMemory(odd, memory) != lent {
			t.Errorf("with a mask at %d it is lent: %t", begin, !lent)
		}
	}
}

// TestSharedRangesStayInOnePlace: no range reaches from head into memory, or past its end.
func TestSharedRangesStayInOnePlace(t *testing.T) {
	memory := cast.Aligned(1000)
	b := shared(memory)
	head := EncodeShared(b, memory)
	if _, err := DecodeShared(head, memory[:999]); err == nil {
		t.Error("memory that is too short is taken")
	}
	if _, err := DecodeShared(head[:len(head)-Align], memory); err == nil {
		t.Error("a head that is too short is taken")
	}
	// A payload is cut at every place, and refused if a range crosses the cut.
	long := &batch.Batch{
		Tensors: []batch.Tensor{
			{Name: "long", DType: dtype.Uint8, Axes: []string{"n"}, Shape: []int64{300}, Data: memory[64:364]},
		},
	}
	head = EncodeShared(long, memory)
	whole := append(slices.Clone(head), memory...)
	for cut := len(head) - Align; cut <= len(head)+6*Align; cut += Align {
		start := len(head) + 64
		crosses := start < cut && cut < start+300
		got, err := DecodeShared(whole[:cut], whole[cut:])
		if crosses != (err != nil) && cut >= len(head) {
			t.Errorf("cut at %d of a range at %d: %v", cut, start, err)
		}
		if err == nil && !bytes.Equal(got.Tensors[0].Data, long.Tensors[0].Data) {
			t.Errorf("cut at %d: other bytes", cut)
		}
		var memory counted
		copied, cerr := Copy(whole[:cut], whole[cut:], &memory)
		if (cerr != nil) != (err != nil) || memory.out > 0 && cerr != nil {
			t.Errorf("cut at %d: copied with %v, decoded with %v; %d buffers are out", cut, cerr, err, memory.out)
		}
		if cerr == nil && !bytes.Equal(copied.Tensors[0].Data, long.Tensors[0].Data) {
			t.Errorf("cut at %d: other bytes are copied", cut)
		}
	}
}

func FuzzSharedPayload(f *testing.F) {
	memory := cast.Aligned(1000)
	f.Add(EncodeShared(shared(memory), memory), 1000)
	f.Add(encode(f, sample()), 0)
	f.Fuzz(func(t *testing.T, head []byte, n int) {
		if n < 0 || n > len(memory) {
			return
		}
		b, err := DecodeShared(head, memory[:n])
		if err != nil {
			if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		for i := range b.Tensors {
			d := b.Tensors[i].Data
			_, first := cast.Offset(head, d)
			_, second := cast.Offset(memory[:n], d)
			if len(d) > 0 && !first && !second {
				t.Fatal("a range outside")
			}
		}
	})
}

// TestRangesThatOverlap: tensors that share bytes or a name are refused, because converting them
// would take memory out of proportion to the payload.
func TestRangesThatOverlap(t *testing.T) {
	const n, k = 1 << 12, 5
	for _, distinct := range []bool{true, false} {
		b := &batch.Batch{Rows: 1, Valid: []bool{true}, Positions: []int64{0}, Samples: []int64{0}}
		for i := range k {
			name := "x"
			if distinct {
				name = string(rune('a' + i))
			}
			b.Tensors = append(b.Tensors, batch.Tensor{
				Name: name, DType: dtype.Uint8, Axes: []string{"n"}, Shape: []int64{n}, Data: make([]byte, n),
				Convert: &batch.Convert{To: dtype.Float32, BandAxis: -1},
			})
		}
		places := make([]spans, k)
		size := len(header(b, places, 0, 1<<16))
		start := roundUp(size)
		for i := range places {
			at := start
			if !distinct {
				at += i * n
			}
			places[i].data = span{uint64(at), n}
		}
		p := make([]byte, start+k*n)
		copy(p, header(b, places, uint64(len(p)), size))
		out, err := Decode(p)
		if distinct { // names differ, all over the same bytes: more than there are
			p = p[:start+n]
			copy(p, header(b, places, uint64(len(p)), size))
			out, err = Decode(p)
		}
		if fault.KindOf(err) != fault.Corrupt {
			t.Errorf("distinct names %v: %v, %v", distinct, out, err)
		}
	}
}
