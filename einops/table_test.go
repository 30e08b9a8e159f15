package einops_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/einops/pattern"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
)

// tabled scatters samples of rows by 4 pixels of two bands through a table and returns the tensor and the mask.
func tabled(t *testing.T, c einops.Convert, samples []int, values [][]float64, data []byte, transposed bool) (
	[]byte, []byte) {
	t.Helper()
	var err error
	if c.Table, err = einops.NewTable(c, samples, values); err != nil {
		t.Fatal(err)
	}
	cv, err := einops.NewConverter(c)
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := pattern.Parse("n b y x")
	if err != nil {
		t.Fatal(err)
	}
	pixels := len(data) / c.From.Size() / 2
	axes := []einops.Axis{{Name: "n", Len: 1}, {Name: "b", Len: 2}, {Name: "y", Len: pixels / 4}, {Name: "x", Len: 4}}
	blk := einops.Block{Data: data, DType: c.From, StrideB: pixels, StrideY: 4, StrideX: 1}
	if transposed {
		axes[2].Len, axes[3].Len = 4, pixels/4
		blk.StrideY, blk.StrideX = 1, 4
	}
	plan, err := pattern.Plan(axes, nil)
	if err != nil {
		t.Fatal(err)
	}
	dst := einops.Target{Data: make([]byte, plan.Len()*c.To.Size()), Mask: make([]byte, plan.Len())}
	plan.Scatter(dst, cv, einops.Box{B1: 2, Y1: axes[2].Len, X1: axes[3].Len}, blk)
	return dst.Data, dst.Mask
}

// TestTable: samples of all types become the values of a table, of each band its own, before scale, offset and clip;
// nodata, and samples without a value, become the fill.
func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, from := range []dtype.Type{dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16} {
		size := from.Size()
		data := make([]byte, 2*32*size)
		sample := func(i int) int {
			switch from {
			case dtype.Uint8:
				return int(data[i])
			case dtype.Int8:
				return int(int8(data[i]))
			case dtype.Uint16:
				return int(binary.LittleEndian.Uint16(data[2*i:]))
			}
			return int(int16(binary.LittleEndian.Uint16(data[2*i:])))
		}
		for i := range 2 * 32 {
			data[i*size] = byte(rng.IntN(256))
			if size == 2 {
				data[2*i+1] = byte(rng.IntN(256))
			}
		}
		nodata := float64(sample(5))
		of := map[int][]float64{}
		var samples []int
		var values [][]float64
		for i := range 2 * 32 {
			if _, seen := of[sample(i)]; i%7 == 0 || seen { // samples without a value
				continue
			}
			of[sample(i)] = []float64{rng.NormFloat64(), rng.NormFloat64()}
			samples, values = append(samples, sample(i)), append(values, of[sample(i)])
		}
		c := einops.Convert{From: from, To: dtype.Float32, Scale: []float32{2, 3}, Offset: []float32{0.5, -1},
			Clip: true, Lo: -4, Hi: 4, NoData: &nodata, Fill: 9, FillNoData: true}
		for _, transposed := range []bool{false, true} {
			got, mask := tabled(t, c, samples, values, data, transposed)
			for i := range 2 * 32 {
				band, pos := i/32, i%32
				at := i
				if transposed {
					at = band*32 + pos%4*8 + pos/4
				}
				want, valid := float32(9), byte(0)
				if value := of[sample(i)]; value != nil && float64(sample(i)) != nodata {
					x := float32(float32(value[band]) * c.Scale[band]) // rounded: no processor may fuse it
					want, valid = min(max(x+c.Offset[band], -4), 4), 1
				}
				have := math.Float32frombits(binary.LittleEndian.Uint32(got[4*at:]))
				if have != want || mask[at] != valid {
					t.Fatalf("%v, transposed %v: sample %d is %v (%d), want %v (%d)", from, transposed, sample(i), have,
						mask[at], want, valid)
				}
			}
		}
	}
}

