package tiledb

import (
	"container/heap"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Consolidate is Merge with Remove, for arrays of more than one fragment; others stay as they are.
func (a *Array) Consolidate(ctx context.Context) error {
	if len(a.Fragments) < 2 {
		return nil
	}
	_, err := a.Merge(ctx, MergeOptions{Remove: true})
	return err
}

// MergeOptions of Merge.
type MergeOptions struct {
	// Remove deletes the fragments that were merged, and those that were hidden already: TileDB's vacuum. A reader that
	// has the array open may find its files gone, and the array as it was at a time before (Options.Until) is gone too.
	Remove bool
	// Progress, if it is not nil, is told how many tiles are done, of how many. It is called from one goroutine.
	Progress func(done, total int64)
}

// Merged is what Merge did.
type Merged struct {
	Fragment string   // name of the new fragment, "" where there were fewer than two
	Bytes    int64    // of its files
	From     []string // names of the fragments that are in it, in the order in which later ones win
	Before   int64    // bytes of their files
	Removed  []string // names of the fragments that were removed
	Freed    int64    // bytes of their files
}

// Merge writes all that the fragments of a local array show as one new fragment, which hides them from then on. A dense
// fragment bounds all of them: cells in it that were never written are written with the fill value. With fewer than two fragments nothing is
// written. The new fragment appears in one step, when it is complete; a run that is broken off, or fails, leaves the
// array as it was. The array that is open does not change: open it again to see the new fragment.
//
// It goes tile by tile. What is in memory is a tile of every attribute, of a sparse array one of every fragment, and for
// each tile of the new fragment where it lies in each attribute's file (24 bytes) and its box; that is bounded by
// Options.MaxResult. Fragments whose cells do not lie in the order that the schema says are sorted in memory, all of them,
// which Options.MaxResult bounds too.
//
// Fragments that were all written in the same millisecond are fault.Unsupported without Remove: a fragment of no other
// time hides none.
func (a *Array) Merge(ctx context.Context, o MergeOptions) (*Merged, error) {
	bad := func(what string) (*Merged, error) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset, "%s", what), a.uri)
	}
	if source.IsRemote(a.uri) {
		return bad("it is not local: only local arrays are written")
	}
	if a.o.Since != 0 || a.o.Until != 0 {
		return bad("nothing is written to an array that was opened at a time")
	}
	m := &Merged{}
	if len(a.Fragments) > 1 {
		from, to := a.Fragments[0].From, uint64(0)
		for _, f := range a.Fragments {
			to = max(to, f.To)
		}
		if from == to && !o.Remove {
			return bad("its fragments were all written in the same millisecond: one that they are merged into does not hide them, they have to be removed")
		}
		if err := a.merge(ctx, m, from, to, &tally{report: o.Progress}); err != nil {
			return nil, err
		}
	}
	if !o.Remove {
		return m, nil
	}
	old := a.Hidden
	if m.Fragment != "" {
		if err := settle(filepath.Join(source.LocalPath(a.uri), m.Fragment)); err != nil {
			return m, fault.WithFile(err, a.uri)
		}
		old = slices.Concat(a.Fragments, a.Hidden)
	}
	for _, f := range old {
		n, err := folderBytes(f.path())
		if err == nil {
			err = removeFragment(f.path())
		}
		if err != nil {
			return m, fault.WithFile(err, f.uri)
		}
		m.Removed, m.Freed = append(m.Removed, f.Name), m.Freed+n
	}
	return m, nil
}

// merge writes the new fragment.
func (a *Array) merge(ctx context.Context, m *Merged, from, to uint64, done *tally) (err error) {
	for _, f := range a.Fragments {
		n, err := folderBytes(f.path())
		if err != nil {
			return fault.WithFile(err, f.uri)
		}
		m.From, m.Before = append(m.From, f.Name), m.Before+n
	}
	name := newName(from, to)
	if a.Schema.Dense {
		err = a.consolidateDense(ctx, name, done)
	} else {
		err = a.consolidateSparse(ctx, name, done)
	}
	if err != nil {
		return err
	}
	m.Fragment = name
	m.Bytes, err = folderBytes(filepath.Join(source.LocalPath(a.uri), name))
	return err
}

// path returns the folder of a local fragment.
func (f *Fragment) path() string { return source.LocalPath(f.uri) }

// folderBytes returns the bytes of the files in a folder. One that is gone has none.
func folderBytes(path string) (n int64, err error) {
	list, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n, err
}

// settle waits until the files of a fragment, and its name, are on the disk: what else holds its cells can go then, whenever
// the machine stops.
func settle(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(fsync(f), f.Close()); err != nil {
			return err
		}
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if f, err := os.Open(d); err == nil {
			_ = fsync(f) // not every system has this for folders
			_ = f.Close()
		}
	}
	return nil
}

