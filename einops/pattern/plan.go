package pattern

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/einops"
)

// Plan resolves the pattern for an input. axes lists the axes of the input in canonical order (n t b y
// x). sizes gives the lengths of factors by name; in every group on the left side, one factor may have
// no size. The error is a *SyntaxError if the pattern does not fit these axes and sizes.
func (p *Pattern) Plan(axes []einops.Axis, sizes map[string]int) (*einops.Plan, error) {
	if err := checkAxes(axes); err != nil {
		return nil, err
	}
	r := &resolver{p: p, axes: axes, sizes: sizes, byName: map[string]int{}}
	if err := r.checkSizes(); err != nil {
		return nil, err
	}
	sides := r.implied
	if p.twoSided {
		sides = r.matchLeft
	}
	if err := sides(); err != nil {
		return nil, err
	}
	return r.plan(), nil
}

// maxElems bounds the elements of an output, so byte offsets fit in an int: the largest element,
// complex128, has 16 bytes.
const maxElems = math.MaxInt / 16

// checkAxes checks the axes of the input.
func checkAxes(axes []einops.Axis) error {
	last, elems := -1, 1
	for _, axis := range axes {
		place := einops.AxisIndex(axis.Name)
		if place < 0 {
			return fmt.Errorf("einops: no input axis can be called %q, only n, t, b, y, x", axis.Name)
		}
		if place <= last {
			return fmt.Errorf("einops: input axis %s is not in the order n t b y x", axis.Name)
		}
		if axis.Len < 1 {
			return fmt.Errorf("einops: input axis %s has length %d", axis.Name, axis.Len)
		}
		if elems > maxElems/axis.Len {
			return fmt.Errorf("einops: input axes %v have too many samples", axes)
		}
		last, elems = place, elems*axis.Len
	}
	return nil
}

// elemAxis is an elementary axis: an input axis, or a factor of one.
type elemAxis struct {
	name      string
	axis      int // index in resolver.axes
	n         int
	spansAxis bool // it is all of its axis
	stride    int
}

// resolver turns a pattern and axes into elementary axes.
type resolver struct {
	p      *Pattern
	axes   []einops.Axis
	sizes  map[string]int
	elems  []elemAxis     // elements of one input axis stand together, outermost first
	byName map[string]int // index in elems; those that "..." stands for are not in it
	rest   []int          // indices in elems that "..." stands for
}

func (r *resolver) checkSizes() error {
	for _, name := range slices.Sorted(maps.Keys(r.sizes)) { // the same error every time
		col := r.column(name)
		if col == 0 {
			return r.p.errorf(0, "a size is given for %s, which the pattern has not", name)
		}
		if n := r.sizes[name]; n < 1 {
			return r.p.errorf(col, "%s has size %d", name, n)
		}
	}
	return nil
}

// column returns where a name first stands, or 0.
func (r *resolver) column(name string) int {
	for _, it := range append(slices.Clip(r.p.left), r.p.right...) {
		for _, atom := range it.atoms {
			if atom.name == name && name != one && name != ellipsis {
				return atom.col
			}
		}
	}
	return 0
}

func (r *resolver) add(name string, axis, n int) {
	r.byName[name] = len(r.elems)
	r.elems = append(r.elems, elemAxis{name: name, axis: axis, n: n, spansAxis: n == r.axes[axis].Len})
}

func (r *resolver) addRest(axis int) {
	r.rest = append(r.rest, len(r.elems))
	r.elems = append(r.elems, elemAxis{name: r.axes[axis].Name, axis: axis, n: r.axes[axis].Len, spansAxis: true})
}

