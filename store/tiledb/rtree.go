package tiledb

import (
	"github.com/chaski-eo/chaski/fault"
)

// rtree has the bounding boxes of the tiles of a sparse fragment. Level 0 is the root. The children of node i are the
// nodes from i*fanout on in the next level. The last level has one box for each tile.
type rtree struct {
	fanout    int
	levels    [][]Box
	unbounded []bool // dimensions whose bounds are useless: see byteCursor.bounds
}

const rtreePart = "R-tree"

// parseRTree parses a tree with a leaf for each of the tiles.
func parseRTree(b []byte, x formatTraits, types []Datatype, tiles int64) (*rtree, error) {
	cursor := &byteCursor{b: b, part: rtreePart, base: fault.NoOffset, x: x}
	first, dims := types[0], len(types)
	count, typ := uint32(dims), first
	if !x.dimTypes {
		count = cursor.u32("number of dimensions")
	}
	fanoutAt := cursor.off
	fanout := cursor.u32("fanout")
	if !x.dimTypes {
		typ = Datatype(cursor.u8("type"))
	}
	levelsAt := cursor.off
	levels := cursor.u32("number of levels")
	switch {
	case cursor.bad != nil:
		return nil, cursor.bad
	case count != uint32(dims) || typ != first:
		return nil, cursor.fault(fault.Corrupt, 0, "%d dimensions of type %d, the array has %d of type %d", count, typ,
			dims, first)
	case fanout < 2 || fanout > 1<<30:
		return nil, cursor.fault(fault.Corrupt, fanoutAt, "fanout %d", fanout)
	case uint64(levels)*8 > uint64(cursor.rest()):
		return nil, cursor.fault(fault.Corrupt, levelsAt, "%d levels in %d bytes", levels, cursor.rest())
	}
	tree := &rtree{fanout: int(fanout), unbounded: make([]bool, dims)}
	starts := make([]int, 0, min(levels, 64))
	for range levels {
		starts = append(starts, cursor.off)
		boxes, err := tree.level(cursor, types)
		if err != nil {
			return nil, err
		}
		tree.levels = append(tree.levels, boxes)
	}
	// This needs to precede the check of levels: useless bounds would otherwise seem to contradict those above them.
	tree.unbound(first)
	for l := 1; l < len(starts); l++ {
		if err := tree.checkLevel(cursor, starts[l], l); err != nil {
			return nil, err
		}
	}
	if err := cursor.end(); err != nil {
		return nil, err
	}
	if levels == 0 || int64(len(tree.levels[levels-1])) != tiles || levels > 1 && len(tree.levels[0]) != 1 {
		return nil, cursor.fault(fault.Corrupt, levelsAt, "%d levels that do not end with a box for each of %d tiles",
			levels, tiles)
	}
	return tree, nil
}

// level reads the boxes of one level.
func (r *rtree) level(c *byteCursor, types []Datatype) ([]Box, error) {
	start := c.off
	count := c.u64("number of boxes")
	least := 0 // bytes of a box
	for _, typ := range types {
		least += 2 * typ.Size()
		if typ == StringASCII {
			least += 14 // two lengths of eight bytes, and two strings without content
		}
	}
	if c.bad == nil && count > uint64(c.rest()/least) {
		c.fail(start, "%d boxes in %d bytes", count, c.rest())
	}
	if c.bad != nil {
		return nil, c.bad
	}
	boxes := make([]Box, count)
	for i := range boxes {
		if boxes[i] = c.bounds(types, "box"); c.bad != nil {
			return nil, c.bad
		}
		for d, b := range boxes[i] {
			r.unbounded[d] = r.unbounded[d] || !c.x.dimTypes && types[d].unbounded(b)
		}
	}
	return boxes, nil
}

// unbound widens all boxes along the dimensions with useless bounds. Bounds computed from useless
// ones are useless too, even if they look plausible.
func (r *rtree) unbound(t Datatype) {
	for d, wide := range r.unbounded {
		for _, boxes := range r.levels {
			for i := 0; wide && i < len(boxes); i++ {
				boxes[i][d] = Interval{0, t.largest()}
			}
		}
	}
}

// checkLevel checks that each box of a level lies inside the one above it.
func (r *rtree) checkLevel(c *byteCursor, at, level int) error {
	above, boxes := r.levels[level-1], r.levels[level]
	if (len(boxes)+r.fanout-1)/r.fanout != len(above) {
		return c.fault(fault.Corrupt, at, "%d boxes under %d with a fanout of %d", len(boxes), len(above), r.fanout)
	}
	for i, b := range boxes {
		// A search would otherwise miss cells without any error.
		if !above[i/r.fanout].covers(b) {
			return c.fault(fault.Corrupt, at, "box %d is not inside the one above it", i)
		}
	}
	return nil
}

// tiles calls f with the index of every tile whose box intersects b, in ascending order.
func (r *rtree) tiles(b Box, f func(tile int64)) {
	r.walk(0, 0, len(r.levels[0]), b, f)
}

func (r *rtree) walk(level, from, to int, b Box, f func(tile int64)) {
	boxes := r.levels[level]
	for i := from; i < min(to, len(boxes)); i++ {
		switch {
		case !boxes[i].intersects(b):
		case level == len(r.levels)-1:
			f(int64(i))
		default:
			r.walk(level+1, i*r.fanout, (i+1)*r.fanout, b, f)
		}
	}
}
