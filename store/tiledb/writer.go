package tiledb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
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

// startFragment creates the hidden directory of a fragment. The caller defers its removal; finish gives it its name.
func (a *Array) startFragment(f *Fragment) (*writer, error) {
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

// create creates a file of an attribute.
func (w *writer) create(attr int, kind list) (*tiles, error) {
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
	if w.f.Name == "" {
		if w.f.Name, err = w.a.nextName(); err != nil {
			return fault.WithFile(err, w.a.uri)
		}
	}
	return w.folder.Place(pathname.Join(source.LocalPath(w.a.uri), w.f.Name))
}

// nextName returns a name for a new fragment. It has a time later than those of the fragments that others wrote since
// the array was opened: with the time of its beginning, a fragment that was consolidated meanwhile would hide it.
func (a *Array) nextName() (string, error) {
	names, err := entries(context.Background(), a.store, a.uri)
	if err != nil {
		return "", err
	}
	now := a.now()
	for _, other := range names {
		other = strings.TrimSuffix(other, "/")
		_, to, err := parseName(other)
		if err != nil {
			continue
		}
		if to == math.MaxUint64 && a.isFragment(other) {
			return "", fault.New(fault.Limit, "fragment", fault.NoOffset,
				"%s has the largest possible time: nothing can be written after it", other)
		}
		now = max(now, to+1)
	}
	return newName(now, now), nil
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

// checkValues checks that values has n cells of each attribute.
func (s *Schema) checkValues(n int, values []Values) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "values", fault.NoOffset, format, args...)
	}
	if len(values) != len(s.Attrs) {
		return bad("there are values of %d attributes, but the array has %d", len(values), len(s.Attrs))
	}
	for i := range s.Attrs {
		attr, bytes := &s.Attrs[i], len(values[i].Data)
		if bytes/attr.CellSize() != n || bytes%attr.CellSize() != 0 {
			return bad("attribute %s has %d bytes for %d cells of %d", attr.Name, bytes, n, attr.CellSize())
		}
	}
	return nil
}
