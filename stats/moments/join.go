package moments

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/stats"
)

// known has what an accumulator knows of its samples, for its report.
type known struct {
	band    stats.Band // its counts, classes and, of integers, its range
	moments exactMoments
	values  distribution
	// classless says that some of the samples are not counted by value.
	classless bool
}

// Joined returns the statistics of fields whose samples have several types, such as files of uint8 and of uint16. The
// dtype is the first one's. Count, mean, std, min and max are exact; percentiles are as exact as in the statistics of
// the types.
func Joined(fields ...*Field) (stats.FieldReport, error) {
	if len(fields) == 1 {
		return fields[0].Report(), nil
	}
	report := stats.FieldReport{DType: fields[0].dtype}
	for _, f := range fields {
		if len(f.bands) != len(fields[0].bands) {
			return report, fmt.Errorf("stats: cannot join %d bands with %d", len(f.bands), len(fields[0].bands))
		}
	}
	for band := range fields[0].bands {
		joined := known{values: distribution{exact: true}}
		for _, f := range fields {
			joined.join(f.bands[band].measure())
		}
		slices.SortFunc(joined.values.groups, func(a, b weighted) int { return cmp.Compare(a.lo, b.lo) })
		made := joined.report()
		if joined.classless || len(made.Classes) > maxClasses || len(fields[0].bands) > 1 {
			made.Classes = nil
		}
		report.Bands = append(report.Bands, made)
	}
	return report, nil
}

// join adds what another accumulator knows.
func (m *known) join(o known) {
	m.band.NoData += o.band.NoData
	m.band.NaN += o.band.NaN
	m.band.Inf += o.band.Inf
	if o.moments.n == 0 {
		return
	}
	if o.values.exact {
		o.values.min, o.values.max = o.values.groups[0].lo, o.values.groups[len(o.values.groups)-1].lo
	}
	if m.moments.n == 0 {
		m.values.min, m.values.max = o.values.min, o.values.max
	}
	m.values.min, m.values.max = min(m.values.min, o.values.min), max(m.values.max, o.values.max)
	m.values.exact = m.values.exact && o.values.exact
	m.values.groups = append(m.values.groups, o.values.groups...)
	m.moments.join(&o.moments)
	m.classless = m.classless || o.band.Classes == nil
	for class, n := range o.band.Classes {
		if m.band.Classes == nil {
			m.band.Classes = map[int64]uint64{}
		}
		m.band.Classes[class] += n
	}
}

// join adds the values of o.
func (m *exactMoments) join(o *exactMoments) {
	if m.n == 0 {
		m.unit = o.unit
	}
	unit := min(m.unit, o.unit)
	for _, side := range []*exactMoments{m, o} {
		shift := uint(side.unit - unit)
		side.sum.Lsh(&side.sum, shift)
		side.squares.Lsh(&side.squares, 2*shift)
	}
	m.n, m.unit = m.n+o.n, unit
	m.sum.Add(&m.sum, &o.sum)
	m.squares.Add(&m.squares, &o.squares)
}

// report returns the statistics.
func (m *known) report() stats.Band {
	band := m.band
	least, greatest := band.Min, band.Max
	fill(&band, &m.moments, &m.values)
	if least != nil { // exact, where a float64 may not be
		band.Min, band.Max = least, greatest
	}
	return band
}
