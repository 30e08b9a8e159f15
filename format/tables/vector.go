package tables

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/num"
)

// cost is about how much memory the values take.
func (v *Vector) cost() int64 {
	size := int64(cap(v.nulls)+cap(v.bools)) + 8*int64(cap(v.ints)+cap(v.high)+cap(v.floats)) + int64(cap(v.data)) +
		4*int64(cap(v.offs)+cap(v.ends))
	if v.coded != nil {
		size += v.coded.cost()
	}
	for _, c := range v.children {
		size += c.cost()
	}
	return size
}

// Column is a column's name and type.
type Column struct {
	Name string
	Type Type
}

// Kind is the type of a column's values.
type Kind uint8

// Kinds, and the accessor of Vector that returns their values.
const (
	Null      Kind = iota // no value
	Bool                  // Bools; Int: 0 or 1
	Int64                 // Int; Type.Bits is the width in the file
	Uint64                // Int, the bits of a uint64
	Float64               // Float; Type.Bits is the width in the file
	Decimal               // Big, in units of 10^-Scale
	String                // Bytes, Str
	Binary                // Bytes
	Timestamp             // Int: microseconds since 1970-01-01T00:00:00Z
	Date                  // Int: days since 1970-01-01
	Time                  // Int: microseconds since midnight
	List                  // List
	Struct                // Field
)

var kindNames = [...]string{"null", "bool", "int", "uint", "float", "decimal", "text", "binary", "timestamp", "date",
	"time", "list", "struct"}

// String returns the kind's name in lower case.
func (k Kind) String() string { return kindNames[k] }

// Type is a column's type.
type Type struct {
	Kind             Kind
	Bits             uint8 // of integers and floats
	UTC              bool  // of timestamps: the file says that they are in UTC
	Nano             bool  // of times and timestamps: the file counts nanoseconds, see Vector.Nanos
	Precision, Scale uint8 // of decimals
	Elem             *Type // of lists; a map is a list of structs of key and value
	Fields           []Column
	Form             *Form // nil: the default of the Kind
}

// Types of many columns.
var (
	Ints    = Type{Kind: Int64, Bits: 64}
	Floats  = Type{Kind: Float64, Bits: 64}
	Strings = Type{Kind: String}
)

// String returns the type for people: "int64", "decimal(9,2)", "list<text>".
func (t Type) String() string {
	if t.Stored().Store == Duration {
		return t.ArrowName()
	}
	switch t.Kind {
	case Int64, Uint64, Float64:
		return t.Kind.String() + strconv.Itoa(int(t.Bits))
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case List:
		return "list<" + t.Elem.String() + ">"
	case Struct:
		return "struct<" + fieldNames(t.Fields, Type.String) + ">"
	}
	return t.Kind.String()
}

// Equal reports whether the values of two types mean the same. It ignores Nano, because the values of both clocks are
// microseconds first, and forms, but for the units of durations.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.Bits != u.Bits || t.UTC != u.UTC || !sameDuration(t, u) {
		return false
	}
	if t.Precision != u.Precision || t.Scale != u.Scale || len(t.Fields) != len(u.Fields) {
		return false
	}
	for i := range t.Fields {
		if t.Fields[i].Name != u.Fields[i].Name || !t.Fields[i].Type.Equal(u.Fields[i].Type) {
			return false
		}
	}
	return t.Elem == nil || t.Elem.Equal(*u.Elem)
}

// Vector holds the values of a column. It is immutable, and safe for concurrent use.
type Vector struct {
	typ   Type
	n     int
	nulls []bool // nil: no value is null

	bools    []bool
	ints     []int64 // also the low 64 bits of Decimal
	high     []int64 // the high 64 bits of Decimal; of Time and Timestamp see Nanos
	floats   []float64
	coded    *coded   // String, instead of data and offs
	data     []byte   // String, Binary
	offs     []uint32 // String, Binary: n+1 offsets in data; List: n+1 rows of child
	ends     []uint32 // String, Binary: where values end that do not follow each other; else nil
	children []*Vector
}

// NewNulls returns n values of a type that are all null.
func NewNulls(t Type, n int) *Vector {
	values := &Vector{typ: t, n: n, nulls: make([]bool, n)}
	for i := range values.nulls {
		values.nulls[i] = true
	}
	switch t.Kind {
	case Bool:
		values.bools = make([]bool, n)
	case Int64, Uint64, Timestamp, Date, Time:
		values.ints = make([]int64, n)
	case Decimal:
		values.ints, values.high = make([]int64, n), make([]int64, n)
	case Float64:
		values.floats = make([]float64, n)
	case String, Binary:
		values.offs = make([]uint32, n+1)
	case List:
		values.offs = make([]uint32, n+1)
		values.children = []*Vector{NewNulls(*t.Elem, 0)}
	case Struct:
		for _, f := range t.Fields {
			values.children = append(values.children, NewNulls(f.Type, n))
		}
	}
	return values
}

