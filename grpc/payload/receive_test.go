package payload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/loader/batch"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// counted is memory that knows how much of it is out. What it gives is dirty.
type counted struct{ out int }

// Decode reads a payload in one piece.
func Decode(p []byte) (*batch.Batch, error) { return DecodeShared(p, nil) }

func (c *counted) Take(n int) batch.Buffer {
	c.out++
	b := batch.NewHeap(n)
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xa5
	}
	return b
}

func (c *counted) Give(batch.Buffer, bool) { c.out-- }

// received returns the batch of p, which arrives in pieces of step bytes, or of random lengths if step is 0.
func received(p []byte, step int, memory Memory) (*batch.Batch, error) {
	r := NewReceiver(len(p), memory)
	defer r.Drop()
	rnd := rand.New(rand.NewPCG(1, uint64(len(p))))
	for rest := p; len(rest) > 0; {
		n := step
		if n == 0 {
			n = 1 + rnd.IntN(100)
		}
		n = min(n, len(rest))
		piece := slices.Clone(rest[:n])
		if err := r.Write(piece); err != nil {
			return nil, err
		}
		clear(piece) // the transport uses its buffers again
		rest = rest[n:]
	}
	return r.Batch()
}

// words makes a batch comparable: NaNs and errors by their text.
func words(b *batch.Batch) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d %d %d %v %v %v\n", b.Epoch, b.First, b.Rows, b.Valid, b.Positions, b.Samples)
	for _, bad := range b.Bad {
		fmt.Fprintf(&s, "%d %d %v %s %v %v\n", bad.Row, bad.Position, bad.Err, bad.Source, bad.Sample, bad.Instead)
	}
	for _, t := range b.Tensors {
		fmt.Fprintf(&s, "%s %v %v %v %v % x, % x, %v\n", t.Name, t.Kind, t.DType, t.Axes, t.Shape, t.Data, t.Offsets,
			t.Convert)
	}
	return s.String()
}

// whole decodes and converts a payload that is all there.
func whole(p []byte) (*batch.Batch, error) {
	b, err := Decode(p)
	if err != nil {
		return nil, err
	}
	for i := range b.Tensors {
		if err := Apply(&b.Tensors[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// TestReceiverInAnyPieces: however a payload arrives, its batch is the one that Decode and Apply make.
func TestReceiverInAnyPieces(t *testing.T) {
	p := encode(t, sample())
	want, err := whole(p)
	if err != nil {
		t.Fatal(err)
	}
	for step := range len(p) + 1 {
		var memory counted
		got, err := received(p, step, &memory)
		if err != nil {
			t.Fatalf("pieces of %d: %v", step, err)
		}
		if words(got) != words(want) {
			t.Fatalf("pieces of %d:\n%s\nwant\n%s", step, words(got), words(want))
		}
		if got.Release(); memory.out != 0 {
			t.Fatalf("%d buffers are out", memory.out)
		}
	}
}

// TestReceiverAgainstSlow: short and long runs of a band agree, in any pieces, with the arithmetic written out element
// by element.
func TestReceiverAgainstSlow(t *testing.T) {
	for _, shape := range [][]int64{{2, 3, 700}, {3, 5, 1}, {2, 3, 7}, {1, 1, 999}, {40, 30, 2}} {
		for axis := -1; axis < len(shape); axis++ {
			n, bands, inner := 1, 1, 1
			for i, s := range shape {
				n *= int(s)
				if i > axis {
					inner *= int(s)
				}
			}
			c := &batch.Convert{To: dtype.Float32, BandAxis: axis}
			if axis >= 0 {
				bands = int(shape[axis])
			}
			for b := range bands {
				c.Scale, c.Offset = append(c.Scale, 0.1*float32(b+1)), append(c.Offset, float32(b)-0.3)
			}
			x := batch.Tensor{Name: "x", DType: dtype.Uint16, Axes: []string{"n", "b", "y"}, Shape: shape,
				Data: make([]byte, 2*n), Convert: c}
			var want []byte
			for i := range n {
				v, b := slowElement(&x, i), i/inner%bands
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(float32(v*c.Scale[b])+c.Offset[b]))
			}
			p := encode(t, &batch.Batch{Tensors: []batch.Tensor{x}})
			for _, step := range []int{0, 1, 3, 64, 1001, len(p)} {
				b, err := received(p, step, &counted{})
				if err != nil || !bytes.Equal(b.Tensors[0].Data, want) || b.Tensors[0].DType != dtype.Float32 {
					t.Errorf("%v, axis %d, pieces of %d: %v", shape, axis, step, err)
				}
			}
		}
	}
}

// drawTensor draws a tensor of few rows, and returns the data and the offsets that it has once it is converted.
func drawTensor(t *rapid.T, name string, rows int) (x batch.Tensor, data, offsets []byte) {
	x = batch.Tensor{Name: name, Axes: []string{"n"}, Shape: []int64{int64(rows)}, DType: dtype.Uint8,
		Kind: rapid.SampledFrom([]batch.TensorKind{batch.Dense, batch.Ragged, batch.Text}).Draw(t, "kind")}
	if x.Kind != batch.Dense {
		ends := make([]uint64, rows+1)
		for i := range rows {
			ends[i+1] = ends[i] + uint64(rapid.IntRange(0, 2).Draw(t, "length"))
		}
		if x.Kind == batch.Text {
			x.DType = dtype.Invalid
		}
		x.Data, x.Offsets = bytes.Repeat([]byte("a"), int(ends[rows])), offsetsOf(ends...)
		return x, x.Data, x.Offsets
	}
	x.Data = rapid.SliceOfN(rapid.Byte(), rows, rows).Draw(t, "data")
	if !rapid.Bool().Draw(t, "convert") {
		return x, x.Data, nil
	}
	x.Convert = &batch.Convert{To: dtype.Int64, BandAxis: -1, Fill: -3}
	if rapid.Bool().Draw(t, "masked") {
		x.Convert.Mask = rapid.SliceOfN(rapid.ByteRange(0, 1), rows, rows).Draw(t, "mask")
	}
	for i, v := range x.Data {
		sample := uint64(v)
		if x.Convert.Mask != nil && x.Convert.Mask[i] == 0 {
			sample = math.MaxUint64 - 2
		}
		data = binary.LittleEndian.AppendUint64(data, sample)
	}
	return x, data, nil
}

// TestReceiverOfFewBytes: tensors of no rows or few arrive as they were sent, in any pieces. An empty range begins
// where the next one begins, and has none of its bytes.
func TestReceiverOfFewBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 3).Draw(t, "rows")
		b := &batch.Batch{Rows: rows, Valid: make([]bool, rows), Positions: make([]int64, rows),
			Samples: make([]int64, rows)}
		var data, offsets [][]byte
		for i := range rapid.IntRange(0, 5).Draw(t, "tensors") {
			x, converted, ends := drawTensor(t, string(rune('a'+i)), rows)
			b.Tensors, data, offsets = append(b.Tensors, x), append(data, converted), append(offsets, ends)
		}
		segments, _ := Encode(b)
		got, err := received(join(segments), rapid.IntRange(0, 70).Draw(t, "pieces"), &counted{})
		if err != nil || len(got.Tensors) != len(b.Tensors) {
			t.Fatal(err)
		}
		for i := range got.Tensors {
			x := &got.Tensors[i]
			if !bytes.Equal(x.Data, data[i]) || !bytes.Equal(x.Offsets, offsets[i]) || x.Convert != nil {
				t.Fatalf("%+v arrives as %+v; want data % x", b.Tensors[i], *x, data[i])
			}
		}
	})
}

