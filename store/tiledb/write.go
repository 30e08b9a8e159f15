package tiledb

import (
	"bufio"
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// lockName is the empty file that TileDB locks while it consolidates.
const lockName = "__lock.tdb"

// genericPipeline filters what is neither attribute nor coordinate, as TileDB does.
var genericPipeline = filter.Pipeline{MaxChunk: filter.DefaultMaxChunk, Filters: []filter.Filter{{ID: filter.Gzip, Level: 1}}}

// DefaultFilters is the pipeline that TileDB gives coordinates and offsets where nothing else is said.
func DefaultFilters() filter.Pipeline {
	return filter.Pipeline{MaxChunk: filter.DefaultMaxChunk, Filters: []filter.Filter{{ID: filter.Zstd, Level: -1}}}
}

// Create makes an array: a local folder with its schema and lock file. The folder must not exist. With a
// key of 32 bytes all that is written to the array is encrypted with AES-256-GCM. The schema has to pass Validate.
func Create(path string, s *Schema, key []byte) error {
	path = source.LocalPath(path)
	if err := s.Validate(); err != nil {
		return fault.WithFile(err, path)
	}
	x, err := newSealer(key)
	if err != nil {
		return err
	}
	tile, err := x.generic(nil, s.append(nil))
	if err != nil {
		return err
	}
	// The schema makes it an array, all at once.
	tmp, err := hiddenFolder(filepath.Dir(path), ".tiledb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset, "it exists"), path)
	}
	for name, b := range map[string][]byte{schemaName: tile, lockName: nil} {
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o666); err != nil {
			return err
		}
	}
	return os.Rename(tmp, path)
}

// hiddenFolder makes a folder of which nobody knows yet, of the mode that the user's umask gives all others.
func hiddenFolder(parent, prefix string) (string, error) {
	dir := filepath.Join(parent, prefix+randomID())
	return dir, os.Mkdir(dir, 0o777)
}

// randomID returns 32 hexadecimal digits.
func randomID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it does not fail
	return hex.EncodeToString(id[:])
}

// Validate says why no array is made of a schema. One that does not make sense is an error of the kind that reading it would
// give, names of attributes that make files of one name are fault.Unsupported.
func (s *Schema) Validate() error {
	if _, err := parseSchema(s.append(nil), DefaultMaxTile); err != nil {
		return err
	}
	return s.checkNames()
}

// anonymous is what TileDB calls the one attribute of an array that may have no name.
const anonymous = "__attr"

// checkNames refuses attributes that would write over other files of a fragment: as in TileDB's library, names that begin like its own
// files do, and, which that library lets pass, one that is called like the var-length data of another.
func (s *Schema) checkNames() error {
	for i := range s.Attrs {
		name := s.Attrs[i].Name
		if strings.HasPrefix(name, "__") && name != anonymous {
			return fault.New(fault.Unsupported, "attribute "+name, fault.NoOffset, "names that begin with __ are those of TileDB's own files")
		}
		if k := s.Attr(name + "_var"); s.Attrs[i].Var() && k >= 0 {
			return fault.New(fault.Unsupported, "attribute "+name, fault.NoOffset, "its values and those of %s have the same file", s.Attrs[k].Name)
		}
	}
	return nil
}

// append appends the content of a schema file. What an open encrypted array has in its pipelines besides is
// left out.
func (s *Schema) append(b []byte) []byte {
	kind := byte(1)
	if s.Dense {
		kind = 0
	}
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, kind, byte(s.TileOrder), byte(s.CellOrder))
	b = binary.LittleEndian.AppendUint64(b, s.Capacity)
	b = without(s.Offsets, without(s.Coords, b))
	b = append(b, byte(s.DimType))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Dims)))
	for i := range s.Dims {
		b = s.appendDim(b, &s.Dims[i])
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Attrs)))
	for i := range s.Attrs {
		a := &s.Attrs[i]
		b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Name)))
		b = append(append(b, a.Name...), byte(a.Type))
		b = binary.LittleEndian.AppendUint32(b, a.Values)
		b = without(a.Pipeline, b)
	}
	return b
}

// without appends a pipeline but for its encryption.
func without(p filter.Pipeline, b []byte) []byte {
	q := filter.Pipeline{MaxChunk: p.MaxChunk}
	for _, f := range p.Filters {
		if f.ID != filter.AES256GCM {
			q.Filters = append(q.Filters, f)
		}
	}
	return q.Append(b)
}