// NewInts returns values of a kind that Int gives. nulls is nil if no value is null. Both slices belong to the vector
// from then on; so do the slices of the other constructors.
func NewInts(t Type, ints []int64, nulls []bool) *Vector {
	if t.Kind != Bool {
		return &Vector{typ: t, n: len(ints), nulls: nulls, ints: ints}
	}
	bools := make([]bool, len(ints))
	for i, x := range ints {
		bools[i] = x != 0
	}
	return &Vector{typ: t, n: len(ints), nulls: nulls, bools: bools}
}

// NewBools returns values of kind Bool.
func NewBools(bools, nulls []bool) *Vector {
	return &Vector{typ: Type{Kind: Bool}, n: len(bools), nulls: nulls, bools: bools}
}

// NewWide returns values of kind Decimal from their low and high 64 bits, or of kind Time or Timestamp from
// microseconds and the nanoseconds, 0 to 999, to add to them; nil if all of these are 0.
func NewWide(t Type, low, high []int64, nulls []bool) *Vector {
	return &Vector{typ: t, n: len(low), nulls: nulls, ints: low, high: high}
}

// NewFloats returns values of kind Float64.
func NewFloats(t Type, floats []float64, nulls []bool) *Vector {
	return &Vector{typ: t, n: len(floats), nulls: nulls, floats: floats}
}

// NewBytes returns values of kind String or Binary: value i is data[offs[i]:offs[i+1]].
func NewBytes(t Type, data []byte, offs []uint32, nulls []bool) *Vector {
	return &Vector{typ: t, n: len(offs) - 1, nulls: nulls, data: data, offs: offs}
}

// NewStrings returns values of kind String, of less than 4 GiB together.
func NewStrings(s []string, nulls []bool) *Vector {
	values := &Vector{typ: Strings, n: len(s), nulls: nulls, offs: make([]uint32, 1, len(s)+1)}
	for _, x := range s {
		values.data = append(values.data, x...)
		values.offs = append(values.offs, uint32(len(values.data)))
	}
	return values
}

// NewList returns values of kind List: value i is the child's rows offs[i] to offs[i+1].
func NewList(child *Vector, offs []uint32, nulls []bool) *Vector {
	elem := child.typ
	return &Vector{typ: Type{Kind: List, Elem: &elem}, n: len(offs) - 1, nulls: nulls, offs: offs,
		children: []*Vector{child}}
}

// Kind returns the kind of the values.
func (v *Vector) Kind() Kind { return v.typ.Kind }

// Type returns the type of the values.
func (v *Vector) Type() Type { return v.typ }

// Len returns the number of values.
func (v *Vector) Len() int { return v.n }

// Null reports whether value i is missing. The accessors below return zero values for missing ones.
func (v *Vector) Null(i int) bool { return v.typ.Kind == Null || v.nulls != nil && v.nulls[i] }

