package payload

import (
	"fmt"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/loader/batch"
)

// tensorConverter does the arithmetic of a tensor's Convert, but for its mask, on elements that come one piece after
// the other.
type tensorConverter struct {
	plan         *einops.Plan
	cv           *einops.Converter
	from         dtype.Type
	bands, inner int // elements behind the band axis are inner; a row is bands times inner
	out          []byte
	unit         int    // bytes that are converted together
	carry        []byte // the start of a unit
	done         int    // elements converted
}

// shortRun is the length in bytes of a run of one band from which runs are converted by themselves. A call of Scatter
// costs about as much as 500 bytes of conversion; shorter runs are converted with the others of their row.
const shortRun = 512

// newConverter expects a tensor that checkSizes accepts, and memory for its elements once converted.
func newConverter(t *batch.Tensor, out []byte) (*tensorConverter, error) {
	convert := t.Convert
	casts, err := einops.NewConverter(einops.Convert{
		From: t.DType, To: convert.To, Scale: convert.Scale, Offset: convert.Offset,
		Clip: convert.Clip, Lo: convert.Lo, Hi: convert.Hi, Fill: convert.Fill,
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	made := &tensorConverter{cv: casts, from: t.DType, bands: 1, inner: 1, out: out}
	if len(out) == 0 {
		return made, nil
	}
	// The tensor is converted as a raster: the axes before the band axis are its rows, those after it its columns. So
	// the scatter loops and kernels of chips can be used.
	axis, outer := max(convert.BandAxis, 0), 1
	for i, length := range t.Shape {
		switch {
		case i < axis:
			outer *= int(length)
		case i == axis && convert.BandAxis >= 0:
			made.bands = int(length)
		default:
			made.inner *= int(length)
		}
	}
	// As the pattern "b y x -> y b x".
	made.plan = einops.NewPlan([]string{"y", "b", "x"}, []int{outer, made.bands, made.inner}, 1,
		[]einops.Axis{{Name: "b", Len: made.bands}, {Name: "y", Len: outer}, {Name: "x", Len: made.inner}},
		[]einops.Digit{{Axis: "b", Len: made.bands, Stride: made.inner}, {Axis: "x", Len: made.inner, Stride: 1},
			{Axis: "y", Len: outer, Stride: made.bands * made.inner}})
	if made.unit = t.DType.Size(); made.inner*made.unit < shortRun {
		made.unit *= made.bands * made.inner
	}
	return made, nil
}

// write converts the next elements. p may begin and end within an element.
func (v *tensorConverter) write(p []byte) {
	if len(v.carry) > 0 {
		n := min(v.unit-len(v.carry), len(p))
		v.carry = append(v.carry, p[:n]...)
		p = p[n:]
		if len(v.carry) < v.unit {
			return
		}
		v.convert(v.carry)
		v.carry = v.carry[:0]
	}
	n := len(p) / v.unit * v.unit
	v.convert(p[:n])
	v.carry = append(v.carry, p[n:]...)
}

// convert converts whole elements.
func (v *tensorConverter) convert(p []byte) {
	dst, size, row := einops.Target{Data: v.out}, v.from.Size(), v.bands*v.inner
	for len(p) > 0 {
		count, y, x := len(p)/size, v.done/row, v.done%row
		box := einops.Box{B1: v.bands, Y0: y, Y1: y + count/row, X1: v.inner} // whole rows
		if x > 0 || count < row {
			band := x / v.inner
			x -= band * v.inner
			count = min(count, v.inner-x)
			box = einops.Box{B0: band, B1: band + 1, Y0: y, Y1: y + 1, X0: x, X1: x + count}
		} else {
			count -= count % row
		}
		v.plan.Scatter(dst, v.cv, box, einops.Block{Data: p[:count*size], DType: v.from, StrideB: v.inner, StrideY: row,
			StrideX: 1})
		v.done += count
		p = p[count*size:]
	}
}
