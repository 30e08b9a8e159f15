package tables

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