// TestTableOfIntegers: classes become others in all integer types, and values that the type lacks are refused.
func TestTableOfIntegers(t *testing.T) {
	data := []byte{10, 20, 30, 10, 20, 30, 10, 20}
	for _, to := range []dtype.Type{dtype.Uint8, dtype.Int64} {
		c := einops.Convert{From: dtype.Uint8, To: to, Fill: 255, FillNoData: true, Checked: to == dtype.Uint8}
		got, mask := tabled(t, c, []int{10, 20}, [][]float64{{0}, {1}}, data, false)
		for i, sample := range data {
			want := map[byte]uint64{10: 0, 20: 1, 30: 255}[sample]
			element := append(append([]byte{}, got[i*to.Size():(i+1)*to.Size()]...), make([]byte, 8)...)
			if binary.LittleEndian.Uint64(element) != want || (mask[i] == 1) != (want != 255) {
				t.Errorf("%v: %d became %v", to, sample, element[:to.Size()])
			}
		}
		for _, bad := range []float64{0.5, -1e30, math.NaN()} {
			if _, err := einops.NewTable(c, []int{1}, [][]float64{{bad}}); fault.KindOf(err) != fault.Unsupported {
				t.Errorf("%v of %v: %v", bad, to, err)
			}
		}
	}
	c := einops.Convert{From: dtype.Uint8, To: dtype.Float32}
	for _, bad := range []int{-1, 256} {
		if _, err := einops.NewTable(c, []int{bad}, [][]float64{{0}}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("sample %d: %v", bad, err)
		}
	}
	c = einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: make([]float32, 1<<15)}
	if _, err := einops.NewTable(c, make([]int, 1<<16), make([][]float64, 1<<16)); fault.KindOf(err) != fault.Limit {
		t.Errorf("a table of 2^31 elements: %v", err)
	}
}

// TestTableOfFloats: without arithmetic a value is rounded once, to the type of the tensor.
func TestTableOfFloats(t *testing.T) {
	const above = 1 + 0x1p-11 + 0x1p-30 // just above the middle of two halves; as float32 it is the middle
	for to, want := range map[dtype.Type][3]uint64{
		dtype.Float16:  {0x3800, 0x3c01, 0x7c00},
		dtype.BFloat16: {0x3f00, 0x3f80, 0x7f80},
		dtype.Float32:  {0x3f000000, 0x3f801000, 0x7f800000},
	} {
		c := einops.Convert{From: dtype.Uint8, To: to}
		values := [][]float64{{0.5}, {above}, {math.Inf(1)}}
		got, _ := tabled(t, c, []int{1, 2, 3}, values, []byte{1, 2, 3, 1, 2, 3, 1, 2}, false)
		for i, bits := range want {
			element := append(slices.Clone(got[i*to.Size():(i+1)*to.Size()]), make([]byte, 8)...)
			if have := binary.LittleEndian.Uint64(element); have != bits {
				t.Errorf("%v as %v is %#x, want %#x", values[i], to, have, bits)
			}
		}
	}
}

// TestTableWithNodataOfOneBand: a band without nodata has the value of each sample, also after a band with some.
func TestTableWithNodataOfOneBand(t *testing.T) {
	data := []byte{1, 2, 1, 2, 1, 2, 1, 2}
	for _, missing := range [][][]float64{{{1}, {}}, {{}, {1}}, {{1}, {2}}, {{}, {}}, {{1, 2}, {}}} {
		c := einops.Convert{From: dtype.Uint8, To: dtype.Uint8, Fill: 9, FillNoData: true, Missing: missing}
		got, mask := tabled(t, c, []int{1, 2}, [][]float64{{3}, {4}}, data, false)
		for i, sample := range data {
			want, valid := sample+2, byte(1)
			if slices.Contains(missing[i/4], float64(sample)) {
				want, valid = 9, 0
			}
			if got[i] != want || mask[i] != valid {
				t.Errorf("nodata %v: sample %d of band %d is %d (%d), want %d (%d)", missing, sample, i/4, got[i],
					mask[i], want, valid)
			}
		}
	}
}
