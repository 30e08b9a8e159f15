package tiledb

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// errOrder reports that the cells of a fragment are not in the order of the schema.
var errOrder = errors.New("tiledb: cells out of order")

// consolidateSparse merges the fragments as sorted lists, or sorts all cells in memory if a
// fragment is not sorted.
func (a *Array) consolidateSparse(ctx context.Context, name string, done *progress) error {
	err := a.mergeSparse(ctx, name, done)
	if !errors.Is(err, errOrder) {
		return err
	}
	attrs := sequence(len(a.Schema.Attrs))
	cells, err := a.NewReader().Sparse(ctx, attrs, a.Schema.Domain())
	if err != nil {
		return err
	}
	return a.sparseFragment(ctx, name, cells.Coords, cells.Values, true)
}

// mergeSparse merges sorted fragments. The error is errOrder if one is not sorted.
func (a *Array) mergeSparse(ctx context.Context, name string, done *progress) (err error) {
	writer, err := a.startFragment(&Fragment{Name: name})
	if err != nil {
		return err
	}
	defer writer.folder.Remove() // after finish there is nothing to remove
	out, err := writer.createSparse()
	if err != nil {
		return err
	}
	tiles := int64(0)
	for _, f := range a.Fragments {
		tiles += f.Tiles
	}
	done.of(tiles)
	writer.progress = done
	err = out.merge(ctx)
	if err := errors.Join(err, out.close()); err != nil {
		return err
	}
	writer.f.Tiles, writer.f.NonEmpty = int64(len(out.boxes)), union(out.boxes)
	writer.tree = appendTree(nil, writer.s, out.boxes)
	return writer.finish()
}

// mergeInput is one tile of a fragment that is merged.
type mergeInput struct {
	number int // of the fragment: of equal cells, those of the highest number count
	f      *Fragment
	tile   int64
	row    int
	cells  int
	planes []byte   // coordinates as stored: all of the first dimension, then all of the second, …
	coords []Coord  // the same, decoded
	space  []uint64 // the indices of their space tiles
	values []Values
	last   []uint64 // key of the current row, nil before the first
	before []uint64 // key of the row before, whose memory the next one reuses
}

// key appends the sort key of a row: its space tile, then its coordinates, each in the array's
// order.
func (m *mergeInput) key(s *Schema, key []uint64, row int) []uint64 {
	dims := len(s.Dims)
	corner := func(o Order, k int) int {
		if o == ColMajor {
			k = dims - 1 - k
		}
		return k*m.cells + row
	}
	for k := range dims {
		key = append(key, m.space[corner(s.TileOrder, k)])
	}
	for k := range dims {
		key = append(key, uint64(m.coords[corner(s.CellOrder, k)]))
	}
	return key
}

// sparseFiles are the files of a sparse fragment that is being written.
type sparseFiles struct {
	w      *writer
	r      *Reader
	coords *tiles
	fixed  []*tiles // by attribute
	vars   []*varFiles
	boxes  []Box

	// The tile that is being filled.
	n      int
	planes [][]byte // by dimension
	values []Values
	box    Box
	tile   []byte
}

func (w *writer) createSparse() (x *sparseFiles, err error) {
	n := len(w.s.Attrs)
	x = &sparseFiles{w: w, r: w.a.NewReader(), fixed: make([]*tiles, n), vars: make([]*varFiles, n),
		planes: make([][]byte, len(w.s.Dims)), values: make([]Values, n), box: make(Box, len(w.s.Dims))}
	x.coords, err = w.create(n, false)
	for i := 0; i < n && err == nil; i++ {
		if w.s.Attrs[i].Var() {
			x.vars[i], err = w.createVar(i)
		} else {
			x.fixed[i], err = w.create(i, false)
		}
	}
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *sparseFiles) close() (err error) {
	if x.coords != nil {
		err = x.coords.close()
	}
	for i := range x.fixed {
		if x.fixed[i] != nil {
			err = errors.Join(err, x.fixed[i].close())
		}
		if x.vars[i] != nil {
			err = errors.Join(err, x.vars[i].close())
		}
	}
	return err
}