// Int returns value i of the kinds Bool, Int64, Uint64 (its bits), Timestamp, Date and Time.
func (v *Vector) Int(i int) int64 {
	if v.typ.Kind == Bool {
		return bit(v.bools[i])
	}
	return v.ints[i]
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Float returns value i of kind Float64.
func (v *Vector) Float(i int) float64 { return v.floats[i] }

// Bytes returns value i of the kinds String and Binary. The caller must not change it.
func (v *Vector) Bytes(i int) []byte {
	if v.coded != nil {
		v, i = v.coded.values, v.coded.at(i)
	}
	if v.ends != nil {
		return v.data[v.offs[i]:v.ends[i]:v.ends[i]]
	}
	return v.data[v.offs[i]:v.offs[i+1]:v.offs[i+1]]
}

// ValidText reports whether all strings are UTF-8, also those in lists and structs.
func (v *Vector) ValidText() bool {
	switch {
	case v.coded != nil:
		return v.coded.values.ValidText()
	case v.typ.Kind == String:
		for i := range v.n {
			if !utf8.Valid(v.Bytes(i)) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(v.children, func(c *Vector) bool { return !c.ValidText() })
}

// Str returns value i of the kinds String and Binary as a string.
func (v *Vector) Str(i int) string { return string(v.Bytes(i)) }

// List returns value i of kind List: rows lo to hi, not included, of child.
func (v *Vector) List(i int) (child *Vector, lo, hi int) {
	return v.children[0], int(v.offs[i]), int(v.offs[i+1])
}

// Field returns field k of kind Struct; its rows are the vector's.
func (v *Vector) Field(k int) *Vector { return v.children[k] }

// FieldOf is Field with nulls where the struct is null.
func (v *Vector) FieldOf(k int) *Vector {
	values := v.children[k]
	if v.nulls == nil {
		return values
	}
	nulls := slices.Clone(v.nulls)
	for i, null := range values.nulls {
		nulls[i] = nulls[i] || null
	}
	return values.WithNulls(nulls)
}

// WithNulls returns the same values with other nulls.
func (v *Vector) WithNulls(nulls []bool) *Vector {
	out := *v
	out.nulls = nulls
	return &out
}

// Big returns value i of kind Decimal.
func (v *Vector) Big(i int) *big.Int {
	low := new(big.Int).SetUint64(uint64(v.ints[i]))
	return low.Add(low, new(big.Int).Lsh(big.NewInt(v.high[i]), 64))
}

// AllNull reports whether all values are null, also of no values.
func (v *Vector) AllNull() bool {
	return v.n == 0 || v.typ.Kind == Null || v.nulls != nil && !slices.Contains(v.nulls, false)
}

// Nulls returns which values are null. It returns nil if none is, or if all are because the kind is Null. The caller
// must not change it, nor the slices that the methods below return.
func (v *Vector) Nulls() []bool { return v.nulls }

// Bools returns the values of kind Bool.
func (v *Vector) Bools() []bool { return v.bools }

// Ints returns the values that Int gives one of; of kind Bool it makes them.
func (v *Vector) Ints() []int64 {
	if v.bools != nil {
		return bits(v.bools)
	}
	return v.ints
}

func bits(bools []bool) []int64 {
	ints := make([]int64, len(bools))
	for i, b := range bools {
		ints[i] = bit(b)
	}
	return ints
}

// High returns the high 64 bits of kind Decimal; Ints has the low ones.
func (v *Vector) High() []int64 { return v.high }

// Floats returns the values of kind Float64.
func (v *Vector) Floats() []float64 { return v.floats }

// Spans returns the values of the kinds String and Binary: value i is data[lo[i]:hi[i]].
func (v *Vector) Spans() (data []byte, lo, hi []uint32) {
	switch {
	case v.coded != nil:
		lo, hi = v.coded.spans()
		return v.coded.values.data, lo, hi
	case v.ends != nil:
		return v.data, v.offs, v.ends
	}
	return v.data, v.offs[:v.n], v.offs[1:]
}

// Offsets returns the rows of kind List: value i is the child's rows offs[i] to offs[i+1].
func (v *Vector) Offsets() (child *Vector, offs []uint32) { return v.children[0], v.offs }

// width returns how many bytes a value takes, without its string, or its elements and fields.
func (v *Vector) width() int64 {
	width := int64(1) // whether it is null
	if v.bools != nil {
		width++
	}
	for _, there := range []bool{v.ints != nil, v.high != nil, v.floats != nil} {
		if there {
			width += 8
		}
	}
	if k := v.typ.Kind; k == String || k == Binary || k == List {
		width += 4
	}
	return width
}

// TakeBytes returns about how much memory Take(rows) needs.
func (v *Vector) TakeBytes(rows []int) int64 {
	size := v.width() * int64(len(rows))
	switch v.typ.Kind {
	case String, Binary:
		for _, r := range rows {
			if r >= 0 {
				size += int64(len(v.Bytes(r)))
			}
		}
	case List:
		elems := int64(0)
		for _, r := range rows {
			if r >= 0 {
				elems += int64(v.offs[r+1] - v.offs[r])
			}
		}
		c := v.children[0]
		size += elems * (8 + c.cost()/int64(max(c.n, 1))) // 8: the number of its row
	case Struct:
		for _, c := range v.children {
			size += c.TakeBytes(rows)
		}
	}
	return size
}

// Take returns the values at rows, in that order; a negative row gives a null. It is fault.Limit if strings or bytes,
// also those inside lists and structs, would take more than 4 GiB, which 32-bit offsets do not reach: a join may repeat
// a row many times.
func (v *Vector) Take(rows []int) (*Vector, error) {
	out := &Vector{typ: v.typ, n: len(rows)}
	switch {
	case v.typ.Kind == Null:
		return out, nil
	case v.n == 0: // all that is taken is null
		return NewNulls(v.typ, len(rows)), nil
	}
	if v.nulls != nil || slices.ContainsFunc(rows, func(r int) bool { return r < 0 }) {
		out.nulls = make([]bool, len(rows))
		for i, r := range rows {
			out.nulls[i] = r < 0 || v.nulls != nil && v.nulls[r]
		}
	}
	out.bools, out.ints, out.high = gather(v.bools, rows), gather(v.ints, rows), gather(v.high, rows)
	out.floats = gather(v.floats, rows)
	switch v.typ.Kind {
	case String, Binary:
		return out, out.takeBytes(v, rows)
	case List:
		return out, out.takeLists(v, rows)
	}
	for _, c := range v.children {
		child, err := c.Take(rows)
		if err != nil {
			return nil, err
		}
		out.children = append(out.children, child)
	}
	return out, nil
}

// Pick is Take of rows that v has, and shares its strings. It takes no lists and structs. The result has nulls or, if
// these are nil, the nulls of v.
func (v *Vector) Pick(rows []int32, nulls []bool) *Vector {
	if v.typ.Kind == Null {
		return NewNulls(v.typ, len(rows))
	}
	if nulls == nil {
		nulls = pick(v.nulls, rows)
	}
	out := &Vector{typ: v.typ, n: len(rows), nulls: nulls, bools: pick(v.bools, rows), ints: pick(v.ints, rows),
		high: pick(v.high, rows), floats: pick(v.floats, rows)}
	if v.typ.Kind == String || v.typ.Kind == Binary {
		data, lo, hi := v.Spans()
		out.data, out.offs, out.ends = data, num.Pick(lo, rows), num.Pick(hi, rows)
	}
	return out
}

// pick is num.Pick, nil of nil.
func pick[T any](from []T, rows []int32) []T {
	if from == nil {
		return nil
	}
	return num.Pick(from, rows)
}

// Part is Pick of n rows from lo on. It shares all values of v.
func (v *Vector) Part(lo, n int) *Vector {
	out := &Vector{typ: v.typ, n: n, nulls: part(v.nulls, lo, n), bools: part(v.bools, lo, n),
		ints: part(v.ints, lo, n), high: part(v.high, lo, n), floats: part(v.floats, lo, n)}
	switch {
	case v.typ.Kind == Null:
		return NewNulls(v.typ, n)
	case v.coded != nil || v.ends != nil:
		data, starts, ends := v.Spans()
		out.data, out.offs, out.ends = data, part(starts, lo, n), part(ends, lo, n)
	case v.typ.Kind == String || v.typ.Kind == Binary:
		out.data, out.offs = v.data, v.offs[lo:lo+n+1]
	}
	return out
}

// part returns n values from lo on, nil of nil.
func part[T any](from []T, lo, n int) []T {
	if from == nil {
		return nil
	}
	return from[lo : lo+n]
}

func gather[T any](from []T, rows []int) []T {
	if from == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		if r >= 0 {
			out[i] = from[r]
		}
	}
	return out
}

func (v *Vector) takeBytes(from *Vector, rows []int) error {
	size := 0
	for _, r := range rows {
		if r >= 0 {
			size += len(from.Bytes(r))
		}
	}
	if size > math.MaxUint32 {
		return overOffsets()
	}
	v.data, v.offs = make([]byte, 0, size), make([]uint32, 1, len(rows)+1)
	for _, r := range rows {
		if r >= 0 {
			v.data = append(v.data, from.Bytes(r)...)
		}
		v.offs = append(v.offs, uint32(len(v.data)))
	}
	return nil
}

// overOffsets is the error for strings beyond the reach of 32-bit offsets.
func overOffsets() error {
	return fault.New(fault.Limit, "table", "a column of more than %d bytes", math.MaxUint32)
}

func (v *Vector) takeLists(from *Vector, rows []int) error {
	v.offs = make([]uint32, 1, len(rows)+1)
	var elems []int
	for _, r := range rows {
		if r >= 0 {
			for k := from.offs[r]; k < from.offs[r+1]; k++ {
				elems = append(elems, int(k))
			}
		}
		v.offs = append(v.offs, uint32(len(elems)))
	}
	child, err := from.children[0].Take(elems)
	v.children = []*Vector{child}
	return err
}

// NewStruct returns values of kind Struct. All fields have as many rows.
func NewStruct(names []string, fields []*Vector, nulls []bool) *Vector {
	values := &Vector{typ: Type{Kind: Struct}, n: len(nulls), nulls: nulls, children: fields}
	for i, field := range fields {
		values.typ.Fields = append(values.typ.Fields, Column{Name: names[i], Type: field.typ})
		values.n = field.n
	}
	return values
}
