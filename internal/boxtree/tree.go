// Package boxtree finds which of many boxes meet a box.
package boxtree

import (
	"math"
	"slices"
)

// Box is a rectangle of shapes: least x and y, greatest x and y. Its sides are rounded outwards to float32, which
// takes half of the memory and finds a few shapes too many: rasterizing them shows that they cover nothing.
type Box [4]float32

// Nothing is the empty box: it meets none, and grows to any box that is added to it.
var Nothing = Box{inf, inf, -inf, -inf}

var inf = float32(math.Inf(1))

// Around rounds the sides of a box outwards.
func Around(minX, minY, maxX, maxY float64) Box {
	return Box{Below(minX), Below(minY), -Below(-maxX), -Below(-maxY)}
}

// Below returns the greatest float32 that is not above v.
func Below(v float64) float32 {
	rounded := float32(v)
	if float64(rounded) > v {
		rounded = math.Nextafter32(rounded, -inf)
	}
	return rounded
}

// meets reports whether two boxes have a point in common. It is false for sides that are not numbers.
func (b *Box) meets(o *Box) bool { return b[0] <= o[2] && o[0] <= b[2] && b[1] <= o[3] && o[1] <= b[3] }

// Grow makes b hold o, too.
func (b *Box) Grow(o *Box) {
	b[0], b[1], b[2], b[3] = min(b[0], o[0]), min(b[1], o[1]), max(b[2], o[2]), max(b[3], o[3])
}

// fanout is how many boxes a node of the tree holds: with 16 boxes of 16 bytes a node is four cache lines, and the
// nodes above the shapes take 1/15 of the memory of the shapes.
const fanout = 16

// Tree is a packed R-tree: the shapes stand in the order of a Hilbert curve through their centres, and each node holds
// the next 16 boxes of the level below. Nothing is stored but boxes and, at the bottom, the numbers of the shapes.
type Tree struct {
	levels [][]Box // the shapes first, the root last
	rows   []uint32
	extent Box
}

// New returns the tree of boxes. Those that meet nothing are left out.
func New(boxes []Box) *Tree {
	extent := Nothing
	count := 0
	for i := range boxes {
		if box := &boxes[i]; box.meets(box) {
			extent.Grow(box)
			count++
		}
	}
	keys := make([]uint64, 0, count) // place on the curve, then the number: equal places keep the order of the file
	for i := range boxes {
		if box := &boxes[i]; box.meets(box) {
			x := scale(float64(box[0])+float64(box[2]), float64(extent[0]), float64(extent[2]))
			y := scale(float64(box[1])+float64(box[3]), float64(extent[1]), float64(extent[3]))
			keys = append(keys, uint64(hilbert(x, y))<<32|uint64(i))
		}
	}
	slices.Sort(keys)
	tree := &Tree{extent: extent, rows: make([]uint32, count), levels: [][]Box{make([]Box, count)}}
	for place, key := range keys {
		tree.rows[place] = uint32(key)
		tree.levels[0][place] = boxes[uint32(key)]
	}
	for len(tree.levels[len(tree.levels)-1]) > fanout {
		var up []Box
		for part := range slices.Chunk(tree.levels[len(tree.levels)-1], fanout) {
			box := Nothing
			for i := range part {
				box.Grow(&part[i])
			}
			up = append(up, box)
		}
		tree.levels = append(tree.levels, up)
	}
	return tree
}

// Bounds returns the box around all boxes of the tree.
func (t *Tree) Bounds() Box { return t.extent }

// scale returns where the middle of a box lies between lo and hi, from 0 to 65,535. twice is twice the middle.
func scale(twice, lo, hi float64) uint32 {
	place := (twice/2 - lo) / (hi - lo) * math.MaxUint16
	if !(place >= 0) { // also for a map without a width, where it is not a number
		return 0
	}
	return uint32(min(place, math.MaxUint16))
}

// hilbert returns the place of a cell on the Hilbert curve through 2^16 by 2^16 cells.
func hilbert(x, y uint32) (d uint32) {
	for side := uint32(1 << 15); side > 0; side >>= 1 {
		var rx, ry uint32
		if x&side != 0 {
			rx = 1
		}
		if y&side != 0 {
			ry = 1
		}
		d += side * side * (3*rx ^ ry)
		// The quarter is turned, so the curve goes on where it ended.
		if ry == 0 {
			if rx == 1 {
				x, y = ^x, ^y
			}
			x, y = y, x
		}
	}
	return d
}

// Search appends the numbers of the shapes whose boxes meet b, in any order.
func (t *Tree) Search(rows []uint32, b *Box) []uint32 {
	return t.within(rows, b, len(t.levels)-1, 0, len(t.levels[len(t.levels)-1]))
}

// within searches boxes lo to hi-1 of a level.
func (t *Tree) within(rows []uint32, b *Box, level, lo, hi int) []uint32 {
	boxes := t.levels[level]
	for i := lo; i < min(hi, len(boxes)); i++ {
		switch {
		case !boxes[i].meets(b):
		case level == 0:
			rows = append(rows, t.rows[i])
		default:
			rows = t.within(rows, b, level-1, i*fanout, (i+1)*fanout)
		}
	}
	return rows
}