// queue is a heap of fragments by their current cells. Of equal cells the later fragment comes
// first, so that merge keeps it and drops the others.
type queue []*mergeInput

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if c := slices.Compare(q[i].last, q[j].last); c != 0 {
		return c < 0
	}
	return q[i].number > q[j].number
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(m any) { *q = append(*q, m.(*mergeInput)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	m := (*q)[last]
	*q = (*q)[:last]
	return m
}

// merge writes the cells of all fragments in order. Of equal cells it writes the last
// fragment's.
func (x *sparseFiles) merge(ctx context.Context) error {
	var q queue
	for i, f := range x.w.a.Fragments {
		m := &mergeInput{number: i, f: f, tile: -1, values: make([]Values, len(x.values))}
		found, err := x.next(ctx, m)
		if err != nil {
			return err
		}
		if found {
			q = append(q, m)
		}
	}
	heap.Init(&q)
	var done []uint64
	step := -1
	for len(q) > 0 {
		mergeInput := q[0]
		if mergeInput.number == step || !slices.Equal(done, mergeInput.last) {
			done, step = append(done[:0], mergeInput.last...), mergeInput.number
			if err := x.add(mergeInput); err != nil {
				return err
			}
		}
		found, err := x.next(ctx, mergeInput)
		if err != nil {
			return err
		}
		if found {
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
	}
	return x.flush()
}

// next moves to the next row of a fragment, and reports whether there is one.
func (x *sparseFiles) next(ctx context.Context, m *mergeInput) (more bool, err error) {
	if m.row++; m.tile < 0 || m.row >= m.cells {
		if m.tile++; m.tile >= m.f.Tiles {
			return false, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := x.load(ctx, m); err != nil {
			return false, err
		}
		x.w.progress.step()
		m.row = 0
	}
	key := m.key(x.w.s, m.before[:0], m.row)
	if m.last != nil && slices.Compare(m.last, key) > 0 {
		return false, errOrder
	}
	m.last, m.before = key, m.last
	return true, nil
}

// load decodes the current tile of a fragment.
func (x *sparseFiles) load(ctx context.Context, m *mergeInput) error {
	if err := x.loadCoords(ctx, m); err != nil {
		return err
	}
	for i := range x.w.s.Attrs {
		if err := x.loadValues(ctx, m, i); err != nil {
			return err
		}
	}
	return nil
}

func (x *sparseFiles) loadCoords(ctx context.Context, m *mergeInput) error {
	schema, reader := x.w.s, x.r
	dims := len(schema.Dims)
	tree, err := x.w.a.rtree(ctx, m.f)
	if err != nil {
		return err
	}
	files, err := reader.openCoords(ctx, m.f)
	if err != nil {
		return err
	}
	defer files.close()
	if err := files.tile(ctx, &reader.cells, m.tile, nextTiles{last: m.tile}); err != nil {
		return err
	}
	cells := reader.cells.cells
	m.planes, m.cells = m.planes[:0], cells
	for d := range reader.cells.planes {
		m.planes = append(m.planes, reader.cells.planes[d].data...)
	}
	m.coords = slices.Grow(m.coords[:0], cells*dims)[:cells*dims]
	schema.DimType.loadAll(m.coords, m.planes)
	m.space = m.space[:0]
	for d, i := range tree.levels[len(tree.levels)-1][m.tile] {
		plane := m.coords[d*cells : (d+1)*cells]
		if row := outside(plane, i); row >= 0 {
			return files.fault(d, m.tile, fault.New(fault.Corrupt, "cell "+strconv.Itoa(row), fault.NoOffset,
				"coordinate %s of dimension %d is outside the bounding box of its tile",
				schema.DimType.FormatCoord(plane[row]), d))
		}
		for _, c := range plane {
			m.space = append(m.space, schema.Dims[d].tile(schema.DimType, c))
		}
	}
	return nil
}

func (x *sparseFiles) loadValues(ctx context.Context, m *mergeInput, attr int) error {
	reader, a, values := x.r, &x.w.s.Attrs[attr], &m.values[attr]
	if a.Var() {
		sizes, err := reader.openVar(ctx, 0, m.f, attr)
		if err != nil {
			return err
		}
		offs, data, err := reader.varTile(ctx, 0, m.f, attr, sizes, m.tile, nextTiles{last: m.tile}, 0, m.cells-1)
		if err == nil {
			values.Offsets, values.Data = values.Offsets[:0], append(values.Data[:0], data...)
			for i := range m.cells {
				values.Offsets = append(values.Offsets, u64(offs, i))
			}
		}
		return errors.Join(err, reader.closeVar(0))
	}
	file, err := reader.open(ctx, 0, m.f, attr, tileOffsets)
	if err != nil {
		return err
	}
	defer file.close()
	n, err := reader.fixedSize(0, m.f, m.tile, a.CellSize())
	if err != nil {
		return err
	}
	b, err := reader.decode(ctx, 0, m.tile, nextTiles{last: m.tile}, n, a.Pipeline, a.Type.elem(int(a.Values)), 0,
		int(n))
	values.Data = append(values.Data[:0], b...)
	return err
}

// add appends a cell to the tile.
func (x *sparseFiles) add(m *mergeInput) error {
	schema := x.w.s
	size := schema.DimType.Size()
	for d := range x.planes {
		pos := d*m.cells + m.row
		x.planes[d] = append(x.planes[d], m.planes[pos*size:(pos+1)*size]...)
		coord := m.coords[pos]
		if x.n == 0 {
			x.box[d] = Interval{coord, coord}
		}
		x.box[d] = Interval{min(x.box[d].Lo, coord), max(x.box[d].Hi, coord)}
	}
	largest := len(x.planes[0]) * len(x.planes)
	for i := range schema.Attrs {
		values, src := &x.values[i], &m.values[i]
		if size := schema.Attrs[i].CellSize(); !schema.Attrs[i].Var() {
			values.Data = append(values.Data, src.Data[m.row*size:(m.row+1)*size]...)
		} else {
			end := uint64(len(src.Data))
			if m.row+1 < len(src.Offsets) {
				end = src.Offsets[m.row+1]
			}
			values.Offsets = append(values.Offsets, uint64(len(values.Data)))
			values.Data = append(values.Data, src.Data[src.Offsets[m.row]:end]...)
		}
		largest = max(largest, len(values.Data), 8*len(values.Offsets))
	}
	if int64(largest) > x.w.a.o.MaxTile {
		return fault.New(fault.Limit, "tile "+strconv.Itoa(len(x.boxes)), fault.NoOffset,
			"more than %d bytes", x.w.a.o.MaxTile)
	}
	if x.n++; uint64(x.n) == schema.Capacity {
		return x.flush()
	}
	return nil
}

// flush writes the tile if it has cells.
func (x *sparseFiles) flush() (err error) {
	if x.n == 0 {
		return nil
	}
	writer, schema := x.w, x.w.s
	k, n := len(x.boxes), len(schema.Attrs)
	if err := writer.a.checkTileCount(int64(k) + 1); err != nil {
		return err
	}
	for l := range writer.lists {
		for i := range writer.lists[l] {
			writer.lists[l][i] = append(writer.lists[l][i], 0)
		}
	}
	x.tile = x.tile[:0]
	for d, p := range x.planes {
		x.tile, x.planes[d] = append(x.tile, p...), p[:0]
	}
	size := schema.DimType.Size()
	if writer.lists[tileOffsets][n][k], err = x.coords.add(x.tile, schema.Coords, schema.DimType.elem(len(schema.Dims)),
		x.n*size); err != nil {
		return err
	}
	writer.end[n] = x.coords.at
	for i := range schema.Attrs {
		attr, values := &schema.Attrs[i], &x.values[i]
		if attr.Var() {
			err = x.vars[i].add(int64(k), sequence(x.n), *values)
		} else if writer.lists[tileOffsets][i][k], err = x.fixed[i].add(values.Data, attr.Pipeline,
			attr.Type.elem(int(attr.Values)), 0); err == nil {
			writer.end[i] = x.fixed[i].at
		}
		if err != nil {
			return err
		}
		values.Data, values.Offsets = values.Data[:0], values.Offsets[:0]
	}
	x.boxes = append(x.boxes, slices.Clone(x.box))
	writer.f.LastCells, x.n = int64(x.n), 0
	return nil
}