// fsync is os.File.Sync but in tests.
var fsync = (*os.File).Sync

// tally counts tiles.
type tally struct {
	done, total int64
	report      func(done, total int64)
}

// of says how many tiles there are.
func (t *tally) of(n int64) { t.done, t.total = 0, n }

// step counts one.
func (t *tally) step() {
	if t.done++; t.report != nil {
		t.report(t.done, t.total)
	}
}

// listBytes is the memory of a tile of an attribute in the lists of a fragment's metadata.
const listBytes = 24

// room refuses a fragment of so many tiles that their lists are over the limit.
func (a *Array) room(tiles int64) error {
	if most := a.o.MaxResult / int64(listBytes*(len(a.Schema.Attrs)+1)+16*len(a.Schema.Dims)); tiles > most {
		return fault.New(fault.Limit, "fragment", fault.NoOffset, "%d tiles, at most %d", tiles, most)
	}
	return nil
}

// consolidateDense writes what all fragments show as one, tile by tile.
func (a *Array) consolidateDense(ctx context.Context, name string, done *tally) error {
	s := a.Schema
	f, err := s.newDense(name, a.NonEmpty())
	if err != nil {
		return err
	}
	if err := a.room(f.Tiles); err != nil {
		return err
	}
	w, err := a.startFragment(f)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	w.tree = emptyTree(s)
	done.of(f.Tiles * int64(len(s.Attrs)))
	w.merged = done
	for i := range s.Attrs {
		if s.Attrs[i].Var() {
			err = w.joinVar(ctx, i)
		} else {
			err = w.joinFixed(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	return w.finish()
}

// eachRegion calls do for what every tile of the new fragment has of it, in the order of the tiles, with a walk of that tile alone.
func (w *writer) eachRegion(do func(b Box, walk *denseWalk) error) error {
	alone := &Array{Schema: w.s, Fragments: []*Fragment{w.f}}
	nowhere := layout{axes: w.a.axes, stride: make([]int, len(w.s.Dims))}
	all := newDenseWalk(alone, 0, w.f.NonEmpty, nowhere)
	for more := true; more; more = all.next() {
		all.place()
		b := slices.Clone(all.region)
		shape, _, err := w.a.Shape(b)
		if err != nil {
			return err
		}
		if err := do(b, newDenseWalk(alone, 0, b, layout{axes: w.a.axes, stride: strides(shape, w.a.axes)})); err != nil {
			return err
		}
		w.merged.step()
	}
	return nil
}

func (w *writer) joinFixed(ctx context.Context, attr int) (err error) {
	t, err := w.create(attr, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	r, size := w.a.NewReader(), w.s.Attrs[attr].CellSize()
	r.ahead.whole = w.f.NonEmpty
	var cells []byte
	return w.eachRegion(func(b Box, walk *denseWalk) error {
		_, n, err := w.a.Shape(b)
		if err != nil {
			return err
		}
		if int64(n) > w.a.o.MaxResult/int64(size) {
			return fault.New(fault.Limit, "tile", fault.NoOffset, "%d cells of %d bytes, at most %d bytes", n, size, w.a.o.MaxResult)
		}
		cells = slices.Grow(cells[:0], n*size)[:n*size]
		if err := r.DenseInto(ctx, cells, attr, b, nil); err != nil {
			return err
		}
		return w.fixedTiles(ctx, t, walk, attr, cells)
	})
}

func (w *writer) joinVar(ctx context.Context, attr int) (err error) {
	t, err := w.createVar(attr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	r := w.a.NewReader()
	r.ahead.whole = w.f.NonEmpty
	return w.eachRegion(func(b Box, walk *denseWalk) error {
		v, err := r.Dense(ctx, attr, b)
		if err != nil {
			return err
		}
		return t.dense(ctx, walk, v)
	})
}

// errOrder is that the cells of a fragment do not lie in the order that the schema says.
var errOrder = errors.New("tiledb: cells out of order")

// consolidateSparse merges the fragments, whose cells all lie in the array's order.
func (a *Array) consolidateSparse(ctx context.Context, name string, done *tally) error {
	err := a.mergeSparse(ctx, name, done)
	if !errors.Is(err, errOrder) {
		return err
	}
	attrs := inOrder(len(a.Schema.Attrs))
	c, err := a.NewReader().Sparse(ctx, attrs, a.Schema.Domain())
	if err != nil {
		return err
	}
	return a.sparseFragment(ctx, name, c.Coords, c.Values, true)
}

// mergeSparse is errOrder where they do not.
func (a *Array) mergeSparse(ctx context.Context, name string, done *tally) (err error) {
	w, err := a.startFragment(&Fragment{Name: name})
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	out, err := w.createSparse()
	if err != nil {
		return err
	}
	tiles := int64(0)
	for _, f := range a.Fragments {
		tiles += f.Tiles
	}
	done.of(tiles)
	w.merged = done
	err = out.merge(ctx)
	if err := errors.Join(err, out.close()); err != nil {
		return err
	}
	w.f.Tiles, w.f.NonEmpty = int64(len(out.boxes)), union(out.boxes)
	w.tree = appendTree(nil, w.s, out.boxes)
	return w.finish()
}

// merged is a fragment on its way into another: one tile of it.
type merged struct {
	number int // of the fragment: of equal cells that of the last one counts
	f      *Fragment
	tile   int64
	row    int
	cells  int
	planes []byte   // coordinates as stored: all of the first dimension, then all of the second, …
	coords []Coord  // the same
	space  []uint64 // and the numbers of their space tiles
	values []Values
	last   []uint64 // key of the row, nil in front of the first
	before []uint64 // of the one before, to be used again
}

// key appends what orders a row: its space tile, then its coordinates, each in the array's order of them.
func (m *merged) key(s *Schema, key []uint64, row int) []uint64 {
	dims := len(s.Dims)
	at := func(o Order, k int) int {
		if o == ColMajor {
			k = dims - 1 - k
		}
		return k*m.cells + row
	}
	for k := range dims {
		key = append(key, m.space[at(s.TileOrder, k)])
	}
	for k := range dims {
		key = append(key, uint64(m.coords[at(s.CellOrder, k)]))
	}
	return key
}

// sparseFiles are all files of a sparse fragment that is being written.
type sparseFiles struct {
	w      *writer
	r      *Reader
	coords *tiles
	fixed  []*tiles // by attribute
	vars   []*varFiles
	boxes  []Box

	// The tile that is filled.
	n      int
	planes [][]byte // by dimension
	values []Values
	box    Box
	tile   []byte
}

func (w *writer) createSparse() (x *sparseFiles, err error) {
	n := len(w.s.Attrs)
	x = &sparseFiles{w: w, r: w.a.NewReader(), fixed: make([]*tiles, n), vars: make([]*varFiles, n), planes: make([][]byte, len(w.s.Dims)), values: make([]Values, n), box: make(Box, len(w.s.Dims))}
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

// queue is a heap of fragments by the cells that they are at; of equal ones the later fragment is first.
type queue []*merged

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if c := slices.Compare(q[i].last, q[j].last); c != 0 {
		return c < 0
	}
	return q[i].number > q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(m any)   { *q = append(*q, m.(*merged)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	m := (*q)[last]
	*q = (*q)[:last]
	return m
}

// merge writes the cells of all fragments in their order; of equal ones those of the last fragment.
func (x *sparseFiles) merge(ctx context.Context) error {
	var q queue
	for i, f := range x.w.a.Fragments {
		m := &merged{number: i, f: f, tile: -1, values: make([]Values, len(x.values))}
		more, err := x.next(ctx, m)
		if err != nil {
			return err
		}
		if more {
			q = append(q, m)
		}
	}
	heap.Init(&q)
	var done []uint64
	by := -1
	for len(q) > 0 {
		m := q[0]
		if m.number == by || !slices.Equal(done, m.last) {
			done, by = append(done[:0], m.last...), m.number
			if err := x.add(m); err != nil {
				return err
			}
		}
		more, err := x.next(ctx, m)
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
	}
	return x.flush()
}

// next goes to the next row of a fragment, and reports whether there is one.
func (x *sparseFiles) next(ctx context.Context, m *merged) (more bool, err error) {
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
		x.w.merged.step()
		m.row = 0
	}
	key := m.key(x.w.s, m.before[:0], m.row)
	if m.last != nil && slices.Compare(m.last, key) > 0 {
		return false, errOrder
	}
	m.last, m.before = key, m.last
	return true, nil
}

// load decodes the tile that a fragment is at.
func (x *sparseFiles) load(ctx context.Context, m *merged) error {
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

func (x *sparseFiles) loadCoords(ctx context.Context, m *merged) error {
	s, r := x.w.s, x.r
	dims := len(s.Dims)
	tree, err := x.w.a.rtree(ctx, m.f)
	if err != nil {
		return err
	}
	t, err := r.open(ctx, 0, m.f, len(s.Attrs), false)
	if err != nil {
		return err
	}
	defer t.close()
	planes, cells, err := r.coordTile(ctx, m.f, m.tile, following{last: m.tile})
	if err != nil {
		return err
	}
	m.planes, m.cells = append(m.planes[:0], planes...), cells
	m.coords = slices.Grow(m.coords[:0], cells*dims)[:cells*dims]
	s.DimType.loadAll(m.coords, m.planes)
	m.space = m.space[:0]
	for d, i := range tree.levels[len(tree.levels)-1][m.tile] {
		at := m.coords[d*cells : (d+1)*cells]
		if row := outside(at, i); row >= 0 {
			return t.fault(m.tile, fault.New(fault.Corrupt, "cell "+strconv.Itoa(row), fault.NoOffset, "coordinate %s of dimension %d is outside of the tile's box",
				s.DimType.FormatCoord(at[row]), d))
		}
		for _, c := range at {
			m.space = append(m.space, s.Dims[d].tile(s.DimType, c))
		}
	}
	return nil
}

func (x *sparseFiles) loadValues(ctx context.Context, m *merged, attr int) error {
	r, a, v := x.r, &x.w.s.Attrs[attr], &m.values[attr]
	if a.Var() {
		sizes, err := r.openVar(ctx, m.f, attr)
		if err != nil {
			return err
		}
		offs, data, err := r.varTile(ctx, m.f, attr, sizes, m.tile, following{last: m.tile}, 0, m.cells-1)
		if err == nil {
			v.Offsets, v.Data = v.Offsets[:0], append(v.Data[:0], data...)
			for i := range m.cells {
				v.Offsets = append(v.Offsets, u64(offs, i))
			}
		}
		return errors.Join(err, r.closeVar())
	}
	t, err := r.open(ctx, 0, m.f, attr, false)
	if err != nil {
		return err
	}
	defer t.close()
	n, err := r.fixedSize(m.f, m.tile, a.CellSize())
	if err != nil {
		return err
	}
	b, err := r.decode(ctx, 0, m.tile, following{last: m.tile}, n, a.Pipeline, a.Type.elem(int(a.Values)), 0, int(n))
	v.Data = append(v.Data[:0], b...)
	return err
}

// add appends a cell.
func (x *sparseFiles) add(m *merged) error {
	s := x.w.s
	size := s.DimType.Size()
	for d := range x.planes {
		at := d*m.cells + m.row
		x.planes[d] = append(x.planes[d], m.planes[at*size:(at+1)*size]...)
		c := m.coords[at]
		if x.n == 0 {
			x.box[d] = Interval{c, c}
		}
		x.box[d] = Interval{min(x.box[d].Lo, c), max(x.box[d].Hi, c)}
	}
	most := len(x.planes[0]) * len(x.planes)
	for i := range s.Attrs {
		v, from := &x.values[i], &m.values[i]
		if size := s.Attrs[i].CellSize(); !s.Attrs[i].Var() {
			v.Data = append(v.Data, from.Data[m.row*size:(m.row+1)*size]...)
		} else {
			end := uint64(len(from.Data))
			if m.row+1 < len(from.Offsets) {
				end = from.Offsets[m.row+1]
			}
			v.Offsets = append(v.Offsets, uint64(len(v.Data)))
			v.Data = append(v.Data, from.Data[from.Offsets[m.row]:end]...)
		}
		most = max(most, len(v.Data), 8*len(v.Offsets))
	}
	if int64(most) > x.w.a.o.MaxTile {
		return fault.New(fault.Limit, "tile "+strconv.Itoa(len(x.boxes)), fault.NoOffset, "more than %d bytes", x.w.a.o.MaxTile)
	}
	if x.n++; uint64(x.n) == s.Capacity {
		return x.flush()
	}
	return nil
}

// flush writes the tile that is filled, if it has cells.
func (x *sparseFiles) flush() (err error) {
	if x.n == 0 {
		return nil
	}
	w, s := x.w, x.w.s
	k, n := len(x.boxes), len(s.Attrs)
	if err := w.a.room(int64(k) + 1); err != nil {
		return err
	}
	for l := range w.lists {
		for i := range w.lists[l] {
			w.lists[l][i] = append(w.lists[l][i], 0)
		}
	}
	x.tile = x.tile[:0]
	for d, p := range x.planes {
		x.tile, x.planes[d] = append(x.tile, p...), p[:0]
	}
	size := s.DimType.Size()
	if w.lists[tileOffsets][n][k], err = x.coords.add(x.tile, s.Coords, s.DimType.elem(len(s.Dims)), x.n*size); err != nil {
		return err
	}
	w.end[n] = x.coords.at
	for i := range s.Attrs {
		a, v := &s.Attrs[i], &x.values[i]
		if a.Var() {
			err = x.vars[i].add(int64(k), inOrder(x.n), *v)
		} else if w.lists[tileOffsets][i][k], err = x.fixed[i].add(v.Data, a.Pipeline, a.Type.elem(int(a.Values)), 0); err == nil {
			w.end[i] = x.fixed[i].at
		}
		if err != nil {
			return err
		}
		v.Data, v.Offsets = v.Data[:0], v.Offsets[:0]
	}
	x.boxes = append(x.boxes, slices.Clone(x.box))
	w.f.LastCells, x.n = int64(x.n), 0
	return nil
}