func (s *Schema) appendDim(b []byte, d *Dim) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Name)))
	b = append(b, d.Name...)
	b = s.DimType.store(s.DimType.store(b, d.Domain.Lo), d.Domain.Hi)
	switch {
	case d.Extent == 0:
		return append(b, 1)
	case s.DimType.real():
		return s.DimType.store(append(b, 0), s.DimType.CoordOfFloat(math.Float64frombits(d.Extent)))
	}
	return s.DimType.store(append(b, 0), s.DimType.CoordOf(0)+Coord(d.Extent))
}

// sealer filters and, with a key, encrypts.
type sealer struct {
	key cipher.AEAD
	enc *filter.Encoder
}

func newSealer(key []byte) (*sealer, error) {
	if key == nil {
		return &sealer{enc: filter.NewEncoder(nil)}, nil
	}
	k, err := filter.NewKey(key)
	return &sealer{key: k, enc: filter.NewEncoder(k)}, err
}

// generic appends a generic tile.
func (x *sealer) generic(out, b []byte) ([]byte, error) {
	p, enc := genericPipeline, byte(plain)
	if x.key != nil {
		p, enc = p.With(filter.Filter{ID: filter.AES256GCM}), aes256gcm
	}
	tile, err := x.enc.Tile(nil, b, p, Char.elem(1), 0)
	if err != nil {
		return nil, err
	}
	pipe := p.Append(nil)
	out = binary.LittleEndian.AppendUint32(out, Version)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(tile)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(b)))
	out = append(out, byte(Char))
	out = binary.LittleEndian.AppendUint64(out, 1)
	out = append(out, enc)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(pipe)))
	return append(append(out, pipe...), tile...), nil
}

// numbers appends a list of the fragment metadata.
func (x *sealer) numbers(out []byte, l []uint64) ([]byte, error) {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(l)))
	for _, v := range l {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return x.generic(out, b)
}

// writer writes one fragment to a folder that gets its name when it is complete.
type writer struct {
	a      *Array
	s      *Schema
	x      *sealer
	dir    string // temporary
	f      *Fragment
	tree   []byte
	lists  [3][][]uint64 // by list, by attribute; the coordinates last
	varEnd []uint64
	end    []uint64
	tile   []byte // the last dense one
	merged *tally // of consolidation
}

// newDense returns a dense fragment of a box, with the grid of its tiles.
func (s *Schema) newDense(name string, b Box) (*Fragment, error) {
	f := &Fragment{Name: name, Dense: true, NonEmpty: b}
	err := f.denseGrid(&cursor{part: "sub-array", base: fault.NoOffset}, s, 0, 0, uint64(s.tileCells))
	return f, err
}

// startFragment makes the folder.
func (a *Array) startFragment(f *Fragment) (*writer, error) {
	if a.o.Since != 0 || a.o.Until != 0 {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset, "nothing is written to an array that was opened at a time"), a.uri)
	}
	if err := a.Schema.writable(); err != nil {
		return nil, fault.WithFile(err, a.uri)
	}
	root := source.LocalPath(a.uri)
	dir, err := hiddenFolder(root, ".fragment-")
	if err != nil {
		return nil, err
	}
	w := &writer{a: a, s: a.Schema, x: &sealer{key: a.key, enc: filter.NewEncoder(a.key)}, dir: dir, f: f}
	n := len(a.Schema.Attrs)
	for k := range w.lists {
		w.lists[k] = make([][]uint64, n+1)
		for i := range w.lists[k] {
			w.lists[k][i] = make([]uint64, f.Tiles)
		}
	}
	w.end, w.varEnd = make([]uint64, n+1), make([]uint64, n)
	return w, nil
}

// writable refuses what no fragment is written for: names of files that are not the attributes' own, and pipelines with bzip2.
func (s *Schema) writable() error {
	check := func(what string, p filter.Pipeline) error {
		if p.Has(filter.Bzip2) {
			return fault.New(fault.Unsupported, what, fault.NoOffset, "its filters have bzip2, which is read but not written: no fragment is added to the array, and none merged")
		}
		return nil
	}
	for i := range s.Attrs {
		if err := check("attribute "+s.Attrs[i].Name, s.Attrs[i].Pipeline); err != nil {
			return err
		}
	}
	return cmp.Or(check("coordinates", s.Coords), check("offsets", s.Offsets), s.checkNames())
}

