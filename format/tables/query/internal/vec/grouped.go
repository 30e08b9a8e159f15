package vec

import (
	"slices"

	"github.com/chaski-eo/chaski/format/tables"
)

// Grouped is the input of an aggregate.
type Grouped struct {
	Groups *Groups
	Args   []*tables.Vector
	Rows   []int32 // the rows that count, in the order in which they do
}

// Len returns the number of groups.
func (in *Grouped) Len() int { return len(in.Groups.First) }

// Counts returns how many rows of each group count, and which groups have none; nulls is nil if all have some.
func (in *Grouped) Counts() (counts []int64, nulls []bool) {
	counts = make([]int64, in.Len())
	for _, r := range in.Rows {
		counts[in.Groups.Of[r]]++
	}
	for id, c := range counts {
		if c == 0 {
			if nulls == nil {
				nulls = make([]bool, len(counts))
			}
			nulls[id] = true
		}
	}
	return counts, nulls
}

// Sums returns the sums of floats.
func (in *Grouped) Sums() []float64 {
	sums := make([]float64, in.Len())
	x := in.Args[0].Floats()
	for _, r := range in.Rows {
		sums[in.Groups.Of[r]] += x[r]
	}
	return sums
}

// Best returns the first row of each group with the least (sign 1) or the greatest (sign -1) value of the first
// argument, or its first row (sign 0). It is -1 for groups without a row.
func (in *Grouped) Best(sign int) []int {
	best := Fill(make([]int, in.Len()), -1)
	order := Comparator(in.Args[0], in.Args[0])
	for _, row := range in.Rows {
		id := in.Groups.Of[row]
		if best[id] < 0 || sign != 0 && sign*order(int(row), best[id]) < 0 {
			best[id] = int(row)
		}
	}
	return best
}

// Sorted returns the rows of each group in the order of the first argument.
func (in *Grouped) Sorted() [][]int32 {
	out := in.ByGroup()
	order := Comparator(in.Args[0], in.Args[0])
	for _, rows := range out {
		slices.SortFunc(rows, func(a, b int32) int { return order(int(a), int(b)) })
	}
	return out
}

// ByGroup returns the rows of each group.
func (in *Grouped) ByGroup() [][]int32 {
	counts, _ := in.Counts()
	rows := make([]int32, len(in.Rows))
	out := make([][]int32, len(counts))
	pos := 0
	for id, c := range counts {
		out[id] = rows[pos : pos : pos+int(c)]
		pos += int(c)
	}
	for _, r := range in.Rows {
		id := in.Groups.Of[r]
		out[id] = append(out[id], r)
	}
	return out
}
