package tiledb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// writer writes one fragment to a directory that gets its final name when it is complete.
type writer struct {
	a      *Array
	s      *Schema
	x      *sealer
	folder *durable.Folder
	f      *Fragment
	tree   []byte
	lists  [3][][]uint64 // by list and attribute, the coordinates last
	varEnd []uint64
	end    []uint64
}

// writable returns an error if fragments of the array cannot be written: see Schema.writable.
func (a *Array) writable() error {
	for _, fragment := range slices.Concat(a.Fragments, a.Hidden) {
		if fragment.x.dimTypes {
			return fault.New(fault.Unsupported, "fragment "+fragment.Name, fault.NoOffset,
				"it has format version %d: only arrays of version %d are written", fragment.Version, Version)
		}
	}
	return a.Schema.writable()
}

// startFragment creates the hidden directory of a fragment. The caller defers its removal; finish gives it its name.
func (a *Array) startFragment(f *Fragment) (*writer, error) {
	if a.o.Since != 0 || a.o.Until != 0 {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset,
			"an array that was opened at a time cannot be written to"), a.uri)
	}
	if err := a.writable(); err != nil {
		return nil, fault.WithFile(err, a.uri)
	}
	root := source.LocalPath(a.uri)
	// Readers pass over hidden names.
	folder, err := durable.NewFolder(filepath.Join(root, "fragment"))
	if err != nil {
		return nil, err
	}
	w := &writer{a: a, s: a.Schema, x: &sealer{key: a.key, enc: filter.NewEncoder(a.key)}, folder: folder, f: f}
	n := len(a.Schema.Attrs)
	for k := range w.lists {
		w.lists[k] = make([][]uint64, n+1)
		for i := range w.lists[k] {
			w.lists[k][i] = make([]uint64, f.Tiles)
		}
	}
	w.end, w.varEnd = make([]uint64, n+1), make([]uint64, n)
	if a.Schema.Dense {
		// Without levels, since dense tiles are found by their coordinates; the fanout is TileDB's.
		w.tree = binary.LittleEndian.AppendUint32(nil, uint32(len(a.Schema.Dims)))
		w.tree = append(binary.LittleEndian.AppendUint32(w.tree, 10), byte(a.Schema.DimType))
		w.tree = binary.LittleEndian.AppendUint32(w.tree, 0)
	}
	return w, nil
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
	kind := tileOffsets
	if variable {
		kind = varOffsets
	}
	file, err := os.OpenFile(filepath.Join(w.folder.Path, filepath.Base(w.f.file(w.s, attr, kind))),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &tiles{w: w, f: file, b: bufio.NewWriterSize(file, 1<<18)}, nil
}

// add filters and writes a tile, and returns its offset.
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

// finish writes the metadata and gives the directory its name.
func (w *writer) finish() error {
	data, err := w.metadata()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.folder.Path, metadataName), data, 0o666); err != nil {
		return err
	}
	// The rename needs to come last: it makes the fragment visible, and its metadata must be
	// complete by then.
	name, err := w.a.finalName(w.f.Name)
	if err != nil {
		return fault.WithFile(err, w.a.uri)
	}
	return place(w.folder, pathname.Join(source.LocalPath(w.a.uri), name))
}

// place is durable.Folder.Place. Tests have it fail.
var place = (*durable.Folder).Place

// finalName returns the name under which a fragment appears, given the fragments that others wrote
// since the array was opened. A write gets a time later than all of theirs. With the time of its
// beginning, a fragment that was consolidated meanwhile would hide it. A consolidated fragment must
// not hide a fragment whose cells it does not have.
func (a *Array) finalName(name string) (string, error) {
	names, err := entries(context.Background(), a.store, a.uri)
	if err != nil {
		return "", err
	}
	now := a.now()
	start, end, _ := parseName(name) // 0 and 0 for ""
	for _, other := range names {
		other = strings.TrimSuffix(other, "/")
		f, t, err := parseName(other)
		if err != nil {
			continue
		}
		if t == math.MaxUint64 && name == "" && a.isFragment(other) {
			return "", fault.New(fault.Limit, "fragment", fault.NoOffset,
				"%s has the largest possible time: nothing can be written after it", other)
		}
		now = max(now, t+1)
		known := func(f *Fragment) bool { return f.Name == other }
		// A consolidated fragment hides all fragments in its range of time, hence also one that it
		// was not made from: its cells would be lost.
		hidden := start != end && f >= start && t <= end
		old := slices.ContainsFunc(a.Fragments, known) || slices.ContainsFunc(a.Hidden, known)
		if hidden && !old && a.isFragment(other) {
			return "", fault.New(fault.Unsupported, "fragment", fault.NoOffset,
				"%s appeared meanwhile and would be hidden: try again", other)
		}
	}
	if name == "" {
		name = newName(now, now)
	}
	return name, nil
}

// isFragment reports whether a local directory of the array is a complete fragment.
func (a *Array) isFragment(name string) bool {
	_, err := os.Stat(pathname.Join(source.LocalPath(a.uri), name, metadataName))
	return err == nil
}

