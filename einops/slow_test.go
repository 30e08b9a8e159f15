package einops_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/x448/float16"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/dtype"
)

// slowItems splits one side of a valid pattern into lists of names, without 1.
func slowItems(side string) (items [][]string) {
	side = strings.NewReplacer("(", " ( ", ")", " ) ", "...", " ... ").Replace(side)
	var group []string
	inside := false
	for w := range strings.FieldsSeq(side) {
		switch {
		case w == "(":
			group, inside = []string{}, true
		case w == ")":
			items, inside = append(items, group), false
		case inside && w != "1":
			group = append(group, w)
		case inside:
		case w == "1":
			items = append(items, []string{})
		default:
			items = append(items, []string{w})
		}
	}
	return items
}

// slowLayout is a plan computed index by index: the shape of the output, and for each of its
// elements the flat index of the input. It needs a valid pattern whose left side, if any, names
// every axis.
func slowLayout(pattern string, axes []einops.Axis, sizes map[string]int) (shape, index []int) {
	left, right, twoSided := strings.Cut(pattern, "->")
	if !twoSided {
		right = pattern
	}
	rightItems := slowItems(right)

	// The left side as one list of names for each input axis.
	split := make([][]string, len(axes))
	var rest []string // what "..." stands for
	if twoSided {
		leftItems := slowItems(left)
		at := 0
		for _, it := range leftItems {
			if len(it) == 1 && it[0] == "..." {
				for range len(axes) - len(leftItems) + 1 {
					name := "..." + axes[at].Name
					split[at], rest = []string{name}, append(rest, name)
					at++
				}
				continue
			}
			split[at] = it
			at++
		}
	} else {
		for i, a := range axes {
			split[i] = []string{a.Name}
			used := false
			for _, it := range rightItems {
				for _, name := range it {
					used = used || name == a.Name
				}
			}
			if !used && strings.Contains(pattern, "...") {
				rest = append(rest, a.Name)
			}
		}
	}

	// Lengths: the one unknown factor is the quotient of the axis and the other factors.
	length := map[string]int{}
	for i, names := range split {
		known, unknown := 1, ""
		for _, name := range names {
			if n, ok := sizes[name]; ok {
				length[name] = n
				known *= n
			} else {
				unknown = name
			}
		}
		if unknown != "" {
			length[unknown] = axes[i].Len / known
		}
	}

	// The output, with "..." written out.
	var out [][]string
	for _, it := range rightItems {
		if len(it) == 1 && it[0] == "..." && !strings.Contains(groupsOf(right), "...") {
			for _, name := range rest {
				out = append(out, []string{name})
			}
			continue
		}
		var names []string
		for _, name := range it {
			if name == "..." {
				names = append(names, rest...)
			} else {
				names = append(names, name)
			}
		}
		out = append(out, names)
	}
	total := 1
	for _, names := range out {
		n := 1
		for _, name := range names {
			n *= length[name]
		}
		shape = append(shape, n)
		total *= n
	}

	// Every element: its index in each output axis, in each name, in each input axis.
	for e := range total {
		at := map[string]int{}
		flat := e
		for i := len(out) - 1; i >= 0; i-- {
			k := flat % shape[i]
			flat /= shape[i]
			for j := len(out[i]) - 1; j >= 0; j-- {
				name := out[i][j]
				at[name] = k % length[name]
				k /= length[name]
			}
		}
		in := 0
		for i, a := range axes {
			k := 0
			for _, name := range split[i] {
				k = k*length[name] + at[name]
			}
			in = in*a.Len + k
		}
		index = append(index, in)
	}
	return shape, index
}

// groupsOf returns the names inside of parentheses.
func groupsOf(side string) string {
	var b strings.Builder
	depth := 0
	for _, r := range side {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth > 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// slowSample holds one sample: as float64 where that is exact, else as an integer.
type slowSample struct {
	f   float64
	i   int64
	u   uint64
	way byte // f, i or u
}

func readSample(b []byte, d dtype.Type) slowSample {
	le := binary.LittleEndian
	switch d {
	case dtype.Uint8:
		return slowSample{u: uint64(b[0]), way: 'u'}
	case dtype.Uint16:
		return slowSample{u: uint64(le.Uint16(b)), way: 'u'}
	case dtype.Uint32:
		return slowSample{u: uint64(le.Uint32(b)), way: 'u'}
	case dtype.Uint64:
		return slowSample{u: le.Uint64(b), way: 'u'}
	case dtype.Int8:
		return slowSample{i: int64(int8(b[0])), way: 'i'}
	case dtype.Int16:
		return slowSample{i: int64(int16(le.Uint16(b))), way: 'i'}
	case dtype.Int32:
		return slowSample{i: int64(int32(le.Uint32(b))), way: 'i'}
	case dtype.Int64:
		return slowSample{i: int64(le.Uint64(b)), way: 'i'}
	case dtype.Float16:
		return slowSample{f: float64(float16.Frombits(le.Uint16(b)).Float32()), way: 'f'}
	case dtype.BFloat16:
		return slowSample{f: float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)), way: 'f'}
	case dtype.Float32:
		return slowSample{f: float64(math.Float32frombits(le.Uint32(b))), way: 'f'}
	case dtype.Float64:
		return slowSample{f: math.Float64frombits(le.Uint64(b)), way: 'f'}
	}
	panic(fmt.Sprint("no slow version of ", d))
}

