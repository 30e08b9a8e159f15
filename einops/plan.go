// Package einops lays raster samples out as tensors. A Plan of strides, which package pattern makes of a pattern, is
// applied block by block: decoded samples go straight to their place in the tensor, cast and normalised on the way.
//
// The input axes have names and a canonical order: n (assets or rows of a batch), t (time), b (bands), y
// (rows), x (columns). An input has some or all of them.
package einops

import (
	"math"
	"strings"
)

// Axis is one axis of the input.
type Axis struct {
	Name string // n, t, b, y or x
	Len  int    // at least 1
}

// canonical is the order of the input axes.
const canonical = "ntbyx"

const (
	axisN = iota
	axisT
	axisB
	axisY
	axisX
	numAxes
)

// Plan maps samples of the input to elements of the output: the index of sample (n, t, b, y, x) is the
// sum of one offset per axis. It is immutable and safe for concurrent use.
type Plan struct {
	Shape []int    // lengths of the output axes
	Axes  []string // text of the output axes: "n", "(h w)", "1"

	axes  [numAxes]axisPlan
	runs  runs // of axis x
	elems int
	band  int
}

// axisPlan is an input axis as mixed-radix digits, outermost first. Adjacent digits are merged if their
// strides allow it. An axis that is not split has one digit.
type axisPlan struct {
	n      int // length; 1 for an axis that the input lacks
	digits []axisDigit
}

type axisDigit struct {
	n      int
	stride int // in elements of the output
}

// offset returns the contribution of index i.
func (a *axisPlan) offset(i int) int {
	if len(a.digits) == 1 {
		return i * a.digits[0].stride
	}
	offset := 0
	for k := len(a.digits) - 1; k >= 0; k-- {
		digit := a.digits[k]
		offset += i % digit.n * digit.stride
		i /= digit.n
	}
	return offset
}

// stride returns the distance of neighbours, and whether it is the same all along the axis.
func (a *axisPlan) stride() (stride int, constant bool) {
	switch len(a.digits) {
	case 0:
		return 0, true
	case 1:
		return a.digits[0].stride, true
	}
	return a.digits[len(a.digits)-1].stride, false
}

// Len returns the number of elements of the output.
func (p *Plan) Len() int { return p.elems }

// Offset returns what index i of an input axis adds to the offset of an element, in elements. It is 0
// for an axis that the input lacks. i must lie inside the axis.
func (p *Plan) Offset(axis string, i int) int {
	index := AxisIndex(axis)
	if index < 0 {
		return 0
	}
	return p.axes[index].offset(i)
}

// BandAxis returns the index of the output axis that is exactly b, or -1.
func (p *Plan) BandAxis() int { return p.band }

// AxisIndex returns the place of a name in the canonical order, or -1.
func AxisIndex(name string) int {
	if len(name) != 1 {
		return -1
	}
	return strings.Index(canonical, name)
}

// Digit is a factor of an axis of the input: Len of its indices, Stride elements of the output apart. Factors of an
// axis come outermost first.
type Digit struct {
	Axis        string
	Len, Stride int
}

// NewPlan returns the plan of an output whose axes have names and lengths. axes and digits describe the input; band
// is the axis of the output that is exactly b, or -1. Package pattern makes them of a pattern.
func NewPlan(names []string, shape []int, band int, axes []Axis, digits []Digit) *Plan {
	plan := &Plan{Axes: names, Shape: shape, elems: 1, band: band}
	for _, n := range shape {
		plan.elems *= n
	}
	for i := range plan.axes {
		plan.axes[i].n = 1
	}
	for _, axis := range axes {
		plan.axes[AxisIndex(axis.Name)].n = axis.Len
	}
	for _, d := range digits {
		plan.axes[AxisIndex(d.Axis)].push(axisDigit{d.Len, d.Stride})
	}
	plan.runs = plan.axes[axisX].runs()
	return plan
}

// push adds an inner digit. It skips a digit of length 1, and merges a digit whose steps fill one step of
// the last digit.
func (a *axisPlan) push(d axisDigit) {
	if d.n == 1 {
		return
	}
	if last := len(a.digits) - 1; last >= 0 && a.digits[last].stride == d.n*d.stride {
		a.digits[last] = axisDigit{a.digits[last].n * d.n, d.stride}
		return
	}
	a.digits = append(a.digits, d)
}

// runs is an axis cut into runs of equal length and constant stride.
type runs struct {
	n      int       // length of a run; math.MaxInt if the whole axis is one run
	stride int       // inside a run
	starts []int     // offset of every run; nil if there is one run, or more than maxStarts
	axis   *axisPlan // nil if there is one run
}

// maxStarts bounds the table of starts to 512 KiB. Without it they are computed for every run.
const maxStarts = 1 << 16

func (a *axisPlan) runs() runs {
	stride, constant := a.stride()
	if constant {
		return runs{n: math.MaxInt, stride: stride}
	}
	r := runs{n: a.digits[len(a.digits)-1].n, stride: stride, axis: a}
	if count := a.n / r.n; count <= maxStarts {
		r.starts = make([]int, count)
		for i := range r.starts {
			r.starts[i] = a.offset(i * r.n)
		}
	}
	return r
}

// constant reports whether the whole axis is one run.
func (r *runs) constant() bool { return r.axis == nil }

// at returns the offset of index i and how many indices from i on are in its run.
func (r *runs) at(i int) (off, left int) {
	if r.constant() {
		return i * r.stride, math.MaxInt
	}
	run := i / r.n
	inRun := i - run*r.n
	if r.starts == nil {
		return r.axis.offset(i), r.n - inRun
	}
	return r.starts[run] + inRun*r.stride, r.n - inRun
}
