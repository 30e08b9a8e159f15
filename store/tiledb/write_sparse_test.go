package tiledb

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// path returns the path of a local fragment.
func (f *Fragment) path() string { return source.LocalPath(f.uri) }

// timeAtCompletion stands for the time of a fragment that is named when it is complete.
const timeAtCompletion = 0

// nameAt returns the name of a fragment of a range of time.
func nameAt(from, to uint64) string {
	if to == timeAtCompletion {
		return ""
	}
	return newName(from, to)
}

// writeDense is WriteDense for a fragment of a given time.
func (a *Array) writeDense(ctx context.Context, b Box, values []Values, from, to uint64) error {
	shape, _, err := a.Shape(b)
	if err != nil {
		return err
	}
	fragment, err := a.Schema.newDense(b)
	if err != nil {
		return err
	}
	fragment.Name = nameAt(from, to)
	w, err := a.startFragment(fragment)
	if err != nil {
		return err
	}
	alone := &Array{Schema: w.s, Fragments: []*Fragment{fragment}}
	for i := range a.Schema.Attrs {
		walk := newDenseWalk(alone, 0, b, layout{axes: a.axes, stride: strides(shape, a.axes)})
		if err := w.attribute(i, func(f *anyFile) error { return f.denseTiles(walk, values[i]) }); err != nil {
			return err
		}
	}
	return w.finish()
}

// anyWriter is a writer of any fragment of format 3.
type anyWriter struct {
	a      *Array
	s      *Schema
	folder string // hidden: readers pass over it
	f      *Fragment
	tree   []byte
	lists  [3][][]uint64 // by list and attribute, the coordinates last
	varEnd []uint64
	end    []uint64
}

// startFragment creates the hidden directory of a fragment; finish gives it its name.
func (a *Array) startFragment(f *Fragment) (*anyWriter, error) {
	folder, err := os.MkdirTemp(source.LocalPath(a.uri), ".fragment")
	w := &anyWriter{a: a, s: a.Schema, folder: folder, f: f}
	n := len(a.Schema.Attrs)
	for k := range w.lists {
		w.lists[k] = make([][]uint64, n+1)
		for i := range w.lists[k] {
			w.lists[k][i] = make([]uint64, f.Tiles)
		}
	}
	w.end, w.varEnd = make([]uint64, n+1), make([]uint64, n)
	w.tree = appendTree(nil, a.Schema, nil)
	return w, err
}

// tiles is a file of tiles that is being written.
type tiles struct {
	w   *anyWriter
	f   *os.File
	buf []byte
	at  uint64
}

// create creates a file of an attribute.
func (w *anyWriter) create(attr int, kind listKind) (*tiles, error) {
	file, err := os.Create(filepath.Join(w.folder, w.f.stored(w.s, attr).stem+lists[kind].suffix))
	return &tiles{w: w, f: file}, err
}

// add filters and writes a tile, whose parts of so many bytes have chunks of their own, and returns its offset.
func (t *tiles) add(b []byte, p filter.Pipeline, e filter.Elem, stride int) (at uint64, err error) {
	chunks := uint64(0)
	t.buf = make([]byte, 8)
	for {
		part := b[:min(stride, len(b))]
		stored := appendTile(nil, part, p, e)
		chunks += u64(stored, 0)
		t.buf = append(t.buf, stored[8:]...)
		if b = b[len(part):]; len(b) == 0 {
			break
		}
	}
	binary.LittleEndian.PutUint64(t.buf, chunks)
	at = t.at
	t.at += uint64(len(t.buf))
	_, err = t.f.Write(t.buf)
	return at, err
}

// finish writes the metadata and gives the directory its name.
func (w *anyWriter) finish() error {
	err := os.WriteFile(filepath.Join(w.folder, metadataName), w.metadata(), 0o666)
	if err == nil && w.f.Name == "" {
		w.f.Name, err = w.a.nextName()
	}
	if err != nil {
		return err
	}
	return os.Rename(w.folder, filepath.Join(source.LocalPath(w.a.uri), w.f.Name))
}

