package tables

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/num"
)

// Concat returns the rows of several tables one after the other, with the columns that mode selects, in the order in
// which they first appear. It joins columns by name; Missing and JoinedAsStrings report what that changes.
//
// Columns of different types are joined where nothing is lost: integers of several widths, floats, and columns without
// values. Numbers and times are joined with strings as strings, written as DuckDB writes them; with mode Strict or
// Mixed that is fault.Unsupported. All other mixtures are fault.Unsupported. Integers join floats if floats hold all of
// them exactly, which is known, and refused, only when the column is loaded.
func Concat(tables []*Table, mode column.Mode) (*Table, error) {
	rows := 0
	for _, t := range tables {
		if rows += t.n; rows > math.MaxInt32 {
			return nil, fault.New(fault.Limit, "table", "more than %d rows together", math.MaxInt32)
		}
	}
	names, lacking := columnNames(tables)
	switch mode {
	case column.Strict:
		if refused := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return lacking[name] == nil
		}); len(refused) > 0 {
			return nil, fault.New(fault.Unsupported, "table", "not all tables have the columns %s",
				strings.Join(refused, ", "))
		}
	case column.Intersection:
		names = slices.DeleteFunc(names, func(name string) bool { return lacking[name] != nil })
	}
	result := joined{tables: tables, cols: make([]Column, len(names)), mixed: make([]error, len(names))}
	for i, name := range names {
		typ, err := joinedType(tables, name, mode)
		if err != nil && mode != column.Mixed {
			return nil, err
		}
		result.cols[i], result.mixed[i] = Column{Name: name, Type: typ}, err
	}
	return New(rows, result.cols, result.load), nil
}

// columnNames returns the names of all columns, in the order in which they first appear, and which tables lack each.
// nil tables are skipped: they stand for inputs without columns.
func columnNames(tables []*Table) (names []string, lacking map[string][]int) {
	lacking = map[string][]int{}
	for _, tbl := range tables {
		if tbl == nil {
			continue
		}
		for _, column := range tbl.cols {
			if _, seen := lacking[column.Name]; seen {
				continue
			}
			var without []int
			for i, other := range tables {
				if other != nil && other.Index(column.Name) < 0 {
					without = append(without, i)
				}
			}
			names, lacking[column.Name] = append(names, column.Name), without
		}
	}
	return names, lacking
}

// joined loads the columns of a Concat.
type joined struct {
	tables []*Table
	cols   []Column
	mixed  []error // for each column, why its types cannot be joined; nil if they can
}

func (j *joined) load(ctx context.Context, k int) (*Vector, error) {
	if j.mixed[k] != nil {
		return nil, j.mixed[k]
	}
	parts := make([]*Vector, len(j.tables))
	for i, tbl := range j.tables {
		pos := tbl.Index(j.cols[k].Name)
		if pos < 0 {
			parts[i] = NewNulls(Type{}, tbl.n)
			continue
		}
		var err error
		if parts[i], err = tbl.At(ctx, pos); err != nil {
			return nil, err
		}
	}
	v, err := Append(j.cols[k].Type, parts...)
	return v, fault.WithPart(err, "column "+j.cols[k].Name, fault.NoOffset)
}

// Missing returns a message for each column that some tables lack: what mode does about it, and five of these tables.
// names has the names of the tables; nil tables are skipped.
func Missing(tables []*Table, names []string, mode column.Mode) (messages []string) {
	columns, lacking := columnNames(tables)
	for _, c := range columns {
		without := num.Pick(names, lacking[c])
		const shown = 5
		if n := len(without); n > shown {
			without = append(without[:shown], fmt.Sprintf("%d more", n-shown))
		}
		if len(without) > 0 {
			messages = append(messages, fmt.Sprintf("column %q is %s: it is not in %s", c, mode.Missing(),
				strings.Join(without, ", ")))
		}
	}
	return messages
}

