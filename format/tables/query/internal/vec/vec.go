// Package vec holds the values of a batch of rows, a column at a time, and the results of a query's operators: lists
// of rows, hash keys, groups and orders.
package vec

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/internal/num"
)

// set copies value i of another vec of type t, which is not of strings or bytes.
func (v *Vec) set(k int, from *Vec, i int, t tables.Type) {
	switch {
	case sql.RepOf(t) == sql.RepFloat:
		v.Floats[k] = from.Floats[i]
	case t.Kind == tables.Bool:
		v.Bools[k] = from.Bools[i]
	default:
		v.Ints[k] = from.Ints[i]
		if from.After != nil {
			if v.After == nil {
				v.After = make([]int64, v.N)
			}
			v.After[k] = from.After[i]
		}
	}
}

// BatchRows is how many rows are evaluated at a time: a column of 8-byte numbers is then 32 KiB, the size of a
// first-level cache.
const BatchRows = 4096

// Vec holds the values of an expression for the rows of a batch, in the members that the rep of its type names. It is
// immutable once it was made, so vecs may share memory.
type Vec struct {
	N      int
	Nulls  []bool // nil: no value is null
	Bools  []bool // truth values
	Ints   []int64
	After  []int64 // of timestamps the nanoseconds after Ints, nil: all 0
	Floats []float64
	Data   []byte // value k is Data[Lo[k]:Hi[k]]
	Lo     []uint32
	Hi     []uint32
}

// IsNull reports whether value k is null.
func (v *Vec) IsNull(k int) bool { return v.Nulls != nil && v.Nulls[k] }

// Bytes returns value k, a string or bytes.
func (v *Vec) Bytes(k int) []byte { return v.Data[v.Lo[k]:v.Hi[k]] }

// Rows holds the rows of a relation: for each of its tables, the row of the table that each row of the relation has. A
// nil list stands for all rows of the table, in order.
type Rows struct {
	N      int
	Tables [][]int32
}

// Batch is a part of a relation: its rows Lo to Lo+N.
type Batch struct {
	N, Lo  int
	Tables [][]int32
}

// Batch returns at most size rows from lo on.
func (r *Rows) Batch(lo, size int) *Batch {
	return &Batch{N: min(size, r.N-lo), Lo: lo, Tables: r.Tables}
}

// List returns the rows of table number tab in the batch. nil stands for the rows of the table from Lo on.
func (b *Batch) List(tab int) []int32 {
	if l := b.Tables[tab]; l != nil {
		return l[b.Lo : b.Lo+b.N]
	}
	return nil
}

// Take returns the rows at some positions of the batch.
func (b *Batch) Take(sel []int32) *Batch {
	out := &Batch{N: len(sel), Tables: make([][]int32, len(b.Tables))}
	for table := range b.Tables {
		if source := b.List(table); source != nil {
			out.Tables[table] = num.Pick(source, sel)
			continue
		}
		picked := make([]int32, len(sel))
		for k, s := range sel {
			picked[k] = int32(b.Lo) + s
		}
		out.Tables[table] = picked
	}
	return out
}

// Collector joins the vecs of batches to one vector.
type Collector struct {
	Type  tables.Type
	n     int
	all   Vec
	nulls bool
	offs  []uint32
}

// Add appends the values of a batch.
func (c *Collector) Add(v *Vec) error {
	c.all.Nulls = append(c.all.Nulls, make([]bool, v.N)...)
	if v.Nulls != nil {
		c.nulls = true
		copy(c.all.Nulls[c.n:], v.Nulls)
	}
	c.n += v.N
	for _, t := range v.Bools {
		c.all.Ints = append(c.all.Ints, sql.Bit(t))
	}
	after := v.After
	// Only some batches may have nanoseconds, so the others get zeros.
	if (after != nil) != (c.all.After != nil) {
		if after == nil {
			after = make([]int64, v.N)
		} else {
			c.all.After = make([]int64, c.n-v.N)
		}
	}
	c.all.Ints, c.all.After, c.all.Floats = append(c.all.Ints, v.Ints...), append(c.all.After, after...),
		append(c.all.Floats, v.Floats...)
	if sql.RepOf(c.Type) == sql.RepBytes {
		if c.offs == nil {
			c.offs = []uint32{0}
		}
		for k := range v.N {
			if !v.IsNull(k) {
				c.all.Data = append(c.all.Data, v.Bytes(k)...)
			}
			if len(c.all.Data) > 2<<30 {
				return fault.New(fault.Limit, "query", "strings of more than 2 GiB")
			}
			c.offs = append(c.offs, uint32(len(c.all.Data)))
		}
	}
	return nil
}

