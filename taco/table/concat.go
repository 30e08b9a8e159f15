package table

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Mode says what becomes of columns that not every table has.
type Mode uint8

// Modes.
const (
	Intersection Mode = iota // left out
	FillMissing              // null where they are missing
	Strict                   // an error
	Mixed                    // as FillMissing; types that cannot be joined are an error when the column is loaded
)

// Missing says what becomes of columns that not every table has, where that is no error.
func (m Mode) Missing() string {
	if m == Intersection {
		return "left out"
	}
	return "filled with null"
}

// ParseMode takes "intersection", "fill_missing" or "strict".
func ParseMode(s string) (Mode, error) {
	for m, name := range [...]string{"intersection", "fill_missing", "strict"} {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("column mode %q is none of intersection, fill_missing, strict", s)
}

// Concat returns the rows of several tables one after the other, with the columns that mode says, in
// the order in which they first appear. Columns are joined by name. The warnings name what was left
// out or filled, and what became text. Columns of different types are joined where nothing is lost
// (integers of several widths, floats, one without values); numbers and times among texts as texts, as
// DuckDB writes them, which is fault.Unsupported where mode is Strict or Mixed. All others are fault.Unsupported;
// integers among floats when the column is loaded, if there is one that a float does not hold.
func Concat(tables []*Table, mode Mode) (*Table, []string, error) {
	if len(tables) == 0 {
		return New(0, nil, nil), nil, nil
	}
	count := map[string]int{}
	var order []string
	n := 0
	for _, t := range tables {
		if n += t.n; n > math.MaxInt32 {
			return nil, nil, fault.New(fault.Limit, "table", fault.NoOffset, "more than %d rows together", math.MaxInt32)
		}
		for _, c := range t.cols {
			if count[c.Name]++; count[c.Name] == 1 {
				order = append(order, c.Name)
			}
		}
	}
	var keep, odd []string
	for _, name := range order {
		if count[name] < len(tables) {
			odd = append(odd, name)
			if mode == Intersection {
				continue
			}
		}
		keep = append(keep, name)
	}
	var warnings []string
	switch {
	case len(odd) == 0:
	case mode == Strict:
		return nil, nil, fault.New(fault.Unsupported, "table", fault.NoOffset, "not all tables have the columns %s", strings.Join(odd, ", "))
	case mode == Intersection:
		warnings = append(warnings, "not in all tables, left out: "+strings.Join(odd, ", "))
	default:
		warnings = append(warnings, "not in all tables, filled with null: "+strings.Join(odd, ", "))
	}
	var turned []string // into texts
	cols := make([]Column, len(keep))
	at := make([][]int, len(keep)) // number of the column in each table, -1
	mixed := make([]error, len(keep))
	for k, name := range keep {
		typ, asText, err := joinedType(tables, name, mode)
		if err != nil && mode != Mixed {
			return nil, nil, err
		}
		if asText {
			turned = append(turned, name)
		}
		cols[k], mixed[k] = Column{Name: name, Type: typ}, err
		for _, t := range tables {
			at[k] = append(at[k], t.Index(name))
		}
	}
	if len(turned) > 0 {
		warnings = append(warnings, "of texts and of other values, joined as texts: "+strings.Join(turned, ", "))
	}
	return New(n, cols, func(ctx context.Context, k int) (*Vector, error) {
		if mixed[k] != nil {
			return nil, mixed[k]
		}
		parts := make([]*Vector, len(tables))
		for j, t := range tables {
			var err error
			switch i := at[k][j]; {
			case i < 0:
				parts[j] = NewNulls(Type{}, t.n)
			default:
				parts[j], err = t.At(ctx, i)
			}
			if err != nil {
				return nil, err
			}
		}
		v, err := Append(cols[k].Type, parts...)
		return v, fault.WithPart(err, "column "+cols[k].Name, fault.NoOffset)
	}), warnings, nil
}

// joinedType returns the type of a column that several tables have, and whether values become texts in it.
func joinedType(tables []*Table, name string, mode Mode) (typ Type, asText bool, err error) {
	for _, t := range tables {
		i := t.Index(name)
		if i < 0 {
			continue
		}
		one := t.cols[i].Type
		both, ok := common(typ, one)
		if ok && (typ.BecomesText(both) || one.BecomesText(both)) {
			ok, asText = mode != Strict && mode != Mixed, true
		}
		if !ok {
			return Type{}, false, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "is %v in one table and %v in another", typ, one)
		}
		typ = both
	}
	return typ, asText, nil
}