// tiles is a file of tiles that is being written.
type tiles struct {
	w   *writer
	f   *os.File
	b   *bufio.Writer
	buf []byte
	at  uint64
}

func (w *writer) create(attr int, variable bool) (*tiles, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, filepath.Base(w.f.file(w.s, attr, variable))), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &tiles{w: w, f: f, b: bufio.NewWriterSize(f, 1<<18)}, nil
}

// add filters and writes a tile, and returns where it begins.
func (t *tiles) add(b []byte, p filter.Pipeline, e filter.Elem, stride int) (at uint64, err error) {
	if t.buf, err = t.w.x.enc.Tile(t.buf[:0], b, p, e, stride); err != nil {
		return 0, err
	}
	at = t.at
	t.at += uint64(len(t.buf))
	_, err = t.b.Write(t.buf)
	return at, err
}

func (t *tiles) close() error { return errors.Join(t.b.Flush(), t.f.Close()) }

// finish writes the metadata and gives the folder its name.
func (w *writer) finish() error {
	b, err := w.metadata()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, metadataName), b, 0o666); err != nil {
		return err
	}
	name, err := w.a.settleName(w.f.Name)
	if err != nil {
		return fault.WithFile(err, w.a.uri)
	}
	return os.Rename(w.dir, source.LocalPath(w.a.uri)+"/"+name)
}

// settleName returns the name under which a fragment appears now, among the fragments that others may have written since the array was
// opened. A write gets its time, later than theirs: had it that of its beginning, one that was merged meanwhile would hide it.
// And a merged fragment must not hide what it does not hold.
func (a *Array) settleName(name string) (string, error) {
	names, err := a.store.Folders(context.Background(), a.uri)
	if err != nil {
		return "", err
	}
	now := a.now()
	from, to, _ := parseName(name) // none of "": 0 and 0
	for _, other := range names {
		f, t, err := parseName(other)
		if err != nil {
			continue
		}
		if t == math.MaxUint64 && name == "" && a.isFragment(other) {
			return "", fault.New(fault.Limit, "fragment", fault.NoOffset, "%s is of the last time that there is: nothing can be written after it", other)
		}
		now = max(now, t+1)
		known := func(f *Fragment) bool { return f.Name == other }
		if from != to && f >= from && t <= to && !slices.ContainsFunc(a.Fragments, known) && !slices.ContainsFunc(a.Hidden, known) && a.isFragment(other) {
			return "", fault.New(fault.Unsupported, "fragment", fault.NoOffset, "%s appeared meanwhile, and would be hidden: try again", other)
		}
	}
	if name == "" {
		name = newName(now, now)
	}
	return name, nil
}

// isFragment reports whether a local folder of the array is a fragment that is complete.
func (a *Array) isFragment(name string) bool {
	_, err := os.Stat(filepath.Join(source.LocalPath(a.uri), name, metadataName))
	return err == nil
}

// metadata returns the content of the metadata file.
func (w *writer) metadata() (b []byte, err error) {
	if b, err = w.x.generic(nil, w.tree); err != nil {
		return nil, err
	}
	var at []uint64
	for k, lists := range w.lists {
		n := len(w.s.Attrs)
		if list(k) == tileOffsets {
			n++
		}
		for _, l := range lists[:n] {
			at = append(at, uint64(len(b)))
			if b, err = w.x.numbers(b, l); err != nil {
				return nil, err
			}
		}
	}
	dense := byte(0)
	tiles := uint64(w.f.Tiles)
	if w.f.Dense {
		dense, tiles = 1, 0
	}
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, dense, 0)
	b = w.s.appendBox(b, w.f.NonEmpty)
	for _, v := range slices.Concat([]uint64{tiles, uint64(w.f.LastCells)}, w.end, w.varEnd, []uint64{0}, at) {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b, nil
}

func (s *Schema) appendBox(b []byte, box Box) []byte {
	for _, i := range box {
		b = s.DimType.store(s.DimType.store(b, i.Lo), i.Hi)
	}
	return b
}

// atTheEnd is the time of a fragment that gets its name when it is complete.
const atTheEnd = 0

// newName returns the name of a fragment of some time, in milliseconds since 1970; "" for atTheEnd.
func newName(from, to uint64) string {
	if to == atTheEnd {
		return ""
	}
	return fmt.Sprintf("__%d_%d_%s", from, to, randomID())
}

