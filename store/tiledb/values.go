package tiledb

import (
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
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

// sink takes cells of a part of an attribute, each at its place in a result.
type sink interface {
	// put takes n cells of a tile, stride cells apart from row on, to the places from to on.
	put(t *tileData, to, row, n, stride int) error
	// scatter takes some cells of a tile. Those with a place below 0 are left out.
	scatter(t *tileData, rows, places []int) error
	// fill gives n places the value of cells that were never written.
	fill(to, n int)
}

// fixedCells is the sink of cells of one size.
type fixedCells struct {
	dst   []byte
	size  int
	value []byte // of cells that were never written
}

func (s *fixedCells) put(t *tileData, to, row, n, stride int) error {
	dst, src := s.dst[to*s.size:(to+n)*s.size], t.data[row*s.size:]
	if stride == 1 {
		copy(dst, src)
	} else {
		kernel.CopyStrided(dst, src, n, s.size, stride*s.size, s.size)
	}
	return nil
}

func (s *fixedCells) scatter(t *tileData, rows, places []int) error {
	size := s.size
	for i, row := range rows {
		if place := places[i]; place >= 0 {
			copy(s.dst[place*size:(place+1)*size], t.data[row*size:])
		}
	}
	return nil
}

func (s *fixedCells) fill(to, n int) { kernel.Fill(s.dst[to*s.size:(to+n)*s.size], s.value) }

// cellSpan is the place of a variable-length cell in the arena.
type cellSpan struct{ off, n int }

// varCells is the sink of cells of variable length. They all share one copy of the fill value, which is at the front of
// the arena.
type varCells struct {
	spans     []cellSpan
	arena     []byte
	fillBytes int // bytes of the fill value
	limit     int64
}

// put implements sink.
func (v *varCells) put(t *tileData, to, row, n, stride int) error {
	if stride > 1 {
		for k := range n {
			if err := v.cell(t, to+k, row+k*stride); err != nil {
				return err
			}
		}
		return nil
	}
	// The cells of a run follow each other, so one copy takes them all.
	base := u64(t.offs, row)
	pos, err := v.add(t.data, base, cellEnd(t.offs, row+n-1, t.end))
	if err != nil {
		return err
	}
	for k := range n {
		lo, hi := t.span(row + k)
		v.spans[to+k] = cellSpan{pos + int(lo-base), int(hi - lo)}
	}
	return nil
}

// scatter implements sink.
func (v *varCells) scatter(t *tileData, rows, places []int) error {
	for i, row := range rows {
		if places[i] < 0 {
			continue
		}
		if err := v.cell(t, places[i], row); err != nil {
			return err
		}
	}
	return nil
}

// fill implements sink.
func (v *varCells) fill(to, n int) {
	for i := range n {
		v.spans[to+i] = cellSpan{0, v.fillBytes}
	}
}

// cell takes one cell of a tile.
func (v *varCells) cell(t *tileData, to, row int) error {
	lo, hi := t.span(row)
	pos, err := v.add(t.data, lo, hi)
	v.spans[to] = cellSpan{pos, int(hi - lo)}
	return err
}

// add copies data[lo:hi] to the arena and returns its offset there. data may be nil if the range is empty.
func (v *varCells) add(data []byte, lo, hi uint64) (int, error) {
	if lo == hi {
		return len(v.arena), nil
	}
	if int64(len(v.arena))+int64(hi-lo) > v.limit {
		return 0, fault.New(fault.Limit, "sub-array", "more than %d bytes of var-length values", v.limit)
	}
	pos := len(v.arena)
	v.arena = append(v.arena, data[lo:hi]...)
	return pos, nil
}

// values returns the cells in the order of their spans.
func (v *varCells) values(limit int64) (Values, error) {
	var size int64
	for _, s := range v.spans {
		size += int64(s.n)
		if size > limit {
			return Values{}, fault.New(fault.Limit, "sub-array", "more than %d bytes of var-length values", limit)
		}
	}
	out := Values{Data: make([]byte, 0, size), Offsets: make([]uint64, len(v.spans))}
	for i, cell := range v.spans {
		out.Offsets[i] = uint64(len(out.Data))
		out.Data = append(out.Data, v.arena[cell.off:cell.off+cell.n]...)
	}
	return out, nil
}

// read reads the n cells of an attribute that part reads piece by piece into a sink.
func (r *Reader) read(attr, n int, part func(p columnPart, to sink) error) (v Values, err error) {
	attribute, limit := &r.a.Schema.Attrs[attr], r.a.o.MaxResult
	wanted := attribute.values(attr)
	size := wanted.size
	if attribute.Var() {
		size = 24 // bytes of bookkeeping for each cell: a span and an offset
	}
	if int64(n) > limit/int64(size) {
		return v, fault.New(fault.Limit, "sub-array", "%d cells of %d bytes, at most %d bytes", n, size, limit)
	}
	if attribute.Var() {
		cells := &varCells{spans: make([]cellSpan, n), arena: slices.Clone(wanted.fill), fillBytes: len(wanted.fill),
			limit: limit}
		if err = part(wanted, cells); err == nil {
			v, err = cells.values(limit)
		}
	} else {
		v.Data = make([]byte, n*size)
		err = part(wanted, &fixedCells{v.Data, size, wanted.fill})
	}
	if err == nil && attribute.Nullable {
		wanted = attribute.validity(attr)
		v.Valid = make([]byte, n)
		err = part(wanted, &fixedCells{v.Valid, 1, wanted.fill})
	}
	return v, err
}

// checkOffsets checks the offsets of cells first to last, and of the cell after them: the first cell of a tile begins
// at 0, offsets ascend by whole values, and none exceeds the variable-length data.
func checkOffsets(offs []byte, first, last, size int, varSize uint64) error {
	bad := func(i int, format string, args ...any) error {
		return fault.New(fault.Corrupt, "offset of cell "+strconv.Itoa(i), format, args...)
	}
	prev := uint64(0)
	for i := first; i <= min(last+1, len(offs)/8-1); i++ {
		offset := u64(offs, i)
		switch {
		case i == 0 && offset != 0:
			return bad(i, "it is %d: the first cell begins at 0", offset)
		case i > first && offset < prev:
			return bad(i, "it is %d, less than %d of the cell before", offset, prev)
		case offset > varSize || offset%uint64(size) != 0:
			return bad(i, "it is %d, but values have %d bytes and end at %d", offset, size, varSize)
		}
		prev = offset
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