// JoinedAsStrings returns a message for each column that Concat joined as strings although one of the tables has
// another type there. names has the names of the tables; nil tables are skipped.
func JoinedAsStrings(joined *Table, tables []*Table, names []string) (messages []string) {
	for _, column := range joined.cols {
		for i, tbl := range tables {
			if tbl == nil {
				continue
			}
			if pos := tbl.Index(column.Name); pos >= 0 && tbl.cols[pos].Type.BecomesString(column.Type) {
				messages = append(messages, fmt.Sprintf("column %q is joined as strings: it is %v in %s", column.Name,
					tbl.cols[pos].Type, names[i]))
				break
			}
		}
	}
	return messages
}

// joinedType returns the type that holds a column's values of all tables.
func joinedType(tables []*Table, name string, mode column.Mode) (Type, error) {
	var typ Type
	for _, tbl := range tables {
		i := tbl.Index(name)
		if i < 0 {
			continue
		}
		next := tbl.cols[i].Type
		both, ok := common(typ, next)
		if ok && (mode == column.Strict || mode == column.Mixed) {
			ok = !typ.BecomesString(both) && !next.BecomesString(both)
		}
		if !ok {
			return Type{}, fault.New(fault.Unsupported, "column "+name,
				"is %v in one table and %v in another", typ, next)
		}
		typ = both
	}
	return typ, nil
}

// common returns the type that holds the values of both a and b, or false. Where their forms differ, it has the default
// form.
func common(a, b Type) (Type, bool) {
	if a.Kind != Null && b.Kind != Null && !SameForms(a, b) {
		a, b = a.Plain(), b.Plain()
	}
	switch {
	case a.Kind == Null:
		return b, true
	case b.Kind == Null:
		return a, true
	case !sameDuration(a, b):
		return a, false
	case a.Kind == Time && b.Kind == Time:
		a.Nano = a.Nano || b.Nano
		return a, true
	case a.Kind == Timestamp && b.Kind == Timestamp:
		a.UTC, a.Nano = a.UTC && b.UTC, a.Nano || b.Nano
		return a, true
	case a.Kind == List && b.Kind == List:
		elem, ok := common(*a.Elem, *b.Elem)
		a.Elem = &elem
		return a, ok
	case a.Kind == Struct && b.Kind == Struct:
		return commonFields(a, b)
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
	case a.Kind == String && b.isScalar() || b.Kind == String && a.isScalar():
		return Strings, true
	}
	return a, false
}

// commonFields returns the type of structs that holds values of both a and b, or false if their fields have other
// names.
func commonFields(a, b Type) (Type, bool) {
	same := slices.EqualFunc(a.Fields, b.Fields, func(f, g Column) bool { return f.Name == g.Name })
	if !same {
		return a, false
	}
	a.Fields = slices.Clone(a.Fields)
	for i := range a.Fields {
		typ, ok := common(a.Fields[i].Type, b.Fields[i].Type)
		if !ok {
			return a, false
		}
		a.Fields[i].Type = typ
	}
	return a, true
}

// Append returns the values of several vectors one after the other, as type t, which must hold them all.
func Append(t Type, parts ...*Vector) (*Vector, error) {
	out, parts, size := NewAppender(t), inType(t, parts), 0
	for _, p := range parts {
		if size += p.bytes(); size > math.MaxUint32 {
			return nil, overOffsets()
		}
	}
	for _, values := range parts {
		if err := out.Add(values); err != nil {
			return nil, err
		}
	}
	return out.Vector(), out.v.appendChildren(parts)
}

// Appender makes a vector of the values of others, one after the other, or of single values.
type Appender struct{ v Vector }

// NewAppender returns an Appender of values of a type.
func NewAppender(t Type) *Appender {
	a := &Appender{Vector{typ: t}}
	if t.Kind == String || t.Kind == Binary || t.Kind == List {
		a.v.offs = make([]uint32, 1)
	}
	if t.Kind == List {
		a.v.children = []*Vector{&NewAppender(*t.Elem).v}
	}
	return a
}

