package tiledb

import "slices"

// Interval is a range of coordinates, both ends included.
type Interval struct{ Lo, Hi Coord }

func (i Interval) covers(j Interval) bool { return i.Lo <= j.Lo && j.Hi <= i.Hi }

func (i Interval) intersects(j Interval) bool { return i.Lo <= j.Hi && j.Lo <= i.Hi }

// Box is one interval for each dimension.
type Box []Interval

func (b Box) covers(c Box) bool {
	for d := range b {
		if !b[d].covers(c[d]) {
			return false
		}
	}
	return true
}

func (b Box) intersects(c Box) bool {
	for d := range b {
		if !b[d].intersects(c[d]) {
			return false
		}
	}
	return true
}

// cut returns the intersection of b and c, which must not be empty.
func (b Box) cut(c Box) Box {
	out := make(Box, len(b))
	for d := range b {
		out[d] = Interval{max(b[d].Lo, c[d].Lo), min(b[d].Hi, c[d].Hi)}
	}
	return out
}

// shape returns the number of cells along each dimension of integer type, and their total, or 0 as
// the total if it exceeds limit.
func (b Box) shape(limit int64) (shape []int, cells int64) {
	shape, cells = make([]int, len(b)), 1
	for d, i := range b {
		steps := uint64(i.Hi - i.Lo)
		if steps >= uint64(limit) || cells > limit/int64(steps+1) {
			return nil, 0
		}
		shape[d] = int(steps + 1)
		cells *= int64(steps + 1)
	}
	return shape, cells
}

// union returns the bounding box of some boxes.
func union(boxes []Box) Box {
	box := slices.Clone(boxes[0])
	for _, other := range boxes[1:] {
		for d := range box {
			box[d] = Interval{min(box[d].Lo, other[d].Lo), max(box[d].Hi, other[d].Hi)}
		}
	}
	return box
}
