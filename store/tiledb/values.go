package tiledb

import (
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// Values are the values of one attribute, cell after cell, little-endian.
type Values struct {
	Data []byte
	// Offsets has the offset in Data at which each cell begins, if cells differ in size. A cell
	// ends where the next one begins.
	Offsets []uint64
	// Valid has a byte for each cell of a nullable attribute: 0 if the cell has no value. Data has
	// the stored value of such a cell.
	Valid []byte
}

// span is the place of a variable-length cell in the arena.
type span struct{ off, n int }

// varCells collects cells of variable length.
type varCells struct {
	spans []span
	arena []byte
	limit int64
}

// add copies data[lo:hi] to the arena and returns its offset there. data may be nil if the range is
// empty.
func (v *varCells) add(data []byte, lo, hi uint64) (int, error) {
	if lo == hi {
		return len(v.arena), nil
	}
	if int64(len(v.arena))+int64(hi-lo) > v.limit {
		return 0, fault.New(fault.Limit, "sub-array", fault.NoOffset,
			"more than %d bytes of var-length values", v.limit)
	}
	pos := len(v.arena)
	v.arena = append(v.arena, data[lo:hi]...)
	return pos, nil
}

// values returns the cells in the order of their spans.
func (v *varCells) values(limit int64) (Values, error) {
	var n int64
	for _, s := range v.spans {
		n += int64(s.n)
		if n > limit {
			return Values{}, fault.New(fault.Limit, "sub-array", fault.NoOffset,
				"more than %d bytes of var-length values", limit)
		}
	}
	out := Values{Data: make([]byte, 0, n), Offsets: make([]uint64, len(v.spans))}
	for i, s := range v.spans {
		out.Offsets[i] = uint64(len(out.Data))
		out.Data = append(out.Data, v.arena[s.off:s.off+s.n]...)
	}
	return out, nil
}

// cell adds one cell of a tile.
func (v *varCells) cell(offs, data []byte, row int, all uint64) (span, error) {
	lo, hi := u64(offs, row), cellEnd(offs, row, all)
	pos, err := v.add(data, lo, hi)
	return span{pos, int(hi - lo)}, err
}

// checkOffsets checks the offsets of cells first to last, and of the cell after them: the first
// cell of a tile begins at 0, offsets ascend by whole values, and none exceeds the variable-length
// data.
func checkOffsets(offs []byte, first, last, size int, varSize uint64) error {
	bad := func(i int, format string, args ...any) error {
		return fault.New(fault.Corrupt, "offset of cell "+strconv.Itoa(i), fault.NoOffset, format, args...)
	}
	prev := uint64(0)
	for i := first; i <= min(last+1, len(offs)/8-1); i++ {
		o := u64(offs, i)
		switch {
		case i == 0 && o != 0:
			return bad(i, "it is %d: the first cell begins at 0", o)
		case i > first && o < prev:
			return bad(i, "it is %d, less than %d of the cell before", o, prev)
		case o > varSize || o%uint64(size) != 0:
			return bad(i, "it is %d, but values have %d bytes and end at %d", o, size, varSize)
		}
		prev = o
	}
	return nil
}

// cellEnd returns the offset at which the data of cell i ends.
func cellEnd(offs []byte, i int, all uint64) uint64 {
	if 8*(i+1) < len(offs) {
		return u64(offs, i+1)
	}
	return all
}