// metadata returns the content of the metadata file.
func (w *anyWriter) metadata() []byte {
	b := appendGeneric(nil, w.tree)
	var starts []uint64
	for k, lists := range w.lists {
		n := len(w.s.Attrs)
		if listKind(k) == tileOffsets {
			n++
		}
		for _, l := range lists[:n] {
			starts = append(starts, uint64(len(b)))
			b = appendNumbers(b, l)
		}
	}
	dense, tiles := byte(0), uint64(w.f.Tiles)
	if w.f.Dense {
		dense, tiles = 1, 0
	}
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, dense, 0)
	b = w.s.appendBox(b, w.f.NonEmpty)
	for _, v := range slices.Concat([]uint64{tiles, uint64(w.f.LastCells)}, w.end, w.varEnd, []uint64{0}, starts) {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// anyFile is the files of an attribute of fixed or variable length.
type anyFile struct {
	*tiles
	attr int
	data *tiles // nil for cells of one size
}

// attribute makes the files of an attribute while do writes their tiles.
func (w *anyWriter) attribute(attr int, do func(f *anyFile) error) error {
	first, err := w.create(attr, tileOffsets)
	if err != nil {
		return err
	}
	f := &anyFile{tiles: first, attr: attr}
	if w.s.Attrs[attr].Var() {
		if f.data, err = w.create(attr, varOffsets); err != nil {
			return errors.Join(err, first.f.Close())
		}
		defer f.data.f.Close()
	}
	return errors.Join(do(f), first.f.Close())
}

// append appends tile n.
func (f *anyFile) append(n int64, tile []byte) (err error) {
	attr := &f.w.s.Attrs[f.attr]
	f.w.lists[tileOffsets][f.attr][n], err = f.add(tile, attr.Pipeline, attr.Type.elem(int(attr.Values)), len(tile))
	f.w.end[f.attr] = f.at
	return err
}

// denseTiles appends the tiles of a walk with the cells in v.
func (f *anyFile) denseTiles(walk *denseWalk, v Values) error {
	for goesOn := true; goesOn; goesOn = walk.next() {
		if f.data == nil {
			if err := f.append(walk.place(), f.w.s.fixedTile(f.attr, walk, v.Data)); err != nil {
				return err
			}
			continue
		}
		n, cells := walk.place(), slices.Repeat([]int{-1}, int(f.w.s.tileCells))
		_ = walk.plan.each(func(from, to, n, stride int) error {
			for k := range n {
				cells[to+k*stride] = from + k
			}
			return nil
		})
		if err := f.appendVar(n, cells, v); err != nil {
			return err
		}
	}
	return nil
}

// appendVar appends tile n, which has the given cells of v. -1 stands for a cell that was not written.
func (f *anyFile) appendVar(n int64, cells []int, v Values) (err error) {
	w, attr := f.w, &f.w.s.Attrs[f.attr]
	var offsets, buf []byte
	for _, c := range cells {
		offsets = binary.LittleEndian.AppendUint64(offsets, uint64(len(buf)))
		if c < 0 {
			buf = append(buf, attr.Type.fill()...)
			continue
		}
		end := uint64(len(v.Data))
		if c+1 < len(v.Offsets) {
			end = v.Offsets[c+1]
		}
		buf = append(buf, v.Data[v.Offsets[c]:end]...)
	}
	if w.lists[tileOffsets][f.attr][n], err = f.add(offsets, w.s.Offsets, Uint64.elem(1), len(offsets)); err != nil {
		return err
	}
	w.lists[varOffsets][f.attr][n], err = f.data.add(buf, attr.Pipeline, attr.Type.elem(1), len(buf))
	w.lists[varTileSizes][f.attr][n] = uint64(len(buf))
	w.end[f.attr], w.varEnd[f.attr] = f.at, f.data.at
	return err
}

// WriteSparse writes cells of a sparse array, or some cells of a dense one, as a new fragment.
// coords has the coordinates cell by cell, little-endian, in any order. Two cells with the same
// coordinates are fault.Corrupt. WriteDense says more.
func (a *Array) WriteSparse(ctx context.Context, coords []byte, values []Values) error {
	return a.writeSparse(ctx, coords, values, timeAtCompletion, timeAtCompletion)
}

// writeSparse is WriteSparse for a fragment of a given time.
func (a *Array) writeSparse(ctx context.Context, raw []byte, values []Values, from, to uint64) error {
	schema := a.Schema
	dims, size := len(schema.Dims), schema.DimType.Size()
	n := len(raw) / (dims * size)
	if n == 0 || len(raw)%(dims*size) != 0 {
		return fault.New(fault.Corrupt, "coordinates", fault.NoOffset,
			"%d bytes are not a whole number of cells of %d dimensions", len(raw), dims)
	}
	coords := make([]Coord, n*dims)
	for i := range coords {
		coords[i] = schema.DimType.Coord(raw[i*size:])
		if !schema.Dims[i%dims].Domain.has(coords[i]) {
			return fault.New(fault.Corrupt, "coordinates", fault.NoOffset, "%s of cell %d is outside dimension %q",
				schema.DimType.FormatCoord(coords[i]), i/dims, schema.Dims[i%dims].Name)
		}
	}
	order, err := schema.globalOrder(coords)
	if err != nil {
		return err
	}
	if schema.Capacity > uint64(n) && schema.Capacity > math.MaxInt32 { // then there is one tile only
		return fault.New(fault.Limit, schemaPart, fault.NoOffset, "capacity %d", schema.Capacity)
	}
	capacity := int(schema.Capacity)
	count := (n + capacity - 1) / capacity
	fragment := &Fragment{Name: nameAt(from, to), Tiles: int64(count), LastCells: int64(n - (count-1)*capacity),
		schema: schema, attrs: sequence(len(schema.Attrs))}
	boxes := make([]Box, count)
	for t := range boxes {
		boxes[t] = bound(coords, dims, order[t*capacity:min((t+1)*capacity, n)])
	}
	fragment.NonEmpty = union(boxes)
	writer, err := a.startFragment(fragment)
	if err != nil {
		return err
	}
	writer.tree = appendTree(nil, schema, boxes)
	if err := writer.coords(ctx, raw, order, capacity); err != nil {
		return err
	}
	for i := range schema.Attrs {
		if err := writer.sparse(ctx, i, values[i], order, capacity); err != nil {
			return err
		}
	}
	return writer.finish()
}

// globalOrder returns the indices of the cells, sorted by the array's order of tiles and then by
// its order of cells.
func (s *Schema) globalOrder(coords []Coord) ([]int, error) {
	dims := len(s.Dims)
	n := len(coords) / dims
	tile := make([]uint64, len(coords))
	for i := range tile {
		tile[i] = s.Dims[i%dims].tile(s.DimType, coords[i])
	}
	compare := func(o Order, a, b int, at func(i int) uint64) int {
		for k := range dims {
			d := k
			if o == ColMajor {
				d = dims - 1 - k
			}
			if c := cmp.Compare(at(a*dims+d), at(b*dims+d)); c != 0 {
				return c
			}
		}
		return 0
	}
	both := func(a, b int) int {
		return cmp.Or(compare(s.TileOrder, a, b, func(i int) uint64 { return tile[i] }),
			compare(s.CellOrder, a, b, func(i int) uint64 { return uint64(coords[i]) }))
	}
	order := sequence(n)
	slices.SortStableFunc(order, both)
	for i := 1; i < n; i++ {
		if both(order[i-1], order[i]) == 0 {
			return nil, fault.New(fault.Corrupt, "coordinates", fault.NoOffset,
				"cells %d and %d have the same coordinates", order[i-1], order[i])
		}
	}
	return order, nil
}

func (w *anyWriter) coords(ctx context.Context, raw []byte, order []int, capacity int) (err error) {
	n := len(w.s.Attrs)
	tiles, err := w.create(n, tileOffsets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tiles.f.Close()) }()
	size, dims := w.s.DimType.Size(), len(w.s.Dims)
	elem := w.s.DimType.elem(1) // chunks have whole values of one dimension
	i := 0
	for cells := range slices.Chunk(order, capacity) {
		if err := ctx.Err(); err != nil {
			return err
		}
		tile := make([]byte, 0, len(cells)*dims*size)
		for d := range dims {
			for _, c := range cells {
				tile = append(tile, raw[(c*dims+d)*size:(c*dims+d+1)*size]...)
			}
		}
		if w.lists[tileOffsets][n][i], err = tiles.add(tile, w.s.Coords, elem, len(cells)*size); err != nil {
			return err
		}
		i++
	}
	w.end[n] = tiles.at
	return nil
}