// implied makes the elementary axes of a one-sided pattern: the input axes themselves.
func (r *resolver) implied() error {
	named := map[string]int{} // column
	hasRest, end := false, 1
	for _, it := range r.p.right {
		for _, atom := range it.atoms {
			end = atom.col
			switch {
			case atom.name == ellipsis:
				hasRest = true
			case atom.name == one:
			case r.axisNamed(atom.name) < 0:
				return r.p.errorf(atom.col, "the input has no axis %s, only %s", atom.name, r.axisNames())
			default:
				named[atom.name] = atom.col
			}
		}
	}
	for i, axis := range r.axes {
		col, ok := named[axis.Name]
		switch {
		case ok:
			if err := r.sizeIs(axis.Name, axis.Len, col); err != nil {
				return err
			}
			r.add(axis.Name, i, axis.Len)
		case hasRest:
			r.addRest(i)
		case axis.Len != 1:
			return r.leftOut(end, axis)
		}
	}
	return nil
}

// leftOut is the error about an axis that a pattern does not name, and that has more than one element.
func (r *resolver) leftOut(col int, axis einops.Axis) error {
	picks := map[string]string{"b": ": bands=[0] picks one", "t": ": times=[0] picks one"}
	return r.p.errorf(col, "input axis %s of length %d is left out%s", axis.Name, axis.Len, picks[axis.Name])
}

func (r *resolver) axisNamed(name string) int {
	return slices.IndexFunc(r.axes, func(a einops.Axis) bool { return a.Name == name })
}

func (r *resolver) axisNames() string {
	var names []string
	for _, axis := range r.axes {
		names = append(names, axis.Name)
	}
	return strings.Join(names, " ")
}

// sizeIs compares a length with the size that the caller gave for the name, if any.
func (r *resolver) sizeIs(name string, n, col int) error {
	if want, ok := r.sizes[name]; ok && want != n {
		return r.p.errorf(col, "%s has length %d, and the size given for it is %d", name, n, want)
	}
	return nil
}

// matchLeft matches the left side with the input axes, by position.
func (r *resolver) matchLeft() error {
	head, tail, hasRest := r.p.left, []item(nil), false
	if i := slices.IndexFunc(head, func(it item) bool { return it.is(ellipsis) }); i >= 0 {
		head, tail, hasRest = head[:i], head[i+1:], true
	}
	spare := len(r.axes) - len(head) - len(tail) // axes that may be left out
	if spare < 0 {
		return r.tooMany()
	}
	pos := 0
	for _, it := range head {
		for r.leaveOut(it, pos, spare, hasRest) {
			pos, spare = pos+1, spare-1
		}
		if err := r.item(it, pos); err != nil {
			return err
		}
		pos++
	}
	for ; pos < len(r.axes)-len(tail); pos++ {
		if hasRest {
			r.addRest(pos)
		} else if axis := r.axes[pos]; axis.Len != 1 {
			return r.leftOut(r.endOfLeft(), axis)
		}
	}
	for _, it := range tail {
		if err := r.item(it, pos); err != nil {
			return err
		}
		pos++
	}
	return nil
}

// leaveOut reports whether the left side leaves out the input axis at index at, of length 1, before item
// it. If "..." could take the axis, only the name of a later axis says so.
func (r *resolver) leaveOut(it item, at, spare int, hasRest bool) bool {
	axis := r.axes[at]
	if spare <= 0 || axis.Len != 1 || it.is(axis.Name) {
		return false
	}
	if hasRest {
		return !it.group && r.axisNamed(it.atoms[0].name) > at
	}
	return true
}

// tooMany returns the error for a left side with more items than the input has axes. It points at the
// name of an axis that the input lacks, otherwise at the first item too many.
func (r *resolver) tooMany() error {
	items := 0
	for _, it := range r.p.left {
		if !it.group && einops.AxisIndex(it.atoms[0].name) >= 0 && r.axisNamed(it.atoms[0].name) < 0 {
			return r.p.errorf(it.col, "the input has no axis %s, only %s", it.atoms[0].name, r.axisNames())
		}
	}
	for _, it := range r.p.left {
		if it.is(ellipsis) {
			continue
		}
		if items++; items > len(r.axes) {
			return r.p.errorf(it.col, "the input has no axis left for this, only %s", r.axisNames())
		}
	}
	return nil
}