func (s slowSample) float32() float32 {
	switch s.way {
	case 'u':
		return float32(s.u)
	case 'i':
		return float32(s.i)
	}
	return float32(s.f)
}

func (s slowSample) isNoData(c einops.Convert, band int) bool {
	if c.MissNaN && s.way == 'f' && s.f != s.f {
		return true
	}
	switch {
	case c.Missing != nil:
		values := c.Missing[min(band, len(c.Missing)-1)]
		return slices.ContainsFunc(values, func(v float64) bool { return s.is(v, c.From) })
	case c.NoData == nil:
		return false
	}
	return s.is(*c.NoData, c.From)
}

// is reports whether the sample is the value v.
func (s slowSample) is(v float64, from dtype.Type) bool {
	switch s.way {
	case 'u':
		return v == math.Trunc(v) && v >= 0 && v < 0x1p64 && s.u == uint64(v)
	case 'i':
		return v == math.Trunc(v) && v >= -0x1p63 && v < 0x1p63 && s.i == int64(v)
	}
	if v != v {
		return s.f != s.f
	}
	var one [8]byte
	writeFloat(one[:], from, v)
	return s.f == readSample(one[:], from).f
}

// writeFloat writes v as one element. Unless d is float64, v has at most the precision of float32.
func writeFloat(b []byte, d dtype.Type, v float64) {
	le := binary.LittleEndian
	switch d {
	case dtype.Float64:
		le.PutUint64(b, math.Float64bits(v))
	case dtype.Float32:
		le.PutUint32(b, math.Float32bits(float32(v)))
	case dtype.Float16:
		le.PutUint16(b, float16.Fromfloat32(float32(v)).Bits())
	case dtype.BFloat16:
		bits := math.Float32bits(float32(v))
		switch {
		case v != v:
			le.PutUint16(b, 0x7fc0)
		default:
			upper, lower := bits>>16, bits&0xffff
			if lower > 0x8000 || lower == 0x8000 && upper%2 == 1 {
				upper++
			}
			le.PutUint16(b, uint16(upper))
		}
	case dtype.Int64:
		le.PutUint64(b, uint64(int64(v)))
	case dtype.Uint16: // for a fill, which is one
		le.PutUint16(b, uint16(v))
	case dtype.Uint8:
		b[0] = 0
		if v == v {
			b[0] = byte(min(max(math.RoundToEven(v), 0), 255))
		}
	}
}

// slowElement converts one sample, for pairs of types where going through float32 is exact or asked
// for. It returns its mask.
func slowElement(dst, src []byte, c einops.Convert, band int) (mask byte) {
	s := readSample(src, c.From)
	mask = 1
	if s.isNoData(c, band) {
		mask = 0
	}
	if mask == 0 && c.FillNoData {
		writeFloat(dst, c.To, c.Fill)
		return mask
	}
	arithmetic := c.Scale != nil || c.Offset != nil || c.Clip
	if c.From == c.To && !arithmetic {
		copy(dst, src)
		return mask
	}
	if c.To == dtype.Int64 && !arithmetic { // from integers only
		v := s.i
		if s.way == 'u' {
			v = int64(s.u)
		}
		binary.LittleEndian.PutUint64(dst, uint64(v))
		return mask
	}
	y := s.float32()
	if c.Scale != nil || c.Offset != nil {
		a, k := float32(1), float32(0)
		if c.Scale != nil {
			a = c.Scale[min(band, len(c.Scale)-1)]
		}
		if c.Offset != nil {
			k = c.Offset[min(band, len(c.Offset)-1)]
		}
		y *= a
		y = float32(y) + k
	}
	if c.Clip && y == y {
		y = min(max(y, c.Lo), c.Hi)
	}
	writeFloat(dst, c.To, float64(y))
	if rounded := math.RoundToEven(float64(y)); c.Checked && mask == 1 && !(rounded >= 0 && rounded <= 255) {
		mask = einops.OutOfRange
	}
	return mask
}
