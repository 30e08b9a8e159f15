package shuffle

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/internal/num"
)

// Series holds the time series of a dataset: rows that share a key, in order of time, cut into
// sequences. It takes four bytes per row and eight per group. It is immutable.
type Series struct {
	length, stride int
	rows           []uint32 // by group, then time
	starts         []int64  // of groups in rows, and the end
	runs           Runs     // sequences of groups
}

// Single reports whether there are several groups, and each has one row.
func (s *Series) Single() bool { return len(s.rows) > 1 && len(s.starts)-1 == len(s.rows) }

// NewSeries groups rows by key and orders each group by time, and by row number if times are equal.
// Groups come in the order of their first row. keys and times have an entry for every row of the
// table; rows lists the rows in use, nil means all. A sequence has length rows, and one begins at every
// stride rows of a group. With cut, rows at the end of a group that do not fill a sequence are left
// out; without it the last sequence is padded.
func NewSeries[K comparable](keys []K, times []int64, rows []uint32, length, stride int, cut bool) (*Series, error) {
	if len(keys) != len(times) || int64(len(keys)) > math.MaxUint32 {
		return nil, fmt.Errorf("series: %d keys and %d times", len(keys), len(times))
	}
	if length < 1 || stride < 1 || length > maxLength || stride > maxLength {
		return nil, fmt.Errorf("series: sequences of %d rows every %d, not in 1..%d", length, stride, maxLength)
	}
	if rows == nil {
		rows = num.Range[uint32](0, len(keys))
	}
	series := &Series{length: length, stride: stride}
	if err := groupRows(series, keys, rows); err != nil {
		return nil, err
	}
	for group := range len(series.starts) - 1 {
		slices.SortFunc(series.rows[series.starts[group]:series.starts[group+1]], func(a, b uint32) int {
			return cmp.Or(cmp.Compare(times[a], times[b]), cmp.Compare(a, b))
		})
	}
	var err error
	series.runs, err = NewRuns(int64(len(series.starts)-1), func(group int64) int64 {
		return sequences(series.starts[group+1]-series.starts[group], int64(length), int64(stride), cut)
	})
	return series, err
}

// maxLength bounds the rows of a sequence: a million steps, 100 times a daily series of 28 years.
const maxLength = 1 << 20

// groupRows fills rows and starts.
func groupRows[K comparable](s *Series, keys []K, rows []uint32) error {
	groups, group := map[K]int{}, make([]uint32, len(rows))
	s.starts = []int64{0}
	for i, row := range rows {
		if int64(row) >= int64(len(keys)) {
			return fmt.Errorf("series: row %d of %d", row, len(keys))
		}
		number, ok := groups[keys[row]]
		if !ok {
			number = len(groups)
			groups[keys[row]] = number
			s.starts = append(s.starts, 0)
		}
		group[i] = uint32(number)
		s.starts[number+1]++
	}
	for number := range len(groups) {
		s.starts[number+1] += s.starts[number]
	}
	// A counting sort: rows keep their order within a group, and memory is one word per group.
	next := slices.Clone(s.starts)
	s.rows = make([]uint32, len(rows))
	for i, row := range rows {
		s.rows[next[group[i]]] = row
		next[group[i]]++
	}
	return nil
}

// sequences returns the number of sequences of a group of rows.
func sequences(rows, length, stride int64, cut bool) int64 {
	switch {
	case rows >= length && cut:
		return (rows-length)/stride + 1
	case cut:
		return 0
	default:
		return padded(rows, length, stride)
	}
}

// Len returns the number of sequences.
func (s *Series) Len() int64 { return s.runs.Len() }

// Length returns the rows of a sequence.
func (s *Series) Length() int { return s.length }

// First returns the first row of sequence i.
func (s *Series) First(i int64) int64 {
	first, _ := s.span(i)
	return int64(s.rows[first])
}

// Rows fills dst, whose length must be Length(), with the rows of sequence i, in order of time; -1
// is padding, always at the end.
func (s *Series) Rows(i int64, dst []int64) {
	first, end := s.span(i)
	for k := range dst[:s.length] {
		dst[k] = -1
		if first+int64(k) < end {
			dst[k] = int64(s.rows[first+int64(k)])
		}
	}
}

// Row returns row number k, below Length(), of sequence i, or -1 for padding.
func (s *Series) Row(i int64, k int) int64 {
	place, end := s.span(i)
	if place += int64(k); place < end {
		return int64(s.rows[place])
	}
	return -1
}

// span returns where in rows a sequence begins, and where its group ends.
func (s *Series) span(i int64) (at, end int64) {
	group, sequence := s.runs.At(i)
	return s.starts[group] + sequence*int64(s.stride), s.starts[group+1]
}

// Stratum is the rows that share a value.
type Stratum[K cmp.Ordered] struct {
	Key  K
	Rows []uint32
}

// Strata groups rows by the value of a column. Strata come in order of the value, and keep the order
// of the rows. keys has an entry for every row of the table; rows lists the rows in use, nil means
// all. A mixture of the strata of a dataset samples it stratified; with equal counts, balanced.
func Strata[K cmp.Ordered](keys []K, rows Rows) []Stratum[K] {
	groups := map[K][]uint32{}
	for i := range rows.Len(int64(len(keys))) {
		row := rows.At(i)
		groups[keys[row]] = append(groups[keys[row]], uint32(row))
	}
	strata := make([]Stratum[K], 0, len(groups))
	for key, rows := range groups {
		strata = append(strata, Stratum[K]{key, rows})
	}
	slices.SortFunc(strata, func(a, b Stratum[K]) int { return cmp.Compare(a.Key, b.Key) })
	return strata
}
