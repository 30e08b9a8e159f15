package loader

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// writeSparse adds a fragment of format 3 to a sparse array with one attribute: cells in the order of coords, which has
// all coordinates of a cell after those of the cell before.
func writeSparse(t testing.TB, path string, coords, values []byte) {
	t.Helper()
	a := openWritten(t, path)
	f := &sparseFragment{t: t, s: a.Schema, dir: filepath.Join(path,
		fmt.Sprintf("__%d_%[1]d_%032[1]x", len(a.Fragments)+1))}
	if err := os.Mkdir(f.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	f.write(coords, values)
}

// sparseFragment is a fragment that is being written.
type sparseFragment struct {
	t   testing.TB
	s   *tiledb.Schema
	dir string
}

func (f *sparseFragment) write(coords, values []byte) {
	dims, size, attr := len(f.s.Dims), f.s.DimType.Size(), &f.s.Attrs[0]
	cell, capacity := dims*size, int(f.s.Capacity)
	n := len(coords) / cell
	leaves, all := f.numbers(nil, uint64((n+capacity-1)/capacity)), f.bounds(coords)
	var at [2][]uint64 // where tiles begin: of the attribute, of the coordinates
	var files [2][]byte
	for tile := range slices.Chunk(coords, capacity*cell) {
		leaves = append(leaves, f.bounds(tile)...)
		var planes []byte
		for d := range dims {
			for c := range slices.Chunk(tile, cell) {
				planes = append(planes, c[d*size:(d+1)*size]...)
			}
		}
		k := len(at[0]) * capacity * attr.CellSize()
		cells := values[k:min(k+capacity*attr.CellSize(), len(values))]
		at[0], at[1] = append(at[0], uint64(len(files[0]))), append(at[1], uint64(len(files[1])))
		files[0] = f.tile(files[0], cells, attr.Pipeline, attr.CellSize(), 0)
		files[1] = f.tile(files[1], planes, f.s.Coords, size, len(tile)/dims)
	}
	f.put(attr.Name+".tdb", files[0])
	f.put("__coords.tdb", files[1])

	levels := binary.LittleEndian.AppendUint32(nil, uint32(dims))
	levels = append(binary.LittleEndian.AppendUint32(levels, 1<<20), byte(f.s.DimType)) // one root over all leaves
	levels = binary.LittleEndian.AppendUint32(levels, 2)
	levels = append(f.numbers(levels, 1), all...)
	meta := f.generic(nil, append(levels, leaves...))
	var starts []uint64
	none := make([]uint64, len(at[0]))
	for _, list := range [][]uint64{at[0], at[1], none, none} { // and sizes of variable-length data
		starts = append(starts, uint64(len(meta)))
		meta = f.generic(meta, f.numbers(f.numbers(nil, uint64(len(list))), list...))
	}
	meta = append(binary.LittleEndian.AppendUint32(meta, tiledb.Version), 0, 0)
	meta = f.numbers(append(meta, all...), uint64(len(at[0])), uint64(n-(len(at[0])-1)*capacity),
		uint64(len(files[0])), uint64(len(files[1])), 0, 0)
	f.put("__fragment_metadata.tdb", f.numbers(meta, starts...))
}

// bounds returns the smallest and the largest coordinate of some cells along each dimension.
func (f *sparseFragment) bounds(coords []byte) (box []byte) {
	size := f.s.DimType.Size()
	for d := range f.s.Dims {
		var column [][]byte
		for cell := range slices.Chunk(coords, len(f.s.Dims)*size) {
			column = append(column, cell[d*size:(d+1)*size])
		}
		order := func(a, b []byte) int { return cmp.Compare(f.coord(a), f.coord(b)) }
		box = append(append(box, slices.MinFunc(column, order)...), slices.MaxFunc(column, order)...)
	}
	return box
}

func (f *sparseFragment) coord(b []byte) float64 { return f.s.DimType.Float(f.s.DimType.Coord(b)) }

func (f *sparseFragment) tile(out, b []byte, p filter.Pipeline, cell, stride int) []byte {
	f.t.Helper()
	if stride == 0 {
		stride = len(b)
	}
	out = f.numbers(out, uint64((len(b)+stride-1)/stride))
	for part := range slices.Chunk(b, stride) { // one chunk each
		stored, err := filter.NewEncoder(nil).Tile(nil, part, p, filter.Elem{Size: cell, Cell: cell})
		if err != nil || binary.LittleEndian.Uint64(stored) != 1 {
			f.t.Fatal(len(stored), err)
		}
		out = append(out, stored[8:]...)
	}
	return out
}

// generic appends a part of the metadata, which has no filters.
func (f *sparseFragment) generic(out, b []byte) []byte {
	p := filter.Pipeline{MaxChunk: filter.DefaultMaxChunk}
	tile, pipe := f.tile(nil, b, p, 1, 0), p.Append(nil)
	out = f.numbers(binary.LittleEndian.AppendUint32(out, tiledb.Version), uint64(len(tile)), uint64(len(b)))
	out = append(f.numbers(append(out, byte(tiledb.Char)), 1), 0)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(pipe)))
	return append(append(out, pipe...), tile...)
}

func (f *sparseFragment) numbers(out []byte, list ...uint64) []byte {
	for _, v := range list {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return out
}

func (f *sparseFragment) put(name string, b []byte) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), b, 0o666); err != nil {
		f.t.Fatal(err)
	}
}
