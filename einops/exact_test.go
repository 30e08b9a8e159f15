package einops_test

import (
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestScatterOfLongRows: rows around every length at which the way of writing changes (64 samples, pieces of 1,024),
// written to tensors of every layout, aligned or not, have the elements of nested loops over the samples. Blocks are
// band planes, pixels, and planes that are mirrored or transposed.
func TestScatterOfLongRows(t *testing.T) {
	race.SkipCovered(t)
	nodata, other := 7.0, [][]float64{{7, 3}, {}, {9}}
	convert := func(from, to dtype.Type) einops.Convert { return einops.Convert{From: from, To: to, Fill: 5} }
	scaled := func(from, to dtype.Type) einops.Convert {
		c := convert(from, to)
		c.Scale, c.Offset = []float32{0.5, 2, 3}, []float32{1, -1, 0}
		return c
	}
	filled := func(c einops.Convert) einops.Convert { c.NoData, c.FillNoData = &nodata, true; return c }
	marked := func(c einops.Convert) einops.Convert { c.Missing = other; return c }
	clipped := func(c einops.Convert) einops.Convert { c.Clip, c.Lo, c.Hi = true, 2, 8; return c }
	checked := func(c einops.Convert) einops.Convert { c.Checked = true; return c }
	random := rand.New(rand.NewPCG(3, 5))
	conversions := []einops.Convert{
		convert(dtype.Uint16, dtype.Uint16), filled(convert(dtype.Uint16, dtype.Uint16)),
		marked(convert(dtype.Uint8, dtype.Uint8)), convert(dtype.Float64, dtype.Float64),
		convert(dtype.Int32, dtype.Int64), marked(convert(dtype.Uint8, dtype.Int64)),
		convert(dtype.Int16, dtype.Float32), filled(convert(dtype.Uint8, dtype.Float32)),
		scaled(dtype.Uint16, dtype.Float32), filled(scaled(dtype.Uint16, dtype.Float32)),
		clipped(scaled(dtype.Int16, dtype.Float32)), marked(scaled(dtype.Float32, dtype.Float32)),
		scaled(dtype.Uint8, dtype.BFloat16), filled(scaled(dtype.Int16, dtype.Float16)),
		checked(marked(scaled(dtype.Int16, dtype.Uint8))), checked(scaled(dtype.Uint16, dtype.Uint8)),
	}
	for _, width := range []int{1, 2, 63, 64, 65, 130, 1025} {
		for _, text := range []string{"b y x", "y x b", "y b x", "b x y", "x y b", "(b x) y", "y (x b)", halves} {
			axes := []einops.Axis{{Name: "b", Len: 3}, {Name: "y", Len: 2}, {Name: "x", Len: width}}
			sizes := map[string]int{"h": 2}
			if text != halves {
				sizes = nil
			} else if width%2 != 0 {
				continue
			}
			plan := mustPlan(t, text, axes, sizes)
			_, index := slowLayout(text, axes, sizes)
			for _, c := range conversions {
				scatterLong(t, random, c, plan, index, axes)
			}
		}
	}
}

// halves has a run for each half of a row.
const halves = "b y (h w) -> h b y w"

// scatterLong compares the elements of one tensor with those of the slow version.
func scatterLong(t *testing.T, random *rand.Rand, c einops.Convert, plan *einops.Plan, index []int,
	axes []einops.Axis) {
	t.Helper()
	cv := mustConverter(t, c)
	bands, height, width := axes[0].Len, axes[1].Len, axes[2].Len
	size, n := c.From.Size(), axes[0].Len*axes[1].Len*axes[2].Len
	image := make([]byte, n*size)
	for i := range image {
		image[i] = byte(random.Uint32N(11))
	}
	// The sample of band b, row y and column x is at b*strides[0] + y*strides[1] + x*strides[2] from first on.
	strides := [][3]int{
		{height * width, width, 1}, {1, width * bands, bands}, {width, width * bands, 1},
		{height * width, -width, 1}, {height * width, width, -1}, {height * width, 1, height},
		{height * width, -1, -height},
	}[random.IntN(7)]
	first := 0
	for k, length := range []int{bands, height, width} {
		first -= min(strides[k], 0) * (length - 1)
	}
	block := einops.Block{Data: make([]byte, n*size), DType: c.From, StrideB: strides[0], StrideY: strides[1],
		StrideX: strides[2], First: first}
	for i := range n {
		b, y, x := i/(height*width), i/width%height, i%width
		copy(block.Data[(first+b*strides[0]+y*strides[1]+x*strides[2])*size:], image[i*size:][:size])
	}
	offset := random.IntN(2) // of the tensor, in bytes
	to := c.To.Size()
	target := einops.Target{Data: cast.Aligned(n*to + offset)[offset:]}
	if random.IntN(4) > 0 || c.Checked {
		target.Mask = make([]byte, n)
	}
	bad, cut := 0, random.IntN(width+1) // the columns up to cut, and then the others
	for _, columns := range [][2]int{{0, cut}, {cut, width}} {
		block.First = first + columns[0]*strides[2]
		bad += plan.Scatter(target, cv, einops.Box{B1: bands, Y1: height, X0: columns[0], X1: columns[1]}, block)
	}
	want, wantBad := make([]byte, to), 0
	for element, sample := range index {
		mask := slowElement(want, image[sample*size:][:size], c, sample/(height*width))
		if mask == 0 {
			wantBad++
		}
		got := target.Data[element*to:][:to]
		if !sameElement(got, want, c.To) || target.Mask != nil && target.Mask[element] != mask {
			t.Fatalf("%v of %d columns, %+v, strides %v: element %d is %x, want %x", plan.Axes, width, c, strides,
				element, got, want)
		}
	}
	if bad != wantBad {
		t.Fatalf("%v of %d columns, %+v: %d nodata samples, want %d", plan.Axes, width, c, bad, wantBad)
	}
}

// TestScatterOfWideTypesTurned: samples of all sizes, also of 16 bytes, are turned in memory that holds fewer of them.
func TestScatterOfWideTypesTurned(t *testing.T) {
	for _, from := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Float32, dtype.Float64, dtype.Complex128} {
		const height, width = 37, 700
		size := from.Size()
		plan := mustPlan(t, "y x", []einops.Axis{{Name: "y", Len: height}, {Name: "x", Len: width}}, nil)
		cv := mustConverter(t, einops.Convert{From: from, To: from})
		for _, strides := range [][2]int{
			{1, height}, {-1, height}, {1, -height}, {-1, -height}, {width, -1}, {-width, -1},
		} {
			block := einops.Block{Data: make([]byte, height*width*size), DType: from, StrideY: strides[0],
				StrideX: strides[1]}
			for i := range block.Data {
				block.Data[i] = byte(i*i>>3 + i)
			}
			block.First = -min(strides[0], 0)*(height-1) - min(strides[1], 0)*(width-1)
			got := make([]byte, len(block.Data))
			plan.Scatter(einops.Target{Data: got}, cv, einops.Box{B1: 1, Y1: height, X1: width}, block)
			for y := range height {
				for x := range width {
					sample := block.Data[(block.First+y*strides[0]+x*strides[1])*size:][:size]
					if element := got[(y*width+x)*size:][:size]; string(element) != string(sample) {
						t.Fatalf("%v, strides %v: row %d, column %d is %x, want %x", from, strides, y, x, element,
							sample)
					}
				}
			}
		}
	}
}

