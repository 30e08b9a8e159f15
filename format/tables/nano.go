package tables

// Nanos returns for the kinds Time and Timestamp the nanoseconds, 0 to 999, to add to the microseconds that Int
// gives; nil if all are 0.
func (v *Vector) Nanos() []int64 {
	if v.typ.Kind != Timestamp && v.typ.Kind != Time {
		return nil
	}
	return v.high
}

// Nano returns the nanoseconds to add to the microseconds of time or timestamp i.
func (v *Vector) Nano(i int) int64 {
	if ns := v.Nanos(); ns != nil {
		return ns[i]
	}
	return 0
}

// appendNanos appends the nanoseconds of p, whose microseconds were appended just before.
func (v *Vector) appendNanos(p *Vector) {
	nanos := p.Nanos()
	if nanos == nil && v.high == nil {
		return
	}
	if have := len(v.ints) - p.n; len(v.high) < have {
		v.high = append(v.high, make([]int64, have-len(v.high))...)
	}
	if nanos == nil {
		nanos = make([]int64, p.n)
	}
	v.high = append(v.high, nanos...)
}