// now returns a time later than that of every fragment.
func (a *Array) now() uint64 {
	t := uint64(time.Now().UnixMilli())
	for _, f := range a.Fragments {
		t = max(t, f.To+1)
	}
	return t
}

// checkValues wants n cells of every attribute.
func (s *Schema) checkValues(n int, values []Values) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "values", fault.NoOffset, format, args...)
	}
	if len(values) != len(s.Attrs) {
		return bad("of %d attributes, the array has %d", len(values), len(s.Attrs))
	}
	for i := range s.Attrs {
		a, v := &s.Attrs[i], values[i]
		if !a.Var() {
			if len(v.Data)/a.CellSize() != n || len(v.Data)%a.CellSize() != 0 {
				return bad("attribute %s has %d bytes for %d cells of %d", a.Name, len(v.Data), n, a.CellSize())
			}
			continue
		}
		if len(v.Offsets) != n {
			return bad("attribute %s has %d offsets for %d cells", a.Name, len(v.Offsets), n)
		}
		prev := uint64(0)
		for k, o := range append(v.Offsets[:n:n], uint64(len(v.Data))) {
			if k == 0 && o != 0 || o < prev || o > uint64(len(v.Data)) || o%uint64(a.Type.Size()) != 0 {
				return bad("attribute %s: offset %d of cell %d in %d bytes", a.Name, o, k, len(v.Data))
			}
			prev = o
		}
	}
	return nil
}

// WriteDense writes a box of cells of a dense array as a new fragment; values has the cells of every
// attribute, in row-major order. The array has to lie in a local folder. It does not see what was
// written: open it again.
func (a *Array) WriteDense(ctx context.Context, b Box, values []Values) error {
	return a.writeDense(ctx, b, values, atTheEnd, atTheEnd)
}

func (a *Array) writeDense(ctx context.Context, b Box, values []Values, from, to uint64) error {
	shape, cells, err := a.Shape(b)
	if err != nil {
		return err
	}
	s := a.Schema
	if err := s.checkValues(cells, values); err != nil {
		return err
	}
	f, err := s.newDense(newName(from, to), b)
	if err != nil {
		return err
	}
	w, err := a.startFragment(f)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	w.tree = emptyTree(s)
	alone := &Array{Schema: s, Fragments: []*Fragment{f}}
	rowMajor := layout{axes: a.axes, stride: strides(shape, a.axes)}
	for i := range s.Attrs {
		if s.Attrs[i].Var() {
			err = w.denseVar(ctx, newDenseWalk(alone, 0, b, rowMajor), i, values[i])
		} else {
			err = w.denseFixed(ctx, newDenseWalk(alone, 0, b, rowMajor), i, values[i].Data)
		}
		if err != nil {
			return err
		}
	}
	return w.finish()
}

// emptyTree is the R-tree of dense fragments.
func emptyTree(s *Schema) []byte { return appendTree(nil, s, nil) }

func (w *writer) denseFixed(ctx context.Context, walk *denseWalk, attr int, data []byte) (err error) {
	t, err := w.create(attr, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return w.fixedTiles(ctx, t, walk, attr, data)
}

// fixedTiles appends the tiles of a walk, whose cells are data.
func (w *writer) fixedTiles(ctx context.Context, t *tiles, walk *denseWalk, attr int, data []byte) (err error) {
	a := &w.s.Attrs[attr]
	size := a.CellSize()
	n := int(w.s.tileCells) * size
	if cap(w.tile) < n {
		w.tile = make([]byte, n)
	}
	tile := w.tile[:n]
	for more := true; more; more = walk.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := walk.place()
		fillCells(tile, a.Type.fill())
		_ = walk.plan.each(func(from, to, n, stride int) error {
			if stride == 1 {
				copy(tile[to*size:], data[from*size:(from+n)*size])
				return nil
			}
			for k := range n {
				copy(tile[(to+k*stride)*size:], data[(from+k)*size:(from+k+1)*size])
			}
			return nil
		})
		if w.lists[tileOffsets][attr][n], err = t.add(tile, a.Pipeline, a.Type.elem(int(a.Values)), 0); err != nil {
			return err
		}
	}
	w.end[attr] = t.at
	return nil
}