// TestReceiverGivesMemoryBack: a payload that ends early is no batch, and one that is too long, changed or given up
// takes no memory with it.
func TestReceiverGivesMemoryBack(t *testing.T) {
	p := encode(t, sample())
	var memory counted
	for n := range p {
		r := NewReceiver(len(p), &memory)
		if err := r.Write(p[:n]); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Batch(); fault.KindOf(err) != fault.Corrupt {
			t.Fatalf("%d of %d bytes: %v", n, len(p), err)
		}
		more := 1 + n%3
		err := r.Write(make([]byte, len(p)-n+more))
		if say := fmt.Sprintf("%d bytes more than %d", more, len(p)); fault.KindOf(err) != fault.Corrupt ||
			!strings.Contains(err.Error(), say+":") {
			t.Fatalf("%v, want %q", err, say)
		}
		r.Drop()
		r.Drop()
	}
	if memory.out != 0 {
		t.Fatalf("%d buffers are out", memory.out)
	}
}

// TestReceiverOfAnEmptyHeader: a header of no bytes is corrupt, in one piece or byte by byte.
func TestReceiverOfAnEmptyHeader(t *testing.T) {
	for _, step := range []int{1, 4, 8} {
		if _, err := received(make([]byte, 8), step, &counted{}); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("pieces of %d: %v", step, err)
		}
	}
}

// TestReceiverMutated: headers with one changed byte.
func TestReceiverMutated(t *testing.T) {
	p := encode(t, sample())
	n := 4 + int(binary.LittleEndian.Uint32(p))
	for i := range n {
		for _, v := range []byte{0, 1, 4, 0x7f, 0x80, 0xff, p[i] + 1, p[i] - 1, p[i] + 4} {
			q := slices.Clone(p)
			q[i] = v
			checkReceived(t, q)
		}
	}
}

// checkReceived compares the batch of p with the one that Decode and Apply make. A receiver may refuse one thing more:
// bytes that lie in two ranges.
func checkReceived(t testing.TB, p []byte) {
	t.Helper()
	var memory counted
	want, werr := whole(p)
	got, err := received(p, 0, &memory)
	switch {
	case err != nil && werr == nil && strings.Contains(err.Error(), "two ranges"):
	case (err == nil) != (werr == nil):
		t.Fatalf("%v, but whole %v", err, werr)
	case err == nil && words(got) != words(want):
		t.Fatalf("%s\nwant\n%s", words(got), words(want))
	}
	if got != nil {
		got.Release()
	}
	if memory.out != 0 {
		t.Fatalf("%d buffers are out", memory.out)
	}
}

func FuzzReceiver(f *testing.F) {
	f.Add(encode(f, sample()))
	f.Add(encode(f, &batch.Batch{}))
	f.Fuzz(func(t *testing.T, p []byte) { checkReceived(t, p) })
}