func (w *anyWriter) sparse(ctx context.Context, attr int, v Values, order []int, capacity int) (err error) {
	size, i := w.s.Attrs[attr].CellSize(), int64(0)
	return w.attribute(attr, func(f *anyFile) error {
		for cells := range slices.Chunk(order, capacity) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if f.data != nil {
				err = f.appendVar(i, cells, v)
			} else {
				var tile []byte
				for _, c := range cells {
					tile = append(tile, v.Data[c*size:(c+1)*size]...)
				}
				err = f.append(i, tile)
			}
			if err != nil {
				return err
			}
			i++
		}
		return nil
	})
}

// tile returns the index of the space tile of a coordinate along the dimension, or 0 if the
// dimension has no tiles.
func (d *Dim) tile(t Datatype, c Coord) uint64 {
	switch {
	case d.Extent == 0:
		return 0
	case t.Real():
		return uint64((c.float() - d.Domain.Lo.float()) / math.Float64frombits(d.Extent))
	}
	return uint64(c-d.Domain.Lo) / d.Extent
}

// bound returns the bounding box of some cells.
func bound(coords []Coord, dims int, cells []int) Box {
	box := make(Box, dims)
	for k, c := range cells {
		for d, coord := range coords[c*dims : (c+1)*dims] {
			if k == 0 {
				box[d] = Interval{coord, coord}
			}
			box[d] = Interval{min(box[d].Lo, coord), max(box[d].Hi, coord)}
		}
	}
	return box
}

func (i Interval) has(c Coord) bool { return i.Lo <= c && c <= i.Hi }

// appendTree appends the R-tree over the boxes of tiles.
func appendTree(b []byte, s *Schema, boxes []Box) []byte {
	const fanout = 10 // as in TileDB
	var levels [][]Box
	for len(boxes) > 0 {
		levels = append(levels, boxes)
		if len(boxes) == 1 {
			break
		}
		var up []Box
		for group := range slices.Chunk(boxes, fanout) {
			up = append(up, union(group))
		}
		boxes = up
	}
	slices.Reverse(levels)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Dims)))
	b = binary.LittleEndian.AppendUint32(b, fanout)
	b = append(b, byte(s.DimType))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(levels)))
	for _, l := range levels {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(l)))
		for _, box := range l {
			b = s.appendBox(b, box)
		}
	}
	return b
}