func (w *writer) denseVar(ctx context.Context, walk *denseWalk, attr int, v Values) (err error) {
	t, err := w.createVar(attr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.dense(ctx, walk, v)
}

// varFiles are both files of a var-length attribute that are being written.
type varFiles struct {
	w          *writer
	attr       int
	offs, data *tiles
	ob, db     []byte
	cells      []int
}

func (w *writer) createVar(attr int) (*varFiles, error) {
	t := &varFiles{w: w, attr: attr}
	var err error
	if t.offs, err = w.create(attr, false); err != nil {
		return nil, err
	}
	if t.data, err = w.create(attr, true); err != nil {
		return nil, errors.Join(err, t.offs.close())
	}
	return t, nil
}

func (t *varFiles) close() error { return errors.Join(t.offs.close(), t.data.close()) }

// dense appends the tiles of a walk, whose cells are v.
func (t *varFiles) dense(ctx context.Context, walk *denseWalk, v Values) error {
	for more := true; more; more = walk.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.cells = slices.Grow(t.cells[:0], int(t.w.s.tileCells))[:t.w.s.tileCells]
		for i := range t.cells {
			t.cells[i] = -1
		}
		n := walk.place()
		_ = walk.plan.each(func(from, to, n, stride int) error {
			for k := range n {
				t.cells[to+k*stride] = from + k
			}
			return nil
		})
		if err := t.add(n, t.cells, v); err != nil {
			return err
		}
	}
	return nil
}

// add appends tile n, of some cells of v; -1 is one that was not written.
func (t *varFiles) add(n int64, cells []int, v Values) (err error) {
	w := t.w
	a := &w.s.Attrs[t.attr]
	fill := a.Type.fill()
	t.ob, t.db = t.ob[:0], t.db[:0]
	for _, c := range cells {
		t.ob = binary.LittleEndian.AppendUint64(t.ob, uint64(len(t.db)))
		if c < 0 {
			t.db = append(t.db, fill...)
			continue
		}
		end := uint64(len(v.Data))
		if c+1 < len(v.Offsets) {
			end = v.Offsets[c+1]
		}
		t.db = append(t.db, v.Data[v.Offsets[c]:end]...)
	}
	if w.lists[tileOffsets][t.attr][n], err = t.offs.add(t.ob, w.s.Offsets, Uint64.elem(1), 0); err != nil {
		return err
	}
	if w.lists[varOffsets][t.attr][n], err = t.data.add(t.db, a.Pipeline, a.Type.elem(1), 0); err != nil {
		return err
	}
	w.lists[varTileSizes][t.attr][n] = uint64(len(t.db))
	w.end[t.attr], w.varEnd[t.attr] = t.offs.at, t.data.at
	return nil
}

// WriteSparse writes cells of a sparse array as a new fragment, or some cells of a dense one; coords has the
// coordinates cell by cell, little-endian, in any order. Two cells with the same coordinates are
// fault.Corrupt. See WriteDense for the rest.
func (a *Array) WriteSparse(ctx context.Context, coords []byte, values []Values) error {
	return a.writeSparse(ctx, coords, values, atTheEnd, atTheEnd, false)
}

// writeSparse is WriteSparse for a fragment of some time; again says that coordinates may be there more than once.
func (a *Array) writeSparse(ctx context.Context, raw []byte, values []Values, from, to uint64, again bool) error {
	return a.sparseFragment(ctx, newName(from, to), raw, values, again)
}

func (a *Array) sparseFragment(ctx context.Context, name string, raw []byte, values []Values, again bool) error {
	s := a.Schema
	dims, size := len(s.Dims), s.DimType.Size()
	n := len(raw) / (dims * size)
	if n == 0 || len(raw)%(dims*size) != 0 {
		return fault.New(fault.Corrupt, "coordinates", fault.NoOffset, "%d bytes for cells of %d dimensions", len(raw), dims)
	}
	if err := s.checkValues(n, values); err != nil {
		return err
	}
	coords := make([]Coord, n*dims)
	for i := range coords {
		coords[i] = s.DimType.load(raw[i*size:])
		if !s.Dims[i%dims].Domain.has(coords[i]) {
			return fault.New(fault.Corrupt, "coordinates", fault.NoOffset, "%s of cell %d is outside of dimension %q", s.DimType.FormatCoord(coords[i]), i/dims, s.Dims[i%dims].Name)
		}
	}
	order, err := s.globalOrder(coords, again)
	if err != nil {
		return err
	}
	if s.Capacity > uint64(n) && s.Capacity > math.MaxInt32 { // only one tile, then
		return fault.New(fault.Limit, schemaPart, fault.NoOffset, "capacity %d", s.Capacity)
	}
	capacity := int(s.Capacity)
	count := (n + capacity - 1) / capacity
	f := &Fragment{Name: name, Tiles: int64(count), LastCells: int64(n - (count-1)*capacity)}
	boxes := make([]Box, count)
	for t := range boxes {
		boxes[t] = bound(coords, dims, order[t*capacity:min((t+1)*capacity, n)])
	}
	f.NonEmpty = union(boxes)
	w, err := a.startFragment(f)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	w.tree = appendTree(nil, s, boxes)
	if err := w.coords(ctx, raw, order, capacity); err != nil {
		return err
	}
	for i := range s.Attrs {
		if s.Attrs[i].Var() {
			err = w.sparseVar(ctx, i, values[i], order, capacity)
		} else {
			err = w.sparseFixed(ctx, i, values[i].Data, order, capacity)
		}
		if err != nil {
			return err
		}
	}
	return w.finish()
}

