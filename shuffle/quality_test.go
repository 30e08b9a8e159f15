package shuffle

import "math"

// Quality says how well a span of positions is shuffled. If a uniform permutation does not give 1 or 0,
// the value it is expected to give is in a field of its own.
type Quality struct {
	Positions int64
	// Displacement is the mean distance between a sample's number and its position, divided by the
	// mean for samples that are all equally likely: 1 for a uniform permutation, 0 for the order of
	// the dataset. In a mixture, each dataset counts its own positions.
	Displacement float64
	// RowsABatch is the mean number of different rows in a batch. RowsExpected is its value for a
	// uniform permutation of datasets whose rows all have the same number of samples.
	RowsABatch, RowsExpected float64
	// SameRow is the share of positions that have the same row as the position before.
	SameRow, SameRowExpected float64
	// Repeats is how many samples occurred earlier in the span: 0 within an epoch of a dataset.
	Repeats int64
}

// numbered is a sample of the spec, whatever its epoch, or an item: a row or a sequence.
type numbered struct {
	dataset int
	number  int64
}

// Measure returns the shuffle quality of count positions of an epoch from first, in batches of
// batch positions. The span is cut to the epoch. Measuring takes about 50 bytes per position.
func (pl *Plan) Measure(epoch uint64, first, count int64, batch int) Quality {
	first = min(max(first, 0), pl.Len())
	count = max(min(count, pl.Len()-first), 0)
	quality := Quality{Positions: count}
	if count == 0 || batch < 1 {
		return quality
	}
	seen := make(map[numbered]struct{}, count)
	rows := make(map[numbered]struct{}, batch)
	share := make([]int64, len(pl.leaves)) // positions of each dataset
	moved, expected, batches := 0.0, 0.0, 0
	var before numbered
	for i := range count {
		draw := pl.At(epoch, first+i)
		share[draw.Dataset]++
		n := pl.leaves[draw.Dataset].n
		moved += math.Abs(float64(draw.Sample - draw.Position))
		expected += uniformDistance(draw.Position, n)
		sample := numbered{draw.Dataset, draw.Sample}
		if _, ok := seen[sample]; ok {
			quality.Repeats++
		}
		seen[sample] = struct{}{}
		row := numbered{draw.Dataset, draw.Item}
		if i > 0 && row == before {
			quality.SameRow++
		}
		before = row
		rows[row] = struct{}{}
		if (i+1)%int64(batch) == 0 || i+1 == count {
			quality.RowsABatch += float64(len(rows))
			batches++
			clear(rows)
		}
	}
	quality.Displacement = 1
	if expected > 0 {
		quality.Displacement = moved / expected
	}
	quality.RowsABatch /= float64(batches)
	quality.SameRow /= float64(max(count-1, 1))
	quality.RowsExpected, quality.SameRowExpected = pl.expect(share, count, min(int64(batch), count))
	return quality
}

// uniformDistance is the mean of |i - p| over all i below n.
func uniformDistance(p, n int64) float64 {
	below, above := float64(p), float64(n-1-p)
	return (below*(below+1) + above*(above+1)) / 2 / float64(n)
}

// expect returns the rows per batch and the share of neighbours with the same row that uniform
// permutations of the datasets would give, if dataset i has share[i] of count positions at random.
func (pl *Plan) expect(share []int64, count, batch int64) (rows, same float64) {
	for i := range pl.leaves {
		lf := &pl.leaves[i]
		n, items := float64(lf.n), float64(lf.runs.Items())
		if share[i] == 0 || n < 2 {
			continue
		}
		part, each := float64(share[i])/float64(count), n/items
		same += part * part * (each - 1) / (n - 1)
		// The probability that k draws without replacement from n samples all miss the `each` samples
		// of one row. The factors are multiplied one by one, because factorials would overflow.
		missed := 1.0
		for j := range int64(math.Round(part * float64(batch))) {
			missed *= math.Max(n-each-float64(j), 0) / math.Max(n-float64(j), 1)
		}
		rows += items * (1 - missed)
	}
	return rows, same
}