// Size returns how many bytes the values take in a Collector.
func (v *Vec) Size() int64 {
	size := int64(v.N) // Nulls
	size += 8 * int64(len(v.Bools)+len(v.Ints)+len(v.After)+len(v.Floats))
	for k := range v.Lo {
		size += 4 + int64(v.Hi[k]-v.Lo[k])
	}
	return size
}

// Vector returns all values.
func (c *Collector) Vector() *tables.Vector {
	nulls := c.all.Nulls
	if !c.nulls {
		nulls = nil
	}
	switch sql.RepOf(c.Type) {
	case sql.RepNone:
		return tables.NewNulls(tables.Type{}, c.n)
	case sql.RepFloat:
		return tables.NewFloats(c.Type, c.all.Floats, nulls)
	case sql.RepBytes:
		if c.offs == nil {
			c.offs = []uint32{0}
		}
		return tables.NewBytes(c.Type, c.all.Data, c.offs, nulls)
	}
	if c.all.After != nil {
		return tables.NewTimes(c.Type, c.all.Ints, c.all.After, nulls)
	}
	return tables.NewInts(c.Type, c.all.Ints, nulls)
}

// AllNull returns n nulls of a type.
func AllNull(t tables.Type, n int) *Vec {
	values := &Vec{N: n, Nulls: Fill(make([]bool, n), true)}
	switch sql.RepOf(t) {
	case sql.RepInt, sql.RepUint:
		if t.Kind == tables.Bool {
			values.Bools = make([]bool, n)
		} else {
			values.Ints = make([]int64, n)
		}
	case sql.RepFloat:
		values.Floats = make([]float64, n)
	case sql.RepBytes:
		values.Lo, values.Hi = make([]uint32, n), make([]uint32, n)
	}
	return values
}

// Fill sets all of s to x and returns it.
func Fill[T any](s []T, x T) []T {
	for i := range s {
		s[i] = x
	}
	return s
}

// Part returns the batch's rows of a column: those in l, or if l is nil those from b.Lo on.
func Part[T any](s []T, l []int32, b *Batch) []T {
	if l == nil {
		return s[b.Lo : b.Lo+b.N]
	}
	return num.Pick(s, l)
}

// Row returns the row of table number tab at position k of a batch.
func (b *Batch) Row(tab, k int) int {
	if l := b.List(tab); l != nil {
		return int(l[k])
	}
	return b.Lo + k
}

// EitherNull returns which values are null in one of two vecs; a and b are their Nulls.
func EitherNull(a, b []bool) []bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := make([]bool, len(a))
	for k := range out {
		out[k] = a[k] || b[k]
	}
	return out
}

// OwnNulls returns a copy of Nulls that may be changed, with a member for each value.
func (v *Vec) OwnNulls() []bool { return append(make([]bool, 0, v.N), v.Nulls...)[:v.N] }

// Nanos returns the nanoseconds to add to timestamp k.
func (v *Vec) Nanos(k int) int64 {
	if v.After == nil {
		return 0
	}
	return v.After[k]
}

// Take returns the rows at some positions.
func (r *Rows) Take(at []int32) *Rows {
	taken := r.Batch(0, r.N).Take(at)
	return &Rows{N: taken.N, Tables: taken.Tables}
}
