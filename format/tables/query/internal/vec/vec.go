// Package vec holds the results of a query's operators: lists of rows, strings, hash keys, groups and orders.
package vec

import (
	"github.com/chaski-eo/chaski/internal/num"
)

// BatchRows is how many rows are evaluated at a time: a column of 8-byte numbers is then 32 KiB, the size of a
// first-level cache.
const BatchRows = 4096

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

// EitherNull returns which values are null in one of two vectors; a and b are their nulls.
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

// Take returns the rows at some positions.
func (r *Rows) Take(at []int32) *Rows {
	taken := r.Batch(0, r.N).Take(at)
	return &Rows{N: taken.N, Tables: taken.Tables}
}
