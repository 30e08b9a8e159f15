package einops_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/einops/pattern"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestInterleavedSamplesAsBands: samples that lie apart become what they become side by side, of every type and at
// every distance, past the caches and not, whatever their number.
func TestInterleavedSamplesAsBands(t *testing.T) {
	race.SkipCovered(t)
	p, err := pattern.Parse("n y x")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 11))
	nodata := 7.0
	const most = 40 * 333
	for _, large := range []int{1, einops.Streamed/(4*most) + 1} {
		for _, from := range []dtype.Type{dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Float16,
			dtype.Uint32, dtype.Float32, dtype.Float64} {
			for stride := 2; stride <= 17; stride++ {
				h, w := 1+r.IntN(40), 1+r.IntN(333)
				n := large * most / (h * w)
				plan, err := p.Plan([]einops.Axis{{Name: "n", Len: n}, {Name: "y", Len: h}, {Name: "x", Len: w}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				c := einops.Convert{From: from, To: dtype.Float32, Scale: []float32{0.125}, Offset: []float32{-3}}
				if stride%2 == 0 {
					c.NoData, c.FillNoData, c.Fill = &nodata, true, -1
				}
				cv, err := einops.NewConverter(c)
				if err != nil {
					t.Fatal(err)
				}
				size := from.Size()
				pix := make([]byte, h*w*size)
				for i := range pix {
					pix[i] = byte(r.Uint32()) % 16
				}
				apart := make([]byte, ((h*w-1)*stride+1)*size) // ends with the last one
				for i := range apart {
					apart[i] = byte(r.Uint32())
				}
				for i := range h * w {
					copy(apart[i*stride*size:][:size], pix[i*size:])
				}
				box := einops.Box{B1: 1, Y1: h, X1: w}
				want := einops.Target{Data: cast.Aligned(4 * plan.Len()), Mask: make([]byte, plan.Len())}
				got := einops.Target{Data: cast.Aligned(4 * plan.Len()), Mask: make([]byte, plan.Len())}
				bad := plan.Scatter(want, cv, box, einops.Block{Data: pix, DType: from, StrideY: w, StrideX: 1})
				sum := plan.Scatter(got, cv, box,
					einops.Block{Data: apart, DType: from, StrideY: w * stride, StrideX: stride})
				if sum != bad || !bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Mask, want.Mask) {
					t.Errorf("%v at %d, %d by %d of %d: %d and %d nodata", from, stride, h, w, plan.Len(), sum, bad)
				}
			}
		}
	}
}

// TestLargeTensorsAsSmallOnes: tensors large enough for stores past the caches have the elements of
// small ones, at every offset within a cache line where a box can begin or end.
func TestLargeTensorsAsSmallOnes(t *testing.T) {
	race.SkipCovered(t)
	const h, w, rows = 40, 333, einops.Streamed/(4*40*333) + 1
	p, err := pattern.Parse("n y x")
	if err != nil {
		t.Fatal(err)
	}
	plan := func(n int) *einops.Plan {
		pl, err := p.Plan([]einops.Axis{{Name: "n", Len: n}, {Name: "y", Len: h}, {Name: "x", Len: w}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return pl
	}
	large, small := plan(rows), plan(1)
	if large.Len()*4 < einops.Streamed || small.Len()*4 >= einops.Streamed {
		t.Fatal("not the sizes that are meant")
	}
	r := rand.New(rand.NewPCG(9, 9))
	nodata := 7.0
	for _, from := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float32} {
		for _, nd := range []*float64{nil, &nodata} {
			c := einops.Convert{
				From: from, To: dtype.Float32, Scale: []float32{0.125},
				Offset: []float32{-3}, NoData: nd, FillNoData: nd != nil, Fill: -1,
			}
			cv, err := einops.NewConverter(c)
			if err != nil {
				t.Fatal(err)
			}
			pix := make([]byte, h*w*from.Size())
			for i := range pix {
				pix[i] = byte(r.Uint32()) % 16 // no NaN among the floats, and some nodata
			}
			want := einops.Target{Data: cast.Aligned(4 * small.Len()), Mask: make([]byte, small.Len())}
			got := einops.Target{Data: cast.Aligned(4 * large.Len()), Mask: make([]byte, large.Len())}
			blk := einops.Block{Data: pix, DType: from, StrideB: h * w, StrideY: w, StrideX: 1}
			n := r.IntN(rows)
			bad := small.Scatter(want, cv, einops.Box{B1: 1, Y1: h, X1: w}, blk)
			sum := 0
			for x0 := 0; x0 < w; { // columns of every width
				x1 := min(w, x0+1+r.IntN(150))
				b := blk
				b.Data = pix[x0*from.Size():]
				sum += large.Scatter(got, cv, einops.Box{N: n, B1: 1, Y1: h, X0: x0, X1: x1}, b)
				x0 = x1
			}
			at := n * h * w
			if sum != bad || nd != nil && from != dtype.Float32 && bad == 0 ||
				!bytes.Equal(got.Data[4*at:][:4*h*w], want.Data) || !bytes.Equal(got.Mask[at:][:h*w], want.Mask) {
				t.Errorf("%v, nodata %v: %d and %d nodata", from, nd != nil, sum, bad)
			}
			rest := append(bytes.Clone(got.Data[:4*at]), got.Data[4*(at+h*w):]...)
			if bytes.Count(rest, []byte{0}) != len(rest) {
				t.Errorf("%v: something was written elsewhere", from)
			}
		}
	}
}