// globalOrder returns the numbers of the cells in the order of the array's tiles and of the cells in
// them.
func (s *Schema) globalOrder(coords []Coord, again bool) ([]int, error) {
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
	order := inOrder(n)
	slices.SortStableFunc(order, both)
	for i := 1; i < n && !again; i++ {
		if both(order[i-1], order[i]) == 0 {
			return nil, fault.New(fault.Corrupt, "coordinates", fault.NoOffset, "cells %d and %d have the same", order[i-1], order[i])
		}
	}
	return order, nil
}

// tile returns the number of the space tile of a coordinate, 0 where there are none.
func (d *Dim) tile(t Datatype, c Coord) uint64 {
	switch {
	case d.Extent == 0:
		return 0
	case t.real():
		return uint64((c.float() - d.Domain.Lo.float()) / math.Float64frombits(d.Extent))
	}
	return uint64(c-d.Domain.Lo) / d.Extent
}

// bound returns the bounds of some cells.
func bound(coords []Coord, dims int, cells []int) Box {
	b := make(Box, dims)
	for k, c := range cells {
		for d, v := range coords[c*dims : (c+1)*dims] {
			if k == 0 {
				b[d] = Interval{v, v}
			}
			b[d] = Interval{min(b[d].Lo, v), max(b[d].Hi, v)}
		}
	}
	return b
}

// union returns the bounds of some boxes.
func union(boxes []Box) Box {
	u := slices.Clone(boxes[0])
	for _, b := range boxes[1:] {
		for d := range u {
			u[d] = Interval{min(u[d].Lo, b[d].Lo), max(u[d].Hi, b[d].Hi)}
		}
	}
	return u
}

// appendTree appends the R-tree over the boxes of tiles.
func appendTree(b []byte, s *Schema, boxes []Box) []byte {
	const fanout = 10 // TileDB's
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

func (w *writer) coords(ctx context.Context, raw []byte, order []int, capacity int) (err error) {
	n := len(w.s.Attrs)
	t, err := w.create(n, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	size, dims := w.s.DimType.Size(), len(w.s.Dims)
	e := w.s.DimType.elem(dims)
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
		if w.lists[tileOffsets][n][i], err = t.add(tile, w.s.Coords, e, len(cells)*size); err != nil {
			return err
		}
		i++
	}
	w.end[n] = t.at
	return nil
}

func (w *writer) sparseFixed(ctx context.Context, attr int, data []byte, order []int, capacity int) (err error) {
	a := &w.s.Attrs[attr]
	t, err := w.create(attr, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	size, i := a.CellSize(), 0
	var tile []byte
	for cells := range slices.Chunk(order, capacity) {
		if err := ctx.Err(); err != nil {
			return err
		}
		tile = tile[:0]
		for _, c := range cells {
			tile = append(tile, data[c*size:(c+1)*size]...)
		}
		if w.lists[tileOffsets][attr][i], err = t.add(tile, a.Pipeline, a.Type.elem(int(a.Values)), 0); err != nil {
			return err
		}
		i++
	}
	w.end[attr] = t.at
	return nil
}

func (w *writer) sparseVar(ctx context.Context, attr int, v Values, order []int, capacity int) (err error) {
	t, err := w.createVar(attr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	i := int64(0)
	for cells := range slices.Chunk(order, capacity) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.add(i, cells, v); err != nil {
			return err
		}
		i++
	}
	return nil
}

// removeFragment removes the metadata first: from then on the folder is no fragment.
func removeFragment(dir string) error {
	if err := os.Remove(filepath.Join(dir, metadataName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}
