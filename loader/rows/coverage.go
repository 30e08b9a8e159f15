package rows

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
)

// OpenCoverage opens a file of weights that counts all valid pixels of the dataset t.
func OpenCoverage(ctx context.Context, path string, o resources.Options, t *Table) (*Weights, error) {
	counts, err := OpenWeights(ctx, path, o, t)
	if err == nil && len(counts.Classes) > 0 {
		err = fault.WithFile(fault.New(fault.Unsupported, "weights",
			"it counts the classes %v: count valid pixels for max_nodata, without classes", counts.Classes), path)
	}
	return counts, err
}

// Covered returns which of n rows a sampler of whole chips or random windows can draw from: in each of its sizes they
// have a window with at most MaxNoData without data. Rows that could not be read when they were counted lack them.
func (w *Weights) Covered(ctx context.Context, s *shuffle.Sampler, n int64, row func(i int64) int64) ([]uint32, error) {
	if err := budget.Grow(ctx, 4*n); err != nil {
		return nil, err
	}
	left := []uint32{}
	for i := range n {
		ok, err := w.covers(row(i), s)
		if i%256 == 0 && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if ok {
			left = append(left, uint32(row(i)))
		}
	}
	return left, nil
}

// covers reports whether a row is one of Covered.
func (w *Weights) covers(row int64, s *shuffle.Sampler) (bool, error) {
	height, width := w.Size(row)
	cells, err := w.Of(row, height, width)
	if err != nil || cells == nil {
		return false, err
	}
	if s.Kind == (shuffle.WholeChip{}) {
		return cells.Covers(shuffle.Box{H: height, W: width}, height, width, *s.MaxNoData), nil
	}
	found := true
	for k := -1; k < len(s.Sides) && found; k++ {
		crop := shuffle.Crop{Height: height, Width: width, H: s.H, W: s.W, AlignY: s.AlignY, AlignX: s.AlignX}
		if k >= 0 {
			crop.H, crop.W = s.Sides[k], s.Sides[k]
		}
		found = false
		cells.EachCovered(crop, *s.MaxNoData, func(shuffle.Box) bool { found = true; return false })
	}
	return found, nil
}

// maxGrid bounds the windows of grids that are looked at: each takes 4 bytes if it counts, 1 GiB in all.
const maxGrid = 1 << 28

// LimitGrid keeps the windows of a grid that have at most a share of MaxNoData without data, and returns how many
// windows there are without the limit. of returns the row of an item and its size in pixels, which is 0 by 0 if it
// cannot be read: then it keeps a window, whose reading meets the error.
func (w *Weights) LimitGrid(ctx context.Context, s *shuffle.Sampler, items int64,
	of func(i int64) (row int64, height, width int)) (all int64, err error) {
	grid := s.Kind.(*shuffle.Grid)
	for i := range items {
		_, height, width := of(i)
		count := grid.Count(height, width)
		if count > maxGrid-all {
			return 0, fault.New(fault.Limit, "dataset", "the grid has over %d windows: max_nodata is "+
				"for fewer", maxGrid)
		}
		all += count
	}
	if err := budget.Grow(ctx, 4*all+8*items); err != nil {
		return 0, err
	}
	s.Windows = []uint32{}
	each := make([]int64, items)
	for i := range items {
		before := len(s.Windows)
		row, height, width := of(i)
		unread := height < 1 || width < 1
		var cells *shuffle.Weights
		if !unread {
			if cells, err = w.Of(row, height, width); err != nil {
				return 0, err
			}
		}
		for j := range grid.Count(height, width) {
			if unread || cells != nil && cells.Covers(grid.At(j, height, width), height, width, *s.MaxNoData) {
				s.Windows = append(s.Windows, uint32(j))
			}
			if j%4096 == 0 && ctx.Err() != nil {
				return 0, ctx.Err()
			}
		}
		each[i] = int64(len(s.Windows) - before)
	}
	s.Runs, err = shuffle.NewRuns(items, func(i int64) int64 { return each[i] })
	return all, err
}