// TestOutOfRangeNamesTheFirst: of the elements of a box that are marked, the first one in the order of bands, rows and
// columns is named.
func TestOutOfRangeNamesTheFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	cv := mustConverter(t, einops.Convert{From: dtype.Float32, To: dtype.Uint8, Checked: true})
	axes := []einops.Axis{{Name: "b", Len: 3}, {Name: "y", Len: 4}, {Name: "x", Len: 6}}
	for _, text := range []string{"b y x", "y x b", "b y (h w) -> w b y h"} {
		sizes := map[string]int{"h": 2}
		if text[1:] != " y (h w) -> w b y h" {
			sizes = nil
		}
		plan := mustPlan(t, text, axes, sizes)
		_, index := slowLayout(text, axes, sizes)
		for range 200 {
			mask, marked := make([]byte, plan.Len()), make([]bool, plan.Len())
			for element, sample := range index {
				mask[element] = byte(random.IntN(2))
				if random.IntN(30) == 0 {
					mask[element], marked[sample] = einops.OutOfRange, true
				}
			}
			b0, y0, x0 := random.IntN(3), random.IntN(4), random.IntN(6)
			box := einops.Box{B0: b0, B1: b0 + random.IntN(4-b0), Y0: y0, Y1: y0 + random.IntN(5-y0),
				X0: x0, X1: x0 + random.IntN(7-x0)}
			var want [3]int
			wantFound := false
			for sample, ok := range marked {
				b, y, x := sample/24, sample/6%4, sample%6
				if ok && b >= box.B0 && b < box.B1 && y >= box.Y0 && y < box.Y1 && x >= box.X0 && x < box.X1 {
					want, wantFound = [3]int{b, y, x}, true
					break
				}
			}
			target := einops.Target{Data: make([]byte, plan.Len()), Mask: mask}
			b, y, x, found := plan.OutOfRange(target, cv, box)
			if found != wantFound || found && [3]int{b, y, x} != want {
				t.Fatalf("%q, %+v: (%d, %d, %d) %v, want %v %v", text, box, b, y, x, found, want, wantFound)
			}
		}
	}
}

// TestOffsetOfAbsentAxes: an axis that the input lacks, or that is none, adds nothing.
func TestOffsetOfAbsentAxes(t *testing.T) {
	plan := mustPlan(t, "y x", []einops.Axis{{Name: "y", Len: 4}, {Name: "x", Len: 5}}, nil)
	for axis, want := range map[string]int{"y": 15, "x": 3, "b": 0, "n": 0, "t": 0, "": 0, "z": 0, "yx": 0, "by": 0} {
		if got := plan.Offset(axis, 3); got != want {
			t.Errorf("index 3 of axis %q adds %d, want %d", axis, got, want)
		}
	}
}