// Add appends values of the type, but not the children of lists and structs. Strings are 4 GiB together at the most.
func (a *Appender) Add(values *Vector) error {
	out := &a.v
	if values.nulls != nil || out.nulls != nil {
		out.nulls = append(out.nulls, make([]bool, out.n-len(out.nulls)+values.n)...)
		copy(out.nulls[out.n:], values.nulls)
	}
	out.n += values.n
	return out.append(values)
}

// AddValue appends a value as a column has it, of a type other than booleans, decimals and structs. Strings are 4 GiB
// together at the most.
func (a *Appender) AddValue(value *column.Value) { a.v.add(value) }

// AddString is AddValue of a string.
func (a *Appender) AddString(text string) {
	a.v.begin(false)
	a.v.data = append(a.v.data, text...)
	a.v.offs = append(a.v.offs, uint32(len(a.v.data)))
}

// Vector returns the values. Nothing is added after it.
func (a *Appender) Vector() *Vector { return &a.v }

// bytes returns how many bytes the strings have.
func (v *Vector) bytes() (size int) {
	switch {
	case v.coded != nil || v.ends != nil:
		for i := range v.n {
			size += len(v.Bytes(i))
		}
		return size
	case v.data == nil: // of other kinds, too
		return 0
	}
	return int(v.offs[v.n] - v.offs[0])
}

// Size returns how many bytes the values take in a vector of their own, of other kinds than lists and structs, and how
// many of these their strings are.
func (v *Vector) Size() (size, text int64) {
	text = int64(v.bytes())
	return v.width()*int64(v.n) + text, text
}

// append adds p's own values.
func (v *Vector) append(p *Vector) error {
	switch v.typ.Kind {
	case Bool:
		v.bools = append(v.bools, p.bools...)
	case Int64, Uint64, Timestamp, Date, Time, Decimal:
		v.ints = append(v.ints, p.Ints()...)
		switch v.typ.Kind {
		case Timestamp, Time:
			v.appendNanos(p)
		case Decimal:
			v.high = append(v.high, p.high...)
		}
	case Float64:
		if p.typ.Kind != Float64 {
			return v.appendAsFloats(p)
		}
		v.floats = append(v.floats, p.floats...)
	case String, Binary, List:
		if p.coded != nil || p.ends != nil {
			for i := range p.n {
				if !p.Null(i) {
					v.data = append(v.data, p.Bytes(i)...)
				}
				v.offs = append(v.offs, uint32(len(v.data)))
			}
			break
		}
		base := v.offs[len(v.offs)-1] - p.offs[0]
		for _, end := range p.offs[1:] {
			v.offs = append(v.offs, base+end)
		}
		if p.data != nil {
			v.data = append(v.data, p.data[p.offs[0]:p.offs[p.n]]...)
		}
	}
	return nil
}

// appendAsFloats appends integers to floats, and refuses those that a float does not hold exactly.
func (v *Vector) appendAsFloats(p *Vector) error {
	for i, x := range p.Ints() {
		number, exact := float64(x), false
		if p.typ.Kind == Uint64 {
			number = float64(uint64(x))
			exact = number < 1<<64 && uint64(number) == uint64(x)
		} else {
			exact = number < 1<<63 && int64(number) == x
		}
		if !exact {
			return fault.New(fault.Unsupported, "",
				"is float64 in one table, which does not hold the %v of another", string(p.AppendJSON(nil, i)))
		}
		v.floats = append(v.floats, number)
	}
	return nil
}

func (v *Vector) appendChildren(parts []*Vector) error {
	types := v.typ.Fields
	if v.typ.Kind == List {
		types, v.children = []Column{{Type: *v.typ.Elem}}, nil
	}
	for k := range types {
		var kids []*Vector
		for _, values := range parts {
			kids = append(kids, values.children[k])
		}
		vector, err := Append(types[k].Type, kids...)
		if err != nil {
			return err
		}
		v.children = append(v.children, vector)
	}
	return nil
}
