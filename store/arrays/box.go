package arrays

import "slices"

// Box is a half-open box of cells.
type Box struct{ Lo, Hi []int64 }

// chunksOf returns the box of the chunks that a box of cells, which is not empty, meets.
func (m *Meta) chunksOf(lo, hi []int64) Box {
	chunks := Box{make([]int64, len(lo)), make([]int64, len(lo))}
	for d, side := range m.Chunks {
		chunks.Lo[d], chunks.Hi[d] = lo[d]/side, (hi[d]-1)/side+1
	}
	return chunks
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
func eachIn(b Box, each func(at []int64) error) error {
	at := slices.Clone(b.Lo)
	for {
		if err := each(at); err != nil {
			return err
		}
		dim := len(at) - 1
		for ; dim >= 0; dim-- {
			if at[dim]++; at[dim] < b.Hi[dim] {
				break
			}
			at[dim] = b.Lo[dim]
		}
		if dim < 0 {
			return nil
		}
	}
}
