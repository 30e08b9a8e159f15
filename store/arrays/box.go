package arrays

import "slices"

// chunksOf returns the first chunk that a box of cells, which is not empty, meets, and the one behind the last.
func (m *Meta) chunksOf(lo, hi []int64) (first, end []int64) {
	first, end = make([]int64, len(lo)), make([]int64, len(lo))
	for d, side := range m.Chunks {
		first[d], end[d] = lo[d]/side, (hi[d]-1)/side+1
	}
	return first, end
}

// objectSides returns the cells of an object along each dimension: of a shard, or of a chunk.
func (m *Meta) objectSides() []int64 {
	if m.Shards != nil {
		return m.Shards
	}
	return m.Chunks
}

// gridOf returns how many boxes with these sides a shape takes along each dimension, 0 for one without cells.
func gridOf(shape, sides []int64) []int64 {
	grid := make([]int64, len(shape))
	for d, n := range shape {
		if n > 0 {
			grid[d] = (n-1)/sides[d] + 1
		}
	}
	return grid
}

// eachIn calls each with all coordinates of a box, which must not be empty, the last one fastest. The slice is reused.
func eachIn(lo, hi []int64, each func(at []int64) error) error {
	coords := slices.Clone(lo)
	for {
		if err := each(coords); err != nil {
			return err
		}
		dim := len(coords) - 1
		for ; dim >= 0; dim-- {
			if coords[dim]++; coords[dim] < hi[dim] {
				break
			}
			coords[dim] = lo[dim]
		}
		if dim < 0 {
			return nil
		}
	}
}