// common returns a type that holds the values of two.
func common(a, b Type) (Type, bool) {
	switch {
	case a.Kind == Null:
		return b, true
	case b.Kind == Null:
		return a, true
	case a.Kind == Timestamp && b.Kind == Timestamp:
		a.UTC, a.Nano = a.UTC && b.UTC, a.Nano || b.Nano
		return a, true
	case a.Equal(b):
		return a, true
	case a.Kind == b.Kind && (a.Kind == Int64 || a.Kind == Uint64 || a.Kind == Float64):
		a.Bits = max(a.Bits, b.Bits)
		return a, true
	case a.Kind == Int64 && b.Kind == Uint64 && b.Bits < 64:
		a.Bits = max(a.Bits, 2*b.Bits)
		return a, true
	case a.Kind == Uint64 && b.Kind == Int64:
		return common(b, a)
	case a.Kind == Float64 && (b.Kind == Int64 || b.Kind == Uint64):
		// pandas makes floats of integers as soon as one is missing: files of one set differ in that.
		a.Bits = 64
		return a, true
	case b.Kind == Float64 && (a.Kind == Int64 || a.Kind == Uint64):
		return common(b, a)
	case a.Kind == Bool && (b.Kind == Int64 || b.Kind == Uint64 || b.Kind == Float64):
		return b, true
	case b.Kind == Bool && (a.Kind == Int64 || a.Kind == Uint64 || a.Kind == Float64):
		return a, true
	case a.Kind == Text && b.plain() || b.Kind == Text && a.plain():
		return Type{Kind: Text}, true
	case a.Kind == List && b.Kind == List:
		elem, ok := common(*a.Elem, *b.Elem)
		return Type{Kind: List, Elem: &elem}, ok
	}
	return a, false
}

// Append returns the values of several vectors one after the other, as a type that holds them all.
func Append(t Type, parts ...*Vector) (*Vector, error) {
	out, parts := &Vector{typ: t}, texts(t, parts)
	if t.Kind == Text || t.Kind == Binary || t.Kind == List {
		out.offs = make([]uint32, 1)
	}
	size := 0
	for _, p := range parts {
		if size += p.bytes(); size > math.MaxUint32 {
			return nil, overOffsets()
		}
	}
	for _, p := range parts {
		if p.nulls != nil || p.typ.Kind == Null && t.Kind != Null || out.nulls != nil {
			out.nulls = append(out.nulls, make([]bool, out.n-len(out.nulls)+p.n)...)
			for i := range p.n {
				out.nulls[out.n+i] = p.Null(i)
			}
		}
		out.n += p.n
		if err := out.append(p); err != nil {
			return nil, err
		}
	}
	if out.nulls != nil {
		out.nulls = append(out.nulls, make([]bool, out.n-len(out.nulls))...)
	}
	return out, out.appendChildren(parts)
}

// bytes returns how many bytes the texts have.
func (v *Vector) bytes() int {
	if v.coded != nil {
		return v.coded.size(0, v.n)
	}
	return len(v.data)
}

// append adds p's own values, and a zero for each of its nulls.
func (v *Vector) append(p *Vector) error {
	switch v.typ.Kind {
	case Bool, Int64, Uint64, Timestamp, Date, Time, Huge, Decimal:
		if p.typ.Kind == Null {
			v.ints = append(v.ints, make([]int64, p.n)...)
		} else {
			v.ints = append(v.ints, p.ints...)
		}
		if v.typ.Kind == Timestamp {
			v.appendNanos(p)
		}
		if v.typ.Kind == Huge || v.typ.Kind == Decimal {
			for i := range p.n {
				h := v.ints[len(v.ints)-p.n+i] >> 63
				if p.high != nil {
					h = p.high[i]
				}
				v.high = append(v.high, h)
			}
		}
	case Float64:
		switch p.typ.Kind {
		case Float64:
			v.floats = append(v.floats, p.floats...)
		case Null:
			v.floats = append(v.floats, make([]float64, p.n)...)
		default:
			return v.appendAsFloats(p)
		}
	case Text, Binary, List:
		if p.coded != nil { // not made as Raw has them only for this
			for i := range p.n {
				v.data = append(v.data, p.Bytes(i)...)
				v.offs = append(v.offs, uint32(len(v.data)))
			}
			break
		}
		base := v.offs[len(v.offs)-1]
		for i := range p.n {
			end := uint32(0)
			if p.offs != nil {
				end = p.offs[i+1]
			}
			v.offs = append(v.offs, base+end)
		}
		v.data = append(v.data, p.data...)
	}
	return nil
}

// appendAsFloats adds integers that floats hold.
func (v *Vector) appendAsFloats(p *Vector) error {
	for i, x := range p.ints {
		f, exact := float64(x), false
		if p.typ.Kind == Uint64 {
			f = float64(uint64(x))
			exact = f < 1<<64 && uint64(f) == uint64(x)
		} else {
			exact = f < 1<<63 && int64(f) == x
		}
		if !exact {
			return fault.New(fault.Unsupported, "", fault.NoOffset, "is float64 in one table, which does not hold the %v of another", string(p.AppendJSON(nil, i)))
		}
		v.floats = append(v.floats, f)
	}
	return nil
}

func (v *Vector) appendChildren(parts []*Vector) error {
	types := v.typ.Fields
	if v.typ.Kind == List {
		types = []Column{{Type: *v.typ.Elem}}
	}
	for k := range types {
		var kids []*Vector
		for _, p := range parts {
			switch {
			case p.children != nil:
				kids = append(kids, p.children[k])
			case v.typ.Kind == Struct:
				kids = append(kids, NewNulls(types[k].Type, p.n))
			}
		}
		c, err := Append(types[k].Type, kids...)
		if err != nil {
			return err
		}
		v.children = append(v.children, c)
	}
	return nil
}
