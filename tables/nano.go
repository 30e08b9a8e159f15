package tables

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/tables/parquet"
)

// Nanos returns how many nanoseconds, 0 to 999, the values of kind Timestamp are after the microseconds that Int gives;
// nil where all are 0.
func (v *Vector) Nanos() []int64 {
	if v.typ.Kind != Timestamp {
		return nil
	}
	return v.high
}

// nano returns the nanoseconds of a value of kind Timestamp after its microseconds.
func (v *Vector) nano(i int) int64 {
	if ns := v.Nanos(); ns != nil {
		return ns[i]
	}
	return 0
}

// NewTimes returns values of kind Timestamp from microseconds and the nanoseconds after them, 0 to 999.
func NewTimes(t Type, us, ns []int64, nulls []bool) *Vector {
	return &Vector{typ: t, n: len(us), nulls: nulls, ints: us, high: ns}
}

// nano reports whether a field counts nanoseconds and is no part of another one: of those in lists and structs the
// microseconds are read.
func (p *parquetTable) nano(f *parquet.Field) bool {
	if f.Leaf < 0 || f.Repeated {
		return false
	}
	c := &p.f.Columns[f.Leaf]
	return leafType(c).Kind == Timestamp && c.Type == parquet.Int64 && c.Note.Unit == 9
}

// nanos decodes a column of nanoseconds.
func (p *parquetTable) nanos(ctx context.Context, leaf int) (*Vector, error) {
	file, q := *p.f, *p
	file.Columns = slices.Clone(file.Columns)
	file.Columns[leaf].Note.Unit = 6 // as they are
	q.f = &file
	v, err := q.flat(ctx, leaf)
	if err != nil {
		return nil, err
	}
	v.typ.Nano = true
	for i, x := range v.ints {
		us, _ := microseconds(x, 9)
		if rest := x - us*1000; rest != 0 {
			if v.high == nil {
				v.high = make([]int64, len(v.ints))
			}
			v.high[i] = rest
		}
		v.ints[i] = us
	}
	return v, nil
}

// appendNanos adds what values of kind Timestamp, which were added last, are after their microseconds.
func (v *Vector) appendNanos(p *Vector) {
	from := p.Nanos()
	if from == nil && v.high == nil {
		return
	}
	if have := len(v.ints) - p.n; len(v.high) < have {
		v.high = append(v.high, make([]int64, have-len(v.high))...)
	}
	if from == nil {
		from = make([]int64, p.n)
	}
	v.high = append(v.high, from...)
}
