package tiledb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// writer writes a dense fragment to a directory that gets its final name when it is complete.
type writer struct {
	a      *Array
	x      *sealer
	folder *durable.Folder
	f      *Fragment
	files  []*attrFile
}

// newFragmentFolder creates the hidden directory of a fragment. Readers pass over hidden names.
func (a *Array) newFragmentFolder() (*durable.Folder, error) {
	return durable.NewFolder(filepath.Join(source.LocalPath(a.uri), "fragment"))
}

// create creates the files of all attributes.
func (w *writer) create() error {
	for i := range w.a.Schema.Attrs {
		name := w.a.Schema.Attrs[i].Name + lists[tileOffsets].suffix
		file, err := os.OpenFile(filepath.Join(w.folder.Path, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		w.files = append(w.files, &attrFile{x: w.x, attr: &w.a.Schema.Attrs[i], file: file,
			out: bufio.NewWriterSize(file, 1<<18)})
	}
	return nil
}

// close closes the files.
func (w *writer) close() (err error) {
	for _, f := range w.files {
		err = errors.Join(err, f.out.Flush(), f.file.Close())
	}
	return err
}

// finish writes the metadata and gives the directory its name.
func (w *writer) finish() error {
	data, err := w.metadata()
	if err == nil {
		err = os.WriteFile(filepath.Join(w.folder.Path, metadataName), data, 0o666)
	}
	if err != nil {
		return err
	}
	// The rename needs to come last: it makes the fragment visible, and its metadata must be complete by then.
	if w.f.Name, err = w.a.nextName(); err != nil {
		return fault.WithFile(err, w.a.uri)
	}
	return w.folder.Place(pathname.Join(source.LocalPath(w.a.uri), w.f.Name))
}

// nextName returns a name for a new fragment.
func (a *Array) nextName() (string, error) {
	names, err := entries(context.Background(), a.store, a.uri)
	if err != nil {
		return "", err
	}
	now := uint64(time.Now().UnixMilli())
	for _, other := range names {
		other = strings.TrimSuffix(other, "/")
		stamp, err := parseName(other)
		if err != nil {
			continue
		}
		// The name is later than all others, because a fragment that was consolidated since the array was opened would
		// otherwise hide this one.
		now = max(now, stamp.to+1)
	}
	return newName(now, now), nil
}

// metadata returns the content of the metadata file.
func (w *writer) metadata() ([]byte, error) {
	schema := w.a.Schema
	// Without levels, since dense tiles are found by their coordinates; the fanout is TileDB's.
	tree := binary.LittleEndian.AppendUint32(nil, uint32(len(schema.Dims)))
	tree = append(binary.LittleEndian.AppendUint32(tree, 10), byte(schema.DimType))
	tree = binary.LittleEndian.AppendUint32(tree, 0)
	content, err := w.x.generic(nil, tree)
	if err != nil {
		return nil, err
	}
	// The offsets of the tiles of each attribute and of the coordinates, and the offsets and the sizes of the
	// variable-length data of each attribute. A dense fragment has no coordinates, and none that is written has
	// such data.
	attrs := len(w.files)
	lists := slices.Repeat([][]uint64{make([]uint64, w.f.Tiles)}, 3*attrs+1)
	ends, starts := make([]uint64, 2*attrs+1), make([]uint64, len(lists))
	for i, f := range w.files {
		lists[i], ends[i] = f.offsets, f.end
	}
	for i, list := range lists {
		starts[i] = uint64(len(content))
		if content, err = w.x.numbers(content, list); err != nil {
			return nil, err
		}
	}
	content = binary.LittleEndian.AppendUint32(content, Version)
	content = append(content, 1, 0) // dense, and with a non-empty domain
	content = schema.appendBox(content, w.f.NonEmpty)
	// The number of sparse tiles comes first, and the offset of the tree in front of the lists'.
	for _, v := range slices.Concat([]uint64{0, uint64(w.f.LastCells)}, ends, []uint64{0}, starts) {
		content = binary.LittleEndian.AppendUint64(content, v)
	}
	return content, nil
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