func (r *resolver) endOfLeft() int {
	if len(r.p.left) == 0 {
		return 1
	}
	return r.p.left[len(r.p.left)-1].col
}

// item adds the elementary axes of one item of the left side, which stands for one input axis.
func (r *resolver) item(it item, axis int) error {
	input := r.axes[axis]
	if it.group {
		return r.split(it, axis)
	}
	name := it.atoms[0].name
	if name == one {
		if input.Len != 1 {
			return r.p.errorf(it.col, "1 stands for input axis %s of length %d", input.Name, input.Len)
		}
		return nil
	}
	if name != input.Name && r.axisNamed(name) >= 0 {
		return r.p.errorf(it.col, "%s stands at the place of input axis %s; the input is %s", name, input.Name,
			r.axisNames())
	}
	if err := r.sizeIs(name, input.Len, it.col); err != nil {
		return err
	}
	r.add(name, axis, input.Len)
	return nil
}

// split adds the factors of a group on the left side.
func (r *resolver) split(it item, axis int) error {
	input := r.axes[axis]
	known, open := 1, -1
	for i, atom := range it.atoms {
		if atom.name == one {
			continue
		}
		n, ok := r.sizes[atom.name]
		switch {
		case ok && n > input.Len/known:
			return r.p.errorf(atom.col, "the factors of input axis %s pass its length %d", input.Name, input.Len)
		case ok:
			known *= n
		case open >= 0:
			return r.p.errorf(atom.col, "sizes of both %s and %s are unknown", it.atoms[open].name, atom.name)
		default:
			open = i
		}
	}
	if input.Len%known != 0 || open < 0 && input.Len != known {
		return r.p.errorf(it.col, "input axis %s has length %d, its factors %d", input.Name, input.Len, known)
	}
	for i, atom := range it.atoms {
		switch {
		case atom.name == one:
		case i == open:
			r.add(atom.name, axis, input.Len/known)
		default:
			r.add(atom.name, axis, r.sizes[atom.name])
		}
	}
	return nil
}

// outItems returns the name of every output axis and its elementary axes, with "..." expanded.
func (r *resolver) outItems() (axes []string, elems [][]int) {
	for _, it := range r.p.right {
		if it.is(ellipsis) {
			for _, number := range r.rest {
				axes, elems = append(axes, r.elems[number].name), append(elems, []int{number})
			}
			continue
		}
		var names []string
		var list []int
		for _, atom := range it.atoms {
			switch atom.name {
			case one:
				names = append(names, one)
			case ellipsis:
				for _, number := range r.rest {
					names, list = append(names, r.elems[number].name), append(list, number)
				}
			default:
				names, list = append(names, atom.name), append(list, r.byName[atom.name])
			}
		}
		axis := strings.Join(names, " ")
		if it.group {
			axis = "(" + axis + ")"
		}
		axes, elems = append(axes, axis), append(elems, list)
	}
	return axes, elems
}

// plan lays the elementary axes out in the order of the right side.
func (r *resolver) plan() *einops.Plan {
	names, out := r.outItems()
	shape, band := make([]int, len(out)), -1
	stride := 1
	for i := len(out) - 1; i >= 0; i-- {
		shape[i] = 1
		for k := len(out[i]) - 1; k >= 0; k-- {
			elem := &r.elems[out[i][k]]
			elem.stride = stride
			stride *= elem.n
			shape[i] *= elem.n
		}
		if len(out[i]) == 1 {
			if e := r.elems[out[i][0]]; e.spansAxis && r.axes[e.axis].Name == "b" {
				band = i
			}
		}
	}
	digits := make([]einops.Digit, len(r.elems))
	for i, e := range r.elems {
		digits[i] = einops.Digit{Axis: r.axes[e.axis].Name, Len: e.n, Stride: e.stride}
	}
	return einops.NewPlan(names, shape, band, r.axes, digits)
}