// metadata returns the content of the metadata file.
func (w *writer) metadata() (b []byte, err error) {
	if b, err = w.x.generic(nil, w.tree); err != nil {
		return nil, err
	}
	var starts []uint64
	for k, lists := range w.lists {
		n := len(w.s.Attrs)
		if list(k) == tileOffsets {
			n++
		}
		for _, l := range lists[:n] {
			starts = append(starts, uint64(len(b)))
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
	for _, v := range slices.Concat([]uint64{tiles, uint64(w.f.LastCells)}, w.end, w.varEnd, []uint64{0}, starts) {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b, nil
}

// now returns the current time, or a later one that is later than every fragment.
func (a *Array) now() uint64 {
	t := uint64(time.Now().UnixMilli())
	for _, f := range a.Fragments {
		t = max(t, f.To+1)
	}
	return t
}

// checkValues checks that values has n cells of each of some attributes.
func (s *Schema) checkValues(attrs []int, n int, values []Values) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "values", fault.NoOffset, format, args...)
	}
	if len(values) != len(attrs) {
		return bad("there are values of %d attributes, but the array has %d", len(values), len(attrs))
	}
	for i, attr := range attrs {
		attr, v := &s.Attrs[attr], values[i]
		if !attr.Var() {
			if len(v.Data)/attr.CellSize() != n || len(v.Data)%attr.CellSize() != 0 {
				return bad("attribute %s has %d bytes for %d cells of %d", attr.Name, len(v.Data), n, attr.CellSize())
			}
			continue
		}
		if len(v.Offsets) != n {
			return bad("attribute %s has %d offsets for %d cells", attr.Name, len(v.Offsets), n)
		}
		prev := uint64(0)
		for k, o := range append(v.Offsets[:n:n], uint64(len(v.Data))) {
			rises := prev <= o && o <= uint64(len(v.Data))
			if !rises || k == 0 && o != 0 || o%uint64(attr.Type.Size()) != 0 {
				return bad("attribute %s: offset %d of cell %d in %d bytes", attr.Name, o, k, len(v.Data))
			}
			prev = o
		}
	}
	return nil
}

// attrFiles are the files of an attribute that are being written: of its values, or of offsets and of variable-length
// data.
type attrFiles struct {
	w            *writer
	attr         int
	first, data  *tiles // data is nil for cells of one size
	offsets, buf []byte
	cells        []int
}

// attribute creates the files of an attribute.
func (w *writer) attribute(attr int) (*attrFiles, error) {
	files := &attrFiles{w: w, attr: attr}
	var err error
	if files.first, err = w.create(attr, false); err != nil || !w.s.Attrs[attr].Var() {
		return files, err
	}
	if files.data, err = w.create(attr, true); err != nil {
		return nil, errors.Join(err, files.first.close())
	}
	return files, nil
}

func (f *attrFiles) close() error {
	if f.data == nil {
		return f.first.close()
	}
	return errors.Join(f.first.close(), f.data.close())
}

// addFixed appends tile n, which has cells of one size.
func (f *attrFiles) addFixed(n int64, tile []byte) (err error) {
	w, attr := f.w, &f.w.s.Attrs[f.attr]
	w.lists[tileOffsets][f.attr][n], err = f.first.add(tile, attr.Pipeline, attr.Type.elem(int(attr.Values)), 0)
	w.end[f.attr] = f.first.at
	return err
}

// addVar appends tile n, which has the given cells of v. -1 stands for a cell that was not written.
func (f *attrFiles) addVar(n int64, cells []int, v Values) (err error) {
	w, attr := f.w, &f.w.s.Attrs[f.attr]
	fill := attr.Type.fill()
	f.offsets, f.buf = f.offsets[:0], f.buf[:0]
	for _, c := range cells {
		f.offsets = binary.LittleEndian.AppendUint64(f.offsets, uint64(len(f.buf)))
		if c < 0 {
			f.buf = append(f.buf, fill...)
			continue
		}
		end := uint64(len(v.Data))
		if c+1 < len(v.Offsets) {
			end = v.Offsets[c+1]
		}
		f.buf = append(f.buf, v.Data[v.Offsets[c]:end]...)
	}
	if w.lists[tileOffsets][f.attr][n], err = f.first.add(f.offsets, w.s.Offsets, Uint64.elem(1), 0); err != nil {
		return err
	}
	w.lists[varOffsets][f.attr][n], err = f.data.add(f.buf, attr.Pipeline, attr.Type.elem(1), 0)
	w.lists[varTileSizes][f.attr][n] = uint64(len(f.buf))
	w.end[f.attr], w.varEnd[f.attr] = f.first.at, f.data.at
	return err
}

// removeFragment removes the metadata first, because the directory stops being a fragment with it:
// an interrupted removal leaves no damaged fragment.
func removeFragment(dir string) error {
	if err := os.Remove(pathname.Join(dir, metadataName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}
